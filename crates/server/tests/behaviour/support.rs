//! What every topic needs: servers on each engine, machines with roles, and answers taken apart.

use bowline_core::Error;
use bowline_store::Value as Sql;
use bowline_testkit::{Actor, RestReply, TestServer, engines};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

/// Runs a test once on each engine.
pub(crate) async fn on_each_engine(test: impl AsyncFn(&TestServer)) {
    for engine in engines() {
        let server = TestServer::start(engine).await;
        test(&server).await;
        server.stop().await;
    }
}

/// The UIDP of a built-in role, as the rules define it.
pub(crate) fn built_in(name: &str) -> String {
    if name == "viewer" {
        return "63921b2c44617e3f2603851537be0123af4a57d7".into();
    }
    let digest = bowline_authn::wrap::sha256(format!("bowline role {name}").as_bytes());
    digest[..20].iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A UIDP below `parent` at which nothing is.
pub(crate) fn absent(parent: &str) -> String {
    format!("{parent}/00000000000000ff")
}

/// Calls `"VERB /path"`.
pub(crate) async fn call(actor: &Actor, what: &str, body: Value) -> RestReply {
    let (verb, path) = what.split_once(' ').expect("a verb and a path");
    actor.rest(verb, path, Some(body).filter(|body| !body.is_null())).await
}

/// Calls `"VERB /path"` and takes the answer, which must be a success.
pub(crate) async fn done(actor: &Actor, what: &str, body: Value) -> Value {
    let reply = call(actor, what, body).await;
    assert_eq!(reply.status, 200, "{what}: {}", reply.text());
    if reply.body.is_empty() { Value::Null } else { reply.json() }
}

/// Calls `"VERB /path"`, which must be refused in this way.
pub(crate) async fn refused(actor: &Actor, what: &str, body: Value, status: u16, reason: &str) -> Refusal {
    let reply = call(actor, what, body).await;
    assert_eq!(reply.status, status, "{what}: {}", reply.text());
    let refusal = Refusal(reply.json());
    assert_eq!(refusal.reason(), reason, "{what}: {}", refusal.0);
    refusal
}

/// The body of an error.
#[derive(Debug)]
pub(crate) struct Refusal(pub(crate) Value);

impl Refusal {
    pub(crate) fn message(&self) -> &str {
        self.0["message"].as_str().unwrap_or_default()
    }

    /// The detail of this type of `google.rpc`, null if there is none.
    pub(crate) fn detail(&self, name: &str) -> Value {
        let wanted = format!("type.googleapis.com/google.rpc.{name}");
        let details = self.0["details"].as_array().cloned().unwrap_or_default();
        details.into_iter().find(|detail| detail["@type"] == wanted.as_str()).unwrap_or(Value::Null)
    }

    pub(crate) fn reason(&self) -> String {
        self.detail("ErrorInfo")["reason"].as_str().unwrap_or_default().into()
    }

    /// The wrong fields, each with what is wrong.
    pub(crate) fn violations(&self) -> Vec<(String, String)> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let violations = self.detail("BadRequest")["fieldViolations"].as_array().cloned().unwrap_or_default();
        violations.iter().map(|one| (text(&one["field"]), text(&one["description"]))).collect()
    }

    pub(crate) fn fields(&self) -> Vec<String> {
        self.violations().into_iter().map(|(field, _)| field).collect()
    }
}

/// A machine identity and somebody who acts as it.
pub(crate) struct Machine {
    pub(crate) uid: String,
    pub(crate) subject: String,
    pub(crate) actor: Actor,
}

impl Machine {
    /// The same identity with a token of now.
    pub(crate) async fn again(&self, server: &TestServer) -> Actor {
        self.narrowed(server, &[]).await
    }

    /// The same identity with a token for which more was asked.
    pub(crate) async fn narrowed(&self, server: &TestServer, more: &[(&str, &str)]) -> Actor {
        let reply = sign_in(server, &self.uid, &self.subject, more).await;
        self.actor.with_token(&token_of(&reply))
    }
}

/// Creates an identity that a token of the fake issuer with this subject assumes.
pub(crate) async fn identity(server: &TestServer, group: &str, subject: &str) -> String {
    let relationship = json!({ "issuer": server.idp().issuer(), "subject": subject });
    let body = json!({ "name": format!("machine {}", subject.to_lowercase()), "claimMatch": relationship });
    uid_of(&done(&server.operator().await, &format!("POST /iam/v2/identities/{group}"), body).await)
}

/// Exchanges a token of the fake issuer for one of this identity.
pub(crate) async fn sign_in(server: &TestServer, uid: &str, subject: &str, more: &[(&str, &str)]) -> RestReply {
    let upstream = server.idp().token(subject, &server.base(), json!({}));
    let base = server.base();
    let mut parameters = vec![("aud", base.as_ref()), ("identity", uid)];
    parameters.extend_from_slice(more);
    server.exchange(&upstream, &parameters).await
}

