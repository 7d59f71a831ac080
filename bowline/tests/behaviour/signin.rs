//! Sign-in with a browser: through a provider and back to the requesting address.

use std::time::Duration;

use bowline_core::Error;
use bowline_identity::people;
use bowline_store::Value as Sql;
use bowline_testkit::{Browser, IdentityProvider, RestReply, TestServer, each_engine};
use serde_json::{Value, json};

use super::support::{claims_of, execute, number, ok};

/// Where a program of the test's machine would listen.
pub(crate) const CALLBACK: &str = "http%3A%2F%2Flocalhost%3A4321%2Fcallback%3Ftoken%3Dtrue%26error%3Dtrue";

/// The query that published clients send, with one of the operator's providers.
pub(crate) fn query(more: &str) -> String {
    format!("/oauth?exit=redirect&redirect={CALLBACK}&client_id=auth0&connection=main{more}")
}

/// The fake issuer as one of the operator's providers.
pub(crate) async fn offer_provider(server: &TestServer, id: &str) {
    let params = vec![id.to_owned(), format!("Label of {id}"), server.idp().issuer().to_owned(), "bowline".to_owned()];
    let written = server.server().parts().storage.db.write(move |tx| {
        let params = params.clone();
        Box::pin(async move {
            let sql = "INSERT INTO operator_providers (id, label, issuer, client_id, client_secret, scopes, created_at)
                       VALUES ($1, $2, $3, $4, $5, '[]', 0)";
            let mut values: Vec<Sql<'_>> = params.iter().map(Sql::from).collect();
            values.push(Sql::Bytes(&[]));
            tx.execute(sql, &values).await?;
            Ok::<_, Error>(())
        })
    });
    written.await.expect("the provider is stored");
}

/// A verified organization with a provider of its own; the provider's UIDP.
async fn organization_with_provider(server: &TestServer, name: &str, issuer: &str) -> String {
    let org = server.organization(name).await;
    execute(server, "UPDATE groups SET verified = TRUE WHERE uid = $1", &[&org]).await;
    let uid = format!("{org}/00000000000000aa");
    let params = vec![uid.clone(), org, server.role("viewer"), issuer.to_owned()];
    let written = server.server().parts().storage.db.write(move |tx| {
        let params = params.clone();
        Box::pin(async move {
            let sql = "INSERT INTO identity_providers (uid, parent, org, name, description, default_role, issuer, \
                       client_id, client_secret, additional_scopes, groups_claim, correlation_rule, pkce_enabled, \
                       scim_enabled, created_at, updated_at)
                       VALUES ($1, $2, $2, 'own', '', $3, $4, 'org-client', $5, '[]', '', 0, TRUE, FALSE, 0, 0)";
            let mut values: Vec<Sql<'_>> = params.iter().map(Sql::from).collect();
            values.push(Sql::Bytes(&[]));
            tx.execute(sql, &values).await?;
            Ok::<_, Error>(())
        })
    });
    written.await.expect("the provider is stored");
    uid
}

pub(crate) fn location(reply: &RestReply) -> String {
    assert_eq!(reply.status, 303, "{}", reply.text());
    reply.header("location").expect("a redirect says where to").into()
}

/// The address that a page moves on to.
pub(crate) fn onward(reply: &RestReply) -> url::Url {
    let page = reply.text();
    assert_eq!(reply.status, 200, "{page}");
    let (_, rest) = page.split_once("content=\"0; url=").unwrap_or_else(|| panic!("the page stays: {page}"));
    let address = rest.split('"').next().unwrap_or_default().replace("&amp;", "&");
    url::Url::parse(&address).expect("an address")
}

pub(crate) fn answer(reply: &RestReply, name: &str) -> Option<String> {
    onward(reply).query_pairs().find(|(key, _)| key == name).map(|(_, value)| value.into_owned())
}

/// The value of a hidden field.
pub(crate) fn field(reply: &RestReply, name: &str) -> String {
    let page = reply.text();
    let (_, rest) =
        page.split_once(&format!("name=\"{name}\" value=\"")).unwrap_or_else(|| panic!("no field {name}: {page}"));
    rest.split('"').next().unwrap_or_default().into()
}

/// From an address to the page that asks for confirmation.
pub(crate) async fn to_confirmation(server: &TestServer, browser: &Browser, address: &str, sub: &str) -> RestReply {
    let at_provider = location(&browser.get(address).await);
    browser.get(&server.idp().approve(&at_provider, sub, Value::Null)).await
}

pub(crate) async fn press(browser: &Browser, page: &RestReply, button: &str) -> RestReply {
    assert_eq!(page.status, 200, "{}", page.text());
    let (flow, token) = (field(page, "flow"), field(page, "token"));
    browser.post("/oauth/confirm", &[("flow", &flow), ("token", &token), ("answer", button)]).await
}

/// A whole sign-in; the page that moves on.
pub(crate) async fn sign_in(server: &TestServer, browser: &Browser, address: &str, sub: &str) -> RestReply {
    let page = to_confirmation(server, browser, address, sub).await;
    press(browser, &page, "continue").await
}

