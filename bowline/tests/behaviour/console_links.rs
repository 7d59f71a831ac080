//! What links of other sites do in the web console: they fill in and lead, and nothing is called, sent or forgotten by them.

use bowline_testkit::{Browser, RestReply, TestServer, each_engine};
use serde_json::json;

use crate::console::{COOKIE, headers};
use crate::console_changes_support::{UPDATE_GROUP, form_at, submit, unlock};
use crate::console_support::{browser_of, page, with_provider};
use crate::support::{number, ok};

const NOT_OURS: &str = "A link that is not of your pages filled in this form";
const GET_GROUP: &str = "chainguard.platform.iam.v2.GroupsService.GetGroup";

/// A page that a browser opens, led there by this site.
async fn led(server: &TestServer, browser: &Browser, site: &str, address: &str) -> RestReply {
    let cookie = format!("{COOKIE}={}", browser.cookies()[COOKIE]);
    let sent = [
        ("cookie", cookie.as_str()),
        ("sec-fetch-site", site),
        ("sec-fetch-mode", "navigate"),
        ("sec-fetch-dest", "document"),
    ];
    server.anonymous().rest_with("GET", address, headers(&sent), Vec::new()).await
}

async fn a_link_of_another_site_calls_nothing(server: &TestServer) {
    with_provider(server).await;
    let org = server.organization("acme").await;
    let browser = browser_of(server, "ada", "owner", &org).await;
    let address = form_at(GET_GROUP, &[("f.uid", &org), ("send", "true")]);
    let response = "id=\"response\"";
    for site in ["cross-site", "same-site"] {
        for address in [address.clone(), format!("{address}&format=json")] {
            let shown = led(server, &browser, site, &address).await;
            assert_eq!(shown.status, 200, "{}", shown.text());
            assert!(!shown.text().contains("\"acme\"") && !shown.text().contains(response), "{}", shown.text());
        }
        let shown = led(server, &browser, site, &address).await.text();
        assert!(shown.contains(NOT_OURS) && shown.contains(&format!("value=\"{org}\"")), "{shown}");
        assert!(shown.contains(">Call</button>"), "{shown}");
    }
    for site in ["same-origin", "none"] {
        let shown = led(server, &browser, site, &address).await.text();
        assert!(shown.contains(response) && !shown.contains(NOT_OURS), "{site}: {shown}");
    }
    assert!(page(&browser, &address).await.contains(response), "a program does not say");
}

async fn the_warning_stays_where_others_changed_something(server: &TestServer) {
    with_provider(server).await;
    let org = server.organization("acme").await;
    let group = server.group(&org, "rockets").await;
    let browser = browser_of(server, "ada", "owner", &org).await;
    unlock(&browser).await;
    let address = form_at(UPDATE_GROUP, &[("f.group.uid", &group), ("f.group.name", "evil"), ("edit", "1")]);
    let shown = page(&browser, &address).await;
    assert!(shown.contains(NOT_OURS), "{shown}");
    let patch = format!("PATCH /iam/v2/groups/{group}");
    ok(&server.operator().await, &patch, json!({ "description": "theirs" })).await;
    let lost = submit(&browser, &shown, "code", &[]).await;
    assert_eq!(lost.status, 409, "{}", lost.text());
    assert!(lost.text().contains(NOT_OURS), "{}", lost.text());
    let again = submit(&browser, &lost.text(), "preview", &[]).await;
    assert!(again.text().contains(NOT_OURS), "it stays until the form is sent: {}", again.text());
    assert_eq!(number(server, "SELECT count(*) FROM groups WHERE name = 'evil'").await, 0);
}

async fn steps_that_a_link_filled_in_warn(server: &TestServer) {
    with_provider(server).await;
    let org = server.organization("acme").await;
    let browser = browser_of(server, "ada", "owner", &org).await;
    unlock(&browser).await;
    let facts = format!("in={org}&platform=github&repo=evil/site&jobs=all&name=robot");
    let create = format!("/console/identities/new/create?{facts}");
    for site in ["cross-site", "same-site", "none"] {
        let shown = led(server, &browser, site, &create).await.text();
        assert!(shown.contains(NOT_OURS) && shown.contains("name=\"unread\""), "{site}: {shown}");
        let earlier = led(server, &browser, site, &format!("/console/identities/new/role?{facts}")).await.text();
        assert!(earlier.contains("name=\"unread\""), "what leads on carries it: {earlier}");
    }
    let own = led(server, &browser, "same-origin", &create).await.text();
    assert!(!own.contains(NOT_OURS) && own.contains("Create the identity"), "{own}");
    let empty = led(server, &browser, "none", &format!("/console/identities/new?in={org}")).await.text();
    assert!(!empty.contains("unread"), "nothing is filled in: {empty}");
}

each_engine!(
    multi_thread:
    a_link_of_another_site_calls_nothing,
    the_warning_stays_where_others_changed_something,
    steps_that_a_link_filled_in_warn,
);
