//! Every type of event, as a sink gets it, against its golden copy in `golden/events/`.
//!
//! A type that a method with a handler names needs a step in `golden_steps.rs`: a change that emits it.
//! `UPDATE_GOLDEN=1` writes the copies again.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use bowline_core::rfc3339::{self, Digits};
use bowline_server::{Options, TermsOption};
use bowline_store::Value as Sql;
use bowline_testkit::{Actor, Engine, TestServer, by_engine, on_engine_with, packages, python};
use serde_json::{Value, json};

use crate::contents;
use crate::deliveries::subscribe;
use crate::golden_steps::{CLIENT_SECRET, Caller, steps};
use crate::people_support;
use crate::sink::{Delivery, Sink};
use crate::support::{ok, person, provider, role, uid_of};

/// The organization in which everything happens, named as the domain of its people, and what the steps need there.
/// Whatever a step refers to as `{name}` is in the answer, or kept by a step before.
async fn prepared(server: &TestServer) -> BTreeMap<&'static str, String> {
    let operator = server.operator().await;
    let body = json!({ "name": "acme.example", "verified": true, "kind": "ORG_KIND_CUSTOMER" });
    let org = uid_of(&ok(&operator, "POST /iam/v2/groups", body).await);
    let viewer = server.role("viewer");
    let spare_provider = provider(server, &org, "spare").await;
    let mut names = BTreeMap::new();
    for (name, group) in [("first mapping", "one"), ("second mapping", "two")] {
        let body = json!({ "externalGroupId": group, "roleUid": viewer });
        let what = format!("POST /iam/v2/externalGroupRoleMappings/{spare_provider}");
        names.insert(name, uid_of(&ok(&operator, &what, body).await));
    }
    python::publish(server, &operator, &org, "example", "1.0").await;
    packages::publish_javascript(server, &operator, &org, "example", "1.0.0").await;
    packages::publish_java(server, &operator, &org, "org.example:library", "1.0").await;
    packages::publish_go(server, &operator, &org, "example.com/tool", "v1.0.0").await;
    packages::publish_crate(server, &operator, &org, "example", "1.0.0").await;
    packages::publish_generic(server, &operator, &org, "example", "1.0.0").await;
    let scanned = server.repo(&org, "scanned").await;
    let manifest = contents::Manifest { digest: &contents::digest('a'), shape: 1, size: 1, names: &[], config: None };
    contents::store(server, &scanned, &manifest).await;
    crate::support::image(server, &scanned, &contents::digest('b'), 1).await;
    names.insert("scanned", scanned);
    let charted = server.repo(&org, "charted").await;
    store_chart(server, &charted, "1.0.0", "registry.example.com/team/app").await;
    names.insert("charted", charted);
    // A step puts it into force, and it stays there.
    let policy = ok(&operator, &format!("POST /libraries/v1/policies/{org}"), json!({ "name": "crates" })).await;
    names.insert("crate policy", policy["id"].as_str().expect("an id").to_owned());
    let tomorrow = (server.clock().seconds() + 86400) * 1_000_000;
    names.insert("tomorrow", rfc3339::text(tomorrow, Digits::Fewest));
    // Provisioning wants two owners.
    for name in ["first owner", "second owner"] {
        let owner = server.identity(&org, name).await;
        server.bind(&owner, &server.role("owner"), &org).await;
    }
    // Who has the role already gets no binding by the invitation: one event, and not two.
    let newcomer = people_support::person(server, NEWCOMER);
    server.bind(&newcomer, &viewer, &org).await;
    names.extend([
        ("empty", server.group(&org, "empty").await),
        ("other", server.identity(&org, "other").await),
        ("spare", role(server, &org, "spare", &["CAP_REPO_LIST"]).await),
        ("spare provider", spare_provider),
        ("newcomer", newcomer),
        ("viewer", viewer),
        ("org", org),
    ]);
    names
}

/// Stores a chart at a tag, which uses images of this repository.
async fn store_chart(server: &TestServer, repo: &str, tag: &str, images: &str) {
    let digest = contents::digest('c');
    let stored = contents::Manifest { digest: &digest, shape: 1, size: 1, names: &[], config: None };
    contents::store(server, repo, &stored).await;
    let (images, operator) = (images.to_owned(), server.operator().await);
    let db = &server.server().parts().storage.db;
    let manifest = digest.clone();
    let written = db.write(move |tx| {
        let (manifest, images) = (manifest.clone(), images.clone());
        Box::pin(async move {
            let sql = "INSERT INTO manifest_references (manifest, place, kind, digest, media_type, size, os, architecture, variant)
                       VALUES ($1, 0, 1, $1, 'application/vnd.cncf.helm.config.v1+json', 0, '', '', '')";
            tx.execute(sql, &[Sql::from(&manifest)]).await?;
            tx.execute("INSERT INTO charts (manifest, problem) VALUES ($1, '')", &[Sql::from(&manifest)]).await?;
            let sql = "INSERT INTO chart_images (manifest, repository) VALUES ($1, $2)";
            tx.execute(sql, &[Sql::from(&manifest), Sql::from(&images)]).await?;
            Ok::<_, bowline_core::Error>(())
        })
    });
    written.await.expect("the database takes a chart");
    let body = json!({ "name": tag, "digest": digest });
    let tagged = operator.rest("POST", &format!("/registry/v1/tags/{repo}"), Some(body)).await;
    assert_eq!(tagged.status, 200, "{}", tagged.text());
}

