//! The audit log and the outbox: a row for what was done, in its transaction, and none for what was refused.

use bowline_core::Error;
use bowline_testkit::{Actor, RestReply, TestServer, each_engine};
use serde_json::{Value, json};

use crate::support::{call, inventory, number, send, uid_of};

/// The newest row of the audit log: actor, method, kind, resource, request id, and whether it has images.
async fn newest(server: &TestServer) -> (Vec<String>, bool, bool) {
    let sql = "SELECT actor, method, kind, resource, request_id, before_image, after_image FROM audit
               ORDER BY id DESC LIMIT 1";
    let read = server.server().parts().storage.db.read(|tx| {
        Box::pin(async move {
            let row = tx.query_opt(sql, &[], |row| {
                let texts: Result<Vec<String>, _> = (0..5).map(|column| row.text(column)).collect();
                Ok::<_, Error>((texts?, row.opt_bytes(5)?.is_some(), row.opt_bytes(6)?.is_some()))
            });
            row.await
        })
    });
    read.await.expect("the audit log can be read").expect("it has a row")
}

/// How many rows of each a call added.
async fn added(server: &TestServer, what: impl Future<Output = RestReply>) -> (RestReply, i64, i64) {
    let count = async || {
        (number(server, "SELECT count(*) FROM audit").await, number(server, "SELECT count(*) FROM outbox").await)
    };
    let before = count().await;
    let reply = what.await;
    let after = count().await;
    (reply, after.0 - before.0, after.1 - before.1)
}

/// One mutation that succeeds: what is called, its body, and the rows that it adds.
type Deed = (String, Value, i64, i64);

async fn validate(server: &TestServer, actor: &Actor, (what, body, audited, told): Deed) -> Value {
    let (reply, audit, outbox) = added(server, call(actor, &what, body)).await;
    assert_eq!(reply.status, 200, "{what}: {}", reply.text());
    assert_eq!((audit, outbox), (audited, told), "{what}: rows of the audit log, and of the outbox");
    reply.json()
}

async fn every_mutation_has_one_audit_entry_and_one_event(server: &TestServer) {
    let org = server.organization("acme").await;
    let friend = server.identity(&org, "friend").await;
    let other = server.identity(&org, "other").await;
    let operator = server.operator().await;
    let validate = async |what: String, body: Value| validate(server, &operator, (what, body, 1, 1)).await;

    let team = uid_of(&validate(format!("POST /iam/v2/groups/{org}"), json!({ "name": "team" })).await);
    validate(format!("PATCH /iam/v2/groups/{team}"), json!({ "description": "d" })).await;
    validate(format!("PUT /iam/v1/groups/{team}"), json!({ "name": "team", "description": "e" })).await;
    let body = json!({ "name": "role", "capabilities": ["CAP_REPO_LIST"] });
    let role = uid_of(&validate(format!("POST /iam/v2/roles/{org}"), body).await);
    validate(format!("PATCH /iam/v2/roles/{role}"), json!({ "description": "d" })).await;
    validate(format!("PUT /iam/v1/roles/{role}"), json!({ "name": "role", "capabilities": ["repo.list"] })).await;
    let body = json!({ "identityUid": friend, "roleUid": role });
    let binding = uid_of(&validate(format!("POST /iam/v2/roleBindings/{team}"), body).await);
    validate(format!("PATCH /iam/v2/roleBindings/{binding}"), json!({ "identityUid": other })).await;
    validate(format!("DELETE /iam/v2/roleBindings/{binding}"), Value::Null).await;
    let body = json!({ "identity": friend, "role": role });
    let made = validate(format!("POST /iam/v1/rolebindings/{team}"), body).await;
    validate(format!("DELETE /iam/v1/rolebindings/{}", made["id"].as_str().expect("an id")), Value::Null).await;
    validate(format!("DELETE /iam/v2/roles/{role}"), Value::Null).await;
    let body = json!({ "name": "machine", "claimMatch": { "issuer": "https://a.example", "subject": "s" } });
    let machine = uid_of(&validate(format!("POST /iam/v2/identities/{team}"), body).await);
    validate(format!("PATCH /iam/v2/identities/{machine}"), json!({ "description": "d" })).await;
    validate(format!("DELETE /iam/v1/identities/{machine}"), Value::Null).await;
    let repo = uid_of(&validate(format!("POST /registry/v2/repos/{team}"), json!({ "name": "web" })).await);
    validate(format!("PATCH /registry/v2/repos/{repo}"), json!({ "description": "d" })).await;
    validate(format!("PUT /registry/v1/repos/{repo}"), json!({ "name": "web" })).await;
    validate(format!("PATCH /registry/v2/repos/{repo}/readme"), json!({ "content": "# hello" })).await;
    validate(format!("POST /registry/v1/repos/{team}"), json!({ "name": "v1" })).await;
    validate(format!("DELETE /registry/v2/repos/{repo}"), Value::Null).await;
    let sink = json!({ "sink": "https://a.example" });
    let second = uid_of(&validate(format!("POST /events/v2/subscriptions/{team}"), sink.clone()).await);
    let first = validate(format!("POST /events/v1/subscriptions/{team}"), sink).await;
    validate(format!("DELETE /events/v2/subscriptions/{second}"), Value::Null).await;
    validate(format!("DELETE /events/v1/subscriptions/{}", first["id"].as_str().expect("an id")), Value::Null).await;
}

