//! What an invitation gives stays within what it promised and what its inviter could give, whatever happens to its role.

use bowline_core::{Code, Error};
use bowline_identity::ROLE_COLUMNS;
use bowline_store::Engine;
use bowline_testkit::{TestServer, each_engine};
use serde_json::{Value, json};

use crate::accepting::{accept, invite, person, rejected as not_accepted};
use crate::support::{call, each, execute, holder, inventory, number, ok, provider, rejected, role, uid_of};

async fn a_role_that_an_invitation_promises_grows_only_by_what_the_caller_holds_there(server: &TestServer) {
    let org = server.organization("acme").await;
    let team = server.group(&org, "team").await;
    let keeper = holder(server, &org, "keeper", &org, &["CAP_IAM_ROLES_LIST", "CAP_IAM_ROLES_UPDATE"]).await;
    let small = role(server, &org, "small", &["CAP_REPO_LIST"]).await;
    let operator = server.operator().await;
    let (uid, code) = invite(&operator, &team, json!({ "roleUid": small, "ttl": "3600s" })).await;

    let wider = json!({ "capabilities": ["CAP_REPO_LIST", "CAP_IAM_ROLE_BINDINGS_CREATE"] });
    let before = inventory(server).await;
    let what = format!("PATCH /iam/v2/roles/{small}");
    let refusal = rejected(&keeper.actor, &what, wider.clone(), 403, "PERMISSION_DENIED").await;
    let metadata = &refusal.detail("ErrorInfo")["metadata"];
    assert_eq!((&metadata["capability"], &metadata["scope"]), (&json!("role_bindings.create"), &json!(team)));
    let v1 = json!({ "name": "small", "capabilities": ["repo.list", "role_bindings.create"] });
    assert_eq!(call(&keeper.actor, &format!("PUT /iam/v1/roles/{small}"), v1).await.status, 403);
    assert_eq!(inventory(server).await, before);

    // Nor does the role go while the invitation is open.
    rejected(&operator, &format!("DELETE /iam/v2/roles/{small}"), Value::Null, 400, "FAILED_PRECONDITION").await;
    assert!(accept(server, &code, &person(1), None).await.expect("still what was promised"));
    ok(&operator, &format!("DELETE /iam/v2/groupInvites/{uid}"), Value::Null).await;
    ok(&keeper.actor, &what, json!({ "capabilities": ["CAP_REPO_LIST"] })).await;
}

async fn an_invitation_by_a_narrowed_token_gives_no_more_than_the_token_could(server: &TestServer) {
    let org = server.organization("acme").await;
    let owner = holder(server, &org, "owner", &org, &["CAP_REPO_LIST"]).await;
    server.bind(&owner.uid, &server.role("owner"), &org).await;
    let narrowed = ["group_invites.create", "roles.list", "roles.update", "role_bindings.create", "repo.list"];
    let narrowed = narrowed.map(|capability| ("cap", capability));
    let narrowed = owner.narrowed(server, &narrowed).await;
    let small = role(server, &org, "small", &["CAP_REPO_LIST"]).await;
    let (_, code) = invite(&narrowed, &org, json!({ "roleUid": small, "ttl": "3600s" })).await;

    // The owner themselves may widen the role; the invitation promised less.
    let wider = json!({ "capabilities": ["CAP_REPO_LIST", "CAP_IAM_GROUPS_DELETE"] });
    let what = format!("PATCH /iam/v2/roles/{small}");
    rejected(&narrowed, &what, wider.clone(), 403, "PERMISSION_DENIED").await;
    ok(&server.operator().await, &what, wider).await;
    not_accepted(server, &code, None, Code::FailedPrecondition, "gives more today").await;
    // Promised or not, what the token had lost it cannot give: here after the promise was tampered with.
    let all = "UPDATE group_invites SET promised = (SELECT capabilities FROM roles WHERE name = 'owner')";
    execute(server, all, &[]).await;
    not_accepted(server, &code, None, Code::FailedPrecondition, "may not give its role any more").await;

    ok(&server.operator().await, &what, json!({ "capabilities": ["CAP_REPO_LIST"] })).await;
    assert!(accept(server, &code, &person(2), None).await.expect("what was promised"));
}

async fn an_open_invitation_of_an_earlier_version_is_refused(server: &TestServer) {
    let org = server.organization("acme").await;
    let viewer = server.role("viewer");
    let (_, code) = invite(&server.operator().await, &org, json!({ "roleUid": viewer, "ttl": "60s" })).await;
    execute(server, "UPDATE group_invites SET promised = NULL", &[]).await;
    not_accepted(server, &code, None, Code::FailedPrecondition, "ask for a new invitation").await;
}

