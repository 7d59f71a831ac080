//! The web console: how sessions of browsers begin and end, and what keeps others out of them.

use std::time::Duration;

use bowline_testkit::{Browser, RestReply, TestServer, each_engine, engines};
use http::{HeaderMap, HeaderName, HeaderValue};
use serde_json::{Value, json};

use crate::console_support::{browser_of, browser_of_operator, encoded, enter_at, operator_link, page, with_provider};
use crate::signin::{answer, field, location, query, sign_in};
use crate::support::{number, ok};

pub(crate) const COOKIE: &str = "bowline-console";

pub(crate) fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
    let pair = |(name, value): &(&'static str, &str)| {
        (HeaderName::from_static(name), HeaderValue::from_str(value).expect("a header"))
    };
    pairs.iter().map(pair).collect()
}

fn set_cookie(reply: &RestReply) -> Vec<String> {
    let values = reply.headers.get_all("set-cookie").iter();
    values.map(|value| value.to_str().expect("a cookie is text").to_owned()).collect()
}

pub(crate) async fn is_signed_in(browser: &Browser) -> bool {
    browser.get("/console/me").await.status == 200
}

async fn a_person_signs_in_and_out(server: &TestServer) {
    with_provider(server).await;
    let browser = server.browser();
    let wanted = "/console/groups?name=a%20b";
    let asked = location(&browser.get(wanted).await);
    assert_eq!(asked, format!("/console/sign-in?return={}", "%2Fconsole%2Fgroups%3Fname%3Da%2520b"));
    let start = format!("/oauth?exit=console&amp;return={}", "%2Fconsole%2Fgroups%3Fname%3Da%2520b");
    assert!(page(&browser, &asked).await.contains(&start));
    let entered = enter_at(server, &browser, "ada", wanted).await;
    assert_eq!(location(&entered), wanted, "back to the page");
    let cookies = set_cookie(&entered);
    let own = cookies.iter().find(|line| line.starts_with("bowline-console=")).expect("the cookie of the console");
    assert!(own.contains("; Path=/; ") && own.contains("; HttpOnly; SameSite=Lax"), "{own}");
    assert_eq!(browser.cookies().keys().collect::<Vec<_>>(), [COOKIE], "no session but the console's");
    assert!(!entered.text().contains("eyJ") && !own.contains("eyJ"), "no token reaches the browser");
    let shown = page(&browser, "/console/").await;
    assert!(shown.contains("ada@example.com"), "{shown}");
    assert_eq!(number(server, "SELECT count(*) FROM sessions").await, 1);
    let form = browser.get("/console/").await;
    let token = field(&form, "token");
    let cookie = browser.cookies()[COOKIE].clone();
    let out = browser.post("/console/sign-out", &[("token", &token)]).await;
    assert_eq!(location(&out), "/console/sign-in?notice=out");
    assert!(browser.cookies().is_empty());
    assert_eq!(number(server, "SELECT count(*) FROM sessions").await, 0, "the token has ended at the server");
    browser.set_cookie(COOKIE, &cookie);
    assert!(!is_signed_in(&browser).await, "the old cookie stands for nothing");
}

async fn sessions_end_unused_and_with_their_token(server: &TestServer) {
    with_provider(server).await;
    let browser = server.browser();
    enter_at(server, &browser, "ada", "/console/").await;
    server.clock().advance(Duration::from_secs(29 * 60));
    assert!(is_signed_in(&browser).await);
    server.clock().advance(Duration::from_secs(29 * 60));
    assert!(is_signed_in(&browser).await, "each page counts");
    server.clock().advance(Duration::from_secs(3 * 60));
    assert!(!is_signed_in(&browser).await, "the token has ended");
    enter_at(server, &browser, "ada", "/console/").await;
    server.clock().advance(Duration::from_secs(31 * 60));
    assert!(!is_signed_in(&browser).await, "unused for half an hour");
}

