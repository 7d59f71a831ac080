//! Browsers in the console: how they get in, and how their pages are read.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use bowline_identity::people;
use bowline_testkit::{Browser, RestReply, TestServer};

use crate::people_support::person;
use crate::signin::{location, offer_provider, press, to_confirmation};

/// Signs a person in, who lands on this page of the console.
pub(crate) async fn enter_at(server: &TestServer, browser: &Browser, sub: &str, page: &str) -> RestReply {
    let start = format!("/oauth?exit=console&connection=main&return={}", encoded(page));
    let confirm = to_confirmation(server, browser, &start, sub).await;
    press(browser, &confirm, "continue").await
}

/// A browser in which a person is signed in, who has that role there.
pub(crate) async fn browser_of(server: &TestServer, sub: &str, role: &str, group: &str) -> Browser {
    let browser = server.browser();
    assert_eq!(location(&enter_at(server, &browser, sub, "/console/").await), "/console/");
    server.bind(&person(server, sub), &server.role(role), group).await;
    browser
}

/// A browser in which the operator is signed in, by a link that works once.
pub(crate) async fn browser_of_operator(server: &TestServer) -> Browser {
    let browser = server.browser();
    let code = operator_link(server, 7).await;
    let entered = browser.post("/oauth/operator", &[("code", &code), ("answer", "console")]).await;
    assert_eq!(location(&entered), "/console/");
    browser
}

pub(crate) async fn operator_link(server: &TestServer, seed: u8) -> String {
    let db = &server.server().parts().storage.db;
    let now = bowline_core::Clock::now(server.clock());
    people::create_operator_link(db, [seed; 16], "a look at the console", now).await.expect("a link")
}

/// A server whose people sign in at the fake provider.
pub(crate) async fn with_provider(server: &TestServer) -> &TestServer {
    offer_provider(server, "main").await;
    server
}

pub(crate) fn encoded(text: &str) -> String {
    url::form_urlencoded::byte_serialize(text.as_bytes()).collect()
}

/// A page that must be there.
pub(crate) async fn page(browser: &Browser, path: &str) -> String {
    let reply = browser.get(path).await;
    assert_eq!(reply.status, 200, "{path}: {}", reply.text());
    reply.text()
}

/// The addresses that a page links to.
pub(crate) fn links(page: &str) -> BTreeSet<String> {
    let values = page.split(" href=\"").skip(1).filter_map(|rest| rest.split('"').next());
    values.map(|value| value.replace("&amp;", "&")).collect()
}

/// Every page of the console that a browser reaches by links, with its status. Each must be well made.
pub(crate) async fn crawl(browser: &Browser, check: impl Fn(&str, &str)) -> BTreeMap<String, u16> {
    const MOST: usize = 1200;
    let (mut seen, mut forms) = (BTreeMap::new(), BTreeSet::new());
    let mut queue = VecDeque::from(["/console/".to_owned()]);
    while let Some(address) = queue.pop_front() {
        // Pages as data have tests of their own, and one form of a kind is enough.
        let is_data = address.contains("format=") || form_of(&address).is_some_and(|form| !forms.insert(form));
        if is_data
            || seen.contains_key(&address)
            || !address.starts_with("/console")
            || address.starts_with("/console/assets/")
        {
            continue;
        }
        assert!(seen.len() < MOST, "the pages do not end: {:?}", seen.keys().rev().take(20).collect::<Vec<_>>());
        let reply = browser.get(&address).await;
        let text = reply.text();
        well_made(&address, &text);
        check(&address, &text);
        seen.insert(address, reply.status);
        queue.extend(links(&text).into_iter().map(|link| link.split('#').next().unwrap_or_default().to_owned()));
    }
    seen
}

/// The form that an address shows: method and fields, of which one is enough.
fn form_of(address: &str) -> Option<String> {
    let query = address.strip_prefix("/console/method?")?;
    let names = query.split('&').filter(|pair| !pair.starts_with("back="));
    let names =
        names.map(|pair| if pair.starts_with("name=") { pair } else { pair.split('=').next().unwrap_or_default() });
    Some(names.collect::<Vec<_>>().join("&"))
}

/// What holds for every page.
fn well_made(address: &str, page: &str) {
    let count = |text: &str| page.matches(text).count();
    assert_eq!((count("<h1"), count("<main"), count("</html>")), (1, 1, 1), "{address}: {page}");
    assert_eq!(count("<script"), 1, "{address}: {page}");
    // The parts of a token are joined by a dot, which ids of forms do not have.
    assert!(!page.contains(".eyJ"), "{address} has a token: {page}");
    for inline in [" style=", " onclick=", " onload=", " onerror=\"", "javascript:\"", "href=\"http"] {
        assert!(!page.contains(inline), "{address} has {inline}: {page}");
    }
    let ids: Vec<&str> = page.split(" id=\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
    let different: BTreeSet<&&str> = ids.iter().collect();
    assert_eq!(different.len(), ids.len(), "{address}: an id twice in {ids:?}");
    for labelled in page.split(" aria-labelledby=\"").skip(1).filter_map(|rest| rest.split('"').next()) {
        assert!(ids.contains(&labelled), "{address}: nothing has the id {labelled}");
    }
}
