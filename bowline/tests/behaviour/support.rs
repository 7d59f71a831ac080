//! What every topic needs: servers on each engine, machines with roles, and answers taken apart.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bowline_contract::Method;
use bowline_core::Error;
use bowline_pipeline::{Call, Transport};
use bowline_store::Value as Sql;
use bowline_testkit::{Actor, RestReply, TestServer};
use http::HeaderMap;
use prost::Message as _;
use serde_json::{Value, json};

use crate::contents::Manifest;

/// Lets `RUST_LOG` show what the servers say.
pub(crate) fn log() {
    let filter = tracing_subscriber::EnvFilter::from_default_env();
    let _ = tracing_subscriber::fmt().with_env_filter(filter).with_test_writer().try_init();
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
pub(crate) async fn ok(actor: &Actor, what: &str, body: Value) -> Value {
    let reply = call(actor, what, body).await;
    assert_eq!(reply.status, 200, "{what}: {}", reply.text());
    reply.json()
}

/// Calls `"VERB /path"`, which must be refused in this way.
pub(crate) async fn rejected(actor: &Actor, what: &str, body: Value, status: u16, reason: &str) -> Refusal {
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

/// A request over gRPC, as the transport passes it on to the pipeline.
pub(crate) fn passed_on<M: Method>(server: &TestServer, actor: &Actor, request: &M::Request) -> Call {
    let pipeline = &server.server().parts().pipeline;
    let method = pipeline.contract.by_full_name(M::FULL_NAME).expect("the method").index;
    Call {
        method,
        payload: request.encode_to_vec().into(),
        caller: pipeline.admit(method, actor.token.clone(), None).expect("a caller"),
        request_id: "request-1".into(),
        transport: Transport::Grpc,
        present: None,
        slice: None,
        resume: None,
    }
}

/// Calls `M` over gRPC, whose response must be the same as this one over REST.
pub(crate) async fn same_over_grpc<M: Method>(server: &TestServer, actor: &Actor, request: M::Request, rest: &Value) {
    let response = actor.grpc::<M>(request).await.unwrap_or_else(|error| panic!("{}: {error:?}", M::FULL_NAME));
    let parts = server.server().parts();
    let output = parts.contract.by_full_name(M::FULL_NAME).expect("the method").output.full_name();
    let (tables, mut json) = (&parts.pipeline.tables, Vec::new());
    let message = tables.message(output).expect("the message");
    tables.to_json(message, &response.encode_to_vec(), &Default::default(), &mut json).expect("JSON");
    let grpc: Value = serde_json::from_slice(&json).expect("JSON");
    assert_eq!(filled(&grpc), filled(rest), "{}", M::FULL_NAME);
}

/// A JSON value without what one transport writes and the other leaves out: empty members, and the second spelling of names.
fn filled(value: &Value) -> Value {
    let is_empty = |value: &Value| match value {
        Value::Null => true,
        Value::Bool(value) => !value,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty() || text == "0" || text.ends_with("_UNSPECIFIED"),
        Value::Array(items) => items.is_empty(),
        Value::Object(_) => false,
    };
    match value {
        Value::Object(members) => {
            let is_second = |name: &str| name.contains('_');
            let filled = members.iter().map(|(name, value)| (name.clone(), filled(value)));
            filled
                .filter(|(name, value)| !is_empty(value) && !is_second(name))
                .collect::<serde_json::Map<_, _>>()
                .into()
        }
        Value::Array(items) => items.iter().map(filled).collect(),
        other => other.clone(),
    }
}

/// All pages of a list. The path has a query, which names the size of a page where that matters.
pub(crate) async fn pages(actor: &Actor, what: &str) -> Vec<Value> {
    let (mut pages, mut token) = (Vec::new(), String::new());
    loop {
        let page = ok(actor, &format!("{what}&page_token={token}"), Value::Null).await;
        page["nextPageToken"].as_str().unwrap_or_default().clone_into(&mut token);
        pages.push(page);
        if token.is_empty() {
            return pages;
        }
    }
}

/// The values of one member of each element of the list that each page has.
pub(crate) fn each_of(pages: &[Value], list: &str, member: &str) -> Vec<String> {
    pages.iter().flat_map(|page| each(&page[list], member)).map(String::from).collect()
}

/// A machine identity and someone who acts as it.
pub(crate) struct Machine {
    pub(crate) uid: String,
    pub(crate) subject: String,
    pub(crate) actor: Actor,
}

impl Machine {
    /// The same identity with a token for more parameters.
    pub(crate) async fn narrowed(&self, server: &TestServer, more: &[(&str, &str)]) -> Actor {
        let reply = exchange(server, &self.uid, &self.subject, more).await;
        self.actor.with_token(&token_of(&reply))
    }

    /// The same identity with a token of now.
    pub(crate) async fn again(&self, server: &TestServer) -> Actor {
        self.narrowed(server, &[]).await
    }
}

/// Someone who signed in with this verified address; without one, whose address is not known.
pub(crate) async fn person(server: &TestServer, subject: &str, email: &str) -> Machine {
    let uid = bowline_identity::human_uid(server.idp().issuer(), subject).as_str().to_owned();
    let facts = [&uid, subject, email, server.idp().issuer()].map(String::from);
    let db = &server.server().parts().storage.db;
    let written = db.write(move |tx| {
        let facts = facts.clone();
        Box::pin(async move {
            let sql = "INSERT INTO identities (uid, parent, org, name, description, email, email_unverified, company,
                                               relationship_type, relationship, issuer, subject, deactivated, created_at, updated_at)
                       VALUES ($1, '', '', $2, '', $3, '', '', 0, $5, $4, $2, FALSE, 0, 0)";
            let mut params: Vec<Sql<'_>> = facts.iter().map(Sql::from).collect();
            params.push(Sql::Bytes(&[]));
            tx.execute(sql, &params).await?;
            bowline_identity::iam_changed(tx).await
        })
    });
    written.await.expect("the database takes a person");
    // Only the operator's own people come in by exchange.
    crate::people_support::offered(server).await;
    let actor = server.sign_in(subject, subject, &uid).await;
    Machine { uid, subject: subject.into(), actor }
}

/// Exchanges a token of the fake issuer for one of this identity.
pub(crate) async fn exchange(server: &TestServer, uid: &str, subject: &str, more: &[(&str, &str)]) -> RestReply {
    let upstream = server.idp().token(subject, server.base(), Value::Null);
    let mut parameters = vec![("aud", server.base()), ("identity", uid)];
    parameters.extend_from_slice(more);
    server.exchange(&upstream, &parameters).await
}

pub(crate) fn token_of(reply: &RestReply) -> String {
    assert_eq!(reply.status, 200, "{}", reply.text());
    reply.json()["token"].as_str().expect("a token").into()
}

/// The claims of a token of this server, unverified.
pub(crate) fn claims_of(token: &str) -> Value {
    let payload = token.split('.').nth(1).expect("a token has three parts");
    let bytes = URL_SAFE_NO_PAD.decode(payload).expect("base64");
    serde_json::from_slice(&bytes).expect("JSON")
}

pub(crate) fn uid_of(resource: &Value) -> String {
    resource["uid"].as_str().unwrap_or_else(|| panic!("no uid in {resource}")).into()
}

/// A machine that lives in `home`, with nothing bound to it.
pub(crate) async fn machine(server: &TestServer, home: &str, subject: &str) -> Machine {
    let uid = server.identity(home, subject).await;
    let actor = server.sign_in(subject, subject, &uid).await;
    Machine { uid, subject: subject.into(), actor }
}

/// A machine that holds exactly these capabilities (`CAP_...`) at `place`.
pub(crate) async fn holder(
    server: &TestServer,
    home: &str,
    subject: &str,
    place: &str,
    capabilities: &[&str],
) -> Machine {
    let machine = machine(server, home, subject).await;
    let role = role(server, home, &format!("of {subject}"), capabilities).await;
    server.bind(&machine.uid, &role, place).await;
    machine
}

/// Creates a custom role of these capabilities (`CAP_...`).
pub(crate) async fn role(server: &TestServer, group: &str, name: &str, capabilities: &[&str]) -> String {
    let body = json!({ "name": name, "capabilities": capabilities });
    uid_of(&ok(&server.operator().await, &format!("POST /iam/v2/roles/{group}"), body).await)
}

/// A provider as a caller writes it, with the viewer as its default role.
pub(crate) fn provider_of(server: &TestServer, name: &str, issuer: &str) -> Value {
    let oidc = json!({ "issuer": issuer, "clientId": "client", "clientSecret": "hush" });
    json!({ "name": name, "defaultRole": server.role("viewer"), "oidc": oidc })
}

/// Creates an identity provider.
pub(crate) async fn provider(server: &TestServer, group: &str, name: &str) -> String {
    let what = format!("POST /iam/v2/identityProviders/{group}");
    uid_of(&ok(&server.operator().await, &what, provider_of(server, name, "https://login.example.com")).await)
}

/// The column that the events of the outbox were written in the order of: numbers come later on PostgreSQL.
pub(crate) fn order_of_writing(tx: &bowline_store::ReadTx) -> &'static str {
    match tx.engine() {
        bowline_store::Engine::Sqlite => "seq",
        bowline_store::Engine::Postgres => "id",
    }
}

