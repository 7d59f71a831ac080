//! What no one gets by way of the sign-in pages.

use std::time::Duration;

use bowline_testkit::{TestServer, each_engine};
use http::{HeaderMap, HeaderValue};
use serde_json::{Value, json};

use super::signin::{CALLBACK, answer, field, location, offer_provider, press, query, to_confirmation};
use super::support::number;

async fn an_answer_counts_in_the_browser_that_asked_and_once(server: &TestServer) {
    offer_provider(server, "main").await;
    let (victim, attacker) = (server.browser(), server.browser());
    // The attacker's own answer, sent to the victim as a link.
    let begun = location(&attacker.get(&query("")).await);
    let back = server.idp().approve(&begun, "mallory", Value::Null);
    assert_eq!(victim.get(&back).await.status, 400, "a browser without the flow");
    location(&victim.get(&query("")).await);
    assert_eq!(victim.get(&back).await.status, 400, "a browser with another flow");
    let changed = back.replace("state=", "state=0");
    assert_eq!(attacker.get(&changed).await.status, 400, "another state");
    let page = attacker.get(&back).await;
    assert_eq!(page.status, 200, "{}", page.text());
    assert_eq!(attacker.get(&back).await.status, 400, "the same answer again");
    assert!(answer(&press(&attacker, &page, "continue").await, "token").is_some(), "which harms nothing");
    assert_eq!(number(server, "SELECT count(*) FROM sessions").await, 1);
}

async fn what_the_provider_says_must_belong_to_the_flow(server: &TestServer) {
    offer_provider(server, "main").await;
    let browser = server.browser();
    let failed = async |change: &dyn Fn(String) -> String, extra: Value| {
        let begun = location(&browser.get(&query("")).await);
        let back = change(server.idp().approve(&begun, "ada", extra));
        let page = browser.get(&back).await;
        assert!(answer(&page, "token").is_none());
        answer(&page, "status_code").expect("a status")
    };
    let as_is = |back: String| back;
    assert_eq!(failed(&as_is, json!({ "nonce": "another" })).await, "401", "nonce");
    assert_eq!(failed(&as_is, json!({ "aud": "another" })).await, "401", "audience");
    let mixed = |back: String| format!("{back}&iss=https%3A%2F%2Fother.example");
    assert_eq!(failed(&mixed, Value::Null).await, "401", "another issuer's answer");
    let invented = |back: String| back.replace("code=", "code=x");
    assert_eq!(failed(&invented, Value::Null).await, "401", "an invented code");
    let twice = |back: String| format!("{back}&code=other");
    assert_eq!(failed(&twice, Value::Null).await, "400", "two codes");
    let rejected = |back: String| format!("{}&error=access_denied", back.replace("code=", "was="));
    assert_eq!(failed(&rejected, Value::Null).await, "403", "the provider's own refusal");
    assert_eq!(number(server, "SELECT count(*) FROM sessions").await, 0);
}

async fn a_flow_ends_after_ten_minutes(server: &TestServer) {
    offer_provider(server, "main").await;
    let browser = server.browser();
    let begun = location(&browser.get(&query("")).await);
    let back = server.idp().approve(&begun, "ada", Value::Null);
    server.clock().advance(Duration::from_secs(601));
    assert_eq!(browser.get(&back).await.status, 400);
    let page = to_confirmation(server, &browser, &query(""), "ada").await;
    server.clock().advance(Duration::from_secs(601));
    assert_eq!(press(&browser, &page, "continue").await.status, 400);
    assert_eq!(number(server, "SELECT count(*) FROM sessions").await, 0);
}

