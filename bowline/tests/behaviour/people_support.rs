//! Providers and people for the tests of signing in.

use bowline_core::{Error, Result, Uidp};
use bowline_identity::people::{Choice, Context, Entry, Login, Provider, Redemption, TokenParams, Upstream};
use bowline_identity::{People, human_uid};
use bowline_server::Parts;
use bowline_store::Value as Sql;
use bowline_testkit::{Actor, SignIn, TestServer};
use serde_json::Value;

use crate::support::{call, execute};

pub(crate) const CLIENT: &str = "bowline-client";
pub(crate) const BACK: &str = "https://bowline.example/oauth/callback";
const CHALLENGE: &str = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";
pub(crate) const VERIFIER: &str = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";

pub(crate) fn people(server: &TestServer) -> &People {
    &parts(server).people
}

pub(crate) fn parts(server: &TestServer) -> &Parts {
    server.server().parts()
}

/// Random bytes of a request.
pub(crate) fn draw() -> [u8; 32] {
    bowline_authn::crypto::random_bytes()
}

pub(crate) fn context(server: &TestServer) -> Context<'static> {
    use bowline_core::Clock as _;
    Context { now: server.clock().now(), request_id: "request-1", draw: &draw, method: "test sign-in" }
}

/// The fake issuer as a provider of the operator's.
pub(crate) async fn offered(server: &TestServer) -> Provider {
    let issuer = server.idp().issuer().to_owned();
    let sql = "INSERT INTO operator_providers (id, label, issuer, client_id, client_secret, scopes, created_at)
               VALUES ('main', 'Main', $1, $2, $3, '[\"email\"]', 0) ON CONFLICT DO NOTHING";
    let written = parts(server).storage.db.write(move |tx| {
        let issuer = issuer.clone();
        Box::pin(async move {
            tx.execute(sql, &[Sql::from(&issuer), Sql::from(CLIENT), Sql::Bytes(b"")]).await.map_err(Error::from)
        })
    });
    written.await.expect("the provider is stored");
    people(server).provider(&Choice::Operator("main".into())).await.expect("a provider of the operator's")
}

/// What a provider of an organization's is made of.
#[derive(Clone, Copy, Default)]
pub(crate) struct Own<'a> {
    pub(crate) default_role: &'a str,
    pub(crate) groups_claim: &'a str,
    pub(crate) by_object_id: bool,
    pub(crate) scim: bool,
}

/// The fake issuer as a provider of the group's own.
pub(crate) async fn own(server: &TestServer, group: &str, own: Own<'_>) -> Provider {
    let uid = Uidp::parse(group).expect("a group").child_from(std::array::from_fn(|i| draw()[i]));
    let texts: Vec<String> =
        [uid.as_str(), group, uid.root_str(), server.idp().issuer(), own.default_role, own.groups_claim]
            .map(String::from)
            .to_vec();
    let (rule, scim) = (if own.by_object_id { 2_i64 } else { 1 }, i64::from(own.scim));
    // The engines differ in how they store booleans.
    let is_sqlite = parts(server).storage.db.engine() == bowline_store::Engine::Sqlite;
    let flag = |on: bool| match (is_sqlite, on) {
        (true, true) => "1",
        (true, false) => "0",
        (false, true) => "TRUE",
        (false, false) => "FALSE",
    };
    let sql = format!(
        "INSERT INTO identity_providers (uid, parent, org, name, description, default_role, issuer, client_id, client_secret,
           additional_scopes, groups_claim, correlation_rule, pkce_enabled, scim_enabled, created_at, updated_at)
         VALUES ($1, $2, $3, 'own', '', $5, $4, $7, $8, '[]', $6, $9, {}, {}, 0, 0)",
        flag(true),
        flag(scim == 1)
    );
    let written = parts(server).storage.db.write(move |tx| {
        let (texts, sql) = (texts.clone(), sql.clone());
        Box::pin(async move {
            let mut params: Vec<Sql<'_>> = texts.iter().map(Sql::from).collect();
            params.extend([Sql::from(CLIENT), Sql::Bytes(b""), Sql::Int(rule)]);
            tx.execute(&sql, &params).await.map_err(Error::from)
        })
    });
    written.await.expect("the provider is stored");
    people(server).provider(&Choice::Provider(uid)).await.expect("a provider of the organization's own")
}

