//! What the web console does not do for anyone: call what changes something, answer without end, outlive a sign-out.

use std::time::Duration;

use bowline_contract::Method as _;
use bowline_contract::bowline::audit::v1::rpc::audit::WatchEntries;
use bowline_contract::bowline::preview::v1::rpc::previews::Preview;
use bowline_contract::v2::iam::rpc::groups_service::CreateGroup;
use bowline_contract::v2::iam::{CreateGroupRequest, Group};
use bowline_core::Code;
use bowline_pipeline::{ConsoleCall, ConsolePipeline, HeldToken};
use bowline_testkit::{Browser, TestServer, each_engine, engines};
use bytes::Bytes;
use prost::Message as _;

use crate::console::{COOKIE, headers, is_signed_in};
use crate::console_support::{browser_of_operator, enter_at, operator_link, with_provider};
use crate::signin::{field, location};
use crate::support::{execute, number};

async fn nothing_but_reading_methods_can_be_called(server: &TestServer) {
    let pipeline = &server.server().parts().pipeline;
    let api = ConsolePipeline::new(pipeline.clone());
    let methods = pipeline.contract.methods();
    let mut sent = Vec::new();
    for method in methods.iter().filter(|method| api.only_reads(method.index)) {
        assert!(!pipeline.handlers.writes(method.index) && method.event.is_none(), "{}", method.full_name);
        assert_eq!(api.reads_by_address(method.index), !method.is_mutation(), "{}", method.full_name);
        if method.is_mutation() {
            sent.push(method.short_name());
        }
    }
    let index = |name: &str| pipeline.contract.by_full_name(name).expect("a method").index;
    for other in [index(Preview::FULL_NAME), index(WatchEntries::FULL_NAME)] {
        assert!(!api.only_reads(other), "{}", methods[other].full_name);
    }
    sent.sort_unstable();
    // What reads but has a body: a form sends it, and no address.
    let expected = [
        "Decisions.EvaluatePolicy",
        "Decisions.PreviewPolicy",
        "ImagePolicies.PreviewImagePolicy",
        "Matchers.TestClaims",
        "Matchers.TestIssuer",
        "Names.ResolveNames",
    ];
    assert_eq!(sent, expected);
    let count = methods.iter().filter(|method| api.only_reads(method.index)).count();
    assert!(count > 50 && count < methods.len(), "{count} of {}", methods.len());
    let operator = server.operator().await;
    let token = HeldToken::new(operator.token.clone().expect("a token"));
    let create = pipeline.contract.by_full_name(CreateGroup::FULL_NAME).expect("a method").index;
    let group = Group { name: "made by a page".into(), ..Group::default() };
    let request = CreateGroupRequest { parent: String::new(), group: Some(group) };
    let rows = "SELECT count(*) FROM groups";
    let before = number(server, rows).await;
    let payload: Bytes = request.encode_to_vec().into();
    let peer = [127, 0, 0, 1].into();
    let call = || ConsoleCall { method: create, payload: Bytes::clone(&payload), token: &token, peer, request_id: "x" };
    let streamed = api.watch::<WatchEntries>(call(), None).await.err().expect("a stream of another method");
    assert_eq!(streamed.code(), Code::Internal);
    let error = api.read(call()).await.result.map(|_| ()).expect_err("a call that changes something");
    assert_eq!(error.code(), Code::Internal);
    assert_eq!(number(server, rows).await, before);
    assert!(api.end_session(&token, peer, "x").await.is_none(), "the operator's token belongs to no session");
}

async fn sign_out_works_while_the_storage_fails(server: &TestServer) {
    with_provider(server).await;
    let browser = server.browser();
    enter_at(server, &browser, "ada", "/console/").await;
    let token = field(&browser.get("/console/").await, "token");
    let cookie = browser.cookies()[COOKIE].clone();
    execute(server, "ALTER TABLE sessions RENAME TO sessions_away", &[]).await;
    let out = browser.post("/console/sign-out", &[("token", &token)]).await;
    assert_eq!(out.status, 500, "{}", out.text());
    assert!(out.text().contains("signed out of this browser") && out.text().contains("valid until"), "{}", out.text());
    assert!(browser.cookies().is_empty());
    execute(server, "ALTER TABLE sessions_away RENAME TO sessions", &[]).await;
    browser.set_cookie(COOKIE, &cookie);
    assert!(!is_signed_in(&browser).await, "the next person at this browser");
}

async fn a_new_sign_in_ends_the_session_of_the_browser(server: &TestServer) {
    with_provider(server).await;
    let (browser, thief) = (server.browser(), server.browser());
    enter_at(server, &browser, "ada", "/console/").await;
    thief.set_cookie(COOKIE, &browser.cookies()[COOKIE]);
    assert!(is_signed_in(&thief).await);
    enter_at(server, &browser, "ada", "/console/").await;
    assert!(is_signed_in(&browser).await && !is_signed_in(&thief).await);
    thief.set_cookie(COOKIE, &browser.cookies()[COOKIE]);
    let code = operator_link(server, 5).await;
    browser.post("/oauth/operator", &[("code", &code), ("answer", "console")]).await;
    assert!(is_signed_in(&browser).await && !is_signed_in(&thief).await);
}