async fn confirming_takes_the_persons_own_click(server: &TestServer) {
    offer_provider(server, "main").await;
    let (browser, other) = (server.browser(), server.browser());
    let page = to_confirmation(server, &browser, &query(""), "ada").await;
    let (flow, token) = (field(&page, "flow"), field(&page, "token"));
    let form = [("flow", flow.as_str()), ("token", token.as_str()), ("answer", "continue")];
    assert_eq!(other.post("/oauth/confirm", &form).await.status, 400, "another browser");
    let mut headers = HeaderMap::new();
    headers.insert("sec-fetch-site", HeaderValue::from_static("cross-site"));
    assert_eq!(browser.post_with("/oauth/confirm", headers, &form).await.status, 403, "another site");
    let guessed = [("flow", flow.as_str()), ("token", "guessed"), ("answer", "continue")];
    assert_eq!(browser.post("/oauth/confirm", &guessed).await.status, 403, "without the form's token");
    assert_eq!(browser.post("/oauth/confirm", &form[..2]).await.status, 400, "without an answer");
    assert_eq!(browser.get("/oauth/confirm").await.status, 405);
    assert_eq!(number(server, "SELECT count(*) FROM sessions").await, 0);
    assert!(answer(&browser.post("/oauth/confirm", &form).await, "token").is_some());
    assert_eq!(browser.post("/oauth/confirm", &form).await.status, 400, "twice");
    assert_eq!(number(server, "SELECT count(*) FROM sessions").await, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tokens_leave_to_this_machine_and_registered_sites_alone() {
    for engine in bowline_testkit::engines() {
        let server = TestServer::start_with(engine, |options| {
            options.redirect_origins = vec!["https://console.example.com".into()];
        })
        .await;
        offer_provider(&server, "main").await;
        let browser = server.browser();
        for bad in [
            "https%3A%2F%2Fevil.example%2F",
            "http%3A%2F%2Flocalhost%40evil.example%2F",
            "http%3A%2F%2Flocalhost%5C.evil.example%2F",
            "%2F%2Fevil.example%2F",
            "https%3A%2F%2Fconsole.example.com.evil.example%2F",
            "http%3A%2F%2Fconsole.example.com%2F",
            "javascript%3Aalert(1)",
            "http%3A%2F%2Flocalhost%2F%23f",
        ] {
            let reply = browser.get(&format!("/oauth?exit=redirect&redirect={bad}&connection=main")).await;
            assert_eq!(reply.status, 400, "{bad}");
            assert!(reply.header("location").is_none() && !reply.text().contains("http-equiv"), "{bad}");
        }
        let good = "/oauth?exit=redirect&redirect=https%3A%2F%2Fconsole.example.com%2Fdone&connection=main";
        let page = to_confirmation(&server, &browser, good, "ada").await;
        let to = super::signin::onward(&press(&browser, &page, "continue").await);
        assert!(to.as_str().starts_with("https://console.example.com/done?token=ey"), "{to}");
        server.stop().await;
    }
}

async fn every_answer_keeps_others_out(server: &TestServer) {
    offer_provider(server, "main").await;
    let browser = server.browser();
    let confirm = to_confirmation(server, &browser, &query(""), "ada").await;
    let mut pages = vec![confirm];
    for path in [
        "/oauth",
        "/oauth?exit=other",
        "/oauth?connection=unknown",
        "/oauth/callback",
        "/oauth/callback?state=x&code=y",
        "/oauth/operator?code=x",
        "/activate",
        "/signout",
        "/orgcheck?name=x",
        "/oauth/assets/style.css",
        &query(""),
    ] {
        pages.push(browser.get(path).await);
    }
    pages.push(browser.post("/oauth/token", &[]).await);
    pages.push(browser.post("/activate", &[("user_code", "<script>")]).await);
    for page in pages {
        let header = |name: &str| page.header(name).unwrap_or_default().to_owned();
        let policy = header("content-security-policy");
        for part in ["default-src 'none'", "style-src 'self'", "form-action 'self'", "frame-ancestors 'none'"] {
            assert!(policy.contains(part), "{policy}: {}", page.text());
        }
        assert_eq!(header("x-content-type-options"), "nosniff");
        assert_eq!(header("referrer-policy"), "no-referrer");
        assert!(!header("x-request-id").is_empty());
        if !header("content-type").starts_with("text/css") {
            assert_eq!(header("cache-control"), "no-store", "{}", page.text());
        }
        let text = page.text();
        assert!(!text.contains("<script") && !text.contains(" style="), "{text}");
        if header("content-type").starts_with("text/html") {
            assert!(text.contains("<html lang=\"en\">") && text.contains("<main") && text.contains("<h1>"), "{text}");
        }
    }
}

async fn what_is_stored_of_a_flow_tells_nothing(server: &TestServer) {
    offer_provider(server, "main").await;
    let browser = server.browser();
    let address = format!("/oauth?exit=redirect&redirect={CALLBACK}&connection=main&invite=the-secret-invitation");
    to_confirmation(server, &browser, &address, "ada-lovelace").await;
    // Words of eight letters and more: three letters are found by chance in a sealed text of this length.
    let whole = "SELECT count(*) FROM signin_flows WHERE state LIKE '%invitation%' OR state LIKE '%lovelace%' \
                 OR state LIKE '%localhost%'";
    assert_eq!(number(server, whole).await, 0);
    assert_eq!(number(server, "SELECT count(*) FROM signin_flows").await, 1);
}

each_engine!(
    multi_thread:
    an_answer_counts_in_the_browser_that_asked_and_once,
    what_the_provider_says_must_belong_to_the_flow,
    a_flow_ends_after_ten_minutes,
    confirming_takes_the_persons_own_click,
    every_answer_keeps_others_out,
    what_is_stored_of_a_flow_tells_nothing
);