async fn a_session_that_ends_elsewhere_ends_here(server: &TestServer) {
    with_provider(server).await;
    let (browser, other) = (server.browser(), server.browser());
    enter_at(server, &browser, "ada", "/console/").await;
    let token = answer(&sign_in(server, &other, &query(""), "ada").await, "token").expect("a token");
    let ada = server.anonymous().with_token(&token);
    ok(&ada, "POST /people/v1/sessions:endAll", json!({ "keep_current": true })).await;
    let refused = browser.get("/console/me?page=x").await;
    assert_eq!(location(&refused), "/console/sign-in?return=%2Fconsole%2Fme%3Fpage%3Dx&notice=ended");
    assert!(refused.header("set-cookie").is_none(), "the browser may have signed in again meanwhile");
    assert!(!is_signed_in(&browser).await);
    assert!(browser.cookies().is_empty(), "the next request without a session takes the cookie away");
}

async fn forms_of_others_are_refused(server: &TestServer) {
    with_provider(server).await;
    let (browser, other) = (server.browser(), server.browser());
    enter_at(server, &browser, "ada", "/console/").await;
    enter_at(server, &other, "bob", "/console/").await;
    let token = field(&browser.get("/console/").await, "token");
    let foreign = field(&other.get("/console/").await, "token");
    let again = field(&browser.get("/console/").await, "token");
    assert_eq!(token, again);
    assert_ne!(token, foreign, "a token is of one session");
    for (sent, form) in [
        (headers(&[("sec-fetch-site", "same-origin")]), vec![]),
        (headers(&[("sec-fetch-site", "same-origin")]), vec![("token", "guessed")]),
        (headers(&[("sec-fetch-site", "same-origin")]), vec![("token", foreign.as_str())]),
        (headers(&[("sec-fetch-site", "cross-site")]), vec![("token", token.as_str())]),
        (headers(&[("sec-fetch-site", "same-site"), ("origin", server.base())]), vec![("token", token.as_str())]),
        (headers(&[("sec-fetch-site", "none")]), vec![("token", token.as_str())]),
        (headers(&[("origin", "https://evil.example")]), vec![("token", token.as_str())]),
        (headers(&[("origin", "null")]), vec![("token", token.as_str())]),
        (headers(&[]), vec![("token", token.as_str())]),
    ] {
        let reply = browser.post_with("/console/sign-out", sent.clone(), &form).await;
        assert_eq!(reply.status, 403, "{sent:?}: {}", reply.text());
        assert!(is_signed_in(&browser).await, "{sent:?}");
    }
    for verb in ["GET", "PUT", "DELETE"] {
        let reply = server.anonymous().rest(verb, "/console/sign-out", None).await;
        assert!(matches!(reply.status, 404 | 405), "{verb}: {}", reply.status);
    }
    let own = headers(&[("origin", server.base())]);
    let out = browser.post_with("/console/sign-out", own, &[("token", &token)]).await;
    assert_eq!(location(&out), "/console/sign-in?notice=out", "an old browser says its origin alone");
    let replayed = browser.post("/console/sign-out", &[("token", &token)]).await;
    assert_eq!(location(&replayed), "/console/sign-in", "a form of a session that has ended does nothing");
    assert!(is_signed_in(&other).await);
}

async fn a_sign_in_returns_to_pages_of_the_console_alone(server: &TestServer) {
    with_provider(server).await;
    let browser = server.browser();
    for other in ["https://evil.example/", "//evil.example", "/console//evil.example", "/oauth", "/console/../x", "\\"]
    {
        let start = format!("/oauth?exit=console&connection=main&return={}", encoded(other));
        assert_eq!(browser.get(&start).await.status, 400, "{other}");
        let ask = page(&browser, &format!("/console/sign-in?return={}", encoded(other))).await;
        assert!(ask.contains("return=%2Fconsole%2F\""), "{other}: {ask}");
    }
    for more in
        ["audience=x", "identity=x", "scope=x", "create_refresh_token=true", "redirect=http%3A%2F%2Flocalhost%3A1"]
    {
        assert_eq!(browser.get(&format!("/oauth?exit=console&connection=main&{more}")).await.status, 400, "{more}");
    }
}