/// The subject of anyone who registers.
const NEWCOMER: &str = "ada";

/// Anyone who makes the changes.
struct Callers {
    operator: Actor,
    newcomer: Actor,
    applicant: Actor,
}

impl Callers {
    async fn of(server: &TestServer, names: &mut BTreeMap<&str, String>) -> Callers {
        people_support::offered(server).await;
        // Two audiences are a list in the token, and a text in the event.
        let audiences = [people_support::CLIENT, server.base()];
        let mut claims = json!({ "aud": audiences, "azp": people_support::CLIENT });
        claims["email"] = json!("ada@acme.example");
        claims["email_verified"] = json!(true);
        let upstream = server.idp().token(NEWCOMER, people_support::CLIENT, claims);
        let applicant = person(server, "bob", "bob@acme.example").await;
        names.insert("applicant", applicant.uid);
        Callers {
            operator: server.operator().await,
            newcomer: server.anonymous().with_token(&upstream),
            applicant: applicant.actor,
        }
    }

    fn find(&self, caller: Caller) -> &Actor {
        match caller {
            Caller::Operator => &self.operator,
            Caller::Newcomer => &self.newcomer,
            Caller::Applicant => &self.applicant,
        }
    }
}

fn terms(options: &mut Options) {
    let document =
        TermsOption { id: "terms-1".into(), label: "Terms".into(), url: "https://operator.example/terms-1".into() };
    options.terms = vec![document];
}

async fn events_are_golden(engine: Engine) {
    on_engine_with(engine, terms, async |server| {
        let mut names = prepared(server).await;
        let callers = Callers::of(server, &mut names).await;
        let sink = Sink::start().await;
        subscribe(&callers.operator, &names["org"], &sink.url).await;
        let mut told = BTreeSet::new();
        let mut wrong = Vec::new();
        for (at, step) in steps().into_iter().enumerate() {
            let filled = |text: &str| {
                names.iter().fold(text.to_owned(), |text, (name, value)| text.replace(&format!("{{{name}}}"), value))
            };
            let body = serde_json::from_str(&filled(&step.body.to_string())).expect("JSON");
            let answer = ok(callers.find(step.caller), &filled(step.what), body).await;
            for (pointer, name) in &step.keeps {
                let kept = answer.pointer(pointer).and_then(Value::as_str);
                names.insert(name, kept.unwrap_or_else(|| panic!("no {pointer} in {answer}")).into());
            }
            let delivery = sink.wait_for(at + 1).await.remove(at);
            let event_type = step.event_type();
            assert_eq!(delivery.header("ce-type"), event_type, "{}", step.what);
            assert_keeps_secrets(&answer, &delivery, step.what);
            wrong.extend(compare(&event_type, &written(server, &names, &delivery)));
            assert!(told.insert(event_type), "{} is told by two steps, with one golden copy", step.kind);
        }
        assert_eq!(sink.received().len(), told.len(), "a step told of more than its event");
        assert!(wrong.is_empty(), "these differ from their golden copies; UPDATE_GOLDEN=1 rewrites them: {wrong:?}");
        let missing: Vec<String> = emitted(server).difference(&told).cloned().collect();
        assert!(missing.is_empty(), "steps() in golden_steps.rs has no change that emits these: {missing:?}");
    })
    .await;
}

/// What only the caller gets, or only the server: tokens, codes, and the client secret of the steps.
fn assert_keeps_secrets(answer: &Value, delivery: &Delivery, what: &str) {
    let told = String::from_utf8_lossy(&delivery.body);
    let answered = ["token", "code"].into_iter().filter_map(|member| answer[member].as_str());
    for secret in answered.filter(|secret| !secret.is_empty()).chain([CLIENT_SECRET]) {
        assert!(!told.contains(secret), "{what} tells {secret}: {told}");
    }
}

/// The event types of methods with a handler.
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
    for of in ["digest", "headers", "sink"] {
        let digest = claims["webhook"][of].as_str().expect("a digest");
        text = text.replace(digest, &format!("sha256:<{of}>"));
    }
    text = text.replace(server.base(), "<base>").replace(server.idp().issuer(), "<issuer>");
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

by_engine!(events_are_golden);
