//! The kubelet's credential provider, called as kubelets call it.

use std::path::Path;
use std::process::{Output, Stdio};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bowline_testkit::{Engine, TestServer};
use http::HeaderMap;
use http::header::AUTHORIZATION;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;

use crate::support::{Terminal, ended, text};

/// Runs the plugin with a request on standard input, without a home directory.
async fn provide(plugin: &Path, arguments: &[String], request: &Value) -> Output {
    let mut command = Command::new(plugin);
    command.env_clear().args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut running = command.spawn().expect("the plugin runs");
    let mut input = running.stdin.take().expect("a pipe");
    input.write_all(request.to_string().as_bytes()).await.expect("the request is read");
    drop(input);
    running.wait_with_output().await.expect("the plugin ends")
}

/// The texts of a list in the YAML that the command writes: lines that begin with a dash below a key.
fn list<'t>(yaml: &'t str, key: &str) -> Vec<&'t str> {
    let (_, after) = yaml.split_once(&format!("{key}:\n")).unwrap_or_else(|| panic!("no {key}: {yaml}"));
    let items = after.lines().map_while(|line| line.trim().strip_prefix("- "));
    items.map(|item| item.trim_matches('"')).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[expect(clippy::too_many_lines, reason = "one scenario, step by step")]
async fn kubelets_pull_with_the_service_account_of_the_pod() {
    let server = TestServer::start(Engine::Sqlite).await;
    let organization = server.organization("acme").await;
    let terminal = Terminal::new(&server);
    terminal.sign_in_as(&server.actor("owner", &organization).await);
    let registry = server.server().parts().settings.registry_audience.clone();
    let files = terminal.home.path().join("kubelet");
    let directory = files.to_str().expect("UTF-8");
    let create =
        ["iam", "identities", "create", "kubernetes", "acme/puller", "--cluster-issuer", server.idp().issuer()];
    let account = ["--namespace", "prod", "--service-account", "web", "--kubelet", directory, "--registry"];
    let no_host = terminal.run(&[&create[..], &account[..], &["https://r.example.com/x"]].concat()).await;
    ended(&no_host, 2);
    let created = terminal.run(&[&create[..], &account[..], &[&registry]].concat()).await;
    let identity = ended(&created, 0);
    let read = |name: &str| std::fs::read_to_string(files.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
    let (config, rbac, service_account) =
        (read("credential-provider.yaml"), read("rbac.yaml"), read("service-account.yaml"));
    assert!(
        service_account.contains(&format!("bowline/identity: {identity}"))
            || service_account.contains(&format!("bowline/identity: \"{identity}\"")),
        "{service_account}"
    );
    let audience = server.server().parts().settings.auth_url.clone();
    assert_eq!(list(&rbac, "resources"), [&audience]);
    assert_eq!(list(&config, "matchImages"), [&registry]);
    let roles = ended(&terminal.run(&["iam", "role-bindings", "list", "--identity", "acme/puller"]).await, 0);
    assert!(roles.contains("registry.pull"), "{roles}");

    let plugin = terminal.home.path().join("bowline-credential-provider");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_bowline"), &plugin).expect("a link is made");
    let arguments: Vec<String> = list(&config, "args").into_iter().map(String::from).collect();
    let token = server.idp().token("system:serviceaccount:prod:web", &audience, Value::Null);
    let request = json!({
        "apiVersion": "credentialprovider.kubelet.k8s.io/v1", "kind": "CredentialProviderRequest",
        "image": format!("{registry}/acme/app:1"), "serviceAccountToken": token,
        "serviceAccountAnnotations": { "bowline/identity": identity },
    });
    let response = provide(&plugin, &arguments, &request).await;
    let response: Value = serde_json::from_str(&ended(&response, 0)).expect("JSON");
    assert_eq!(
        (&response["kind"], &response["cacheKeyType"]),
        (&json!("CredentialProviderResponse"), &json!("Registry"))
    );
    let seconds: u64 =
        response["cacheDuration"].as_str().and_then(|text| text.strip_suffix('s')?.parse().ok()).expect("a duration");
    assert!((1..3600).contains(&seconds), "{seconds}");
    let secret = response["auth"][&registry]["password"].as_str().expect("a token");
    let basic = format!("Basic {}", STANDARD.encode(format!("_token:{secret}")));
    let headers = HeaderMap::from_iter([(AUTHORIZATION, basic.parse().expect("a header"))]);
    assert_eq!(server.anonymous().rest_with("GET", "/v2/", headers, Vec::new()).await.status, 200);

    // Another service account of the cluster is not the identity, whatever its annotation names.
    let other = server.idp().token("system:serviceaccount:prod:other", &audience, Value::Null);
    for (member, value, code, named) in [
        ("serviceAccountToken", json!(other), None, "error: "),
        ("serviceAccountToken", json!("eyJ.x.y"), None, "error: "),
        ("image", json!("r.example.com/acme/app"), Some(2), "matchImages"),
        ("serviceAccountAnnotations", json!({}), Some(2), "annotate the service account"),
        ("apiVersion", json!("credentialprovider.kubelet.k8s.io/v1beta1"), Some(2), "set apiVersion"),
    ] {
        let mut request = request.clone();
        request[member] = value;
        let refused = provide(&plugin, &arguments, &request).await;
        let message = text(&refused.stderr);
        assert!(
            refused.status.code().is_some_and(|found| code.is_none_or(|code| found == code) && found != 0),
            "{message}"
        );
        assert!(message.contains(named) && refused.stdout.is_empty(), "{member}: {message}");
        assert!(!message.contains("eyJ"), "a token in a message: {message}");
    }
    let no_request = provide(&plugin, &arguments, &json!("x")).await;
    ended(&no_request, 2);
    server.stop().await;
}
