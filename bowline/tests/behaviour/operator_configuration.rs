//! What the operator reads of a server over the API: options, providers, tasks; and the rotation of keys.

use std::time::Duration;

use bowline_contract::bowline::operator::v1 as own;
use bowline_contract::bowline::operator::v1::rpc::operator as methods;
use bowline_testkit::{Actor, Engine, TestServer, by_engine, each_engine};
use serde_json::{Value, json};

use crate::audit_log::numbered;
use crate::deliveries::until;
use crate::people_support::offered;
use crate::support::{each, newest_event, number, ok, rejected, same_over_grpc};

/// A configuration file with secrets in every form.
const FILE: &str = r#"
gc-every = "2h"
mail-from = "bowline@acme.example"
smtp-url = "smtp://user:hush@127.0.0.1:2525"
allow-private-addresses = ["10.0.0.0/8", "192.168.0.0/16"]

[[operator-providers]]
id = "main"
issuer = "https://idp.example"
client-id = "bowline"
client-secret = "hush"

[[terms]]
id = "terms-1"
label = "Terms"
url = "https://acme.example/terms"
"#;

async fn every_option_is_shown_without_secrets(engine: Engine) {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("bowline.toml");
    std::fs::write(&path, FILE).expect("a file");
    let server = TestServer::start_with(engine, |options| {
        options.config = Some(path.clone());
        options.scim_rate = Some(7);
        *options = options.clone().with_file().expect("options");
    })
    .await;
    let operator = server.operator().await;
    let configuration = ok(&operator, "GET /operator/v1/configuration", Value::Null).await;
    assert!(!configuration.to_string().contains("hush"), "{configuration}");
    let request = own::GetConfigurationRequest::default();
    same_over_grpc::<methods::GetConfiguration>(&server, &operator, request, &configuration).await;
    let health = ok(&operator, "GET /operator/v1/health", Value::Null).await;
    assert_eq!(configuration["replica"], health["replica"]);
    let option = |name: &str| {
        let options = configuration["options"].as_array().expect("options");
        let option = options.iter().find(|option| option["name"] == name);
        let option = option.unwrap_or_else(|| panic!("no option {name}"));
        let text = |member: &str| option[member].as_str().unwrap_or_default().to_owned();
        (text("value"), option["secret"] == json!(true), text("origin").replace("OPTION_ORIGIN_", ""))
    };
    let seen = |name: &str, value: &str, secret: bool, origin: &str| {
        assert_eq!(option(name), (value.into(), secret, origin.into()), "{name}");
    };
    seen("gc-every", "2h", false, "FILE");
    seen("allow-private-addresses", "10.0.0.0/8,192.168.0.0/16", false, "FILE");
    seen("smtp-url", "set", true, "FILE");
    seen("operator-providers", "main", false, "FILE");
    seen("terms", "terms-1", false, "FILE");
    seen("gc-grace", "", false, "DEFAULT");
    seen("scim-rate", "7", false, "UNSPECIFIED");
    seen("base-url", server.base(), false, "DEFAULT");
    if engine == Engine::Postgres {
        seen("database-url", "set", true, "UNSPECIFIED");
    }
    let owner = server.actor("owner", &server.organization("acme").await).await;
    rejected(&owner, "GET /operator/v1/configuration", Value::Null, 403, "PERMISSION_DENIED").await;
    let providers = ok(&operator, "GET /operator/v1/providers", Value::Null).await;
    let of_the_file = json!({
        "id": "main", "label": "main", "issuer": "https://idp.example", "clientId": "bowline",
        "scopes": ["email", "profile"], "hasSecret": true, "configured": true
    });
    assert_eq!(providers["providers"], json!([of_the_file]));
    offered(&server).await;
    let providers = ok(&operator, "GET /operator/v1/providers", Value::Null).await;
    assert_eq!(each(&providers["providers"], "id"), ["main", "main"]);
    let request = own::ListProvidersRequest::default();
    same_over_grpc::<methods::ListProviders>(&server, &operator, request, &providers).await;
    let stored = &providers["providers"][1];
    assert_eq!((&stored["hasSecret"], &stored["configured"]), (&json!(false), &json!(false)), "{stored}");
    assert!(!providers.to_string().contains("hush"), "{providers}");
    server.stop().await;
}

async fn task(operator: &Actor, name: &str) -> Value {
    let tasks = ok(operator, "GET /operator/v1/tasks", Value::Null).await["tasks"].clone();
    let found = tasks.as_array().and_then(|tasks| tasks.iter().find(|task| task["name"] == name).cloned());
    found.unwrap_or_else(|| panic!("no task {name} in {tasks}"))
}