/// Type, subject, group, extensions, and body as JSON, of the newest event.
pub(crate) async fn newest_event(server: &TestServer) -> [String; 5] {
    let db = &server.server().parts().storage.db;
    let read = db.read(move |tx| {
        Box::pin(async move {
            let sql = format!(
                "SELECT event_type, subject, group_uid, extensions, body_type, body FROM outbox ORDER BY {} DESC LIMIT 1",
                order_of_writing(tx)
            );
            let row = tx.query_opt(&sql, &[], |row| {
                let texts: Result<Vec<String>, _> = (0..5).map(|column| row.text(column)).collect();
                Ok::<_, Error>((texts?, row.bytes(5)?))
            });
            row.await
        })
    });
    let (mut texts, body) = read.await.expect("the outbox can be read").expect("it has a row");
    let pool = server.server().parts().contract.pool();
    let message = pool.get_message_by_name(&texts[4]).expect("a message of the contract");
    let body = prost_reflect::DynamicMessage::decode(message, body.as_slice()).expect("an encoded body");
    texts[4] = body.to_string();
    texts.try_into().expect("five texts")
}

/// One number out of the database.
pub(crate) async fn number(server: &TestServer, sql: &'static str) -> i64 {
    let db = &server.server().parts().storage.db;
    let read =
        db.read(|tx| Box::pin(async move { tx.query_opt(sql, &[], |row| row.int(0).map_err(Error::from)).await }));
    read.await.expect("the database answers").expect("a row")
}

