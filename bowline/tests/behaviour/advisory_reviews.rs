//! The review of events: who decides, and what is the state of an advisory then.

use bowline_testkit::{TestServer, each_engine};
use serde_json::{Value, json};

use crate::advisories::{ADVISORIES, advisory, barred, event, validate};
use crate::support::{each, holder, inventory, number, ok, rejected, role};

const EVENTS: &str = "PUT /vulnerabilities/v1/advisory_events";

async fn an_event_goes_back_and_forth_until_it_is_approved_or_rejected_for_good(server: &TestServer) {
    let org = server.organization("acme").await;
    let author = validate(server, &org, "author", &["CREATE", "LIST", "UPDATE"]).await;
    let reviewer = validate(server, &org, "reviewer", &["LIST", "UPDATE", "APPROVE"]).await;
    let uid = advisory(&author, &org, "curl", &["CVE-2026-1"]).await;
    for last in ["APPROVED", "REJECTED"] {
        let pending = event(&author, &uid, json!({ "fixed": { "fixedVersion": "1.2-r0" } })).await;
        let put = format!("{EVENTS}/{pending}");
        let listed = ok(&author, &format!("GET {ADVISORIES}/{pending}/events"), Value::Null).await;
        assert_eq!(each(&listed["items"], "status"), ["PENDING"]);
        assert_eq!(each(&listed["items"], "reviewer"), [""]);
        for state in ["REQUEST_CHANGES", "PENDING", "REQUEST_CHANGES", "PENDING"] {
            let moved = ok(&reviewer, &put, json!({ "status": state })).await;
            assert_eq!((&moved["status"], &moved["fixed"]["fixedVersion"]), (&json!(state), &json!("1.2-r0")));
        }
        barred(&author, &put, json!({ "status": last }), 403, "advisories.approve").await;
        let decided = ok(&reviewer, &put, json!({ "status": last, "reviewer": "somebody else" })).await;
        assert_eq!(decided["status"], json!(last));
        assert_ne!(decided["reviewer"], decided["author"]);
        assert_ne!(decided["reviewer"], json!("somebody else"));
        let before = inventory(server).await;
        for change in [
            json!({ "status": "PENDING" }),
            json!({ "status": last }),
            json!({ "issue": "https://example.com" }),
            json!({ "fixNotPlanned": {} }),
        ] {
            barred(&reviewer, &put, change, 400, "approved or rejected").await;
        }
        assert_eq!(inventory(server).await, before);
    }
    let audited = "SELECT count(*) FROM audit WHERE kind = 'vulnerabilities.chainguard.dev/AdvisoryEvent'";
    assert_eq!(number(server, audited).await, 12);
    let told = "SELECT count(*) FROM outbox WHERE event_type = 'dev.bowline.vulnerabilities.advisory_event.updated.v1'";
    assert_eq!(number(server, told).await, 10);
}

async fn the_last_caller_who_changes_an_event_is_its_author(server: &TestServer) {
    let org = server.organization("acme").await;
    let one = validate(server, &org, "one", &["CREATE", "LIST", "UPDATE"]).await;
    let two = validate(server, &org, "two", &["LIST", "UPDATE"]).await;
    let uid = advisory(&one, &org, "curl", &["CVE-2026-1"]).await;
    let added = event(&one, &uid, json!({ "fixNotPlanned": { "note": "old" }, "author": "somebody" })).await;
    let read = async || ok(&one, &format!("GET {ADVISORIES}/{added}/events"), Value::Null).await["items"][0].clone();
    let before = read().await;
    assert_ne!(before["author"], json!("somebody"));
    let put = format!("{EVENTS}/{added}");
    let same = ok(&two, &put, before.clone()).await;
    assert_eq!(same["author"], before["author"], "the same words are no other's");
    let changed = ok(&two, &put, json!({ "fixNotPlanned": { "note": "new" }, "issue": "I-1" })).await;
    assert_ne!(changed["author"], before["author"]);
    assert_eq!((&changed["fixNotPlanned"]["note"], &changed["issue"]), (&json!("new"), &json!("I-1")));
}