async fn every_answer_keeps_others_out(server: &TestServer) {
    with_provider(server).await;
    let browser = server.browser();
    enter_at(server, &browser, "ada", "/console/").await;
    let first = page(&browser, "/console/").await;
    let asset = first.split("src=\"").nth(1).and_then(|rest| rest.split('"').next()).expect("a script");
    let style = first.split("stylesheet\" href=\"").nth(1).and_then(|rest| rest.split('"').next()).expect("a style");
    let pages =
        ["/console/", "/console/me", "/console/nothing", "/console/group?uid=x", "/console/sign-in", asset, style];
    for path in pages {
        let reply = browser.get(path).await;
        let header = |name: &str| reply.header(name).unwrap_or_default().to_owned();
        let policy = header("content-security-policy");
        for part in [
            "default-src 'none'",
            "form-action 'self'",
            "frame-ancestors 'none'",
            "base-uri 'none'",
            "require-trusted-types-for 'script'",
            "trusted-types 'none'",
        ] {
            assert!(policy.contains(part), "{path}: {policy}");
        }
        for directive in ["script-src", "style-src"] {
            let wanted = format!("{directive} {}/console/assets/;", server.base());
            assert!(policy.contains(&wanted), "{path}: {policy}");
        }
        let streams = format!("connect-src {}/console/audit-live;", server.base());
        assert!(policy.contains(&streams) && !policy.contains("unsafe"), "{path}: {policy}");
        assert_eq!(header("x-content-type-options"), "nosniff", "{path}");
        assert_eq!(header("referrer-policy"), "same-origin", "{path}");
        assert_eq!(header("cross-origin-opener-policy"), "same-origin", "{path}");
        assert_eq!(header("cross-origin-resource-policy"), "same-origin", "{path}");
        assert!(header("permissions-policy").contains("camera=()"), "{path}");
        let is_asset = path.starts_with("/console/assets/");
        let cached = if is_asset { "public, max-age=31536000, immutable" } else { "no-store" };
        assert_eq!(header("cache-control"), cached, "{path}");
        assert!(!is_asset || reply.status == 200, "{path}");
    }
    assert_eq!(browser.get("/console/nothing").await.status, 404);
    assert_eq!(browser.get("/console/group?uid=x").await.status, 400);
    assert_eq!(browser.get("/console/assets/none.js").await.status, 404);
}

async fn cookies_are_for_pages_and_tokens_for_calls(server: &TestServer) {
    with_provider(server).await;
    let browser = server.browser();
    enter_at(server, &browser, "ada", "/console/").await;
    assert_eq!(browser.get("/iam/v2/groups").await.status, 401, "the API takes no cookie");
    let operator = server.operator().await;
    let reply = operator.rest("GET", "/console/me", None).await;
    assert_eq!(reply.status, 303, "the console takes no token");
    browser.set_cookie(COOKIE, "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA");
    assert!(!is_signed_in(&browser).await, "a guessed cookie stands for nothing");
}

async fn the_operator_enters_by_a_link_that_works_once(server: &TestServer) {
    let browser = browser_of_operator(server).await;
    let shown = page(&browser, "/console/").await;
    assert!(shown.contains("You act as the operator") && !shown.contains("eyJ"), "{shown}");
    let code = operator_link(server, 9).await;
    let link = format!("/oauth/operator?code={code}");
    assert!(page(&server.browser(), &link).await.contains("Open the console"), "looking does not use it up");
    let (first, second) = (server.browser(), server.browser());
    let form = [("code", code.as_str()), ("answer", "console")];
    assert_eq!(location(&first.post("/oauth/operator", &form).await), "/console/");
    assert_eq!(second.post("/oauth/operator", &form).await.status, 404);
    assert!(second.cookies().is_empty());
    server.clock().advance(Duration::from_secs(3601));
    assert!(!is_signed_in(&first).await, "an hour at most");
}

