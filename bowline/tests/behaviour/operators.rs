//! Named operators: who may call methods of the operator's, and what makes and unmakes them.

use bowline_server::mint_operator_token;
use bowline_testkit::{Actor, TestServer, each_engine};
use serde_json::{Value, json};

use crate::deliveries::{create_group, until};
use crate::support::{Machine, call, each, execute, ok, person, rejected};

const PERMISSION_DENIED: i32 = 7;

/// A person of the operator's provider with this role of an operator's.
async fn named(server: &TestServer, subject: &str, role: &str) -> Machine {
    let machine = person(server, subject, &format!("{subject}@example.com")).await;
    grant(server, &machine.uid, role).await;
    machine
}

async fn grant(server: &TestServer, identity: &str, role: &str) -> Value {
    let body = json!({ "identity": identity, "role": role });
    ok(&server.operator().await, "POST /operator/v1/operators", body).await
}

/// The gRPC code of a call with an empty request: whether it is refused comes before what is wrong with it.
async fn code(actor: &Actor, path: &str) -> i32 {
    match actor.grpc_raw(path, Vec::new()).await {
        Ok(_) => 0,
        Err(error) => error.code,
    }
}

async fn every_method_of_the_operators_knows_its_callers(server: &TestServer) {
    let admin = named(server, "ada", "OPERATOR_ROLE_ADMIN").await.actor;
    let viewer = named(server, "vic", "OPERATOR_ROLE_VIEWER").await.actor;
    let local = server.operator().await;
    let owner = server.actor("owner", &server.organization("acme").await).await;
    let contract = server.server().parts().contract.clone();
    let methods: Vec<_> = contract.methods().iter().filter(|method| method.operator_only).collect();
    assert!(methods.len() > 12, "{}", methods.len());
    let mut reading = 0;
    for method in methods {
        let path = &method.grpc_path;
        reading += usize::from(method.only_reads());
        for (name, actor, may) in [
            ("local", &local, true),
            ("admin", &admin, true),
            ("viewer", &viewer, method.only_reads()),
            ("owner", &owner, false),
        ] {
            let code = code(actor, path).await;
            assert_eq!(code != PERMISSION_DENIED, may, "{name} calls {path}: {code}");
        }
    }
    assert!(reading > 5, "{reading}");
}

async fn the_access_of_an_operator_is_explained_to_operators_and_denied_to_no_one(server: &TestServer) {
    let org = server.organization("acme").await;
    let owner = server.actor("owner", &org).await;
    let admin = named(server, "ada", "OPERATOR_ROLE_ADMIN").await;
    let viewer = named(server, "vic", "OPERATOR_ROLE_VIEWER").await;
    let plain = person(server, "bea", "bea@example.com").await;
    let role = crate::support::role(server, &org, "lists", &["CAP_REPO_LIST"]).await;
    for one in [&admin, &viewer, &plain] {
        server.bind(&one.uid, &role, &org).await;
    }
    let explain = async |reader: &Actor, identity: &str, what: &str| {
        let path = format!("GET /iam/v1/access:explain?scope={org}&identity={identity}&{what}");
        ok(reader, &path, Value::Null).await
    };
    let (deletes, operates) = ("capabilities=groups.delete", "method=bowline.operator.v1.Operator.RunTask");
    for reader in [&server.operator().await, &viewer.actor] {
        for what in [deletes, operates] {
            let of_admin = explain(reader, &admin.uid, what).await;
            assert_eq!((&of_admin["allowed"], &of_admin["operatorRolesHidden"]), (&json!(true), &json!(false)));
            assert_eq!(of_admin["cause"], "ACCESS_CAUSE_OPERATOR", "{of_admin}");
        }
        assert_eq!(explain(reader, &viewer.uid, deletes).await["allowed"], json!(false));
        let listed = explain(reader, &viewer.uid, "capabilities=groups.list").await;
        assert_eq!((&listed["allowed"], &listed["cause"]), (&json!(true), &json!("ACCESS_CAUSE_OPERATOR")));
        assert_eq!(explain(reader, &plain.uid, operates).await["operatorRolesHidden"], json!(false));
    }
    // Others see the same of everyone, and that it is not everything.
    for what in [deletes, operates] {
        let of = async |machine: &Machine| {
            let seen = explain(&owner, &machine.uid, what).await;
            let text = seen.to_string().replace(&machine.uid, "PERSON");
            let binding = seen["steps"][0]["binding"].as_str().unwrap_or("no step").to_owned();
            (seen, text.replace(&binding, "BINDING"))
        };
        let (seen, of_plain) = of(&plain).await;
        assert_eq!((&seen["allowed"], &seen["operatorRolesHidden"]), (&json!(false), &json!(true)), "{seen}");
        assert!(seen["summary"].as_str().is_some_and(|text| text.contains("only operators see")), "{seen}");
        assert_eq!([of(&admin).await.1, of(&viewer).await.1], [of_plain.clone(), of_plain]);
    }
    let held = explain(&owner, &admin.uid, "capabilities=repo.list").await;
    assert_eq!((&held["allowed"], &held["operatorRolesHidden"]), (&json!(true), &json!(false)));
}