pub(crate) fn uid_of_provider(provider: &Provider) -> String {
    match &provider.source {
        bowline_identity::people::Source::Organization { uid } => uid.as_str().into(),
        bowline_identity::people::Source::Operator { id } => panic!("{id} is the operator's"),
    }
}

/// Lets the group of the provider have a role at a place; the mapping's UIDP.
pub(crate) async fn map(server: &TestServer, provider: &Provider, group: &str, role: &str, scope: &str) -> String {
    let parent = uid_of_provider(provider);
    let uid = Uidp::parse(&parent).expect("a provider").child_from(std::array::from_fn(|i| draw()[i]));
    let org = uid.root_str().to_owned();
    let sql = "INSERT INTO external_group_role_mappings (uid, parent, org, external_group, role, scope, created_at)
               VALUES ($1, $2, $3, $4, $5, $6, 0)";
    execute(server, sql, &[uid.as_str(), &parent, &org, group, role, scope]).await;
    uid.as_str().into()
}

/// Someone whom the organization's directory lists.
pub(crate) async fn provision(server: &TestServer, provider: &Provider, external: &str, person: &str) {
    let parent = uid_of_provider(provider);
    let uid = Uidp::parse(&parent).expect("a provider").child_from(std::array::from_fn(|i| draw()[i]));
    let active = if parts(server).storage.db.engine() == bowline_store::Engine::Sqlite { "1" } else { "TRUE" };
    let sql: &'static str = match active {
        "1" => {
            "INSERT INTO scim_users (uid, provider, org, external_id, user_name, person, active, resource, created_at, updated_at)
             VALUES ($1, $2, $3, $4, $4, $5, 1, '{}', 0, 0)"
        }
        _ => {
            "INSERT INTO scim_users (uid, provider, org, external_id, user_name, person, active, resource, created_at, updated_at)
             VALUES ($1, $2, $3, $4, $4, $5, TRUE, '{}', 0, 0)"
        }
    };
    let org = uid.root_str().to_owned();
    execute(server, sql, &[uid.as_str(), &parent, &org, external, person]).await;
}

/// Someone at the fake issuer.
pub(crate) fn sign_in_of(subject: &str, claims: Value) -> SignIn {
    SignIn {
        subject: subject.into(),
        client_id: CLIENT.into(),
        redirect_uri: BACK.into(),
        nonce: "nonce-1".into(),
        code_challenge: CHALLENGE.into(),
        claims,
        userinfo: Value::Null,
    }
}

/// What the browser brings back with the code.
pub(crate) fn redemption(code: &str) -> Redemption<'_> {
    Redemption { code, redirect_uri: BACK, code_verifier: VERIFIER, nonce: "nonce-1", iss: None }
}

/// What the provider says of someone.
pub(crate) async fn vouched(server: &TestServer, provider: &Provider, subject: &str, claims: Value) -> Upstream {
    let redeemed = redeem(server, provider, sign_in_of(subject, claims)).await;
    redeemed.unwrap_or_else(|error| panic!("{subject} signs in: {error}"))
}

pub(crate) async fn redeem(server: &TestServer, provider: &Provider, who: SignIn) -> Result<Upstream> {
    let code = server.idp().sign_in(who);
    people(server).redeem(provider, &redemption(&code), context(server).now).await
}

pub(crate) const WELCOME: Entry = Entry { invite: None, may_register: true, cookie: None };

pub(crate) async fn sign_in(server: &TestServer, provider: &Provider, upstream: &Upstream) -> Login {
    let login = people(server).sign_in(provider, upstream, &WELCOME, &context(server)).await;
    login.unwrap_or_else(|error| panic!("the sign-in succeeds: {error}"))
}

pub(crate) fn person(server: &TestServer, subject: &str) -> String {
    human_uid(server.idp().issuer(), subject).as_str().into()
}

/// Someone with a token.
pub(crate) fn actor(server: &TestServer, token: &str) -> Actor {
    server.anonymous().with_token(token)
}

/// The audience of the API.
pub(crate) fn api(server: &TestServer) -> Vec<String> {
    vec![server.base().to_owned()]
}

/// A token for the API and nothing besides.
pub(crate) fn plain(server: &TestServer) -> TokenParams {
    TokenParams { audiences: api(server), ..TokenParams::default() }
}

/// How reading the group ends.
pub(crate) async fn status(actor: &Actor, group: &str) -> u16 {
    call(actor, &format!("GET /iam/v2/groups/{group}"), Value::Null).await.status
}
