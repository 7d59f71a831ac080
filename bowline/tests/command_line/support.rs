//! A terminal, and people and programs in front of it.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Output, Stdio};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bowline_core::Error;
use bowline_store::Value as Sql;
use bowline_testkit::{Actor, RestReply, TestServer};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::Command;

/// Someone's machine, with a home directory of its own.
pub(crate) struct Terminal {
    pub(crate) home: TempDir,
    pub(crate) api: String,
}

impl Terminal {
    pub(crate) fn new(server: &TestServer) -> Terminal {
        Terminal { home: tempfile::tempdir().expect("a scratch directory is made"), api: server.base().into() }
    }

    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_bowline"));
        command.env_clear().env("HOME", self.home.path());
        command
    }

    pub(crate) async fn run(&self, arguments: &[&str]) -> Output {
        self.command().args(arguments).args(["--api", &self.api]).output().await.expect("the binary runs")
    }

    /// The same with something on standard input.
    pub(crate) async fn run_with(&self, arguments: &[&str], input: &[u8]) -> Output {
        let mut command = self.command();
        command.args(arguments).args(["--api", &self.api]).stdin(Stdio::piped());
        let mut running = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the binary runs");
        running.stdin.take().expect("a pipe").write_all(input).await.expect("the input is read");
        running.wait_with_output().await.expect("the binary ends")
    }

    /// Stores the token of an actor, as if the actor had signed in.
    pub(crate) fn sign_in_as(&self, actor: &Actor) {
        let file = self.kept(&self.api, "oidc-token");
        std::fs::create_dir_all(file.parent().expect("a directory")).expect("the cache is made");
        std::fs::write(&file, actor.token.as_deref().expect("the actor has a token")).expect("the token is kept");
    }

    /// What a command printed as JSON.
    pub(crate) async fn json(&self, arguments: &[&str]) -> Value {
        let printed = ended(&self.run(&[arguments, &["-o", "json"]].concat()).await, 0);
        serde_json::from_str(&printed).unwrap_or_else(|error| panic!("{error}: {printed}"))
    }

    /// The credential helper, called as container clients call it.
    pub(crate) async fn helper(&self, directory: &Path, verb: &str, question: &str) -> Output {
        let mut command = Command::new(directory.join("docker-credential-bowline"));
        command.env_clear().env("HOME", self.home.path()).arg(verb).stdin(Stdio::piped());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut running = command.spawn().expect("the helper runs");
        // A verb without a question ends without reading it.
        let _ = running.stdin.take().expect("a pipe").write_all(question.as_bytes()).await;
        running.wait_with_output().await.expect("the helper ends")
    }

    pub(crate) fn kept(&self, audience: &str, name: &str) -> std::path::PathBuf {
        self.home.path().join(".cache/chainguard").join(audience.replace('/', "-")).join(name)
    }
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).trim().to_owned()
}

#[track_caller]
pub(crate) fn ended(output: &Output, code: i32) -> String {
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "stdout: {}, stderr: {said}", text(&output.stdout));
    text(&output.stdout)
}

pub(crate) fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).expect("the file is there").permissions().mode() & 0o777
}

/// What a token says.
#[track_caller]
pub(crate) fn claims_of(token: &str) -> Value {
    let payload = token.split('.').nth(1).unwrap_or_else(|| panic!("{token} is no token"));
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(payload).expect("base64")).expect("JSON")
}

/// Someone with an identity token, who may view an organization.
pub(crate) async fn viewer(server: &TestServer) -> (String, String, String) {
    let organization = server.organization("acme").await;
    let identity = server.identity(&organization, "build").await;
    server.bind(&identity, &server.role("viewer"), &organization).await;
    let token = server.idp().token("build", &server.server().parts().settings.auth_url, Value::Null);
    (organization, identity, token)
}

/// The issuer as a provider that everyone may sign in with.
pub(crate) async fn offer_provider(server: &TestServer) {
    let issuer = server.idp().issuer().to_owned();
    let written = server.server().parts().storage.db.write(move |tx| {
        let issuer = issuer.clone();
        Box::pin(async move {
            let sql = "INSERT INTO operator_providers (id, label, issuer, client_id, client_secret, scopes, created_at)
                       VALUES ('main', 'Main', $1, 'bowline', $2, '[]', 0)";
            tx.execute(sql, &[Sql::from(&issuer), Sql::Bytes(b"")]).await?;
            Ok::<_, Error>(())
        })
    });
    written.await.expect("the provider is stored");
}

/// Runs a sign-in that prints an address, and does there what a person would; how the command ended.
pub(crate) async fn signed_in(server: &TestServer, terminal: &Terminal, arguments: &[&str], person: &str) -> Output {
    let mut command = terminal.command();
    command.args(["auth", "login"]).args(arguments).args(["--api", &terminal.api]);
    let mut running = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the binary runs");
    let mut lines = BufReader::new(running.stderr.take().expect("a pipe")).lines();
    let address = loop {
        let line = lines.next_line().await.expect("a line").expect("an address is printed");
        if let Some(at) = line.find("http") {
            break line[at..].to_owned();
        }
    };
    let browser = server.browser();
    let mut page = browser.get(&address).await;
    if address.contains("user_code") {
        let code = field(&page, "user_code");
        let choose = location(&browser.post("/activate", &[("user_code", &code)]).await);
        page = browser.get(&format!("{choose}&connection=main")).await;
    }
    let at_provider = page.header("location").map_or_else(|| link(&page), String::from);
    let verified = json!({ "email_verified": true });
    let confirm = browser.get(&server.idp().approve(&at_provider, person, verified)).await;
    let (flow, token) = (field(&confirm, "flow"), field(&confirm, "token"));
    let moved = browser.post("/oauth/confirm", &[("flow", &flow), ("token", &token), ("answer", "continue")]).await;
    if let Some((_, rest)) = moved.text().split_once("url=") {
        let onward = rest.split('"').next().unwrap_or_default().replace("&amp;", "&");
        reqwest::get(onward).await.expect("the terminal listens");
    }
    running.wait_with_output().await.expect("the binary ends")
}

fn location(reply: &RestReply) -> String {
    reply.header("location").unwrap_or_else(|| panic!("no way on: {}", reply.text())).to_owned()
}

/// The address of the page's one button.
fn link(page: &RestReply) -> String {
    let text = page.text();
    let (_, rest) = text.split_once("class=\"button\" href=\"").unwrap_or_else(|| panic!("no button: {text}"));
    rest.split('"').next().unwrap_or_default().replace("&amp;", "&")
}

fn field(reply: &RestReply, name: &str) -> String {
    let page = reply.text();
    let (_, rest) =
        page.split_once(&format!("name=\"{name}\" value=\"")).unwrap_or_else(|| panic!("no field {name}: {page}"));
    rest.split('"').next().unwrap_or_default().into()
}
