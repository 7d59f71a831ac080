//! Reviews of many events at once: all, or none.

use bowline_testkit::{TestServer, each_engine};
use serde_json::{Value, json};

use crate::advisories::{ADVISORIES, advisory, event, validate};
use crate::support::{absent, each, inventory, newest_event, number, ok, rejected};

fn reviews(events: &[&String], status: &str) -> Value {
    events.iter().map(|uid| json!({ "uid": uid, "status": status })).collect()
}

async fn a_batch_reviews_all_events_or_none(server: &TestServer) {
    let org = server.organization("acme").await;
    let author = validate(server, &org, "author", &["CREATE", "LIST", "UPDATE"]).await;
    let reviewer = validate(server, &org, "reviewer", &["LIST", "UPDATE", "APPROVE"]).await;
    let uid = advisory(&author, &org, "curl", &["CVE-2026-1"]).await;
    let mut events = Vec::new();
    for n in 0..3 {
        events.push(event(&author, &uid, json!({ "fixNotPlanned": { "note": format!("{n}") } })).await);
    }
    let batch = format!("POST /advisoryreviews/v1/groups/{org}:batchReviewEvents");
    let body = |of: &[&String], status| json!({ "reviews": reviews(of, status) });
    let [a, b, c] = [&events[0], &events[1], &events[2]];
    let before = inventory(server).await;
    // The last one is of no use, so none is reviewed.
    let nowhere = absent(&uid);
    rejected(&reviewer, &batch, body(&[a, b, &nowhere], "APPROVED"), 404, "NOT_FOUND").await;
    rejected(&author, &batch, body(&[a, b], "APPROVED"), 403, "PERMISSION_DENIED").await;
    let many: Vec<&String> = vec![a; 51];
    for (body, field) in [
        (json!({}), "reviews"),
        (body(&[a, a], "APPROVED"), "reviews[1].uid"),
        (body(&[&org], "APPROVED"), "reviews[0].uid"),
        (json!({ "reviews": [{ "uid": a }] }), "reviews[0].status"),
        (body(&many, "APPROVED"), "reviews"),
    ] {
        let refusal = rejected(&reviewer, &batch, body.clone(), 400, "INVALID_ARGUMENT").await;
        assert_eq!(refusal.fields()[0], field, "{body}");
    }
    assert_eq!(inventory(server).await, before);

    let reviewed = ok(&reviewer, &batch, body(&[b, a], "APPROVED")).await;
    assert_eq!(each(&reviewed["events"], "id"), [b, a]);
    assert_eq!(each(&reviewed["events"], "status"), ["APPROVED"; 2]);
    let [kind, subject, group, ..] = newest_event(server).await;
    assert_eq!(kind, "dev.bowline.vulnerabilities.advisory_event.reviewed.batch.v1");
    assert_eq!((&subject, &group), (&org, &org));
    let audited = "SELECT count(*) FROM audit WHERE method = 'bowline.vulnerabilities.v1.Reviews.BatchReviewEvents'";
    assert_eq!(number(server, audited).await, 2);
    rejected(&reviewer, &batch, body(&[c, a], "REJECTED"), 400, "FAILED_PRECONDITION").await;
    let listed = ok(&author, &format!("GET {ADVISORIES}/{c}/events"), Value::Null).await;
    assert_eq!(each(&listed["items"], "status"), ["PENDING"], "none of the batch took effect");
}

async fn authors_cannot_review_their_own_events_in_a_batch_where_a_second_reviewer_is_required(server: &TestServer) {
    let org = server.organization("acme").await;
    let all = ["CREATE", "LIST", "UPDATE", "APPROVE"];
    let (one, two) = (validate(server, &org, "one", &all).await, validate(server, &org, "two", &all).await);
    let settings = format!("PATCH /advisorysettings/v1/groups/{org}");
    ok(&server.operator().await, &settings, json!({ "secondReviewerRequired": true })).await;
    let uid = advisory(&one, &org, "curl", &["CVE-2026-1"]).await;
    let own = event(&one, &uid, json!({ "fixNotPlanned": {} })).await;
    let others = event(&two, &uid, json!({ "fixNotPlanned": {} })).await;
    let batch = format!("POST /advisoryreviews/v1/groups/{org}:batchReviewEvents");
    let body = json!({ "reviews": reviews(&[&others, &own], "APPROVED") });
    let refusal = rejected(&one, &batch, body.clone(), 400, "FAILED_PRECONDITION").await;
    assert!(refusal.message().contains("other than their author"), "{refusal:?}");
    let listed = ok(&one, &format!("GET {ADVISORIES}/{others}/events"), Value::Null).await;
    assert_eq!(each(&listed["items"], "status"), ["PENDING"]);
    ok(&one, &batch, json!({ "reviews": reviews(&[&others], "APPROVED") })).await;
    ok(&two, &batch, json!({ "reviews": reviews(&[&own], "APPROVED") })).await;
}

each_engine!(
    a_batch_reviews_all_events_or_none,
    authors_cannot_review_their_own_events_in_a_batch_where_a_second_reviewer_is_required,
);
