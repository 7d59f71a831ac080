//! Advisories and their events: written through v1, read through both.

use bowline_testkit::{Actor, TestServer, each_engine};
use serde_json::{Value, json};

use crate::support::{absent, call, each, holder, inventory, number, ok, rejected};

pub(crate) const ADVISORIES: &str = "/vulnerabilities/v1/advisories";

/// An advisory about a package.
pub(crate) fn about(artifact: &str, component: &str, aliases: &[&str]) -> Value {
    json!({
        "artifactType": "apk", "artifactName": artifact, "artifactArchitecture": "x86_64",
        "componentName": component, "componentType": "go-module", "componentLocation": "/usr/bin/a",
        "aliases": aliases
    })
}

pub(crate) async fn create(actor: &Actor, group: &str, advisory: Value) -> Value {
    let body = json!({ "parentId": group, "advisory": advisory });
    ok(actor, &format!("POST {ADVISORIES}"), body).await
}

/// Creates an advisory and returns its UIDP.
pub(crate) async fn advisory(actor: &Actor, group: &str, artifact: &str, aliases: &[&str]) -> String {
    create(actor, group, about(artifact, "stdlib", aliases)).await["id"].as_str().expect("an id").to_owned()
}

/// Adds an event and returns its UIDP.
pub(crate) async fn event(actor: &Actor, advisory: &str, event: Value) -> String {
    let body = json!({ "advisoryEvent": event });
    let added = ok(actor, &format!("POST {ADVISORIES}/{advisory}/events"), body).await;
    added["id"].as_str().expect("an id").to_owned()
}

/// Calls what must be refused with this status in the bare manner of v1, for a reason that names this.
pub(crate) async fn barred(actor: &Actor, what: &str, body: Value, status: u16, part: &str) {
    let reply = call(actor, what, body).await;
    assert_eq!(reply.status, status, "{what}: {}", reply.text());
    assert_eq!(reply.json()["details"], json!([]), "{what}");
    assert!(reply.text().contains(part), "{what}: {}", reply.text());
}

/// Someone with these capabilities about advisories.
pub(crate) async fn validate(server: &TestServer, org: &str, name: &str, capabilities: &[&str]) -> Actor {
    let capabilities: Vec<String> = capabilities.iter().map(|name| format!("CAP_ADVISORIES_{name}")).collect();
    let capabilities: Vec<&str> = capabilities.iter().map(String::as_str).collect();
    holder(server, org, name, org, &capabilities).await.actor
}

async fn an_advisory_is_created_read_changed_and_marked_as_deleted(server: &TestServer) {
    let org = server.organization("acme").await;
    let operator = server.operator().await;
    let given = about("curl", "stdlib", &["CVE-2026-1", "GHSA-aaaa-bbbb-cccc", "CVE-2026-1"]);
    let created = create(&operator, &org, given.clone()).await;
    let uid = created["id"].as_str().expect("an id").to_owned();
    let public = created["advisoryId"].as_str().expect("a public id");
    assert!(public.starts_with("BWL-") && public.len() == 18, "{public}");
    assert_eq!(created["aliases"], json!(["CVE-2026-1", "GHSA-aaaa-bbbb-cccc"]));
    assert_eq!(created["author"].as_str().expect("an author").len(), 40);

    let get = format!("GET /vulnerabilities/v2/advisories/{uid}");
    let read = ok(&operator, &get, Value::Null).await;
    assert_eq!((&read["uid"], &read["advisoryId"]), (&created["id"], &created["advisoryId"]));
    assert_eq!((&read["componentName"], &read["artifactArchitecture"]), (&json!("stdlib"), &json!("x86_64")));
    assert_eq!((&read["severities"], read.get("deleteTime")), (&json!([]), None));

    let mut changed = about("curl", "other", &["CVE-2026-2"]);
    changed["legacyAdvisoryID"] = json!("OLD-1");
    let put = format!("PUT {ADVISORIES}/{uid}");
    let updated = ok(&operator, &put, changed.clone()).await;
    assert_eq!((&updated["componentName"], &updated["advisoryId"]), (&json!("other"), &created["advisoryId"]));
    assert_eq!((&updated["author"], &updated["createdAt"]), (&created["author"], &created["createdAt"]));
    assert_eq!(ok(&operator, &put, changed.clone()).await, updated, "the same again is no change");
    changed["advisoryId"] = json!("BWL-2222-2222-2222");
    let refusal = rejected(&operator, &put, changed.clone(), 400, "INVALID_ARGUMENT").await;
    assert_eq!(refusal.fields(), ["advisoryId"]);

    ok(&operator, &format!("DELETE {ADVISORIES}/{uid}"), Value::Null).await;
    ok(&operator, &format!("DELETE {ADVISORIES}/{uid}"), Value::Null).await;
    assert!(ok(&operator, &get, Value::Null).await["deleteTime"].is_string());
    barred(&operator, &put, about("curl", "x", &[]), 400, "marked as deleted").await;
    let list = ok(&operator, "GET /vulnerabilities/v2/advisories", Value::Null).await;
    assert_eq!((&list["advisories"], &list["totalCount"]), (&json!([]), &json!("0")));
    for query in [format!("uidp.ids={uid}"), format!("advisoryIds={public}"), "orderBy=delete_time".to_owned()] {
        let list = ok(&operator, &format!("GET /vulnerabilities/v2/advisories?{query}"), Value::Null).await;
        assert_eq!(each(&list["advisories"], "uid"), [&*uid], "{query}");
    }
    for (kind, expected) in [("created", 1), ("updated", 1), ("deleted", 1)] {
        let told =
            format!("SELECT count(*) FROM outbox WHERE event_type = 'dev.bowline.vulnerabilities.advisory.{kind}.v1'");
        assert_eq!(number(server, Box::leak(told.into_boxed_str())).await, expected, "{kind}");
    }
    let audited = "SELECT count(*) FROM audit WHERE kind = 'vulnerabilities.chainguard.dev/Advisory'";
    assert_eq!(number(server, audited).await, 3);
}

