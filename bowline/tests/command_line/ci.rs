//! The scripts of `ci/`: jobs of GitHub and GitLab with a stand-in for their issuer.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Output;

use axum::Router;
use axum::routing::get;
use bowline_testkit::{Engine, TestServer};
use http::{HeaderMap, StatusCode, Uri};
use serde_json::{Value, json};
use tokio::process::Command;

use crate::support::{ended, text, viewer};

/// What the runner's user has set for the container clients of all jobs.
const RUNNERS_CONFIG: &str = r#"{ "detachKeys": "ctrl-q" }"#;

/// A job's machine.
struct Job {
    home: tempfile::TempDir,
    api: String,
    identity: String,
    registry: String,
}

impl Job {
    async fn new(server: &TestServer) -> Job {
        let (_, identity, _) = viewer(server).await;
        let home = tempfile::tempdir().expect("a scratch directory is made");
        // The release is a program that runs the binary under test.
        let release = home.path().join("release");
        std::fs::create_dir_all(release.join("bowline-1-linux-amd64")).expect("a directory is made");
        let program = format!("#!/bin/sh\nexec {} \"$@\"\n", env!("CARGO_BIN_EXE_bowline"));
        std::fs::write(release.join("bowline-1-linux-amd64/bowline"), program).expect("a file is written");
        let archive = ["-czf", "bowline.tar.gz", "bowline-1-linux-amd64"];
        let made = Command::new("tar").args(archive).current_dir(&release).output().await.expect("tar runs");
        ended(&made, 0);
        let registry = server.server().parts().settings.registry_audience.clone();
        Job { home, api: server.base().into(), identity, registry }
    }

    fn at(&self, path: &str) -> PathBuf {
        self.home.path().join(path)
    }