async fn one_caller_has_few_sessions(server: &TestServer) {
    with_provider(server).await;
    let mut browsers = Vec::new();
    for _ in 0..9 {
        let browser = server.browser();
        enter_at(server, &browser, "ada", "/console/").await;
        server.clock().advance(Duration::from_secs(1));
        browsers.push(browser);
    }
    assert!(!is_signed_in(&browsers[0]).await, "the longest unused makes room");
    assert!(is_signed_in(&browsers[1]).await && is_signed_in(&browsers[8]).await);
}

async fn a_lost_role_is_lost_on_the_next_page(server: &TestServer) {
    with_provider(server).await;
    let acme = server.organization("acme").await;
    let browser = browser_of(server, "ada", "viewer", &acme).await;
    assert!(page(&browser, "/console/").await.contains(&acme));
    let operator = server.operator().await;
    let bindings = ok(&operator, &format!("GET /iam/v2/roleBindings?group={acme}"), Value::Null).await;
    for binding in bindings["roleBindings"].as_array().expect("bindings") {
        let uid = binding["uid"].as_str().expect("a uid");
        ok(&operator, &format!("DELETE /iam/v2/roleBindings/{uid}"), Value::Null).await;
    }
    assert!(!page(&browser, "/console/").await.contains(&acme));
    assert_eq!(browser.get(&format!("/console/group?uid={acme}")).await.status, 403);
}

#[tokio::test(flavor = "multi_thread")]
async fn browsers_at_the_root_get_the_console_and_programs_the_documents() {
    let server = TestServer::start(engines()[0]).await;
    let get =
        async |accept: &str| server.anonymous().rest_with("GET", "/", headers(&[("accept", accept)]), Vec::new()).await;
    let page = get("text/html,application/xhtml+xml;q=0.9,*/*;q=0.8").await;
    assert_eq!(location(&page), format!("{}/console/", server.base()));
    for accept in [
        "*/*",
        "application/json",
        "",
        "text/html;q=0",
        "text/html; q=0.0, */*",
        "application/json, text/html;q=0.1",
        "text/html, application/json;q=0.9",
    ] {
        let reply = get(accept).await;
        assert_eq!((reply.status, reply.json()["name"].as_str()), (200, Some("bowline")), "{accept}");
        assert_eq!(reply.header("vary"), Some("accept, sec-fetch-mode"));
    }
    for (mode, status) in [("navigate", 303), ("cors", 200), ("no-cors", 200)] {
        let sent = headers(&[("accept", "text/html"), ("sec-fetch-mode", mode)]);
        assert_eq!(server.anonymous().rest_with("GET", "/", sent, Vec::new()).await.status, status, "{mode}");
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_console_that_is_switched_off_is_not_there() {
    let server = TestServer::start_with(engines()[0], |options| options.console = Some(false)).await;
    with_provider(&server).await;
    let browser = server.browser();
    for path in ["/console", "/console/", "/console/me", "/console/sign-in"] {
        assert_eq!(browser.get(path).await.status, 404, "{path}");
    }
    let root = server.anonymous().rest_with("GET", "/", headers(&[("accept", "text/html")]), Vec::new()).await;
    assert_eq!(root.json()["name"], "bowline");
    assert_eq!(browser.get("/oauth?exit=console&connection=main").await.status, 400);
    let code = operator_link(&server, 3).await;
    assert!(!page(&browser, &format!("/oauth/operator?code={code}")).await.contains("Open the console"));
    let refused = browser.post("/oauth/operator", &[("code", &code), ("answer", "console")]).await;
    assert_eq!(refused.status, 400);
    let shown = browser.post("/oauth/operator", &[("code", &code), ("answer", "token")]).await;
    assert!(shown.text().contains("ey"), "the link was not used up by the refusal");
    server.stop().await;
}

each_engine!(
    multi_thread:
    a_person_signs_in_and_out,
    sessions_end_unused_and_with_their_token,
    a_session_that_ends_elsewhere_ends_here,
    forms_of_others_are_refused,
    a_sign_in_returns_to_pages_of_the_console_alone,
    every_answer_keeps_others_out,
    cookies_are_for_pages_and_tokens_for_calls,
    the_operator_enters_by_a_link_that_works_once,
    one_caller_has_few_sessions,
    a_lost_role_is_lost_on_the_next_page,
);
