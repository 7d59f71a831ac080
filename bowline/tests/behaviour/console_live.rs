//! The audit log in the console as it grows: what the stream sends, to which pages, and when it ends. And whether the log is
//! whole.

use std::time::Duration;

use bowline_testkit::{Browser, Streamed, TestServer, each_engine};
use serde_json::{Value, json};

use crate::audit_log::numbered;
use crate::console::{COOKIE, headers, is_signed_in};
use crate::console_support::{browser_of, browser_of_operator, enter_at, page, with_provider};
use crate::deliveries::until;
use crate::people_support::person;
use crate::signin::field;
use crate::support::{execute, ok};

/// Opens the stream as the script of a page does, with these headers in place of its own.
async fn open(server: &TestServer, browser: &Browser, query: &str, other: &[(&'static str, &str)]) -> Streamed {
    let cookie = browser.cookies().get(COOKIE).map(|cookie| format!("{COOKIE}={cookie}")).unwrap_or_default();
    let own = [("cookie", cookie.as_str()), ("sec-fetch-site", "same-origin"), ("accept", "text/event-stream")];
    let mut sent = headers(&own);
    sent.extend(headers(other));
    server.anonymous().watch_rest(&format!("/console/audit-live?{query}"), sent).await
}

/// The stream of an organization from here on, and how it is asked for.
async fn live(server: &TestServer, browser: &Browser, org: &str) -> Streamed {
    let stream = open(server, browser, &format!("in={org}"), &[]).await;
    assert_eq!(stream.status, 200);
    stream
}

async fn create_group(server: &TestServer, org: &str, name: &str) -> String {
    let operator = server.operator().await;
    let made = ok(&operator, &format!("POST /iam/v2/groups/{org}"), json!({ "name": name })).await;
    made["uid"].as_str().expect("a UIDP").to_owned()
}

async fn entries_come_as_rows_and_continue_after_a_number(server: &TestServer) {
    with_provider(server).await;
    let org = server.organization("acme").await;
    let browser = browser_of(server, "ada", "owner", &org).await;
    numbered(server).await;
    let mut stream = live(server, &browser, &org).await;
    for (name, value) in
        [("content-type", "text/event-stream"), ("cache-control", "no-store"), ("x-accel-buffering", "no")]
    {
        assert_eq!(stream.headers[name], value, "{name}");
    }
    let group = create_group(server, &org, "rockets").await;
    let event = stream.event().await.expect("an event");
    assert_eq!(event.name, "entry");
    let cells = &event.data["cells"];
    assert_eq!(cells[0][0]["text"], "Group created");
    assert!(cells[0][0]["link"].as_str().is_some_and(|link| link.starts_with("/console/audit-entry?")), "{cells}");
    assert_eq!((&cells[1][0]["text"], &cells[1][0]["title"]), (&json!("rockets"), &json!(group)), "{cells}");
    assert_eq!(cells[2][0]["text"], "operator");
    drop(stream);
    let before = event.id.parse::<i64>().expect("a number") - 1;
    let resumed = [("last-event-id", &*before.to_string())];
    let mut again = open(server, &browser, &format!("in={org}&after=0"), &resumed).await;
    assert_eq!(again.event().await.expect("an event"), event, "the header counts, not the address of the page");
    let list = page(&browser, &format!("/console/audit?in={org}")).await;
    let after = format!("data-live=\"/console/audit-live?in={org}&amp;after={}\"", event.id);
    assert!(list.contains(&after) && list.contains(">Reload</a>"), "{list}");
    let older = page(&browser, &format!("/console/audit?in={org}&order=seq%20asc")).await;
    assert!(!older.contains("data-live"), "new entries are not at the top of this order");
}

async fn a_live_view_ends_with_its_session(server: &TestServer) {
    with_provider(server).await;
    let org = server.organization("acme").await;
    let person = browser_of(server, "ada", "owner", &org).await;
    for browser in [person, browser_of_operator(server).await] {
        let mut stream = live(server, &browser, &org).await;
        let token = field(&browser.get("/console/").await, "token");
        browser.post("/console/sign-out", &[("token", &token)]).await;
        let end = stream.event().await.expect("the reason");
        assert_eq!(end.name, "end");
        assert!(stream.event().await.is_none(), "and nothing after it");
    }
    let browser = browser_of(server, "bea", "owner", &org).await;
    let mut stream = live(server, &browser, &org).await;
    server.clock().advance(Duration::from_secs(31 * 60));
    let end = stream.event().await.expect("the reason");
    assert!(end.name == "end" && !is_signed_in(&browser).await, "a stream keeps no session from ending: {end:?}");
}

async fn a_live_view_ends_with_the_right_to_read(server: &TestServer) {
    with_provider(server).await;
    let org = server.organization("acme").await;
    let browser = server.browser();
    enter_at(server, &browser, "ada", "/console/").await;
    let binding = server.bind(&person(server, "ada"), &server.role("owner"), &org).await;
    let mut stream = live(server, &browser, &org).await;
    let operator = server.operator().await;
    ok(&operator, &format!("DELETE /iam/v2/roleBindings/{binding}"), Value::Null).await;
    loop {
        let event = stream.event().await.expect("the reason");
        if event.name == "end" {
            assert!(event.data["text"].as_str().is_some_and(|text| text.contains("Permission denied")), "{event:?}");
            break;
        }
    }
    assert_eq!(open(server, &browser, &format!("in={org}"), &[]).await.status, 403);
}

async fn only_pages_of_the_session_open_a_live_view(server: &TestServer) {
    with_provider(server).await;
    let org = server.organization("acme").await;
    let rival = server.organization("zebra").await;
    let browser = browser_of(server, "ada", "owner", &org).await;
    let query = format!("in={org}");
    for (name, value, status) in [
        ("sec-fetch-site", "cross-site", 403),
        ("sec-fetch-site", "same-site", 403),
        ("sec-fetch-site", "none", 403),
        ("accept", "text/html", 400),
        ("last-event-id", "-1", 400),
        ("cookie", "x=y", 401),
    ] {
        let stream = open(server, &browser, &query, &[(name, value)]).await;
        assert_eq!(stream.status, status, "{name}: {value}");
    }
    assert_eq!(open(server, &browser, &format!("in={rival}"), &[]).await.status, 403);
    assert_eq!(open(server, &browser, "", &[]).await.status, 400, "the whole server is for its operators");
    let first = live(server, &browser, &org).await;
    let _second = live(server, &browser, &org).await;
    assert_eq!(open(server, &browser, &query, &[]).await.status, 429, "two of a session");
    drop(first);
    until("a place is free again", async || open(server, &browser, &query, &[]).await.status == 200).await;
}

async fn live_views_end_with_the_server(server: &TestServer) {
    let org = server.organization("acme").await;
    let browser = browser_of_operator(server).await;
    let mut stream = live(server, &browser, &org).await;
    server.server().parts().pipeline.streams.stop();
    assert!(stream.event().await.is_none(), "without an end: the browser connects again");
}

async fn the_chain_is_verified_on_a_page(server: &TestServer) {
    with_provider(server).await;
    let org = server.organization("acme").await;
    let browser = browser_of(server, "ada", "owner", &org).await;
    create_group(server, &org, "rockets").await;
    numbered(server).await;
    let address = format!("/console/audit-verify?in={org}");
    let first = page(&browser, &address).await;
    assert!(
        !first.contains("id=\"result\"") && first.contains(&format!("bowline audit verify-chain {org}")),
        "{first}"
    );
    let operator = server.operator().await;
    let end = ok(&operator, &format!("GET /audit/v1/checkpoints?organization={org}"), Value::Null).await;
    let (newest, hash) = (end["sequence"].as_str().expect("a number"), end["hash"].as_str().expect("a hash"));
    assert!(first.contains(hash), "{first}");
    let whole = page(&browser, &format!("{address}&run=1")).await;
    assert!(whole.contains(">whole<") && whole.contains(&format!("entries 1 to {newest} of {newest}")), "{whole}");
    for (at, hash, says) in [
        (newest, hash, ">the same<"),
        ("", hash, ">the same<"),
        ("1", hash, ">different<"),
        ("999", hash, ">no such entry<"),
    ] {
        let compared = page(&browser, &format!("{address}&run=1&at={at}&hash={hash}")).await;
        assert!(compared.contains(says), "{at}: {compared}");
    }
    for wrong in ["hash=xyz", "at=-1", "first=x"] {
        assert_eq!(browser.get(&format!("{address}&run=1&{wrong}")).await.status, 400, "{wrong}");
    }
    execute(server, "UPDATE audit SET method = method || 'x' WHERE org_seq = 2", &[]).await;
    let broken = page(&browser, &format!("{address}&run=1")).await;
    assert!(broken.contains(">broken<") && broken.contains("First break") && !broken.contains(">whole<"), "{broken}");
    let other = browser_of(server, "eve", "owner", &server.organization("zebra").await).await;
    assert_eq!(other.get(&format!("{address}&run=1")).await.status, 403);
}

each_engine!(
    multi_thread:
    entries_come_as_rows_and_continue_after_a_number,
    a_live_view_ends_with_its_session,
    a_live_view_ends_with_the_right_to_read,
    only_pages_of_the_session_open_a_live_view,
    live_views_end_with_the_server,
    the_chain_is_verified_on_a_page
);
