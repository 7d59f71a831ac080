//! Pull tokens.

use bowline_testkit::{Engine, TestServer};
use serde_json::Value;

use crate::support::{Terminal, ended, text};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pull_tokens_are_made_listed_and_exchanged() {
    let server = TestServer::start(Engine::Sqlite).await;
    let organization = server.organization("acme").await;
    let owner = server.actor("owner", &organization).await;
    let terminal = Terminal::new(&server);
    terminal.sign_in_as(&owner);
    let create =
        ["auth", "pull-token", "create", "--parent", &organization, "--repository", "oci,python", "-o", "json"];
    let made: Value = serde_json::from_str(&ended(&terminal.run(&create).await, 0)).expect("JSON");
    let (identity, token) = (made["identity_id"].as_str().expect("an id"), made["token"].as_str().expect("a token"));
    let registry = server.server().parts().settings.registry_audience.clone();
    let exchanged = server.exchange(token, &[("aud", &registry), ("identity", identity)]).await;
    assert_eq!(exchanged.status, 200, "{}", exchanged.text());

    let listed = ended(&terminal.run(&["auth", "pull-token", "list", "--parent", &organization]).await, 0);
    assert!(listed.lines().any(|line| line.starts_with(identity) && line.contains("pull-token")), "{listed}");
    let by_name = ["auth", "pull-token", "list", "--parent", "acme", "-o", "json"];
    let by_name: Value = serde_json::from_str(&ended(&terminal.run(&by_name).await, 0)).expect("JSON");
    assert_eq!((by_name.as_array().map(Vec::len), &by_name[0]["uidp"]), (Some(1), &made["identity_id"]));
    let unknown = terminal.run(&["auth", "pull-token", "list", "--parent", "acme/nowhere"]).await;
    ended(&unknown, 6);
    assert!(text(&unknown.stderr).contains("acme/nowhere"), "{}", text(&unknown.stderr));
    let expired = ended(&terminal.run(&["auth", "pull-token", "list", "--expired", "true"]).await, 0);
    assert!(!expired.contains(identity), "{expired}");

    let person = server.identity(&organization, "somebody").await;
    let refused = terminal.run(&["auth", "pull-token", "delete", &person]).await;
    ended(&refused, 2);
    assert!(text(&refused.stderr).contains("no pull token"), "{}", text(&refused.stderr));
    let more: Value = serde_json::from_str(&ended(&terminal.run(&create).await, 0)).expect("JSON");
    let more = more["identity_id"].as_str().expect("an id");
    ended(&terminal.run(&["auth", "pull-token", "delete", more, "--yes"]).await, 0);
    ended(&terminal.run(&["auth", "pull-token", "delete", more, "--yes"]).await, 6);

    // Someone who may not bind roles leaves nothing behind.
    let viewer = server.actor("viewer", &organization).await;
    terminal.sign_in_as(&viewer);
    ended(&terminal.run(&create).await, 4);
    let listed = ended(&terminal.run(&["auth", "pull-token", "list"]).await, 0);
    assert_eq!(listed.matches("pull-token").count(), 1, "{listed}");
    server.stop().await;
}