/// Neither the audit log nor the outbox has the text, nor has any row of bytes that these statements read.
pub(crate) async fn assert_nowhere(server: &TestServer, text: &'static str, own: &[&'static str]) {
    let everywhere = [
        "SELECT before_image FROM audit WHERE before_image IS NOT NULL",
        "SELECT after_image FROM audit WHERE after_image IS NOT NULL",
        "SELECT body FROM outbox",
    ];
    let db = &server.server().parts().storage.db;
    for sql in everywhere.iter().chain(own).copied() {
        let read = db
            .read(move |tx| Box::pin(async move { tx.query(sql, &[], |row| row.bytes(0).map_err(Error::from)).await }));
        let rows = read.await.expect("the database answers");
        assert!(!rows.is_empty(), "{sql}");
        let has = |bytes: &Vec<u8>| bytes.windows(text.len()).any(|window| window == text.as_bytes());
        assert!(!rows.iter().any(has), "{sql} has {text}");
    }
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
            bowline_identity::iam_changed(tx).await
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
        "SELECT count(*) FROM group_invites",
        "SELECT count(*) FROM account_associations",
        "SELECT count(*) FROM identity_providers",
        "SELECT count(*) FROM external_group_role_mappings",
        "SELECT count(*) FROM scim_tokens",
        "SELECT count(*) FROM library_versions",
        "SELECT count(*) FROM library_malware",
        "SELECT count(*) FROM library_entitlements",
        "SELECT count(*) FROM library_policies",
        "SELECT count(*) FROM library_policy_bindings",
        "SELECT count(*) FROM audit",
        "SELECT count(*) FROM outbox",
    ] {
        counts.push(number(server, sql).await);
    }
    counts
}

/// Calls `"VERB /path"` with exactly these headers and bytes.
pub(crate) async fn send(actor: &Actor, what: &str, headers: &[(&'static str, &str)], body: &str) -> RestReply {
    let (verb, path) = what.split_once(' ').expect("a verb and a path");
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        map.insert(*name, value.parse().expect("a header's value"));
    }
    actor.rest_with(verb, path, map, body.as_bytes().to_vec()).await
}

/// The values of one member of each element.
pub(crate) fn each<'a>(list: &'a Value, member: &str) -> Vec<&'a str> {
    list.as_array()
        .unwrap_or_else(|| panic!("no list: {list}"))
        .iter()
        .map(|one| one[member].as_str().unwrap_or_default())
        .collect()
}

/// Stores an image of this size in a repository.
pub(crate) async fn image(server: &TestServer, repo: &str, digest: &str, size: i64) {
    let manifest = Manifest { digest, shape: 1, size, names: &[], config: None };
    crate::contents::store(server, repo, &manifest).await;
}