async fn where_a_second_reviewer_is_required_authors_cannot_review_their_own_events(server: &TestServer) {
    let org = server.organization("acme").await;
    let team = server.group(&org, "team").await;
    let all = ["CREATE", "LIST", "UPDATE", "APPROVE"];
    let (one, two) = (validate(server, &org, "one", &all).await, validate(server, &org, "two", &all).await);
    let uid = advisory(&one, &team, "curl", &["CVE-2026-1"]).await;
    // Without the setting one's own approval counts, also from the start.
    let approved = json!({ "fixNotPlanned": {}, "status": "APPROVED" });
    let own = event(&one, &uid, approved.clone()).await;
    let pending = event(&one, &uid, json!({ "fixed": { "fixedVersion": "2" } })).await;
    let settings = format!("PATCH /advisorysettings/v1/groups/{org}");
    ok(&server.operator().await, &settings, json!({ "secondReviewerRequired": true })).await;

    let put = format!("{EVENTS}/{pending}");
    for state in ["APPROVED", "REJECTED"] {
        barred(&one, &put, json!({ "status": state }), 400, "other than their author").await;
    }
    let add = format!("POST {ADVISORIES}/{uid}/events");
    barred(&one, &add, json!({ "advisoryEvent": approved }), 400, "other than their author").await;
    // Neither by changing it on the way.
    let rewritten = json!({ "fixed": { "fixedVersion": "3" }, "status": "APPROVED" });
    barred(&two, &put, rewritten, 400, "other than their author").await;
    ok(&one, &put, json!({ "status": "REQUEST_CHANGES" })).await;
    ok(&two, &put, json!({ "status": "APPROVED" })).await;

    let read = ok(&one, &format!("GET {ADVISORIES}/{own}/events"), Value::Null).await;
    assert_eq!(read["items"][0]["reviewer"], read["items"][0]["author"]);
}

async fn the_state_of_an_advisory_is_its_latest_approved_event(server: &TestServer) {
    let org = server.organization("acme").await;
    let operator = server.operator().await;
    let uid = advisory(&operator, &org, "curl", &["CVE-2026-1"]).await;
    let at = |second: u32| format!("2020-01-01T00:00:{second:02}Z");
    let states = async || {
        let mut found = Vec::new();
        for kind in ["DETECTION", "FIXED", "FIX_NOT_PLANNED", "COMPONENT_LOCATION_CHANGED"] {
            let kind = format!("EVENT_TYPE_FILTER_{kind}");
            let first = ok(&operator, &format!("GET {ADVISORIES}?latestEventType={kind}"), Value::Null).await;
            let count1 = first["items"].as_array().expect("a list").len();
            if kind.ends_with("CHANGED") {
                found.push((count1, 0));
                continue;
            }
            let path = format!("GET /vulnerabilities/v2/advisories?latestEventType={kind}");
            let second = ok(&operator, &path, Value::Null).await;
            found.push((count1, second["advisories"].as_array().expect("a list").len()));
        }
        found
    };
    event(&operator, &uid, json!({ "timestamp": at(9), "fixNotPlanned": {} })).await;
    assert_eq!(states().await, [(0, 0); 4], "nothing is approved");
    let detection = json!({ "timestamp": at(1), "detection": { "manual": {} }, "status": "APPROVED" });
    event(&operator, &uid, detection).await;
    assert_eq!(states().await, [(1, 1), (0, 0), (0, 0), (0, 0)]);
    let fixed = event(&operator, &uid, json!({ "timestamp": at(5), "fixed": { "fixedVersion": "1" } })).await;
    assert_eq!(states().await, [(1, 1), (0, 0), (0, 0), (0, 0)]);
    ok(&operator, &format!("{EVENTS}/{fixed}"), json!({ "status": "APPROVED" })).await;
    assert_eq!(states().await, [(0, 0), (1, 1), (0, 0), (0, 0)]);
    let earlier = json!({ "timestamp": at(3), "fixNotPlanned": {}, "status": "APPROVED" });
    event(&operator, &uid, earlier).await;
    assert_eq!(states().await, [(0, 0), (1, 1), (0, 0), (0, 0)], "what took place before does not count");
    let moved =
        json!({ "timestamp": at(7), "componentLocationChanged": { "newLocation": "/b" }, "status": "APPROVED" });
    event(&operator, &uid, moved).await;
    assert_eq!(states().await, [(0, 0), (0, 1), (0, 0), (1, 0)], "a moved component judges nothing");

    let first = ok(&operator, &format!("GET {ADVISORIES}/{uid}/events"), Value::Null).await;
    assert_eq!(first["items"].as_array().expect("a list").len(), 5);
    let second = ok(&operator, &format!("GET /vulnerabilities/v2/advisories/{uid}"), Value::Null).await;
    let events = second["events"].as_array().expect("a list");
    assert_eq!(events.len(), 4, "the second version has no words for a moved component");
    assert!(events.iter().all(|event| event["uid"].is_string() && event["reviewState"].is_string()));
}

