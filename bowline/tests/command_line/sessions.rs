//! Tokens of a session: for whom they are, and for how long.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bowline_testkit::{Engine, TestServer};
use serde_json::{Value, json};

use crate::support::{Terminal, claims_of, ended, offer_provider, signed_in, text, viewer};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn other_audiences_and_narrowed_tokens() {
    let server = TestServer::start(Engine::Sqlite).await;
    let (organization, identity, token) = viewer(&server).await;
    let terminal = Terminal::new(&server);
    let path = terminal.home.path().join("identity-token");
    std::fs::write(&path, format!("{token}\n")).expect("the token file is written");
    let path = path.to_string_lossy();
    ended(&terminal.run(&["auth", "login", "--identity", &identity, "--identity-token", &path]).await, 0);

    let registry = server.server().parts().settings.registry_audience.clone();
    let printed = ended(&terminal.run(&["auth", "token", "--audience", &registry]).await, 0);
    assert!(terminal.kept(&registry, "oidc-token").exists());
    let refused = server.anonymous().with_token(&printed).rest("GET", "/iam/v2/groups", None).await;
    assert_eq!(refused.status, 401, "a token for the registry is none for the API");

    let narrowed =
        ended(&terminal.run(&["auth", "token", "--capabilities", "repo.list", "--scope", &organization]).await, 0);
    let narrowed = server.anonymous().with_token(&narrowed);
    assert_eq!(narrowed.rest("GET", &format!("/iam/v2/groups/{organization}"), None).await.status, 403);
    assert_eq!(narrowed.rest("GET", "/registry/v2/repos", None).await.status, 200);

    let unknown = terminal.run(&["auth", "token", "--capabilities", "no.such"]).await;
    ended(&unknown, 1);
    assert!(text(&unknown.stderr).contains("no.such"), "{}", text(&unknown.stderr));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ambient_credentials_need_no_login() {
    let server = TestServer::start(Engine::Sqlite).await;
    let (_, identity, token) = viewer(&server).await;
    let terminal = Terminal::new(&server);
    let set = ["context", "set", "ci", "--identity", &identity];
    ended(&terminal.run(&set).await, 0);
    let output = terminal.command().args(["auth", "token"]).env("BOWLINE_ID_TOKEN", &token).output().await;
    let printed = ended(&output.expect("the binary runs"), 0);
    let groups = server.anonymous().with_token(&printed).rest("GET", "/iam/v2/groups", None).await;
    assert_eq!(groups.status, 200, "{}", groups.text());
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_cached_token_of_another_identity_is_not_used() {
    let server = TestServer::start(Engine::Sqlite).await;
    let (organization, viewer, token) = viewer(&server).await;
    let deploy = server.identity(&organization, "deploy").await;
    let terminal = Terminal::new(&server);
    ended(&terminal.run(&["auth", "login", "--identity", &viewer, "--identity-token", &token]).await, 0);
    let upstream = server.idp().token("deploy", &server.server().parts().settings.auth_url, Value::Null);
    let subject = async |variables: &[(&str, &str)], arguments: &[&str]| {
        let mut command = terminal.command();
        command.args(["auth", "token"]).args(arguments).envs(variables.iter().copied());
        command.output().await.expect("the binary runs")
    };
    assert_eq!(claims_of(&ended(&subject(&[], &[]).await, 0))["sub"], json!(viewer));

    let named = ("BOWLINE_IDENTITY", deploy.as_str());
    let alone = subject(&[named], &[]).await;
    assert_eq!(ended(&alone, 3), "");
    assert!(text(&alone.stderr).contains(&deploy), "{}", text(&alone.stderr));
    let registry = server.server().parts().settings.registry_audience.clone();
    for audience in [server.base(), &registry] {
        let given = subject(&[named, ("BOWLINE_ID_TOKEN", &upstream)], &["--audience", audience]).await;
        assert_eq!(claims_of(&ended(&given, 0))["sub"], json!(deploy));
        assert_eq!(claims_of(&ended(&subject(&[named], &["--audience", audience]).await, 0))["sub"], json!(deploy));
    }
    server.stop().await;
}

/// Puts a token that has ended in the place of the kept one.
fn expire(terminal: &Terminal, audience: &str) -> std::path::PathBuf {
    let file = terminal.kept(audience, "oidc-token");
    let mut claims = claims_of(&std::fs::read_to_string(&file).expect("a token is kept"));
    claims["exp"] = json!(1);
    std::fs::write(&file, format!("e30.{}.x", URL_SAFE_NO_PAD.encode(claims.to_string()))).expect("it is written");
    file
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sign_in_with_refresh_lasts_for_registries_too() {
    let server = TestServer::start(Engine::Sqlite).await;
    offer_provider(&server).await;
    let terminal = Terminal::new(&server);
    let login = signed_in(&server, &terminal, &["--provider", "main", "--no-browser", "--refresh"], "ada").await;
    let person = ended(&login, 0);
    let registry = server.server().parts().settings.registry_audience.clone();
    let file = expire(&terminal, server.base());
    let before = std::fs::read_to_string(&file).expect("a token is kept");
    let printed = ended(&terminal.run(&["auth", "token", "--audience", &registry]).await, 0);
    assert_eq!((&claims_of(&printed)["sub"], &claims_of(&printed)["aud"]), (&json!(person), &json!(registry)));
    assert_ne!(std::fs::read_to_string(&file).expect("a token is kept"), before, "the API's token is a new one");

    // A token for someone else does not take the person's sign-in away.
    let (_, identity, upstream) = viewer(&server).await;
    let mut other = terminal.command();
    other.args(["auth", "token"]).env("BOWLINE_IDENTITY", &identity).env("BOWLINE_ID_TOKEN", &upstream);
    let printed = ended(&other.output().await.expect("the binary runs"), 0);
    assert_eq!(claims_of(&printed)["sub"], json!(identity));
    assert!(terminal.kept(server.base(), "refresh-token").exists());
    assert_eq!(claims_of(&ended(&terminal.run(&["auth", "token"]).await, 0))["sub"], json!(person));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sign_in_on_another_device_lasts_for_the_audience_that_was_named() {
    let server = TestServer::start(Engine::Sqlite).await;
    offer_provider(&server).await;
    let terminal = Terminal::new(&server);
    let registry = server.server().parts().settings.registry_audience.clone();
    ended(&signed_in(&server, &terminal, &["--device", "--refresh", "--audience", &registry], "ada").await, 0);
    expire(&terminal, &registry);
    let printed = ended(&terminal.run(&["auth", "token", "--audience", &registry]).await, 0);
    assert_eq!(claims_of(&printed)["aud"], json!(registry));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_address_beside_a_context_of_another_server_is_refused() {
    let server = TestServer::start(Engine::Sqlite).await;
    let terminal = Terminal::new(&server);
    let other = "https://other.example.com";
    for (name, api) in [("here", server.base()), ("there", other)] {
        let set = terminal.command().args(["context", "set", name, "--api", api]).output().await;
        ended(&set.expect("the binary runs"), 0);
    }
    let token = async |variables: &[(&str, &str)], arguments: &[&str]| {
        let mut command = terminal.command();
        command.args(["auth", "token"]).args(arguments).envs(variables.iter().copied());
        command.output().await.expect("the binary runs")
    };
    let api = server.base();
    for (variables, arguments) in [
        (&[][..], &["--context", "there", "--api", api][..]),
        (&[("BOWLINE_API", api)], &["--context", "there"]),
        (&[("BOWLINE_CONTEXT", "there")], &["--api", api]),
        (&[("BOWLINE_CONTEXT", "there"), ("BOWLINE_API", api)], &[]),
    ] {
        let refused = token(variables, arguments).await;
        ended(&refused, 2);
        let said = text(&refused.stderr);
        assert!(said.contains("\"there\"") && said.contains(other) && said.contains(api), "{said}");
    }
    let with_slash = format!("{api}/");
    for (variables, arguments) in [
        (&[("BOWLINE_API", &*with_slash)][..], &["--context", "here"][..]),
        // The current context is no one's word.
        (&[], &["--api", api]),
    ] {
        ended(&token(variables, arguments).await, 3);
    }
    server.stop().await;
}
