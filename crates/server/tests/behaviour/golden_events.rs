//! Every type of event, as a sink gets it, against its golden copy in `golden/events/`.
//!
//! A type that a method with a handler names needs a step in [`steps`]: a change that emits it.
//! `UPDATE_GOLDEN=1` writes the copies anew.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use bowline_testkit::{Engine, TestServer};
use serde_json::{Value, json};

use crate::deliveries::subscribe;
use crate::sink::{Delivery, Sink};
use crate::support::done;

/// A change: the end of the event's type, what is called, its body, and the name that the answer's UIDP goes by
/// in later steps. `{name}` stands for a UIDP.
type Step = (&'static str, &'static str, Value, &'static str);

fn steps() -> Vec<Step> {
    let claims = json!({ "issuer": "https://issuer.example.com", "subject": "workload" });
    vec![
        ("iam.group.created", "POST /iam/v2/groups/{org}", json!({ "name": "team", "description": "d" }), "team"),
        ("iam.group.updated", "PATCH /iam/v2/groups/{team}", json!({ "description": "other" }), ""),
        (
            "iam.roles.created",
            "POST /iam/v2/roles/{team}",
            json!({ "name": "reader", "capabilities": ["CAP_REPO_LIST"] }),
            "role",
        ),
        ("iam.roles.updated", "PATCH /iam/v2/roles/{role}", json!({ "description": "reads" }), ""),
        (
            "iam.identity.created",
            "POST /iam/v2/identities/{team}",
            json!({ "name": "machine", "claimMatch": claims }),
            "machine",
        ),
        ("iam.identity.updated", "PATCH /iam/v2/identities/{machine}", json!({ "description": "d" }), ""),
        (
            "iam.rolebindings.created",
            "POST /iam/v2/roleBindings/{team}",
            json!({ "identityUid": "{machine}", "roleUid": "{role}" }),
            "binding",
        ),
        ("iam.rolebindings.updated", "PATCH /iam/v2/roleBindings/{binding}", json!({ "identityUid": "{other}" }), ""),
        ("iam.rolebindings.deleted", "DELETE /iam/v2/roleBindings/{binding}", Value::Null, ""),
        (
            "iam.rolebindings.created.batch",
            "POST /iam/v2/roleBindings:batchCreate",
            json!({ "parent": "{team}", "requests": [
                { "roleBinding": { "identityUid": "{machine}", "roleUid": "{role}" } },
                { "roleBinding": { "identityUid": "{other}", "roleUid": "{role}" } },
            ] }),
            "",
        ),
        ("platform.registry.repo.created", "POST /registry/v2/repos/{team}", json!({ "name": "web" }), "repo"),
        ("platform.registry.repo.updated", "PATCH /registry/v2/repos/{repo}", json!({ "description": "d" }), ""),
        ("platform.registry.repo.deleted", "DELETE /registry/v2/repos/{repo}", Value::Null, ""),
        (
            "events.subscription.created",
            "POST /events/v2/subscriptions/{team}",
            json!({ "sink": "https://a.example/x?secret=1" }),
            "hook",
        ),
        ("events.subscription.deleted", "DELETE /events/v2/subscriptions/{hook}", Value::Null, ""),
        ("iam.identity.deleted", "DELETE /iam/v1/identities/{machine}", Value::Null, ""),
        ("iam.roles.deleted", "DELETE /iam/v2/roles/{spare}", Value::Null, ""),
        ("iam.group.deleted", "DELETE /iam/v2/groups/{empty}", Value::Null, ""),
    ]
}

#[tokio::test]
async fn events_are_golden() {
    let server = TestServer::start(Engine::Sqlite).await;
    let org = server.organization("acme").await;
    let operator = server.operator().await;
    let mut names = BTreeMap::from([
        ("empty", server.group(&org, "empty").await),
        ("other", server.identity(&org, "other").await),
        ("spare", crate::support::role(&server, &org, "spare", &["CAP_REPO_LIST"]).await),
        ("org", org.clone()),
    ]);
    let sink = Sink::start().await;
    subscribe(&operator, &org, &sink.url).await;
    let mut told = BTreeSet::new();
    let mut wrong = Vec::new();
    for (at, (kind, what, body, name)) in steps().into_iter().enumerate() {
        let filled = |text: &str| {
            names.iter().fold(text.to_owned(), |text, (name, uid)| text.replace(&format!("{{{name}}}"), uid))
        };
        let body = serde_json::from_str(&filled(&body.to_string())).expect("JSON");
        let answer = done(&operator, &filled(what), body).await;
        if !name.is_empty() {
            names.insert(name, answer["uid"].as_str().expect("a uid").into());
        }
        let delivery = sink.wait_for(at + 1).await.remove(at);
        let event_type = format!("dev.chainguard.api.{kind}.v1");
        assert_eq!(delivery.header("ce-type"), event_type, "{what}");
        wrong.extend(compare(&event_type, &written(&server, &names, &delivery)));
        told.insert(event_type);
    }
    assert!(wrong.is_empty(), "these differ from their golden copies; UPDATE_GOLDEN=1 rewrites them: {wrong:?}");
    let missing: Vec<String> = emitted(&server).difference(&told).cloned().collect();
    assert!(missing.is_empty(), "steps() in golden_events.rs has no change that emits these: {missing:?}");
    server.stop().await;
}

/// What methods with a handler tell subscriptions.
fn emitted(server: &TestServer) -> BTreeSet<String> {
    let contract = &server.server().parts().contract;
    let implemented = bowline_services::implemented(contract);
    let events = implemented.into_iter().filter_map(|index| contract.method(index).event.as_ref());
    events.filter(|event| event.customer).map(|event| event.event_type.clone()).collect()
}

/// The delivery as a text that is the same every time.
fn written(server: &TestServer, names: &BTreeMap<&str, String>, delivery: &Delivery) -> String {
    let left_out = ["content-length", "host", "accept", "authorization"];
    let headers: BTreeMap<&str, &str> = delivery
        .headers
        .keys()
        .map(|name| (name.as_str(), delivery.header(name.as_str())))
        .filter(|(name, _)| !left_out.contains(name))
        .collect();
    let (header, claims) = delivery.token_parts();
    let shown = json!({
        "path": delivery.path,
        "headers": headers,
        "token": { "typ": header["typ"], "claims": claims },
        "body": delivery.json(),
    });
    let mut text = serde_json::to_string_pretty(&shown).expect("JSON") + "\n";
    let digest = claims["webhook"]["digest"].as_str().expect("a digest");
    text = text.replace(digest, "sha256:<digest>").replace(server.base(), "<base>");
    // Longer UIDPs first: a parent's is how its child's begins.
    let mut known: Vec<_> = names.iter().collect();
    known.sort_by_key(|(_, uid)| std::cmp::Reverse(uid.len()));
    for (name, uid) in known {
        text = text.replace(uid.as_str(), &format!("<{name}>"));
    }
    for (value, name) in [
        (delivery.header("ce-id"), "<id>"),
        (delivery.header("ce-time"), "<time>"),
        (claims["jti"].as_str().expect("an id"), "<token id>"),
    ] {
        text = text.replace(value, name);
    }
    text = times_and_new_segments_masked(&text);
    let seconds = claims["iat"].as_i64().expect("a time");
    text = text.replace(&seconds.to_string(), "\"<now>\"").replace(&(seconds + 600).to_string(), "\"<now + 600>\"");
    text = text.replace(&server.role("viewer"), "<viewer>");
    text.replace(concat!("bowline/", env!("CARGO_PKG_VERSION")), "bowline/<version>")
}

/// Whole texts that are a time, and segments below a known place.
fn times_and_new_segments_masked(text: &str) -> String {
    let is_time = |word: &str| word.len() > 19 && word.ends_with('Z') && word.as_bytes()[10] == b'T';
    let is_segment = |word: &str| word.len() == 16 && word.bytes().all(|byte| byte.is_ascii_hexdigit());
    let masked = text.split('"').map(|word| match word.rsplit_once(">/") {
        Some((place, segment)) if is_segment(segment) => format!("{place}>/<new>"),
        _ if is_time(word) => "<time>".into(),
        _ => word.to_owned(),
    });
    masked.collect::<Vec<_>>().join("\"")
}

#[expect(clippy::disallowed_methods, reason = "the switch that rewrites golden files")]
fn compare(event_type: &str, text: &str) -> Option<String> {
    let directory: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/events");
    let path = directory.join(format!("{event_type}.json"));
    if std::env::var("UPDATE_GOLDEN").is_ok() {
        std::fs::create_dir_all(&directory).expect("the directory is made");
        std::fs::write(&path, text).expect("the file is written");
    }
    let known = std::fs::read_to_string(&path).unwrap_or_default();
    (known != text).then(|| format!("{event_type}:\n{text}"))
}
