//! People who sign in, at the operator's provider or at an organization's own.

use bowline_authn::crypto::random_bytes;
use bowline_core::{Clock as _, Error, Uidp};
use bowline_identity::people::{Choice, Context, Entry, Provider, Redemption, TokenParams};
use bowline_store::Value as Sql;
use bowline_testkit::{SignIn, TestServer};
use serde_json::{Value as Json, json};

const CLIENT: &str = "operators-client";
const BACK: &str = "https://bowline.example/oauth/callback";
const CHALLENGE: &str = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";
const VERIFIER: &str = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
const OPERATORS: &str = "main";

/// Makes the test's issuer the operator's provider.
pub(crate) async fn offer(server: &TestServer) {
    let issuer = server.idp().issuer().to_owned();
    let sql = "INSERT INTO operator_providers (id, label, issuer, client_id, client_secret, scopes, created_at)
               VALUES ($1, 'Main', $2, $3, $4, '[\"email\"]', 0)";
    let written = server.server().parts().storage.db.write(move |tx| {
        let issuer = issuer.clone();
        Box::pin(async move {
            let params = [Sql::from(OPERATORS), Sql::from(&issuer), Sql::from(CLIENT), Sql::Bytes(b"")];
            tx.execute(sql, &params).await.map_err(Error::from)
        })
    });
    written.await.expect("the provider is stored");
}

/// The operator's provider.
pub(crate) fn of_operator() -> Choice {
    Choice::Operator(OPERATORS.into())
}

pub(crate) fn of_organization(uid: &str) -> Choice {
    Choice::Provider(Uidp::parse(uid).expect("a UIDP"))
}

/// Signs a person in and returns their token; absent if the server refuses.
pub(crate) async fn sign_in(
    server: &TestServer,
    choice: Choice,
    subject: &str,
    invite: Option<&str>,
) -> Option<String> {
    let people = &server.server().parts().people;
    let draw = || random_bytes();
    let context = Context { now: server.clock().now(), request_id: "request", draw: &draw, method: "test sign-in" };
    let provider = people.provider(&choice).await.ok()?;
    let code = server.idp().sign_in(account(&provider, subject));
    let redemption = Redemption { code: &code, redirect_uri: BACK, code_verifier: VERIFIER, nonce: "nonce", iss: None };
    let upstream = people.redeem(&provider, &redemption, context.now).await.ok()?;
    let entry = Entry { invite: invite.map(String::from), may_register: true, cookie: None };
    let login = people.sign_in(&provider, &upstream, &entry, &context).await.ok()?;
    let asked = TokenParams { audiences: vec![server.base().to_owned()], ..TokenParams::default() };
    let issued = people.issue(&login.session, &upstream, &asked, &context).await.ok()?;
    Some(issued.token)
}

/// Members of no group by the claim that providers read; by another claim, of every one.
fn account(provider: &Provider, subject: &str) -> SignIn {
    SignIn {
        subject: subject.into(),
        client_id: provider.client_id.clone(),
        redirect_uri: BACK.into(),
        nonce: "nonce".into(),
        code_challenge: CHALLENGE.into(),
        claims: json!({ "groups": ["evil-group"], "nicknames": ["crew", "evil-group"] }),
        userinfo: Json::Null,
    }
}

/// Notes that an identity asked to be let into a group.
pub(crate) async fn request_access(server: &TestServer, identity: &str, group: &str) {
    let request = [identity, group].map(String::from);
    let written = server.server().parts().storage.db.write(move |tx| {
        let request = request.clone();
        Box::pin(async move {
            let sql = "INSERT INTO access_requests (identity, group_uid, at) VALUES ($1, $2, 0)";
            tx.execute(sql, &request.each_ref().map(Sql::from)).await.map_err(Error::from)
        })
    });
    written.await.expect("the request is stored");
}

/// Deactivates an identity, as the operator's own tools do.
pub(super) async fn deactivate(server: &TestServer, identity: &str) {
    let identity = identity.to_owned();
    let written = server.server().parts().storage.db.write(move |tx| {
        let identity = identity.clone();
        Box::pin(async move {
            tx.execute("UPDATE identities SET deactivated = TRUE WHERE uid = $1", &[Sql::from(&identity)]).await?;
            bowline_identity::iam_changed(tx).await
        })
    });
    written.await.expect("the identity is deactivated");
}
