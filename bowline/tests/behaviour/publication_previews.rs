//! What the approval of an event would publish, compared with what everyone reads after it.

use bowline_contract::bowline::vulnerabilities::v1::PreviewPublicationRequest;
use bowline_contract::bowline::vulnerabilities::v1::rpc::reviews::PreviewPublication;
use bowline_testkit::{Actor, TestServer, each_engine};
use serde_json::{Value, json};

use crate::advisories::{ADVISORIES, advisory, event, validate};
use crate::deliveries::until;
use crate::support::{absent, call, ok, rejected, same_over_grpc};

async fn preview(actor: &Actor, event: &str) -> Value {
    ok(actor, &format!("GET /advisoryreviews/v1/events/{event}:previewPublication"), Value::Null).await
}

async fn publish(actor: &Actor, group: &str) {
    let what = format!("PATCH /advisorysettings/v1/groups/{group}?updateMask=public");
    ok(actor, &what, json!({ "public": true })).await;
}

async fn review(actor: &Actor, event: &str, status: &str) {
    ok(actor, &format!("PUT /vulnerabilities/v1/advisory_events/{event}"), json!({ "status": status })).await;
}

fn reason(preview: &Value) -> String {
    preview["unchanged"].as_str().unwrap_or_default().replace("UNCHANGED_REASON_", "")
}

async fn a_preview_is_what_everyone_reads_after_the_approval(server: &TestServer) {
    let org = server.organization("acme").await;
    let operator = server.operator().await;
    let uid = advisory(&operator, &org, "curl", &["CVE-2026-1"]).await;
    let fixed = json!({ "fixed": { "fixedVersion": "8.1-r0" }, "issue": "secret", "findings": "e30=" });
    let first = event(&operator, &uid, fixed).await;
    let private = preview(&operator, &first).await;
    assert_eq!((reason(&private).as_str(), &private["approved"]), ("GROUP_NOT_PUBLIC", &Value::Null));
    publish(&operator, &org).await;

    let before = preview(&operator, &first).await;
    assert_eq!((reason(&before).as_str(), &before["document"]), ("UNSPECIFIED", &json!("curl")));
    assert_eq!(before["published"], Value::Null, "nothing of it is approved yet");
    assert!(!before.to_string().contains("secret"), "{before}");
    review(&operator, &first, "APPROVED").await;
    let documents = async || call(&server.anonymous(), "GET /advisory/v2/documents", Value::Null).await.json();
    until("the document", async || documents().await["documents"][0]["advisories"][0] == before["approved"]).await;

    let second = event(&operator, &uid, json!({ "fixNotPlanned": { "note": "end of life" } })).await;
    let next = preview(&operator, &second).await;
    assert_eq!(next["published"], before["approved"]);
    let request = PreviewPublicationRequest { uid: second.clone() };
    same_over_grpc::<PreviewPublication>(server, &operator, request, &next).await;
    assert_eq!(next["approved"]["events"].as_array().map(Vec::len), Some(2));
    review(&operator, &second, "APPROVED").await;
    until("both events", async || documents().await["documents"][0]["advisories"][0] == next["approved"]).await;
    let again = preview(&operator, &second).await;
    assert_eq!((reason(&again).as_str(), &again["published"]), ("APPROVED_ALREADY", &again["approved"]));
}

async fn what_publishes_nothing_says_why(server: &TestServer) {
    let org = server.organization("acme").await;
    let operator = server.operator().await;
    publish(&operator, &org).await;
    let uid = advisory(&operator, &org, "curl", &["CVE-2026-1"]).await;
    let moved = event(&operator, &uid, json!({ "patched": { "patchedVersions": ["1"] } })).await;
    let seen = preview(&operator, &moved).await;
    assert_eq!((reason(&seen).as_str(), &seen["approved"]), ("KIND_NOT_PUBLISHED", &Value::Null));
    let wrong = event(&operator, &uid, json!({ "fixNotPlanned": {} })).await;
    review(&operator, &wrong, "REJECTED").await;
    let seen = preview(&operator, &wrong).await;
    assert_eq!((reason(&seen).as_str(), &seen["approved"]), ("REJECTED", &Value::Null));
    let last = event(&operator, &uid, json!({ "fixNotPlanned": {} })).await;
    ok(&operator, &format!("DELETE {ADVISORIES}/{uid}"), Value::Null).await;
    assert_eq!(reason(&preview(&operator, &last).await), "ADVISORY_DELETED");

    let author = validate(server, &org, "author", &["CREATE"]).await;
    let path = |event: &str| format!("GET /advisoryreviews/v1/events/{event}:previewPublication");
    rejected(&author, &path(&last), Value::Null, 403, "PERMISSION_DENIED").await;
    rejected(&author, &path(&absent(&uid)), Value::Null, 403, "PERMISSION_DENIED").await;
    let reader = validate(server, &org, "reader", &["LIST"]).await;
    preview(&reader, &last).await;
    rejected(&reader, &path(&absent(&uid)), Value::Null, 404, "NOT_FOUND").await;
    rejected(&reader, &path(&uid), Value::Null, 404, "NOT_FOUND").await;
}

each_engine!(a_preview_is_what_everyone_reads_after_the_approval, what_publishes_nothing_says_why);