async fn a_group_has_one_advisory_about_an_artifact_a_component_and_a_vulnerability(server: &TestServer) {
    let org = server.organization("acme").await;
    let other = server.group(&org, "other").await;
    let operator = server.operator().await;
    let first = create(&operator, &org, about("curl", "stdlib", &["CVE-2026-1", "CVE-2026-2"])).await;
    let post = format!("POST {ADVISORIES}");
    let body = |group: &str, advisory: Value| json!({ "parentId": group, "advisory": advisory });
    let same = about("curl", "stdlib", &["cve-2026-2"]);
    rejected(&operator, &post, body(&org, same.clone()), 409, "ALREADY_EXISTS").await;
    create(&operator, &other, same.clone()).await;
    create(&operator, &org, about("curl", "other", &["CVE-2026-1"])).await;
    let second = create(&operator, &org, about("curl", "stdlib", &["CVE-2026-3"])).await;
    let put = format!("PUT {ADVISORIES}/{}", second["id"].as_str().expect("an id"));
    rejected(&operator, &put, same.clone(), 409, "ALREADY_EXISTS").await;

    let mut taken = about("wget", "stdlib", &[]);
    taken["advisoryId"] = first["advisoryId"].clone();
    rejected(&operator, &post, body(&org, taken.clone()), 409, "ALREADY_EXISTS").await;
    // Another organization does not see what this one has.
    let elsewhere = server.organization("elsewhere").await;
    create(&operator, &elsewhere, taken).await;

    ok(&operator, &format!("DELETE {ADVISORIES}/{}", first["id"].as_str().expect("an id")), Value::Null).await;
    create(&operator, &org, same).await;
}

async fn what_is_wrong_with_an_advisory_changes_nothing(server: &TestServer) {
    let org = server.organization("acme").await;
    let operator = server.operator().await;
    let uid = advisory(&operator, &org, "curl", &["CVE-2026-1"]).await;
    let before = inventory(server).await;
    let post = format!("POST {ADVISORIES}");
    let with = |field: &str, value: Value| {
        let mut advisory = about("wget", "stdlib", &["CVE-2026-1"]);
        advisory[field] = value;
        json!({ "parentId": org, "advisory": advisory })
    };
    let long = "a".repeat(3000);
    for (body, field) in [
        (with("artifactName", json!("")), "advisory.artifactName"),
        (with("artifactType", json!("A B")), "advisory.artifactType"),
        (with("componentLocation", json!(long)), "advisory.componentLocation"),
        (with("aliases", json!(["CVE 1"])), "advisory.aliases[0]"),
        (with("aliases", json!(vec!["CVE-1"; 51])), "advisory.aliases"),
        (with("advisoryId", json!("CGA-abcd-1234-wxyz")), "advisory.advisoryId"),
        (with("events", json!([{ "issue": "x" }])), "advisory.events[0]"),
        (with("events", json!([{ "detection": {} }])), "advisory.events[0].detection"),
        (json!({ "parentId": org }), "advisory"),
        (json!({ "advisory": about("wget", "a", &[]) }), "parentId"),
        (json!({ "parentId": "nowhere", "advisory": about("wget", "a", &[]) }), "parentId"),
    ] {
        let refusal = rejected(&operator, &post, body.clone(), 400, "INVALID_ARGUMENT").await;
        assert_eq!(refusal.fields(), [field], "{body}");
    }
    let nowhere = absent(&org);
    let body = json!({ "parentId": nowhere, "advisory": about("wget", "a", &[]) });
    barred(&operator, &post, body, 404, "does not exist").await;
    barred(&operator, &format!("PUT {ADVISORIES}/{nowhere}"), about("a", "b", &[]), 404, "does not exist").await;
    barred(&operator, &format!("DELETE {ADVISORIES}/{nowhere}"), Value::Null, 404, "does not exist").await;
    let events = format!("POST {ADVISORIES}/{uid}/events");
    for (event, field) in [
        (json!({}), "advisoryEvent"),
        (json!({ "status": 9, "fixNotPlanned": {} }), "advisoryEvent.status"),
        (json!({ "status": "REJECTED", "fixNotPlanned": {} }), "status"),
        (json!({ "fixed": { "note": "x" } }), "advisoryEvent.fixed.fixedVersion"),
        (json!({ "fixNotPlanned": {}, "timestamp": "2999-01-01T00:00:00Z" }), "timestamp"),
        (json!({ "fixNotPlanned": {}, "timestamp": "1969-12-31T23:59:59Z" }), "timestamp"),
        (json!({ "falsePositiveDetermination": { "note": "n" } }), "advisoryEvent.falsePositiveDetermination.type"),
        (json!({ "fixNotPlanned": { "note": "a".repeat(16385) } }), "advisoryEvent.fixNotPlanned.note"),
    ] {
        let refusal = rejected(&operator, &events, json!({ "advisoryEvent": event }), 400, "INVALID_ARGUMENT").await;
        assert_eq!(refusal.fields(), [field], "{event}");
    }
    let reply =
        call(&operator, &events, json!({ "advisoryEvent": { "status": "NO_SUCH", "fixNotPlanned": {} } })).await;
    assert_eq!(reply.status, 400);
    let orphan = format!("POST {ADVISORIES}/{nowhere}/events");
    barred(&operator, &orphan, json!({ "advisoryEvent": { "fixNotPlanned": {} } }), 404, "does not exist").await;
    assert_eq!(inventory(server).await, before);
}