async fn a_person_signs_in_and_a_program_gets_the_tokens(server: &TestServer) {
    offer_provider(server, "main").await;
    let browser = server.browser();
    let page = to_confirmation(server, &browser, &query("&create_refresh_token=true"), "ada").await;
    let text = page.text();
    for shown in ["ada@example.com", "Label of main", "http://localhost:4321", server.base(), "refresh token"] {
        assert!(text.contains(shown), "{shown}: {text}");
    }
    assert_eq!(number(server, "SELECT count(*) FROM sessions").await, 0, "before the click there is nothing");
    let moved = press(&browser, &page, "continue").await;
    let to = onward(&moved);
    assert!(to.as_str().starts_with("http://localhost:4321/callback?token=ey"), "{to}");
    let token = answer(&moved, "token").expect("a token");
    assert!(answer(&moved, "refresh_token").is_some() && answer(&moved, "error").is_none(), "{to}");
    let claims = claims_of(&token);
    assert!(claims["sid"].is_string() && claims["aud"].to_string().contains(server.base()), "{claims}");
    let ada = server.anonymous().with_token(&token);
    assert_eq!(ada.rest("GET", "/iam/v2/groups", None).await.status, 200);
    let cookies = browser.cookies();
    assert_eq!(cookies.keys().collect::<Vec<_>>(), ["bowline-session"], "the flow's own cookie is gone");
    assert_eq!(number(server, "SELECT count(*) FROM signin_flows").await, 0);
    assert!(number(server, "SELECT count(*) FROM audit WHERE method = '/oauth/confirm'").await >= 1);
}

async fn cancelling_issues_nothing(server: &TestServer) {
    offer_provider(server, "main").await;
    let browser = server.browser();
    let page = to_confirmation(server, &browser, &query(""), "ada").await;
    let moved = press(&browser, &page, "cancel").await;
    assert_eq!(answer(&moved, "status_code").as_deref(), Some("403"));
    assert!(answer(&moved, "token").is_none());
    assert_eq!(number(server, "SELECT count(*) FROM sessions").await, 0);
    assert_eq!(press(&browser, &page, "continue").await.status, 400, "a cancelled flow is over");
}

async fn an_unknown_person_is_registered_only_if_that_is_wanted(server: &TestServer) {
    offer_provider(server, "main").await;
    let browser = server.browser();
    let people = "SELECT count(*) FROM identities";
    let before = number(server, people).await;
    let refused = to_confirmation(server, &browser, &query("&skip_registration=true"), "ada").await;
    assert_eq!(answer(&refused, "status_code").as_deref(), Some("404"), "the client takes this for: register");
    assert_eq!(answer(&refused, "error").as_deref(), Some("account not found"));
    assert_eq!(number(server, people).await, before);
    assert!(answer(&sign_in(server, &browser, &query(""), "ada").await, "token").is_some());
    assert_eq!(number(server, people).await, before + 1);
    let again = sign_in(server, &browser, &query("&skip_registration=true"), "ada").await;
    assert!(answer(&again, "token").is_some());
    assert_eq!(number(server, people).await, before + 1);
}

async fn an_organization_is_reached_by_its_name(server: &TestServer) {
    offer_provider(server, "main").await;
    let own = IdentityProvider::start(server.clock().clone()).await;
    let provider = organization_with_provider(server, "acme-works", own.issuer()).await;
    let browser = server.browser();
    let page = browser.get(&format!("/oauth?exit=redirect&redirect={CALLBACK}")).await;
    assert!(page.text().contains("Label of main") && !page.text().contains("acme-works"), "{}", page.text());
    let redirect = field(&page, "redirect").replace("&amp;", "&");
    let form = |name| [("exit", "redirect"), ("redirect", redirect.as_str()), ("organization", name)];
    let unknown = browser.post("/oauth/organization", &form("acme-wroks")).await;
    assert_eq!(unknown.status, 404, "{}", unknown.text());
    assert_eq!(field(&unknown, "redirect").replace("&amp;", "&"), redirect, "what was asked for stays");
    let known = browser.post("/oauth/organization", &form("acme-works")).await;
    let back = own.approve(onward(&known).as_str(), "bob", Value::Null);
    let page = browser.get(&back).await;
    let moved = press(&browser, &page, "continue").await;
    assert_eq!(claims_of(&answer(&moved, "token").expect("a token"))["idp"], json!(provider));
    for (name, has) in [("acme-works", "true"), ("acme-wroks", "false")] {
        let check = browser.get(&format!("/orgcheck?name={name}")).await;
        assert_eq!((check.status, check.text().as_str()), (200, has));
        assert_eq!(check.header("content-type"), Some("application/json"));
    }
}

