//! Container clients and their credential helper.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bowline_testkit::{Engine, TestServer};
use http::HeaderMap;
use http::header::AUTHORIZATION;
use serde_json::{Value, json};

use crate::support::{Terminal, ended, mode, text, viewer};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[expect(clippy::too_many_lines, reason = "one scenario, step by step")]
async fn container_clients_ask_for_credentials() {
    let server = TestServer::start(Engine::Sqlite).await;
    let (_, identity, token) = viewer(&server).await;
    let terminal = Terminal::new(&server);
    let registry = server.server().parts().settings.registry_audience.clone();
    let tools = terminal.home.path().join("tools");
    std::fs::create_dir(&tools).expect("the directory is made");
    let helper_directory = tools.to_string_lossy().into_owned();
    let configure = ["auth", "configure-docker", "--helper-directory", &helper_directory];

    let early = terminal.run(&configure).await;
    ended(&early, 2);
    assert!(text(&early.stderr).contains("bowline context set"), "{}", text(&early.stderr));
    ended(&terminal.run(&["context", "set", "here"]).await, 0);
    let missing = terminal.run(&["auth", "configure-docker", "--helper-directory", "/no/such/place"]).await;
    ended(&missing, 2);
    assert!(text(&missing.stderr).contains("/no/such/place: there is no such directory"), "{}", text(&missing.stderr));
    // A link that a former place of the binary left behind is none in the way.
    std::os::unix::fs::symlink("/no/such/bowline", tools.join("docker-credential-bowline")).expect("a link is made");
    let configured = terminal.run(&configure).await;
    ended(&configured, 0);
    for said in ["was not tried", "into PATH"] {
        assert!(text(&configured.stderr).contains(said), "{}", text(&configured.stderr));
    }
    let mut found = terminal.command();
    found.args(configure).args(["--api", &terminal.api]).env("PATH", &tools);
    let found = found.output().await.expect("the binary runs");
    ended(&found, 0);
    assert!(!text(&found.stderr).contains("PATH"), "{}", text(&found.stderr));
    let file = terminal.home.path().join(".docker/config.json");
    let config: Value = serde_json::from_slice(&std::fs::read(&file).expect("the file is written")).expect("JSON");
    assert_eq!((&config["credHelpers"][&registry], mode(&file)), (&json!("bowline"), 0o600));

    let asked = terminal.helper(&tools, "get", &registry).await;
    assert!(ended(&asked, 3).contains("bowline auth login"), "not signed in");
    ended(&terminal.run(&["auth", "login", "--identity", &identity, "--identity-token", &token]).await, 0);
    let address = format!("https://{registry}/v2/");
    let given: Value = serde_json::from_str(&ended(&terminal.helper(&tools, "get", &address).await, 0)).expect("JSON");
    assert_eq!((&given["ServerURL"], &given["Username"]), (&json!(address), &json!("_token")));
    let secret = given["Secret"].as_str().expect("a token");
    let basic = format!("Basic {}", STANDARD.encode(format!("_token:{secret}")));
    let headers = HeaderMap::from_iter([(AUTHORIZATION, basic.parse().expect("a header"))]);
    assert_eq!(server.anonymous().rest_with("GET", "/v2/", headers, Vec::new()).await.status, 200);

    let listed: Value = serde_json::from_str(&ended(&terminal.helper(&tools, "list", "").await, 0)).expect("JSON");
    assert_eq!(listed, json!({ &registry: "_token" }));
    let elsewhere = ended(&terminal.helper(&tools, "get", "other.example").await, 2);
    assert_eq!(elsewhere, "credentials not found in native keychain", "clients know these words");
    let stored = ended(&terminal.helper(&tools, "store", "{}").await, 2);
    assert!(stored.contains("keeps no password"), "{stored}");
    assert!(terminal.kept(&registry, "oidc-token").exists());
    ended(&terminal.helper(&tools, "erase", &registry).await, 0);
    assert!(!terminal.kept(&registry, "oidc-token").exists());
    ended(&terminal.helper(&tools, "guess", "").await, 2);

    let wrong = terminal.run(&[&configure[..], &["--registry", "wrong.example"]].concat()).await;
    ended(&wrong, 2);
    assert!(text(&wrong.stderr).contains("no token for wrong.example"), "{}", text(&wrong.stderr));
    assert!(!std::fs::read_to_string(&file).expect("the file is there").contains("wrong.example"));

    // A file that is not a helper of this binary is not touched.
    std::fs::write(&file, "{").expect("the file is written");
    ended(&terminal.run(&configure).await, 2);
    assert_eq!(std::fs::read_to_string(&file).expect("the file is there"), "{");
    std::fs::remove_file(&file).expect("the file is there");
    let other = terminal.home.path().join("other");
    std::fs::create_dir(&other).expect("the directory is made");
    std::fs::write(other.join("docker-credential-bowline"), "another program").expect("it is written");
    let other = other.to_string_lossy();
    let taken = terminal.run(&["auth", "configure-docker", "--helper-directory", &other]).await;
    ended(&taken, 2);
    assert!(text(&taken.stderr).contains("another program") && !file.exists(), "{}", text(&taken.stderr));
    ended(&terminal.run(&["auth", "configure-docker", "--registry", "https://a/b"]).await, 2);
    server.stop().await;
}
