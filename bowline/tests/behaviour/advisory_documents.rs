//! Public documents: what anyone may read, how soon, and that it is never anything else.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use bowline_testkit::{Actor, Engine, RestReply, TestServer, by_engine, each_engine, on_engine_with};
use http::HeaderMap;
use serde_json::{Value, json};

use crate::advisories::{ADVISORIES, about, advisory, create, event};
use crate::support::{call, each, ok};

const DOCUMENTS: &str = "/advisory/v2/documents";

/// What is public, as anyone reads it.
async fn public(server: &TestServer, query: &str) -> Value {
    let reply = call(&server.anonymous(), &format!("GET {DOCUMENTS}{query}"), Value::Null).await;
    assert_eq!(reply.status, 200, "{query}: {}", reply.text());
    reply.json()["documents"].clone()
}

/// Asks until it holds, for as long as a change may take to be seen.
async fn within_a_second(server: &TestServer, query: &str, holds: impl Fn(&Value) -> bool) -> Value {
    let began = Instant::now();
    loop {
        let seen = public(server, query).await;
        if holds(&seen) {
            return seen;
        }
        // Twice as long: the machine of a test is a busy one.
        assert!(began.elapsed() < Duration::from_secs(2), "{query}: {seen}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn publish(actor: &Actor, group: &str, public: bool) {
    let what = format!("PATCH /advisorysettings/v1/groups/{group}?updateMask=public");
    ok(actor, &what, json!({ "public": public })).await;
}

/// Publishes another organization's document, and withdraws it: when it is seen, so would be those of other groups.
async fn only_a_public_group_is_seen(server: &TestServer, operator: &Actor) {
    let other = server.organization("other").await;
    let zlib = advisory(operator, &other, "zlib", &["CVE-2026-8"]).await;
    event(operator, &zlib, json!({ "fixNotPlanned": {}, "status": "APPROVED" })).await;
    publish(operator, &other, true).await;
    let seen = within_a_second(server, "", |seen| !each(seen, "id").is_empty()).await;
    assert_eq!(each(&seen, "id"), ["zlib"], "nothing is public until its group is");
    publish(operator, &other, false).await;
    within_a_second(server, "", |seen| *seen == json!([])).await;
}

async fn documents_tell_what_is_approved_in_public_groups_within_a_second(server: &TestServer) {
    let org = server.organization("acme").await;
    let below = server.group(&org, "below").await;
    let operator = server.operator().await;
    let uid = advisory(&operator, &org, "curl", &["CVE-2026-1", "GHSA-aaaa-bbbb-cccc"]).await;
    let hidden = advisory(&operator, &below, "curl", &["CVE-2026-9"]).await;
    let scan = json!({ "scanner": "grype", "subpackageName": "libcurl", "grypeDbChecksum": "sum" });
    let approved = |event: Value| {
        let mut event = event;
        (event["status"], event["findings"], event["issue"]) = (json!("APPROVED"), json!("e30="), json!("secret"));
        event
    };
    event(&operator, &uid, approved(json!({ "timestamp": "2020-01-01T00:00:01Z", "detection": { "scanv1": scan } })))
        .await;
    let fixed = json!({ "fixedVersion": "8.1-r0", "note": "secret", "grypeDbBuilt": "then" });
    event(&operator, &uid, approved(json!({ "timestamp": "2020-01-01T00:00:02Z", "fixed": fixed }))).await;
    event(&operator, &uid, approved(json!({ "patched": { "patchedVersions": ["secret"] } }))).await;
    event(&operator, &uid, json!({ "fixNotPlanned": { "note": "secret" } })).await;
    event(&operator, &hidden, approved(json!({ "fixNotPlanned": {} }))).await;
    only_a_public_group_is_seen(server, &operator).await;

    publish(&operator, &org, true).await;
    let documents = within_a_second(server, "", |seen| !each(seen, "id").is_empty()).await;
    assert!(!documents.to_string().contains("secret"), "{documents}");
    assert_eq!(each(&documents, "id"), ["curl"]);
    let told = &documents[0]["advisories"];
    assert_eq!(told.as_array().expect("a list").len(), 1, "groups below a public one are not");
    assert_eq!(told[0]["packageNamespace"], json!("acme"));
    assert_eq!(told[0]["aliases"], json!(["CVE-2026-1", "GHSA-aaaa-bbbb-cccc"]));
    let events = told[0]["events"].as_array().expect("a list");
    assert_eq!(events.len(), 2);
    assert_eq!(events[0]["detection"]["scanv1"]["subpackageName"], json!("libcurl"));
    assert_eq!(events[1]["fixed"]["fixedVersion"], json!("8.1-r0"));
    assert_eq!(events[1]["fixed"]["grypeDbBuilt"], json!("then"));

    let first = ok(&server.anonymous(), "GET /advisory/v1/documents", Value::Null).await;
    assert_eq!(each(&first["items"], "id"), ["curl"]);
    let public_id = told[0]["id"].as_str().expect("an id").to_lowercase();
    for (query, count) in [
        ("?id=curl".to_owned(), 1),
        ("?id=wget".to_owned(), 0),
        ("?cves=cve-2026-1&cves=CVE-2026-1".to_owned(), 1),
        (format!("?cves={public_id}"), 1),
        ("?cves=CVE-2026-9".to_owned(), 0),
        ("?id=wget&cves=CVE-2026-1".to_owned(), 0),
    ] {
        assert_eq!(public(server, &query).await.as_array().expect("a list").len(), count, "{query}");
    }
    create(&operator, &org, about("wget", "a", &["CVE-2026-2"])).await;
    let wget = advisory(&operator, &org, "wget", &["CVE-2026-3"]).await;
    event(&operator, &wget, approved(json!({ "fixNotPlanned": {} }))).await;
    within_a_second(server, "", |seen| each(seen, "id") == ["curl", "wget"]).await;
    ok(&operator, &format!("DELETE {ADVISORIES}/{wget}"), Value::Null).await;
    within_a_second(server, "", |seen| each(seen, "id") == ["curl"]).await;
    publish(&operator, &org, false).await;
    within_a_second(server, "", |seen| *seen == json!([])).await;
}

async fn get(server: &TestServer, headers: &[(&str, &str)]) -> RestReply {
    let headers: HeaderMap = headers
        .iter()
        .map(|(name, value)| (name.parse::<http::HeaderName>().expect("a name"), value.parse().expect("a value")))
        .collect();
    server.anonymous().rest_with("GET", DOCUMENTS, headers, Vec::new()).await
}

async fn documents_are_compressed_and_not_sent_again_unchanged(server: &TestServer) {
    let org = server.organization("acme").await;
    let operator = server.operator().await;
    publish(&operator, &org, true).await;
    let uid = advisory(&operator, &org, "curl", &["CVE-2026-1"]).await;
    let note = "a long note ".repeat(200);
    event(&operator, &uid, json!({ "status": "APPROVED", "fixNotPlanned": { "note": note } })).await;
    within_a_second(server, "", |seen| *seen != json!([])).await;

    let plain = get(server, &[]).await;
    let tag = plain.header("etag").expect("a tag").to_owned();
    assert_eq!((plain.header("content-encoding"), plain.header("cache-control")), (None, Some("no-cache")));
    let compressed = get(server, &[("accept-encoding", "gzip, br")]).await;
    assert_eq!(compressed.header("content-encoding"), Some("gzip"));
    assert!(compressed.body.len() * 2 < plain.body.len());
    assert_eq!(compressed.header("etag"), Some(&*tag));
    let known = get(server, &[("if-none-match", &tag), ("accept-encoding", "gzip")]).await;
    assert_eq!((known.status, known.body.len(), known.header("etag")), (304, 0, Some(&*tag)));
    assert_eq!(get(server, &[("if-none-match", "\"other\"")]).await.status, 200);

    event(&operator, &uid, json!({ "status": "APPROVED", "fixed": { "fixedVersion": "2" } })).await;
    within_a_second(server, "", |seen| seen.to_string().contains("fixedVersion")).await;
    let changed = get(server, &[("if-none-match", &tag)]).await;
    assert_eq!(changed.status, 200);
    assert_ne!(changed.header("etag"), Some(&*tag));
}

async fn anonymous_reads_are_limited_by_address(engine: Engine) {
    let few = |options: &mut bowline_server::Options| options.rate_limit_address = Some(1);
    on_engine_with(engine, few, async |server| {
        let mut limited = 0;
        for _ in 0..40 {
            limited += usize::from(get(server, &[]).await.status == 429);
        }
        assert!(limited > 0, "no request got 429");
    })
    .await;
}

by_engine!(anonymous_reads_are_limited_by_address);

async fn anonymous_reads_are_validated(server: &TestServer) {
    let many = (0..201).map(|n| format!("cves=CVE-{n}")).collect::<Vec<_>>().join("&");
    for query in [many, format!("id={}", "a".repeat(513)), "cves=a%00".into()] {
        let reply = call(&server.anonymous(), &format!("GET {DOCUMENTS}?{query}"), Value::Null).await;
        assert_eq!(reply.status, 400, "{query}");
    }
    // A token that is no good is no reason to refuse what everyone may read.
    let reply = call(&server.anonymous().with_token("nonsense"), &format!("GET {DOCUMENTS}"), Value::Null).await;
    assert!(matches!(reply.status, 200 | 503), "{}", reply.text());
}

/// A small generator of numbers, so that a history that went wrong comes again.
struct Random(u64);

impl Random {
    fn below(&mut self, most: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % most
    }
}

/// What the history has made so far.
#[derive(Default)]
struct History {
    /// Whether each group is public.
    groups: BTreeMap<String, bool>,
    /// Group of each advisory in use.
    advisories: BTreeMap<String, String>,
    /// Advisory, mark and state of each event; what an event says begins with its mark.
    events: Vec<(String, String, String, &'static str)>,
}

impl History {
    /// The marks that anyone may read.
    fn public(&self) -> Vec<&str> {
        let told = |event: &&(String, String, String, &'static str)| {
            let group = self.advisories.get(&event.0);
            event.3 == "APPROVED" && group.is_some_and(|group| self.groups[group])
        };
        self.events.iter().filter(told).map(|event| &*event.2).collect()
    }

    async fn go_on(&mut self, random: &mut Random, operator: &Actor) {
        let advisories: Vec<String> = self.advisories.keys().cloned().collect();
        let groups: Vec<String> = self.groups.keys().cloned().collect();
        match random.below(10) {
            0 | 1 => {
                let group = &groups[random.below(groups.len())];
                let name = format!("package{}", random.below(4));
                let alias = format!("CVE-{}", random.below(100_000));
                let uid = advisory(operator, group, &name, &[&alias]).await;
                self.advisories.insert(uid, group.clone());
            }
            2 => {
                let group = groups[random.below(groups.len())].clone();
                let public = random.below(2) == 0;
                publish(operator, &group, public).await;
                self.groups.insert(group, public);
            }
            3 if advisories.len() > 3 => {
                let uid = &advisories[random.below(advisories.len())];
                ok(operator, &format!("DELETE {ADVISORIES}/{uid}"), Value::Null).await;
                self.advisories.remove(uid);
            }
            4..=6 if !advisories.is_empty() => {
                let uid = advisories[random.below(advisories.len())].clone();
                let mark = format!("mark{:04}x", self.events.len());
                let state = ["PENDING", "APPROVED"][random.below(2)];
                let body =
                    json!({ "status": state, "fixNotPlanned": { "note": format!("{mark} said") }, "issue": mark });
                let added = event(operator, &uid, body).await;
                self.events.push((uid, added, mark, state));
            }
            _ => {
                let open = |event: &&mut (String, String, String, &'static str)| {
                    matches!(event.3, "PENDING" | "REQUEST_CHANGES") && self.advisories.contains_key(&event.0)
                };
                let mut open: Vec<_> = self.events.iter_mut().filter(open).collect();
                if open.is_empty() {
                    return;
                }
                let at = random.below(open.len());
                let state = ["PENDING", "REQUEST_CHANGES", "REJECTED", "APPROVED"][random.below(4)];
                let put = format!("PUT /vulnerabilities/v1/advisory_events/{}", open[at].1);
                ok(operator, &put, json!({ "status": state })).await;
                open[at].3 = state;
            }
        }
    }
}

async fn no_history_shows_what_is_pending_rejected_or_private(server: &TestServer) {
    let operator = server.operator().await;
    let org = server.organization("acme").await;
    let mut history = History::default();
    for name in ["one", "two", "three"] {
        history.groups.insert(server.group(&org, name).await, false);
    }
    let (mut random, mut most) = (Random(7), 0);
    for round in 0..12 {
        for _ in 0..12 {
            history.go_on(&mut random, &operator).await;
            // What was public a moment ago may still be returned for a second; what was never public is never
            // returned.
            let seen = public(server, "").await.to_string();
            for (_, _, mark, state) in &history.events {
                let secret = matches!(*state, "PENDING" | "REQUEST_CHANGES" | "REJECTED");
                assert!(!(secret && seen.contains(mark.as_str())), "round {round}: {mark} is {state}: {seen}");
            }
        }
        let wanted = history.public();
        most = most.max(wanted.len());
        let marks = |seen: &Value| {
            let text = seen.to_string();
            let told = history.events.iter().filter(|event| text.contains(&*event.2));
            told.map(|event| &*event.2).collect::<Vec<_>>()
        };
        let seen = within_a_second(server, "", |seen| marks(seen) == wanted).await;
        for document in seen.as_array().expect("a list") {
            let id = document["id"].as_str().expect("an id");
            assert_eq!(public(server, &format!("?id={id}")).await[0], *document, "a filter tells the same");
        }
    }
    assert!(history.events.len() > 20 && most > 2, "nothing much happened: {most}");
}

each_engine!(
    anonymous_reads_are_validated,
    documents_are_compressed_and_not_sent_again_unchanged,
    no_history_shows_what_is_pending_rejected_or_private,
    documents_tell_what_is_approved_in_public_groups_within_a_second,
);
