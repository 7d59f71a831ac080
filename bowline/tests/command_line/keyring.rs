//! pip and uv, and the keyring that they call.

use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Output;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bowline_testkit::{Engine, TestServer};
use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderValue};
use serde_json::{Value, json};
use tokio::process::Command;

use crate::support::{Terminal, claims_of, ended, text, viewer};

/// A directory of a terminal's home.
fn directory(terminal: &Terminal, name: &str) -> PathBuf {
    let path = terminal.home.path().join(name);
    std::fs::create_dir(&path).expect("the directory is made");
    path
}

/// The keyring as installers call it, with further variables.
async fn called(terminal: &Terminal, tools: &Path, variables: &[(&str, &str)], arguments: &[&str]) -> Output {
    let mut command = Command::new(tools.join("keyring"));
    command.env_clear().env("HOME", terminal.home.path()).envs(variables.iter().copied()).args(arguments);
    command.output().await.expect("the keyring runs")
}

/// What the keyring says without a token; nothing is on its output then.
#[track_caller]
fn no_token(output: &Output) -> String {
    assert_eq!(ended(output, 1), "");
    text(&output.stderr)
}

/// A terminal with the keyring in a directory, and the server as a context, without a sign-in.
async fn linked(server: &TestServer) -> (Terminal, PathBuf) {
    let terminal = Terminal::new(server);
    let tools = directory(&terminal, "tools");
    ended(&terminal.run(&["context", "set", "here"]).await, 0);
    let at = tools.to_string_lossy().into_owned();
    ended(&terminal.run(&["libraries", "configure", "keyring", "--directory", &at]).await, 0);
    (terminal, tools)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn installers_get_tokens_for_the_package_hosts_alone() {
    let server = TestServer::start(Engine::Sqlite).await;
    let (organization, identity, token) = viewer(&server).await;
    server.bind(&identity, &server.role("libraries.python.pull"), &organization).await;
    let (terminal, tools) = linked(&server).await;
    let keyring = async |arguments: &[&str]| called(&terminal, &tools, &[], arguments).await;
    let libraries = server.server().parts().settings.libraries_audience.clone();
    let index = format!("{libraries}/python/simple/");

    let early = no_token(&keyring(&["get", &index, "_token"]).await);
    assert!(early.ends_with("not signed in; sign in with: bowline auth login"), "{early}");
    ended(&terminal.run(&["auth", "login", "--identity", &identity, "--identity-token", &token]).await, 0);
    let password = ended(&keyring(&["get", &index, "_token"]).await, 0);
    assert_eq!((&claims_of(&password)["aud"], &claims_of(&password)["sub"]), (&json!(libraries), &json!(identity)));
    assert_eq!(ended(&keyring(&["get", &index, "--mode", "creds"]).await, 0), format!("_token\n{password}"));
    let name = identity.replace('/', "_");
    let printed = ended(&keyring(&["--mode=creds", "--output=json", "get", &index, &name]).await, 0);
    let account: Value = serde_json::from_str(&printed).expect("JSON");
    assert_eq!(account, json!({ "username": name, "password": password }));

    for (name, is_let_in) in [(Some(name.as_str()), true), (Some("_token"), true), (None, false)] {
        let basic = name.map(|name| format!("Basic {}", STANDARD.encode(format!("{name}:{password}"))));
        let headers = basic.map(|basic| (AUTHORIZATION, basic.parse::<HeaderValue>().expect("a header")));
        let path = "/libraries/python/simple/absent/";
        let reply = server.anonymous().rest_with("GET", path, HeaderMap::from_iter(headers), Vec::new()).await;
        assert_eq!(reply.status != 401, is_let_in, "{name:?}: {}", reply.status);
    }

    let base = server.base();
    for address in [
        format!("{base}/"),
        format!("{base}/libraries/../v2/"),
        format!("{base}.evil.example/libraries/python/simple/"),
        "https://other.example/libraries/python/simple/".to_owned(),
        index.replace("http://", "https://"),
        index.replace("://", "://me:secret@"),
    ] {
        for arguments in [&["get", &address, "_token"][..], &["get", &address, "--mode", "creds"]] {
            let refused = no_token(&keyring(arguments).await);
            assert!(refused.contains("configure pip") && !refused.contains("secret"), "{address}: {refused}");
        }
    }
    // Installers name the host after the address, for which they got the reason.
    let (_, host) = base.split_once("://").expect("a host");
    for address in [base, host, "other.example"] {
        assert_eq!(no_token(&keyring(&["get", address, "_token"]).await), "");
    }
    let other = format!("{organization}/{}", "0".repeat(16));
    assert!(no_token(&keyring(&["get", &index, &other]).await).contains(&other), "another identity");
    assert!(no_token(&keyring(&["set", &index, "me"]).await).contains("stores no password"));
    ended(&keyring(&["--mode=all", "get", &index]).await, 2);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_keyring_uses_ambient_credentials_and_the_variable_of_the_package_hosts() {
    let server = TestServer::start(Engine::Sqlite).await;
    let (_, identity, token) = viewer(&server).await;
    let (terminal, tools) = linked(&server).await;
    let libraries = server.server().parts().settings.libraries_audience.clone();
    let (index, own) = (format!("{libraries}/python/simple/"), "https://packages.example.com");
    let own_index = format!("{own}/python/simple/");
    let ambient = [("BOWLINE_IDENTITY", identity.as_str()), ("BOWLINE_ID_TOKEN", token.as_str())];
    let given = ended(&called(&terminal, &tools, &ambient, &["get", &index, "_token"]).await, 0);
    assert_eq!(claims_of(&given)["sub"], json!(identity));
    let unknown = no_token(&called(&terminal, &tools, &ambient, &["get", &own_index, "_token"]).await);
    assert!(unknown.contains("packages.example.com: no known server"), "{unknown}");
    // The server alone decides which audience its tokens have.
    let named = [&ambient[..], &[("BOWLINE_LIBRARIES_URL", own)]].concat();
    let refused = no_token(&called(&terminal, &tools, &named, &["get", &own_index, "_token"]).await);
    assert!(refused.contains(&format!("gives no token for {own}")), "{refused}");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_keyring_is_linked_where_no_other_program_is() {
    let server = TestServer::start(Engine::Sqlite).await;
    let (_, identity, token) = viewer(&server).await;
    let terminal = Terminal::new(&server);
    let (tools, other) = (directory(&terminal, "tools"), directory(&terminal, "other"));
    let at = tools.to_string_lossy().into_owned();
    let configure = ["libraries", "configure", "keyring", "--directory", &at];
    let early = terminal.run(&configure).await;
    ended(&early, 2);
    assert!(text(&early.stderr).contains("bowline context set"), "{}", text(&early.stderr));
    ended(&terminal.run(&["context", "set", "here"]).await, 0);

    let link = tools.join("keyring");
    symlink("/no/such/program", &link).expect("a link is made");
    let taken = terminal.run(&configure).await;
    ended(&taken, 2);
    assert!(text(&taken.stderr).contains("another program") && link.is_symlink(), "{}", text(&taken.stderr));
    std::fs::remove_file(&link).expect("the link is there");
    let configured = terminal.run(&configure).await;
    ended(&configured, 0);
    for part in ["was not tried", "PIP_KEYRING_PROVIDER=subprocess", "into PATH"] {
        assert!(text(&configured.stderr).contains(part), "{part}: {}", text(&configured.stderr));
    }

    ended(&terminal.run(&["auth", "login", "--identity", &identity, "--identity-token", &token]).await, 0);
    let first = other.join("keyring");
    std::fs::write(&first, "#!/bin/sh\n").expect("a file is written");
    std::fs::set_permissions(&first, std::fs::Permissions::from_mode(0o755)).expect("it is a program");
    for (path, is_second) in [([&tools, &other], false), ([&other, &tools], true)] {
        let path = std::env::join_paths(path).expect("a path");
        let mut command = terminal.command();
        command.args(configure).args(["--quiet", "--api", &terminal.api]).env("PATH", path);
        let again = command.output().await.expect("the binary runs");
        ended(&again, 0);
        assert_eq!(text(&again.stderr).contains("comes first in PATH"), is_second, "{}", text(&again.stderr));
    }
    let elsewhere = [&configure[..], &["--libraries-url", "https://packages.example.com"]].concat();
    let refused = terminal.run(&elsewhere).await;
    ended(&refused, 2);
    assert!(text(&refused.stderr).contains("no token for https://packages.example.com"), "{}", text(&refused.stderr));
    let pip = terminal.run(&["libraries", "configure", "pip"]).await;
    assert!(text(&pip.stderr).contains("bowline libraries configure keyring"), "{}", text(&pip.stderr));
    server.stop().await;
}
