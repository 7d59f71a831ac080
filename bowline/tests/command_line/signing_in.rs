//! Signing in, and out again.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bowline_testkit::{Engine, TestServer};
use serde_json::{Value, json};

use crate::support::{Terminal, claims_of, ended, mode, offer_provider, signed_in, text, viewer};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn signing_in_with_an_identity_token_and_out_again() {
    let server = TestServer::start(Engine::Sqlite).await;
    let (organization, identity, token) = viewer(&server).await;
    let terminal = Terminal::new(&server);

    let status = terminal.run(&["auth", "status"]).await;
    assert_eq!(ended(&status, 3), "", "not signed in");
    assert!(text(&status.stderr).contains("bowline auth login"), "{}", text(&status.stderr));

    let login = terminal.run(&["auth", "login", "--identity", &identity, "--identity-token", &token]).await;
    assert_eq!(ended(&login, 0), identity);
    let file = terminal.kept(server.base(), "oidc-token");
    assert_eq!((mode(&file), mode(file.parent().expect("a directory"))), (0o600, 0o700));

    let printed = ended(&terminal.run(&["auth", "token"]).await, 0);
    assert_eq!(printed, std::fs::read_to_string(&file).expect("the token is kept"));
    let groups = server.anonymous().with_token(&printed).rest("GET", "/iam/v2/groups", None).await;
    assert_eq!((groups.status, &groups.json()["groups"][0]["uid"]), (200, &json!(organization)));

    let status = ended(&terminal.run(&["auth", "status", "-o", "json"]).await, 0);
    let status: Value = serde_json::from_str(&status).expect("JSON");
    assert_eq!((&status["identity"], &status["capabilities"][0]["role"]), (&json!(identity), &json!("viewer")));

    let contexts: Value = serde_json::from_str(&ended(
        &terminal.command().args(["context", "list", "-o", "json"]).output().await.expect("the binary runs"),
        0,
    ))
    .expect("JSON");
    assert_eq!((&contexts[0]["name"], &contexts[0]["api"]), (&json!("default"), &json!(server.base())));
    // The server is kept as a context: it need not be named again.
    let again = terminal.command().args(["auth", "token"]).output().await.expect("the binary runs");
    assert_eq!(ended(&again, 0), printed);

    ended(&terminal.run(&["auth", "logout"]).await, 0);
    assert!(!file.exists());
    ended(&terminal.run(&["auth", "token"]).await, 3);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn wrong_usage_and_no_server() {
    let server = TestServer::start(Engine::Sqlite).await;
    let terminal = Terminal::new(&server);
    let unnamed = terminal.command().args(["auth", "status"]).output().await.expect("the binary runs");
    ended(&unnamed, 2);
    assert!(text(&unnamed.stderr).contains("bowline context set"), "{}", text(&unnamed.stderr));
    ended(&terminal.run(&["auth", "login", "--headless", "--device"]).await, 2);
    ended(&terminal.run(&["context", "use", "nowhere"]).await, 2);
    let missing = terminal.run(&["auth", "login", "--identity-token", "/no/such/file"]).await;
    ended(&missing, 2);
    assert!(text(&missing.stderr).contains("/no/such/file"), "{}", text(&missing.stderr));
    let secret = terminal.run(&["auth", "login", "--identity-token", "s3cr3t/only+short"]).await;
    ended(&secret, 2);
    let said = text(&secret.stderr);
    assert!(said.contains("--identity-token") && !said.contains("s3cr3t"), "{said}");
    let mut nowhere = terminal.command();
    nowhere.args(["auth", "login", "--identity-token", &"x".repeat(100), "--api", "http://127.0.0.1:1"]);
    ended(&nowhere.output().await.expect("the binary runs"), 5);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn signing_out_ends_the_session_on_the_server() {
    let server = TestServer::start(Engine::Sqlite).await;
    offer_provider(&server).await;
    let terminal = Terminal::new(&server);
    ended(&signed_in(&server, &terminal, &["--provider", "main", "--no-browser"], "ada").await, 0);
    assert!(!terminal.kept(server.base(), "refresh-token").exists());
    let token = ended(&terminal.run(&["auth", "token"]).await, 0);
    let ada = server.anonymous().with_token(&token);
    assert_eq!(ada.rest("GET", "/iam/v2/groups", None).await.status, 200);

    let out = terminal.run(&["auth", "logout"]).await;
    ended(&out, 0);
    assert!(text(&out.stderr).contains(server.base()), "the address, not the directory's name: {}", text(&out.stderr));
    assert_eq!(ada.rest("GET", "/iam/v2/groups", None).await.status, 401, "the token ends with its session");
    let again = terminal.run(&["auth", "logout"]).await;
    ended(&again, 0);
    assert!(text(&again.stderr).contains("nothing to remove"), "{}", text(&again.stderr));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn signing_out_forgets_no_session_that_goes_on() {
    let server = TestServer::start(Engine::Sqlite).await;
    offer_provider(&server).await;
    let terminal = Terminal::new(&server);
    ended(&signed_in(&server, &terminal, &["--provider", "main", "--no-browser", "--refresh"], "ada").await, 0);
    let token = ended(&terminal.run(&["auth", "token"]).await, 0);
    let ada = server.anonymous().with_token(&token);
    let (access, refresh) = (terminal.kept(server.base(), "oidc-token"), terminal.kept(server.base(), "refresh-token"));

    // Tokens of another issuer cannot be revoked at this one.
    let mut claims = claims_of(&token);
    claims["iss"] = json!("https://issuer.example.com");
    std::fs::write(&access, format!("e30.{}.x", URL_SAFE_NO_PAD.encode(claims.to_string()))).expect("it is written");
    let left = terminal.run(&["auth", "logout"]).await;
    ended(&left, 1);
    let said = text(&left.stderr);
    assert!(said.contains("https://issuer.example.com") && !said.contains("nothing to remove"), "{said}");
    assert!(access.exists() && refresh.exists());
    assert_eq!(ada.rest("GET", "/iam/v2/groups", None).await.status, 200);

    // A refresh token alone is one of this issuer.
    std::fs::remove_file(&access).expect("it is removed");
    ended(&terminal.run(&["auth", "logout"]).await, 0);
    assert!(!refresh.exists());
    assert_eq!(ada.rest("GET", "/iam/v2/groups", None).await.status, 401, "the session has ended");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn several_audiences_at_once_with_an_organizations_own_provider() {
    let server = TestServer::start(Engine::Sqlite).await;
    let organization = server.organization("acme").await;
    let provider = json!({
        "name": "own", "defaultRole": server.role("viewer"),
        "oidc": {"issuer": server.idp().issuer(), "clientId": "bowline", "clientSecret": "secret"},
    });
    let path = format!("/iam/v2/identityProviders/{organization}");
    let made = server.operator().await.rest("POST", &path, Some(provider)).await;
    assert_eq!(made.status, 200, "{}", made.text());
    let uid = made.json()["uid"].as_str().expect("a uid").to_owned();
    let terminal = Terminal::new(&server);
    let registry = server.server().parts().settings.registry_audience.clone();
    let arguments = ["--identity-provider", &uid, "--no-browser", "--audience", server.base(), "--audience", &registry];
    ended(&signed_in(&server, &terminal, &arguments, "ada").await, 0);
    assert!(terminal.kept(&registry, "oidc-token").exists());
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_without_a_token_fails_at_once() {
    let server = TestServer::start(Engine::Sqlite).await;
    let (_, identity, _) = viewer(&server).await;
    let terminal = Terminal::new(&server);
    let begun = std::time::Instant::now();
    let login = terminal.run(&["auth", "login", "--identity", &identity]).await;
    ended(&login, 3);
    assert!(text(&login.stderr).contains("id-token: write"), "{}", text(&login.stderr));
    let missing = terminal.run(&["auth", "login", "--identity", &identity, "--identity-token", "missing.jwt"]).await;
    ended(&missing, 2);
    assert!(text(&missing.stderr).contains("no such file"), "{}", text(&missing.stderr));
    ended(&terminal.run(&["auth", "login", "--identity", &identity, "--headless"]).await, 2);
    assert!(begun.elapsed().as_secs() < 60);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_address_without_a_token_exchange_is_named() {
    let server = TestServer::start(Engine::Sqlite).await;
    let terminal = Terminal::new(&server);
    let elsewhere = format!("{}/elsewhere", server.base());
    let token = "x".repeat(100);
    let login = ["auth", "login", "--identity-token", &token, "--api", &elsewhere];
    for login in [&login[..], &["auth", "login", "--no-browser", "--api", &elsewhere]] {
        let refused = terminal.command().args(login).output().await.expect("the binary runs");
        ended(&refused, 2);
        assert!(text(&refused.stderr).contains("--issuer"), "{}", text(&refused.stderr));
    }
    server.stop().await;
}