async fn what_goes_along_is_audited_too(server: &TestServer) {
    let org = server.organization("acme").await;
    let (friend, other) = (server.identity(&org, "friend").await, server.identity(&org, "other").await);
    let team = server.group(&org, "team").await;
    let viewer = server.role("viewer");
    let operator = server.operator().await;
    let entry =
        |identity: &str| json!({ "parent": team, "roleBinding": { "identityUid": identity, "roleUid": viewer } });
    let body = json!({ "parent": team, "requests": [entry(&friend), entry(&other)] });
    validate(server, &operator, ("POST /iam/v2/roleBindings:batchCreate".into(), body, 2, 1)).await;
    // The identity with its binding, the group with the binding that is left, each as one event.
    validate(server, &operator, (format!("DELETE /iam/v2/identities/{friend}"), Value::Null, 2, 1)).await;
    validate(server, &operator, (format!("DELETE /iam/v2/groups/{team}"), Value::Null, 2, 1)).await;
    // A repository of v1 brings its read-me.
    let body = json!({ "name": "web", "readme": "# hello" });
    validate(server, &operator, (format!("POST /registry/v1/repos/{org}"), body, 2, 1)).await;
}

async fn an_audit_row_says_who_did_what_to_which_in_which_request(server: &TestServer) {
    let org = server.organization("acme").await;
    let owner = server.actor("owner", &org).await;
    let create = format!("POST /registry/v2/repos/{org}");
    let named = [("content-type", "application/json"), ("x-request-id", "my-request.1")];
    let reply = send(&owner, &create, &named, r#"{"name":"web"}"#).await;
    let repo = uid_of(&reply.json());
    let (texts, before, after) = newest(server).await;
    let method = "chainguard.platform.registry.v2.ReposService.CreateRepo";
    assert_eq!(texts, [&owner.identity, method, "registry.chainguard.dev/Repo", &repo, "my-request.1"]);
    assert_eq!((before, after), (false, true));
    call(&owner, &format!("PATCH /registry/v2/repos/{repo}"), json!({ "description": "d" })).await;
    let (_, before, after) = newest(server).await;
    assert_eq!((before, after), (true, true));
    call(&owner, &format!("DELETE /registry/v2/repos/{repo}"), Value::Null).await;
    let (_, before, after) = newest(server).await;
    assert_eq!((before, after), (true, false));
    // An issued token is on record, without the token.
    let machine = crate::support::machine(server, &org, "robot").await;
    let (texts, before, after) = newest(server).await;
    let method = "chainguard.platform.oidc.SecurityTokenService.Exchange";
    assert_eq!(
        texts[..4],
        [machine.uid.clone(), method.into(), "iam.chainguard.dev/Identity".into(), machine.uid.clone()]
    );
    assert_eq!((before, after), (false, false));
}

async fn what_is_refused_or_only_read_leaves_no_row(server: &TestServer) {
    let org = server.organization("acme").await;
    let repo = server.repo(&org, "web").await;
    let (operator, viewer) = (server.operator().await, server.actor("viewer", &org).await);
    let before = inventory(server).await;
    let create = format!("POST /registry/v2/repos/{org}");
    let (update, delete) = (format!("PATCH /registry/v2/repos/{repo}"), format!("DELETE /iam/v2/groups/{org}"));
    for (actor, what, body, status) in [
        (&viewer, &create, json!({ "name": "x" }), 403),
        (&operator, &create, json!({ "name": "web" }), 409),
        (&operator, &create, json!({ "name": "/" }), 400),
        (&operator, &update, json!({ "name": "" }), 400),
        (&operator, &delete, Value::Null, 400),
        (&viewer, &"GET /registry/v2/repos".to_owned(), Value::Null, 200),
        (&viewer, &"GET /iam/v1/groups".to_owned(), Value::Null, 200),
    ] {
        assert_eq!(call(actor, what, body).await.status, status, "{what}");
    }
    assert_eq!(inventory(server).await, before);
}

each_engine!(
    every_mutation_has_one_audit_entry_and_one_event,
    what_goes_along_is_audited_too,
    an_audit_row_says_who_did_what_to_which_in_which_request,
    what_is_refused_or_only_read_leaves_no_row
);