/// Tables that name roles and give none: the roles themselves, records of what happened, and the roles of operators,
/// which have names of their own.
const RECORDS: [&str; 6] = ["roles", "audit", "outbox", "count_deltas", "counts", "operators"];

/// Every text column of the catalogue, with its table.
async fn text_columns(server: &TestServer) -> Vec<(String, String)> {
    let db = &server.server().parts().storage.db;
    let sql = match db.engine() {
        Engine::Sqlite => {
            "SELECT t.name, c.name FROM sqlite_schema t JOIN pragma_table_info(t.name) c
             WHERE t.type = 'table' AND t.name NOT LIKE 'sqlite%' AND c.type = 'TEXT'"
        }
        Engine::Postgres => {
            "SELECT table_name::text, column_name::text FROM information_schema.columns
             WHERE table_schema = 'public' AND data_type = 'text'"
        }
    };
    let read = db.read(move |tx| {
        Box::pin(async move { tx.query(sql, &[], |row| Ok::<_, Error>((row.text(0)?, row.text(1)?))).await })
    });
    read.await.expect("the catalogue is read")
}

async fn holds(server: &TestServer, table: &str, column: &str, value: &str) -> bool {
    let (sql, value) = (format!("SELECT 1 FROM {table} WHERE {column} = $1 LIMIT 1"), value.to_owned());
    let read = server.server().parts().storage.db.read(move |tx| {
        Box::pin(async move {
            let found = tx.query(&sql, &[bowline_store::Value::from(&value)], |_| Ok::<_, Error>(())).await?;
            Ok::<_, Error>(!found.is_empty())
        })
    });
    read.await.expect("the column is read")
}

async fn every_column_that_holds_a_role_is_known_to_the_widening_check(server: &TestServer) {
    let org = server.organization("acme").await;
    let small = role(server, &org, "small", &["CAP_REPO_LIST"]).await;
    let operator = server.operator().await;
    let friend = server.identity(&org, "friend").await;
    server.bind(&friend, &small, &org).await;
    invite(&operator, &org, json!({ "roleUid": small, "ttl": "60s" })).await;
    let provider = provider(server, &org, "login").await;
    ok(&operator, &format!("PATCH /iam/v2/identityProviders/{provider}"), json!({ "defaultRole": small })).await;
    let mapping = json!({ "externalGroupId": "crew", "roleUid": small });
    uid_of(&ok(&operator, &format!("POST /iam/v2/externalGroupRoleMappings/{provider}"), mapping).await);

    let known: Vec<(&str, &str)> = ROLE_COLUMNS.iter().map(|column| (column.table, column.role)).collect();
    let mut found = 0;
    for (table, column) in text_columns(server).await {
        let is_known = known.contains(&(table.as_str(), column.as_str()));
        if RECORDS.contains(&table.as_str()) {
            continue;
        }
        assert!(is_known || !column.contains("role"), "{table}.{column} may hold a role; add it to ROLE_COLUMNS");
        let holds_it = holds(server, &table, &column, &small).await;
        assert_eq!(holds_it, is_known, "{table}.{column}: does it hold a role, and does ROLE_COLUMNS say so?");
        found += usize::from(holds_it);
    }
    assert_eq!(found, ROLE_COLUMNS.len());
}

/// A new invitation of viewers; its UIDP.
async fn invite_to(server: &TestServer, group: &str) -> String {
    let body = json!({ "roleUid": server.role("viewer"), "ttl": "3600s" });
    invite(&server.operator().await, group, body).await.0
}

async fn invitations_go_with_their_group(server: &TestServer) {
    let org = server.organization("acme").await;
    let team = server.group(&org, "team").await;
    let owner = server.actor("owner", &org).await;
    for _ in 0..3 {
        invite_to(server, &team).await;
    }
    let kept = invite_to(server, &org).await;
    let audited = number(server, "SELECT count(*) FROM audit").await;
    ok(&owner, &format!("DELETE /iam/v2/groups/{team}"), Value::Null).await;
    assert_eq!(number(server, "SELECT count(*) FROM audit").await - audited, 4, "the group and three invitations");
    let list = ok(&owner, "GET /iam/v2/groupInvites", Value::Null).await;
    assert_eq!((each(&list["groupInvites"], "uid"), &list["totalCount"]), (vec![kept.as_str()], &json!("1")));
    let list = ok(&owner, &format!("GET /iam/v2/groupInvites?uidp.children_of={org}"), Value::Null).await;
    assert_eq!(list["totalCount"], "1");
}

each_engine!(
    a_role_that_an_invitation_promises_grows_only_by_what_the_caller_holds_there,
    an_invitation_by_a_narrowed_token_gives_no_more_than_the_token_could,
    an_open_invitation_of_an_earlier_version_is_refused,
    every_column_that_holds_a_role_is_known_to_the_widening_check,
    invitations_go_with_their_group
);