async fn members_cannot_reach_the_advisories_of_other_organizations(server: &TestServer) {
    let (org, others) = (server.organization("acme").await, server.organization("others").await);
    let operator = server.operator().await;
    let uid = advisory(&operator, &others, "curl", &["CVE-2026-1"]).await;
    let added = event(&operator, &uid, json!({ "fixNotPlanned": {} })).await;
    let all = ["CREATE", "LIST", "UPDATE", "DELETE", "APPROVE"];
    let ours = validate(server, &org, "ours", &all).await;
    for (what, body) in [
        (format!("GET /vulnerabilities/v2/advisories/{uid}"), Value::Null),
        (format!("GET {ADVISORIES}/{uid}/events"), Value::Null),
        (format!("PUT {ADVISORIES}/{uid}"), about("curl", "b", &[])),
        (format!("DELETE {ADVISORIES}/{uid}"), Value::Null),
        (format!("POST {ADVISORIES}/{uid}/events"), json!({ "advisoryEvent": { "fixNotPlanned": {} } })),
        (format!("PUT /vulnerabilities/v1/advisory_events/{added}"), json!({ "status": "APPROVED" })),
    ] {
        let there = call(&ours, &what, body.clone()).await;
        assert_eq!(there.status, 403, "{what}: {}", there.text());
        let absent = call(&ours, &what.replace(&uid, &absent(&others)), body).await;
        assert_eq!(absent.status, 403, "{what}: what is there looks like what is not");
    }
    for query in ["", "?aliases=CVE-2026-1", "?artifactName=curl", "?eventTypes=EVENT_TYPE_FILTER_FIX_NOT_PLANNED"] {
        let list = ok(&ours, &format!("GET {ADVISORIES}{query}"), Value::Null).await;
        assert_eq!((&list["items"], &list["totalCount"]), (&json!([]), &json!("0")), "{query}");
    }
    let list = ok(&ours, "GET /vulnerabilities/v2/advisories?query=curl", Value::Null).await;
    assert_eq!(list["advisories"], json!([]));
}

async fn a_group_keeps_its_advisories_and_loses_what_is_marked_as_deleted(server: &TestServer) {
    let org = server.organization("acme").await;
    let group = server.group(&org, "team").await;
    let operator = server.operator().await;
    let uid = advisory(&operator, &group, "curl", &["CVE-2026-1"]).await;
    event(&operator, &uid, json!({ "fixNotPlanned": {} })).await;
    let delete = format!("DELETE /iam/v2/groups/{group}");
    rejected(&operator, &delete, Value::Null, 400, "FAILED_PRECONDITION").await;
    ok(&operator, &format!("DELETE {ADVISORIES}/{uid}"), Value::Null).await;
    ok(&operator, &delete, Value::Null).await;
    for table in ["advisories", "advisory_events", "advisory_aliases", "advisory_words"] {
        let count: &'static str = Box::leak(format!("SELECT count(*) FROM {table}").into_boxed_str());
        assert_eq!(number(server, count).await, 0, "{table}");
    }
}

each_engine!(
    an_advisory_is_created_read_changed_and_marked_as_deleted,
    a_group_has_one_advisory_about_an_artifact_a_component_and_a_vulnerability,
    what_is_wrong_with_an_advisory_changes_nothing,
    members_cannot_reach_the_advisories_of_other_organizations,
    a_group_keeps_its_advisories_and_loses_what_is_marked_as_deleted
);