async fn an_admin_does_what_the_operator_does_and_is_named(server: &TestServer) {
    let admin = named(server, "ada", "OPERATOR_ROLE_ADMIN").await;
    let org = ok(
        &admin.actor,
        "POST /iam/v2/groups",
        json!({ "name": "acme", "verified": true, "kind": "ORG_KIND_CUSTOMER" }),
    )
    .await;
    assert_eq!(org["verified"], true, "as for the local operator");
    let org = org["uid"].as_str().expect("a uid");
    create_group(&admin.actor, org, "team").await;
    let path = format!("GET /audit/v1/entries?organization={org}");
    until("the entries", async || {
        let entries = ok(&admin.actor, &path, Value::Null).await["entries"].clone();
        let actors = each(&entries, "actor");
        actors.len() >= 2 && actors.iter().all(|actor| *actor == admin.uid)
    })
    .await;
    ok(&admin.actor, "GET /audit/v1/entries", Value::Null).await;
}

async fn a_viewer_reads_everything_but_contents_and_changes_nothing(server: &TestServer) {
    let org = server.organization("acme").await;
    let repo = server.repo(&org, "repo").await;
    let viewer = named(server, "vic", "OPERATOR_ROLE_VIEWER").await.actor;
    for path in [format!("/registry/v2/repos/{repo}"), format!("/iam/v2/groups/{org}"), "/operator/v1/operators".into()]
    {
        ok(&viewer, &format!("GET {path}"), Value::Null).await;
    }
    assert!(ok(&viewer, "GET /audit/v1/entries", Value::Null).await["entries"].is_array());
    let body = json!({ "name": "team" });
    rejected(&viewer, &format!("POST /iam/v2/groups/{org}"), body.clone(), 403, "PERMISSION_DENIED").await;
    rejected(&viewer, "POST /iam/v2/groups", body, 403, "PERMISSION_DENIED").await;
    let uid = viewer.identity.clone();
    let body = json!({ "identity": uid, "role": "OPERATOR_ROLE_ADMIN" });
    let denied = rejected(&viewer, "POST /operator/v1/operators", body, 403, "PERMISSION_DENIED").await;
    assert!(denied.message().contains("needs operator.admin"), "{}", denied.message());
    let viewer_role = server.server().parts().contract.operator_roles()[0].clone();
    let names = server.server().parts().contract.capabilities().names(&viewer_role.capabilities);
    assert!(
        names.len() > 40 && names.iter().all(|name| name.rsplit_once('.').is_some_and(|(_, verb)| verb == "list")),
        "{names:?}"
    );
}

async fn a_role_ends_with_its_grant_its_provider_and_a_narrowed_token(server: &TestServer) {
    let admin = named(server, "ada", "OPERATOR_ROLE_ADMIN").await;
    let list = "GET /operator/v1/operators";
    let listed = ok(&admin.actor, list, Value::Null).await;
    assert_eq!(each(&listed["operators"], "identity"), [admin.uid.as_str()]);
    assert_eq!(each(&listed["operators"], "role"), ["OPERATOR_ROLE_ADMIN"]);
    let narrowed = admin.narrowed(server, &[("cap", "role_bindings.list")]).await;
    rejected(&narrowed, list, Value::Null, 403, "PERMISSION_DENIED").await;
    let revision = "UPDATE revisions SET n = n + 1 WHERE name = 'iam'";
    execute(server, "UPDATE operator_providers SET issuer = 'https://else.example'", &[]).await;
    execute(server, revision, &[]).await;
    rejected(&admin.actor, list, Value::Null, 403, "PERMISSION_DENIED").await;
    execute(server, "UPDATE operator_providers SET issuer = $1", &[server.idp().issuer()]).await;
    execute(server, revision, &[]).await;
    ok(&admin.actor, list, Value::Null).await;
    grant(server, &admin.uid, "OPERATOR_ROLE_VIEWER").await;
    let body = json!({ "identity": admin.uid, "role": "OPERATOR_ROLE_ADMIN" });
    rejected(&admin.actor, "POST /operator/v1/operators", body, 403, "PERMISSION_DENIED").await;
    ok(&server.operator().await, &format!("DELETE /operator/v1/operators/{}", admin.uid), Value::Null).await;
    rejected(&admin.actor, list, Value::Null, 403, "PERMISSION_DENIED").await;
    ok(&server.operator().await, &format!("DELETE /operator/v1/operators/{}", admin.uid), Value::Null).await;
}