    fn read(&self, path: &str) -> String {
        std::fs::read_to_string(self.at(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    async fn checksum(&self) -> String {
        let sum = Command::new("sha256sum").arg(self.at("release/bowline.tar.gz")).output().await.expect("it runs");
        text(&sum.stdout).split(' ').next().unwrap_or_default().to_owned()
    }

    /// A shell with the inputs as the script gets them.
    async fn shell(&self) -> Command {
        let mut shell = Command::new("sh");
        shell.env_clear().env("PATH", "/usr/local/bin:/usr/bin:/bin").env("HOME", self.home.path());
        shell.envs([("BOWLINE_API", self.api.as_str()), ("BOWLINE_IDENTITY", &self.identity)]);
        shell.envs([("BOWLINE_REGISTRY", self.registry.as_str()), ("BOWLINE_SHA256", &self.checksum().await)]);
        // Inputs that are not given are empty.
        shell.envs(["BOWLINE_ISSUER", "BOWLINE_CA", "BOWLINE_PROXY", "BOWLINE_LIBRARIES_URL"].map(|name| (name, "")));
        let download = format!("file://{}", self.at("release/bowline.tar.gz").display());
        shell.env("BOWLINE_DOWNLOAD", download);
        shell
    }

    /// The credentials that container clients get in the job.
    async fn credentials(&self, directory: &str, variables: &str) -> Value {
        let script = format!(". '{}'; docker-credential-bowline get", self.at(variables).display());
        let mut helper = Command::new("sh");
        helper.args(["-c", &script]).env_clear().env("HOME", self.home.path());
        helper.env("PATH", format!("{}:/usr/bin:/bin", self.at(directory).display()));
        helper.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
        let mut running = helper.spawn().expect("the helper runs");
        let mut input = running.stdin.take().expect("a pipe");
        tokio::io::AsyncWriteExt::write_all(&mut input, self.registry.as_bytes()).await.expect("it reads");
        drop(input);
        let output = running.wait_with_output().await.expect("the helper ends");
        serde_json::from_str(&ended(&output, 0)).expect("JSON")
    }
}

/// The address at which jobs of GitHub request tokens. It gives one to `request-secret`, for this server's audience.
async fn token_requests(server: &TestServer) -> String {
    let audience = server.server().parts().settings.auth_url.clone();
    let body = json!({ "value": server.idp().token("build", &audience, Value::Null) }).to_string();
    let give = move |headers: HeaderMap, uri: Uri| async move {
        let query = url::form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes());
        let query: BTreeMap<String, String> = query.into_owned().collect();
        let is_caller = headers.get("authorization").is_some_and(|value| value == "Bearer request-secret");
        let is_right = is_caller && query.get("audience") == Some(&audience);
        if is_right { Ok(body) } else { Err(StatusCode::UNAUTHORIZED) }
    };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let routes = Router::new().route("/token", get(give));
    tokio::spawn(async move { axum::serve(listener, routes).await });
    format!("http://{address}/token?api-version=2")
}

fn script() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../ci/setup.sh")
}

/// Tokens of the output, except for those that GitHub is told to mask.
fn unmasked(output: &Output) -> Vec<String> {
    let masked = |line: &&str| !line.starts_with("::add-mask::");
    let all = format!("{}\n{}", text(&output.stdout), text(&output.stderr));
    all.lines().filter(masked).filter(|line| line.contains("eyJ")).map(String::from).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn jobs_of_github_get_tokens_without_a_secret() {
    let server = TestServer::start(Engine::Sqlite).await;
    let job = Job::new(&server).await;
    let requests = token_requests(&server).await;
    let github = |shell: &mut Command| {
        shell.arg(script()).env("GITHUB_ACTIONS", "true").env("RUNNER_TEMP", job.at("temp"));
        shell.env("GITHUB_ENV", job.at("variables")).env("GITHUB_PATH", job.at("paths"));
        shell.env("ACTIONS_ID_TOKEN_REQUEST_URL", &requests).env("ACTIONS_ID_TOKEN_REQUEST_TOKEN", "request-secret");
    };
    let mut shell = job.shell().await;
    github(&mut shell);
    std::fs::create_dir(job.at(".docker")).expect("a directory is made");
    std::fs::write(job.at(".docker/config.json"), RUNNERS_CONFIG).expect("a file is written");
    std::fs::write(job.at("ca.pem"), include_str!("../testdata/tls/one.pem")).expect("a file is written");
    let inputs = [("BOWLINE_CA", job.at("ca.pem")), ("BOWLINE_PROXY", "http://proxy.invalid:3128".into())];
    shell.envs(inputs).env("BOWLINE_NO_PROXY", "127.0.0.1,localhost");
    let output = shell.output().await.expect("the shell runs");
    let printed = ended(&output, 0);
    assert_eq!(printed.matches("::add-mask::eyJ").count(), 2, "{printed}");
    assert!(unmasked(&output).is_empty(), "{:?}", unmasked(&output));
    assert_eq!(job.read("paths").trim(), job.at("temp/bowline/bin").to_str().expect("UTF-8"));
    let variables = job.read("variables");
    for line in ["SSL_CERT_FILE=", "NODE_EXTRA_CA_CERTS=", "HTTPS_PROXY=http://proxy.invalid:3128", "BOWLINE_CONTEXTS="]
    {
        assert!(variables.lines().any(|one| one.starts_with(line)), "{line}: {variables}");
    }
    assert!(job.read("temp/bowline/ca.pem").ends_with(include_str!("../testdata/tls/one.pem")));
    assert!(variables.contains(&format!("DOCKER_CONFIG={}\n", job.at("temp/bowline/docker").display())), "{variables}");
    let config: Value = serde_json::from_str(&job.read("temp/bowline/docker/config.json")).expect("JSON");
    // The runner's own settings go on to count in the job, and are not changed for later jobs.
    assert_eq!(config, json!({ "detachKeys": "ctrl-q", "credHelpers": { &job.registry: "bowline" } }));
    assert_eq!(job.read(".docker/config.json"), RUNNERS_CONFIG);
    // What GitHub sets in later steps.
    let lines = variables.lines().filter(|line| line.starts_with("BOWLINE_"));
    let exports = lines.map(|line| format!("export {line}")).collect::<Vec<_>>().join("\n");
    std::fs::write(job.at("exports"), exports).expect("a file is written");
    let given = job.credentials("temp/bowline/bin", "exports").await;
    assert_eq!(
        (&given["Username"], given["Secret"].as_str().is_some_and(|token| token.starts_with("eyJ"))),
        (&json!("_token"), true)
    );
    // Without the permission there is no token to exchange.
    let mut shell = job.shell().await;
    github(&mut shell);
    shell.env("ACTIONS_ID_TOKEN_REQUEST_TOKEN", "other").env("RUNNER_TEMP", job.at("other"));
    let refused = shell.output().await.expect("the shell runs");
    assert!(!refused.status.success() && text(&refused.stderr).contains("error: "), "{}", text(&refused.stderr));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn jobs_of_gitlab_run_the_same_script() {
    let server = TestServer::start(Engine::Sqlite).await;
    let job = Job::new(&server).await;
    let template =
        std::fs::read_to_string(script().with_file_name("gitlab/templates/bowline.yml")).expect("it is read");
    let (_, block) = template.split_once("  before_script:\n    - |\n").expect("the script");
    let (block, after) = block.split_once("  after_script:\n").expect("its end");
    let lines: Vec<&str> = block.lines().map(|line| line.strip_prefix("      ").unwrap_or(line)).collect();
    let unindented = lines.join("\n") + "\n";
    let source = std::fs::read_to_string(script()).expect("it is read");
    assert!(unindented.contains(&source), "ci/gitlab/templates/bowline.yml differs from ci/setup.sh");
    let mut shell = job.shell().await;
    let project = job.at("project");
    shell.env("CI_PROJECT_DIR", &project);
    let audience = server.server().parts().settings.auth_url.clone();
    shell.env("BOWLINE_ID_TOKEN", server.idp().token("build", &audience, Value::Null));
    // The audience of libraries is this server's own.
    let audience = server.server().parts().settings.libraries_audience.clone();
    shell.env("BOWLINE_LIBRARIES_URL", format!("{audience}/"));
    shell.args(["-ec", &format!("{unindented}\nbowline auth token >/dev/null; echo \"$MAVEN_ARGS\"")]);
    let output = shell.output().await.expect("the shell runs");
    let printed = ended(&output, 0);
    assert!(printed.contains("--settings ") && unmasked(&output).is_empty(), "{printed}");
    let settings = "project.tmp/bowline/settings.xml";
    assert!(job.read(settings).contains(&format!("<url>{audience}/java/</url>")), "{}", job.read(settings));
    assert!(job.read("project.tmp/bowline/npmrc").ends_with("/javascript/:_authToken=${BOWLINE_LIBRARIES_TOKEN}\n"));
    let netrc = job.read("project.tmp/bowline/netrc");
    assert!(netrc.starts_with("machine ") && netrc.contains(" login _token password eyJ"), "no credentials of pip");
    let given = job.credentials("project.tmp/bowline/bin", "project.tmp/bowline/env").await;
    assert_eq!(given["Username"], "_token");
    let end = after.trim().trim_start_matches("- ");
    let ended_job = Command::new("sh").args(["-c", end]).env("CI_PROJECT_DIR", &project).output().await;
    ended(&ended_job.expect("the shell runs"), 0);
    assert!(!job.at("project.tmp/bowline").exists(), "tokens outlive the job");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn inputs_that_cannot_work_are_refused() {
    let server = TestServer::start(Engine::Sqlite).await;
    let job = Job::new(&server).await;
    for (name, value, named) in [
        ("BOWLINE_SHA256", "0".repeat(64), "the download has the checksum "),
        ("BOWLINE_SHA256", String::new(), "no checksum of the download"),
        ("BOWLINE_DOWNLOAD", "http://127.0.0.1:1/bowline".into(), "was not downloaded"),
        ("BOWLINE_DOWNLOAD", String::new(), "bowline is not installed"),
        ("BOWLINE_API", String::new(), "no address of the API"),
        ("BOWLINE_IDENTITY", String::new(), "no identity"),
        ("BOWLINE_CA", "/no/such/file".into(), "/no/such/file cannot be read"),
        ("BOWLINE_PROXY", "http://a\nLD_PRELOAD=x".into(), "has more than one line"),
    ] {
        let mut shell = job.shell().await;
        shell.arg(script()).env("BOWLINE_DIRECTORY", job.at("refused")).env("GITHUB_ENV", job.at("refused-variables"));
        let output = shell.env(name, &value).output().await.expect("the shell runs");
        let message = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{name}={value}: {message}");
        let is_named = |line: &str| line.starts_with("error: ") && line.contains(named);
        assert!(message.lines().any(is_named), "{name}={value}: {message}");
        assert!(message.contains("\nhint: "), "{message}");
        assert!(!job.at("refused/bin/bowline").exists(), "{name}={value}: installed");
    }
    assert!(!job.read("refused-variables").contains("LD_PRELOAD"));
    server.stop().await;
}