pub(crate) fn token_of(reply: &RestReply) -> String {
    assert_eq!(reply.status, 200, "{}", reply.text());
    reply.json()["token"].as_str().expect("a token").into()
}

pub(crate) fn uid_of(resource: &Value) -> String {
    resource["uid"].as_str().expect("a uid").into()
}

/// A machine that lives in `home`, with nothing bound to it.
pub(crate) async fn machine(server: &TestServer, home: &str, subject: &str) -> Machine {
    let uid = identity(server, home, subject).await;
    let reply = sign_in(server, &uid, subject, &[]).await;
    let actor = server.operator().await.with_token(&token_of(&reply));
    Machine { uid, subject: subject.into(), actor }
}

/// A machine that holds exactly these capabilities (`CAP_...`) at `place`.
pub(crate) async fn holder(server: &TestServer, home: &str, subject: &str, place: &str, capabilities: &[&str]) -> Machine {
    let machine = machine(server, home, subject).await;
    let role = role(server, home, &format!("of {}", subject.to_lowercase()), capabilities).await;
    bind(server, place, &machine.uid, &role).await;
    machine
}

/// Creates a custom role of these capabilities (`CAP_...`).
pub(crate) async fn role(server: &TestServer, group: &str, name: &str, capabilities: &[&str]) -> String {
    let body = json!({ "name": name, "capabilities": capabilities });
    uid_of(&done(&server.operator().await, &format!("POST /iam/v2/roles/{group}"), body).await)
}

/// Binds a role as the operator.
pub(crate) async fn bind(server: &TestServer, group: &str, identity: &str, role: &str) -> String {
    let body = json!({ "identityUid": identity, "roleUid": role });
    uid_of(&done(&server.operator().await, &format!("POST /iam/v2/roleBindings/{group}"), body).await)
}

/// One number out of the database.
pub(crate) async fn number(server: &TestServer, sql: &'static str) -> i64 {
    let db = &server.server().parts().storage.db;
    let read = db.read(|tx| {
        Box::pin(async move { tx.query_opt(sql, &[], |row| row.int(0).map_err(Error::from)).await })
    });
    read.await.expect("the database answers").expect("a row")
}

/// Changes the database behind the server's back.
pub(crate) async fn execute(server: &TestServer, sql: &'static str, params: &[&str]) {
    let params: Vec<String> = params.iter().map(ToString::to_string).collect();
    let db = &server.server().parts().storage.db;
    let written = db.write(move |tx| {
        let params = params.clone();
        Box::pin(async move {
            let values: Vec<Sql<'_>> = params.iter().map(Sql::from).collect();
            tx.execute(sql, &values).await?;
            bowline_pipeline::iam_changed(tx).await
        })
    });
    written.await.expect("the database takes it");
}

/// How much of everything there is: what a refused call leaves as it was.
pub(crate) async fn inventory(server: &TestServer) -> Vec<i64> {
    let mut counts = Vec::new();
    for sql in [
        "SELECT count(*) FROM groups",
        "SELECT count(*) FROM roles",
        "SELECT count(*) FROM identities",
        "SELECT count(*) FROM role_bindings",
        "SELECT count(*) FROM repos",
        "SELECT count(*) FROM audit",
        "SELECT count(*) FROM outbox",
    ] {
        counts.push(number(server, sql).await);
    }
    counts
}

/// An answer as it came over the wire.
pub(crate) struct RawReply {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl RawReply {
    /// The value of a header; names are written in lower case.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (given, value) = line.split_once(':')?;
            given.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("no JSON: {}", self.text()))
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub(crate) fn refusal(&self) -> Refusal {
        Refusal(self.json())
    }
}

/// Sends exactly these headers and bytes, on a connection of its own.
pub(crate) async fn raw(server: &TestServer, what: &str, headers: &[(&str, &str)], body: &[u8]) -> RawReply {
    let base = server.base();
    let host = base.strip_prefix("http://").expect("plain http");
    let mut request = format!("{what} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\ncontent-length: {}\r\n", body.len());
    for (name, value) in headers {
        request += &format!("{name}: {value}\r\n");
    }
    request += "\r\n";
    let mut stream = tokio::net::TcpStream::connect(host).await.expect("the server listens");
    stream.write_all(request.as_bytes()).await.expect("the head is taken");
    // A server that refuses a body may stop reading it.
    let _ = stream.write_all(body).await;
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    let split = answer.windows(4).position(|four| four == b"\r\n\r\n").expect("a head");
    let head = String::from_utf8_lossy(&answer[..split]).into_owned();
    let status = head.split(' ').nth(1).and_then(|text| text.parse().ok()).expect("a status");
    RawReply { status, head, body: answer[split + 4..].to_vec() }
}

/// `authorization` of an actor.
pub(crate) fn bearer(actor: &Actor) -> String {
    format!("Bearer {}", actor.token())
}