async fn all_periodic_tasks_are_listed_and_run_where_that_is_safe(server: &TestServer) {
    let operator = server.operator().await;
    let tasks = ok(&operator, "GET /operator/v1/tasks", Value::Null).await;
    let listed = operator.grpc::<methods::ListTasks>(own::ListTasksRequest {}).await.expect("a list").tasks;
    assert_eq!(listed.iter().map(|task| task.name.as_str()).collect::<Vec<_>>(), each(&tasks["tasks"], "name"));
    let by_themselves = ["audit-numbers", "counters", "public-documents"];
    let runnable = [
        "blob-totals",
        "ended-sessions",
        "garbage-collection",
        "matching",
        "record-sweep",
        "retention",
        "sbom-index",
        "signing-keys",
        "uploads",
        "verification",
    ];
    let mut names = [&by_themselves[..], &runnable[..]].concat();
    names.sort_unstable();
    assert_eq!(each(&tasks["tasks"], "name"), names, "without mail, backups and pruning");
    for name in runnable {
        let listed = task(&operator, name).await;
        assert_eq!(listed["runnable"], json!(true), "{listed}");
        let run = own::RunTaskRequest { name: name.into() };
        assert_eq!(operator.grpc::<methods::RunTask>(run).await.expect("it runs").name, name);
        until(name, async || {
            let task = task(&operator, name).await;
            task["lastRunTime"].is_string() && task["running"] == json!(false)
        })
        .await;
        assert_eq!(task(&operator, name).await["error"], "", "{name}");
    }
    for name in by_themselves {
        let run = format!("POST /operator/v1/tasks/{name}:run");
        let refusal = rejected(&operator, &run, json!({}), 400, "FAILED_PRECONDITION").await;
        assert!(refusal.message().contains("runs by itself alone"), "{refusal:?}");
        until(name, async || task(&operator, name).await["lastRunTime"].is_string()).await;
    }
    // The reason of a failure, until a run succeeds.
    crate::support::execute(server, "ALTER TABLE blobs RENAME TO blobs_away", &[]).await;
    ok(&operator, "POST /operator/v1/tasks/blob-totals:run", json!({})).await;
    until("a failure", async || task(&operator, "blob-totals").await["error"] != json!("")).await;
    crate::support::execute(server, "ALTER TABLE blobs_away RENAME TO blobs", &[]).await;
    ok(&operator, "POST /operator/v1/tasks/blob-totals:run", json!({})).await;
    until("a success", async || task(&operator, "blob-totals").await["error"] == json!("")).await;
}

async fn keys_are_rotated_once_until_the_new_one_signs(server: &TestServer) {
    let operator = server.operator().await;
    let keys = async || ok(&operator, "GET /operator/v1/keys", Value::Null).await["keys"].clone();
    let first = keys().await[0]["kid"].as_str().expect("a key").to_owned();
    let rotate = "POST /operator/v1/keys:rotate";
    let added = ok(&operator, rotate, json!({ "algorithm": "KEY_ALGORITHM_ES256" })).await;
    assert_ne!(added["kid"], json!(first));
    assert_eq!(added["algorithm"], "ES256");
    assert_eq!(each(&keys().await, "kid").len(), 2);
    let listed = operator.grpc::<methods::ListKeys>(own::ListKeysRequest {}).await.expect("a list").keys;
    assert_eq!(listed.iter().map(|key| key.kid.as_str()).collect::<Vec<_>>(), each(&keys().await, "kid"));
    let request = own::RotateKeysRequest { algorithm: own::KeyAlgorithm::Unspecified as i32 };
    same_over_grpc::<methods::RotateKeys>(server, &operator, request, &added).await;
    let [event_type, subject, _, _, body] = newest_event(server).await;
    assert_eq!(event_type, "dev.bowline.operator.keys.rotated.v1");
    assert!(subject.starts_with("0000") && body.contains("ES256"), "{subject} {body}");
    numbered(server).await;
    let audited = "SELECT count(*) FROM audit WHERE method LIKE '%RotateKeys'";
    assert_eq!(number(server, audited).await, 1);
    // While it waits to sign, nothing more is published.
    for algorithm in ["KEY_ALGORITHM_UNSPECIFIED", "KEY_ALGORITHM_RS256"] {
        assert_eq!(ok(&operator, rotate, json!({ "algorithm": algorithm })).await, added);
    }
    assert_eq!((each(&keys().await, "kid").len(), number(server, audited).await), (2, 1));
    assert!(!keys().await.to_string().contains("sealed"));
    // The old key signs for ten minutes; then the new one does, and what the old one signed is accepted.
    server.clock().advance(Duration::from_secs(601));
    until("the new key signs", async || {
        let reply = server.operator().await;
        let token = reply.token.clone().expect("a token");
        crate::support::call(&reply, "GET /operator/v1/health", Value::Null).await.status == 200
            && kid(&token) == added["kid"].as_str().unwrap_or_default()
    })
    .await;
    ok(&operator, "GET /operator/v1/health", Value::Null).await;
    let next = ok(&operator, rotate, json!({})).await;
    assert_eq!((next["algorithm"].as_str(), next["kid"] != added["kid"]), (Some("ES256"), true), "{next}");
    rejected(&operator, rotate, json!({ "algorithm": 9 }), 400, "INVALID_ARGUMENT").await;
}

/// The id of the key that a token names.
fn kid(token: &str) -> String {
    use base64::Engine as _;
    let header = token.split('.').next().expect("a header");
    let bytes = base64::engine::general_purpose::URL_SAFE_NO_PAD.decode(header).expect("base64");
    let header: Value = serde_json::from_slice(&bytes).expect("JSON");
    header["kid"].as_str().unwrap_or_default().into()
}

by_engine!(every_option_is_shown_without_secrets);

each_engine!(all_periodic_tasks_are_listed_and_run_where_that_is_safe, keys_are_rotated_once_until_the_new_one_signs);