async fn a_link_to_an_organizations_provider_shows_the_address_before_the_browser_goes_there(server: &TestServer) {
    offer_provider(server, "main").await;
    let own = IdentityProvider::start(server.clock().clone()).await;
    let provider = organization_with_provider(server, "acme-works", own.issuer()).await;
    let browser = server.browser();
    for named in ["acme-works", &provider] {
        let page = browser.get(&format!("/oauth?exit=redirect&redirect={CALLBACK}&idp_id={named}")).await;
        let text = page.text();
        assert_eq!((page.status, page.header("location")), (200, None), "{named}: {text}");
        assert!(!text.contains("http-equiv"), "the page stays until the person clicks: {text}");
        assert!(text.contains(&format!("<code>{}</code>", own.issuer())), "{text}");
        let (_, rest) = text.split_once("class=\"button\" href=\"").expect("a link");
        let onward = rest.split('"').next().unwrap_or_default().replace("&amp;", "&");
        let page = browser.get(&own.approve(&onward, "bob", Value::Null)).await;
        assert!(answer(&press(&browser, &page, "continue").await, "token").is_some());
    }
    for named in ["connection=main", "client_id=main", "client_id=auth0"] {
        let page = browser.get(&format!("/oauth?exit=redirect&redirect={CALLBACK}&{named}")).await;
        assert!(location(&page).starts_with(server.idp().issuer()), "{named}: the operator's own, at once");
    }
}

async fn two_sign_ins_of_one_browser_do_not_mix(server: &TestServer) {
    offer_provider(server, "main").await;
    let browser = server.browser();
    let first = location(&browser.get(&query("")).await);
    let second = location(&browser.get(&query("&audience=unknown.example")).await);
    let second = browser.get(&server.idp().approve(&second, "bob", Value::Null)).await;
    let first = browser.get(&server.idp().approve(&first, "ada", Value::Null)).await;
    assert!(first.text().contains("ada@example.com") && second.text().contains("bob@example.com"));
    let crossed = [("flow", &*field(&first, "flow")), ("token", &field(&second, "token")), ("answer", "continue")];
    assert_eq!(browser.post("/oauth/confirm", &crossed).await.status, 403);
    let failed = press(&browser, &second, "continue").await;
    assert_eq!(answer(&failed, "status_code").as_deref(), Some("400"), "no such audience");
    assert_eq!(number(server, "SELECT count(*) FROM sessions").await, 0, "nobody holds its cookie");
    assert!(answer(&press(&browser, &first, "continue").await, "token").is_some());
}

async fn signing_out_ends_the_tokens_at_once(server: &TestServer) {
    offer_provider(server, "main").await;
    let browser = server.browser();
    assert!(browser.get("/signout").await.text().contains("This browser is not signed in"));
    let moved = sign_in(server, &browser, &query("&create_refresh_token=true"), "ada").await;
    let ada = server.anonymous().with_token(&answer(&moved, "token").expect("a token"));
    ok(&ada, "GET /iam/v2/groups", Value::Null).await;
    let page = browser.get("/signout").await;
    assert!(page.text().contains("ada"), "{}", page.text());
    assert_eq!(browser.post("/signout", &[("token", "guessed")]).await.status, 403);
    ok(&ada, "GET /iam/v2/groups", Value::Null).await;
    assert_eq!(browser.post("/signout", &[("token", &field(&page, "token"))]).await.status, 200);
    assert_eq!(ada.rest("GET", "/iam/v2/groups", None).await.status, 401);
    assert!(browser.cookies().is_empty());
}

async fn a_link_of_the_operator_works_once_and_not_late(server: &TestServer) {
    let db = &server.server().parts().storage.db;
    let now = || bowline_core::Clock::now(server.clock());
    let link = people::create_operator_link(db, [7; 16], "sign-in is down", now()).await.expect("a link");
    let browser = server.browser();
    for _ in 0..2 {
        let page = browser.get(&format!("/oauth/operator?code={link}")).await;
        assert_eq!((page.status, field(&page, "code")), (200, link.clone()), "looking does not use it up");
    }
    let shown = browser.post("/oauth/operator", &[("code", &link)]).await;
    let text = shown.text();
    let token = text.split_once("spellcheck=\"false\">").and_then(|(_, rest)| rest.split('<').next());
    let operator = server.anonymous().with_token(token.expect("a token"));
    ok(&operator, "GET /iam/v2/groups", Value::Null).await;
    assert!(browser.cookies().is_empty(), "nothing stays in the browser");
    assert_eq!(browser.post("/oauth/operator", &[("code", &link)]).await.status, 404);
    let late = people::create_operator_link(db, [8; 16], "sign-in is down", now()).await.expect("a link");
    server.clock().advance(Duration::from_secs(301));
    assert_eq!(browser.post("/oauth/operator", &[("code", &late)]).await.status, 404);
}

each_engine!(
    multi_thread:
    a_person_signs_in_and_a_program_gets_the_tokens,
    cancelling_issues_nothing,
    an_unknown_person_is_registered_only_if_that_is_wanted,
    an_organization_is_reached_by_its_name,
    a_link_to_an_organizations_provider_shows_the_address_before_the_browser_goes_there,
    two_sign_ins_of_one_browser_do_not_mix,
    signing_out_ends_the_tokens_at_once,
    a_link_of_the_operator_works_once_and_not_late
);