async fn settings_are_off_until_an_authorized_caller_sets_them(server: &TestServer) {
    let org = server.organization("acme").await;
    let settings = format!("/advisorysettings/v1/groups/{org}");
    let approver = validate(server, &org, "approver", &["LIST", "APPROVE"]).await;
    let off = ok(&approver, &format!("GET {settings}"), Value::Null).await;
    assert_eq!((&off["public"], &off["secondReviewerRequired"]), (&json!(false), &json!(false)));
    let patch = format!("PATCH {settings}");
    rejected(&approver, &patch, json!({ "public": true }), 403, "PERMISSION_DENIED").await;
    let capabilities = ["CAP_ADVISORIES_APPROVE", "CAP_IAM_GROUPS_UPDATE"];
    let keeper = holder(server, &org, "keeper", &org, &capabilities).await;
    // Anonymous callers would read what the keeper may not.
    rejected(&keeper.actor, &patch, json!({ "public": true }), 403, "PERMISSION_DENIED").await;
    let reader = role(server, &org, "reader", &["CAP_ADVISORIES_LIST"]).await;
    server.bind(&keeper.uid, &reader, &org).await;
    let keeper = keeper.actor;
    let on = ok(&keeper, &patch, json!({ "public": true })).await;
    assert_eq!((&on["public"], &on["secondReviewerRequired"]), (&json!(true), &json!(false)));
    ok(&keeper, &format!("{patch}?updateMask=secondReviewerRequired"), json!({ "secondReviewerRequired": true })).await;
    let read = ok(&approver, &format!("GET {settings}"), Value::Null).await;
    assert_eq!((&read["public"], &read["secondReviewerRequired"]), (&json!(true), &json!(true)));
    let told = "SELECT count(*) FROM outbox WHERE event_type = 'dev.bowline.vulnerabilities.settings.updated.v1'";
    assert_eq!(number(server, told).await, 2);
    let nowhere = crate::support::absent(&org);
    let what = format!("PATCH /advisorysettings/v1/groups/{nowhere}");
    rejected(&keeper, &what, json!({ "public": true }), 404, "NOT_FOUND").await;
}

async fn what_was_approved_comes_to_be_about_nothing_else_without_an_approver(server: &TestServer) {
    let org = server.organization("acme").await;
    let author = validate(server, &org, "author", &["CREATE", "LIST", "UPDATE"]).await;
    let approver = validate(server, &org, "approver", &["LIST", "UPDATE", "APPROVE"]).await;
    let uid = advisory(&author, &org, "curl", &["CVE-2026-1"]).await;
    let put = format!("PUT {ADVISORIES}/{uid}");
    let about =
        |package: &str, alias: &str| json!({ "artifactType": "apk", "artifactName": package, "aliases": [alias] });
    ok(&author, &put, about("curl", "CVE-2026-2")).await;
    let added = event(&author, &uid, json!({ "fixed": { "fixedVersion": "1.2-r0" } })).await;
    ok(&author, &put, about("curl", "CVE-2026-3")).await;
    ok(&approver, &format!("{EVENTS}/{added}"), json!({ "status": "APPROVED" })).await;
    let before = inventory(server).await;
    for other in [
        about("curl", "CVE-2026-4"),
        about("wget", "CVE-2026-3"),
        json!({ "artifactType": "apk", "artifactName": "curl" }),
    ] {
        barred(&author, &put, other, 403, "advisories.approve").await;
    }
    assert_eq!(inventory(server).await, before);
    ok(&author, &put, about("curl", "cve-2026-3")).await;
    ok(&approver, &put, about("wget", "CVE-2026-4")).await;
}

each_engine!(
    an_event_goes_back_and_forth_until_it_is_approved_or_rejected_for_good,
    the_last_caller_who_changes_an_event_is_its_author,
    where_a_second_reviewer_is_required_authors_cannot_review_their_own_events,
    the_state_of_an_advisory_is_its_latest_approved_event,
    settings_are_off_until_an_authorized_caller_sets_them,
    what_was_approved_comes_to_be_about_nothing_else_without_an_approver
);
