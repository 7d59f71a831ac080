//! Help in the console: every reason and every screen has a text, and names stand where ids would.

use std::collections::BTreeSet;

use bowline_core::Reason;
use bowline_testkit::{TestServer, each_engine};
use serde_json::{Value, json};

use crate::audit_log::numbered;
use crate::console_support::{browser_of, browser_of_operator, crawl, encoded, page, with_provider};
use crate::support::ok;

async fn every_reason_and_every_screen_has_a_text(server: &TestServer) {
    with_provider(server).await;
    let org = server.organization("acme").await;
    let browser = browser_of(server, "ada", "viewer", &org).await;
    let index = page(&browser, "/console/help").await;
    for reason in Reason::ALL {
        let address = format!("/console/help?reason={}", reason.name());
        assert!(index.contains(&address), "{address}");
        let shown = page(&browser, &address).await;
        assert!(shown.contains("What to do") && shown.contains(reason.code().name()), "{shown}");
    }
    for missing in ["reason=NOTHING", "page=/console/nothing"] {
        assert_eq!(browser.get(&format!("/console/help?{missing}")).await.status, 404, "{missing}");
    }
    // Each page that is reached leads to its own help, which is there.
    let operator = browser_of_operator(server).await;
    let seen = crawl(&operator, |address, text| {
        let path = address.split('?').next().unwrap_or_default();
        let link = format!("<a href=\"/console/help?page={}\">Help</a>", encoded(path));
        assert!(text.contains(&link), "{address} has no {link}: {text}");
    })
    .await;
    let pages: BTreeSet<&str> = seen.keys().filter_map(|address| address.split('?').next()).collect();
    for path in &pages {
        let help = page(&operator, &format!("/console/help?page={}", encoded(path))).await;
        assert!(help.contains("Help: "), "{path}: {help}");
    }
    assert!(pages.len() > 25, "{pages:?}");
}

async fn errors_say_what_to_do(server: &TestServer) {
    with_provider(server).await;
    let org = server.organization("acme").await;
    let browser = browser_of(server, "ada", "viewer", &org).await;
    let missing = browser.get(&format!("/console/group?uid={org}/00000000000000ff")).await;
    assert_eq!(missing.status, 404);
    let text = missing.text();
    assert!(text.contains("/console/help?reason=NOT_FOUND") && text.contains("check the name"), "{text}");
    let denied = browser.get("/console/operator").await;
    assert_eq!(denied.status, 403);
    assert!(denied.text().contains("/console/help?reason=PERMISSION_DENIED"), "{}", denied.text());
}

/// Names where the caller may read them, with the id in the title.
async fn the_log_names_what_changed_and_who_did_it(server: &TestServer) {
    with_provider(server).await;
    let org = server.organization("acme").await;
    let browser = browser_of(server, "ada", "owner", &org).await;
    let owner = server.actor("owner", &org).await;
    let made = ok(&owner, &format!("POST /iam/v2/groups/{org}"), json!({ "name": "rockets" })).await;
    let group = made["uid"].as_str().expect("a UIDP").to_owned();
    numbered(server).await;
    let shown_name = format!("<span title=\"{group}\"><bdi>rockets</bdi></span>");
    for address in ["/console/audit?in=", "/console/group?uid=", "/console/home?in="] {
        let address = format!("{address}{org}");
        let shown = page(&browser, &address).await;
        assert!(shown.contains(&shown_name), "{address}: {shown}");
        let data = browser.get(&format!("{address}&format=json")).await.json();
        let calls = data["calls"].as_array().expect("calls").iter();
        let names = calls.filter(|call| call["method"].as_str().is_some_and(|name| name.ends_with(".ResolveNames")));
        assert_eq!(names.count(), 1, "one call for all names of a page: {data}");
    }
    let history = page(&browser, &format!("/console/history?resource={}", encoded(&group))).await;
    assert!(history.contains("<bdi>rockets</bdi>") && history.contains(&format!("<code>{group}</code>")), "{history}");
    let bindings = page(&browser, &format!("/console/bindings?in={org}")).await;
    assert!(bindings.contains(&format!("title=\"{}\"", server.role("owner"))), "{bindings}");
    // What is gone has no name, and keeps its id.
    ok(&owner, &format!("DELETE /iam/v2/groups/{group}"), Value::Null).await;
    numbered(server).await;
    let shown = page(&browser, &format!("/console/audit?in={org}")).await;
    assert!(!shown.contains(&shown_name) && shown.contains(&format!("<code>{group}</code>")), "{shown}");
}

each_engine!(
    multi_thread:
    every_reason_and_every_screen_has_a_text,
    errors_say_what_to_do,
    the_log_names_what_changed_and_who_did_it
);