async fn an_operator_is_signed_out_sooner(server: &TestServer) {
    let browser = browser_of_operator(server).await;
    server.clock().advance(Duration::from_secs(9 * 60));
    assert!(is_signed_in(&browser).await);
    server.clock().advance(Duration::from_secs(11 * 60));
    assert!(!is_signed_in(&browser).await, "unused for ten minutes");
}

async fn other_sites_may_link_and_not_load(server: &TestServer) {
    with_provider(server).await;
    let browser = server.browser();
    enter_at(server, &browser, "ada", "/console/").await;
    let cookie = format!("{COOKIE}={}", browser.cookies()[COOKIE]);
    let get = async |site: &str, mode: &str, target: &str, path: &str| {
        let sent = headers(&[
            ("cookie", &cookie),
            ("sec-fetch-site", site),
            ("sec-fetch-mode", mode),
            ("sec-fetch-dest", target),
        ]);
        server.anonymous().rest_with("GET", path, sent, Vec::new()).await
    };
    assert_eq!(get("cross-site", "navigate", "document", "/console/me").await.status, 200, "a link");
    for path in ["/console/me", "/console/why", "/console/nothing", "/console/sign-in"] {
        let loaded = get("same-site", "no-cors", "image", path).await;
        assert_eq!(loaded.status, 403, "{path}");
        assert!(loaded.header("set-cookie").is_none(), "{path}");
        assert_eq!(get("cross-site", "navigate", "iframe", path).await.status, 403, "{path}");
    }
    server.clock().advance(Duration::from_secs(20 * 60));
    get("same-site", "no-cors", "image", "/console/me").await;
    server.clock().advance(Duration::from_secs(11 * 60));
    assert!(!is_signed_in(&browser).await, "what others load is no use of the session");
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_without_a_session_or_a_call_are_limited() {
    let server = TestServer::start_with(engines()[0], |options| {
        options.rate_limit_address = Some(20);
        options.rate_limit_principal = Some(1);
    })
    .await;
    with_provider(&server).await;
    let browser = server.browser();
    enter_at(&server, &browser, "ada", "/console/").await;
    let token = field(&browser.get("/console/why").await, "token");
    let limited = async |browser: &Browser, path: &str| {
        for _ in 0..5000 {
            let reply = browser.get(path).await;
            if reply.status == 429 {
                return reply;
            }
        }
        panic!("{path} is never limited");
    };
    let reply = limited(&browser, "/console/why").await;
    assert!(reply.header("retry-after").is_some() && reply.text().contains("Please wait"), "{}", reply.text());
    let out = browser.post("/console/sign-out", &[("token", &token)]).await;
    assert!(browser.cookies().is_empty(), "signing out is not limited: {}", out.text());
    for path in ["/console/sign-in", "/console/me", "/console/nothing"] {
        limited(&server.browser(), path).await;
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_console_is_on_the_host_of_sign_in_alone() {
    let server = TestServer::start_with(engines()[0], |options| {
        options.base_url = Some("http://api.example".into());
        options.auth_url = Some("http://issuer.example".into());
    })
    .await;
    let get = async |host: &str, path: &str| {
        server.anonymous().rest_with("GET", path, headers(&[("host", host)]), Vec::new()).await
    };
    assert_eq!(get("issuer.example", "/console/sign-in").await.status, 200);
    assert_eq!(get("api.example", "/console/sign-in").await.status, 404);
    let code = operator_link(&server, 3).await;
    let link = format!("/oauth/operator?code={code}");
    assert!(get("issuer.example", &link).await.text().contains("Open the console"));
    assert!(!get("api.example", &link).await.text().contains("Open the console"));
    let enter = async |host: &str| {
        let form = format!("code={code}&answer=console").into_bytes();
        let sent = headers(&[("host", host), ("content-type", "application/x-www-form-urlencoded")]);
        server.anonymous().rest_with("POST", "/oauth/operator", sent, form).await
    };
    let refused = enter("api.example").await;
    assert_eq!((refused.status, refused.header("set-cookie")), (400, None), "{}", refused.text());
    assert_eq!(location(&enter("issuer.example").await), "/console/", "the link was not used up");
    server.stop().await;
}

each_engine!(
    multi_thread:
    nothing_but_reading_methods_can_be_called,
    sign_out_works_while_the_storage_fails,
    a_new_sign_in_ends_the_session_of_the_browser,
    an_operator_is_signed_out_sooner,
    other_sites_may_link_and_not_load,
);