async fn only_people_of_the_operators_providers_become_operators(server: &TestServer) {
    let org = server.organization("acme").await;
    let operator = server.operator().await;
    let machine = server.identity(&org, "runner").await;
    let path = "POST /operator/v1/operators";
    let body = |identity: &str, role: &str| json!({ "identity": identity, "role": role });
    let admin = "OPERATOR_ROLE_ADMIN";
    rejected(&operator, path, body(&machine, admin), 400, "FAILED_PRECONDITION").await;
    rejected(&operator, path, body(&"ab".repeat(20), admin), 404, "NOT_FOUND").await;
    rejected(&operator, path, body("x", admin), 400, "INVALID_ARGUMENT").await;
    let person = person(server, "pat", "pat@example.com").await;
    rejected(&operator, path, json!({ "identity": person.uid }), 400, "INVALID_ARGUMENT").await;
    execute(server, "DELETE FROM operator_providers", &[]).await;
    rejected(&operator, path, body(&person.uid, admin), 400, "FAILED_PRECONDITION").await;
    let role = json!({ "name": "operator.admin", "capabilities": ["CAP_REPO_LIST"] });
    let reply = call(&operator, &format!("POST /iam/v2/roles/{org}"), role).await;
    assert_eq!(reply.status, 409, "{}", reply.text());
}

async fn a_token_of_the_local_operator_has_a_reason_and_an_event(server: &TestServer) {
    let parts = server.server().parts();
    let token = mint_operator_token(&parts.storage, server.clock(), None, None, 60, Some("disk is full")).await;
    assert!(token.is_ok());
    let operator = server.operator().await;
    let local = "0".repeat(40);
    let path = format!("GET /audit/v1/history/{local}?page_size=200");
    until("the entry", async || {
        let entries = ok(&operator, &path, Value::Null).await["entries"].as_array().cloned().unwrap_or_default();
        entries.iter().any(|entry| entry["after"]["content"]["reason"] == "disk is full")
    })
    .await;
    let events = "SELECT count(*) FROM outbox WHERE event_type = 'dev.bowline.operator.token.issued.v1'";
    assert_eq!(crate::support::number(server, events).await, 1);
    let (db, now) = (&parts.storage.db, bowline_core::Clock::now(server.clock()));
    bowline_identity::people::create_operator_link(db, [7; 16], "no terminal here", now).await.expect("a link");
    until("the entry of the link", async || {
        let entries = ok(&operator, &path, Value::Null).await["entries"].as_array().cloned().unwrap_or_default();
        entries.iter().any(|entry| entry["after"]["content"]["reason"] == "no terminal here")
    })
    .await;
    let [_, _, _, _, body] = crate::support::newest_event(server).await;
    assert!(body.contains("no terminal here"), "{body}");
}

async fn the_state_of_the_server_is_read_and_tasks_run(server: &TestServer) {
    let (small, large) = (server.organization("small").await, server.organization("large").await);
    server.repo(&large, "repo").await;
    let admin = named(server, "ada", "OPERATOR_ROLE_ADMIN").await.actor;
    let health = ok(&admin, "GET /operator/v1/health", Value::Null).await;
    assert!(health["schemaVersion"].as_i64() >= Some(44) && health["startTime"].is_string(), "{health}");
    let storage = ok(&admin, "GET /operator/v1/storage", Value::Null).await;
    assert_ne!(storage["databaseBytes"], "0");
    let keys = ok(&admin, "GET /operator/v1/keys", Value::Null).await;
    assert_eq!(keys["keys"].as_array().map(Vec::len), Some(1));
    assert!(!keys.to_string().contains("sealed"), "{keys}");
    let metrics = ok(&admin, "GET /operator/v1/metrics", Value::Null).await;
    assert_eq!(metrics["bounds"].as_array().map(Vec::len), Some(13));
    let path = "GET /operator/v1/organizations?page_size=1";
    let usage = "INSERT INTO counts (collection, node, n) VALUES ('blob_bytes', $1, 7)";
    execute(server, usage, &[&format!("= {large}")]).await;
    let first = ok(&admin, path, Value::Null).await;
    assert_eq!(each(&first["organizations"], "organization"), [large.as_str()], "the largest first");
    let next = first["nextPageToken"].as_str().expect("a token");
    let second = ok(&admin, &format!("{path}&page_token={next}"), Value::Null).await;
    assert_eq!(each(&second["organizations"], "organization"), [small.as_str()]);
    let task = async |name: &str| {
        let tasks = ok(&admin, "GET /operator/v1/tasks", Value::Null).await["tasks"].clone();
        tasks.as_array().and_then(|tasks| tasks.iter().find(|task| task["name"] == name).cloned()).expect("the task")
    };
    for name in ["garbage-collection", "retention", "verification"] {
        ok(&admin, &format!("POST /operator/v1/tasks/{name}:run"), json!({})).await;
        until(name, async || task(name).await["lastRunTime"].is_string() && task(name).await["running"] == false).await;
        assert_eq!(task(name).await["error"], "", "{name}");
    }
    rejected(&admin, "POST /operator/v1/tasks/nothing:run", json!({}), 404, "NOT_FOUND").await;
}

each_engine!(
    the_access_of_an_operator_is_explained_to_operators_and_denied_to_no_one,
    the_state_of_the_server_is_read_and_tasks_run,
    every_method_of_the_operators_knows_its_callers,
    an_admin_does_what_the_operator_does_and_is_named,
    a_viewer_reads_everything_but_contents_and_changes_nothing,
    a_role_ends_with_its_grant_its_provider_and_a_narrowed_token,
    only_people_of_the_operators_providers_become_operators,
    a_token_of_the_local_operator_has_a_reason_and_an_event
);
