//! Whole batches of advisories: what an import brings, and what an export lets out.

use bowline_testkit::{Actor, TestServer, each_engine};
use serde_json::{Value, json};

use crate::advisories::{ADVISORIES, about, create, event, validate};
use crate::support::{absent, each, inventory, number, ok, pages, rejected};

/// An advisory of a package with these events.
fn with(artifact: &str, aliases: &[&str], events: Vec<Value>) -> Value {
    let mut advisory = about(artifact, "stdlib", aliases);
    advisory["events"] = json!(events);
    advisory
}

fn fixed(version: &str) -> Value {
    json!({ "fixed": { "fixedVersion": version } })
}

async fn import(actor: &Actor, group: &str, body: Value) -> Value {
    ok(actor, &format!("POST /advisorytransfers/v1/groups/{group}/import"), body).await["advisories"].clone()
}

/// Everything that an export of the group lets out.
async fn export(actor: &Actor, group: &str, query: &str) -> Vec<Value> {
    let pages = pages(actor, &format!("GET /advisorytransfers/v1/groups/{group}/export?{query}")).await;
    pages.iter().flat_map(|page| page["advisories"].as_array().cloned().unwrap_or_default()).collect()
}

fn outcomes(imported: &Value) -> Vec<&str> {
    each(imported, "outcome").into_iter().map(|name| name.trim_start_matches("IMPORT_OUTCOME_")).collect()
}

async fn an_import_creates_and_extends_and_the_same_again_changes_nothing(server: &TestServer) {
    let org = server.organization("acme").await;
    let author = validate(server, &org, "author", &["CREATE", "LIST", "UPDATE"]).await;
    create(&author, &org, about("curl", "stdlib", &["CVE-2026-1"])).await;
    let body = json!({
        "advisories": [
            with("curl", &["cve-2026-1", "GHSA-2222-2222-2222"], vec![fixed("1-r0")]),
            with("wget", &["CVE-2026-1"], vec![fixed("2-r0"), json!({ "detection": { "manual": {} } })]),
            with("wget", &["CVE-2026-1"], vec![fixed("2-r0")]),
            with("wget", &[], vec![]),
        ],
        "source": "https://example.com/security.json",
        "licence": "CC-BY-4.0",
    });
    let mut dry = body.clone();
    dry["dryRun"] = json!(true);
    let before = inventory(server).await;
    let told = import(&author, &org, dry).await;
    assert_eq!(inventory(server).await, before, "a dry run changes nothing");
    let imported = import(&author, &org, body.clone()).await;
    for told in [&told, &imported] {
        assert_eq!(outcomes(told), ["CHANGED", "CREATED", "UNCHANGED", "REFUSED"]);
        assert_eq!(told[0]["addedAliases"], json!(["GHSA-2222-2222-2222"]));
    }
    assert!(imported[3]["reason"].as_str().expect("a reason").contains("alias"), "{imported}");
    assert_eq!(imported[1]["uid"], imported[2]["uid"]);
    let after = inventory(server).await;
    let again = import(&author, &org, body).await;
    assert_eq!(outcomes(&again), ["UNCHANGED", "UNCHANGED", "UNCHANGED", "REFUSED"]);
    assert_eq!(inventory(server).await, after, "the same again changes nothing");

    let uid = imported[1]["uid"].as_str().expect("a UIDP");
    let events = ok(&author, &format!("GET {ADVISORIES}/{uid}/events"), Value::Null).await;
    assert_eq!(each(&events["items"], "status"), ["PENDING", "PENDING"]);
    for (sql, expected) in [
        ("SELECT count(*) FROM outbox WHERE event_type = 'dev.bowline.advisories.imported.v1'", 1),
        ("SELECT count(*) FROM audit WHERE method LIKE '%ImportAdvisories'", 5),
        ("SELECT count(*) FROM advisory_event_origins WHERE licence = 'CC-BY-4.0'", 3),
    ] {
        assert_eq!(number(server, sql).await, expected, "{sql}");
    }
}

async fn only_approvers_import_as_approved(server: &TestServer) {
    let org = server.organization("acme").await;
    let team = server.group(&org, "team").await;
    let author = validate(server, &org, "author", &["CREATE", "LIST", "UPDATE"]).await;
    let approver = validate(server, &org, "approver", &["CREATE", "LIST", "UPDATE", "APPROVE"]).await;
    let reader = validate(server, &org, "reader", &["LIST"]).await;
    let post = format!("POST /advisorytransfers/v1/groups/{team}/import");
    let body = |status: &str, dry: bool| {
        let advisories = [with("curl", &["CVE-2026-1"], vec![fixed("1-r0")])];
        json!({ "advisories": advisories, "status": status, "dryRun": dry })
    };
    let before = inventory(server).await;
    for dry in [true, false] {
        rejected(&author, &post, body("APPROVED", dry), 403, "PERMISSION_DENIED").await;
        rejected(&reader, &post, body("PENDING", dry), 403, "PERMISSION_DENIED").await;
        rejected(&approver, &post, body("REJECTED", dry), 400, "INVALID_ARGUMENT").await;
    }
    let nowhere = format!("POST /advisorytransfers/v1/groups/{}/import", absent(&org));
    rejected(&approver, &nowhere, body("PENDING", false), 404, "NOT_FOUND").await;
    assert_eq!(inventory(server).await, before);
    import(&approver, &team, body("APPROVED", false)).await;
    let exported = export(&reader, &team, "").await;
    assert_eq!(exported[0]["advisory"]["events"][0]["fixed"]["fixedVersion"], json!("1-r0"));

    // Where another person decides, an import waits for them too.
    let operator = server.operator().await;
    let settings = format!("PATCH /advisorysettings/v1/groups/{org}");
    ok(&operator, &settings, json!({ "secondReviewerRequired": true })).await;
    let refusal = rejected(&approver, &post, body("APPROVED", true), 400, "FAILED_PRECONDITION").await;
    assert!(refusal.message().contains("reviewer"), "{refusal:?}");
}

async fn what_is_approved_gets_no_alias_by_a_pending_import(server: &TestServer) {
    let org = server.organization("acme").await;
    let approver = validate(server, &org, "approver", &["CREATE", "LIST", "UPDATE", "APPROVE"]).await;
    let first = json!({ "advisories": [with("curl", &["CVE-2026-1"], vec![fixed("1-r0")])], "status": "APPROVED" });
    import(&approver, &org, first).await;
    let before = export(&approver, &org, "").await;
    let more = json!({ "advisories": [with("curl", &["CVE-2026-1", "CVE-2026-9"], vec![fixed("9-r0")])] });
    let imported = import(&approver, &org, more).await;
    assert_eq!(imported[0]["withheldAliases"], json!(["CVE-2026-9"]));
    assert_eq!(export(&approver, &org, "").await, before);
}

async fn restricted_content_is_not_exported_unless_requested(server: &TestServer) {
    let org = server.organization("acme").await;
    let approver = validate(server, &org, "approver", &["CREATE", "LIST", "UPDATE", "APPROVE"]).await;
    for (artifact, licence) in [("curl", "CC BY-NC-ND 4.0"), ("wget", "CC-BY-4.0"), ("zlib", "")] {
        let advisories = [with(artifact, &["CVE-2026-1"], vec![fixed("1-r0")])];
        let body = json!({ "advisories": advisories, "status": "APPROVED", "source": "somebody", "licence": licence });
        import(&approver, &org, body).await;
    }
    // A later statement of one's own about the same goes out, what was imported before does not.
    server.clock().advance(std::time::Duration::from_secs(1));
    let own = json!({ "advisories": [with("curl", &["CVE-2026-1"], vec![fixed("2-r0")])], "status": "APPROVED" });
    import(&approver, &org, own).await;
    let versions = |exported: &[Value]| -> Vec<String> {
        let events = exported.iter().flat_map(|one| one["advisory"]["events"].as_array().cloned().unwrap_or_default());
        events.map(|event| event["fixed"]["fixedVersion"].as_str().unwrap_or_default().to_owned()).collect()
    };
    assert_eq!(versions(&export(&approver, &org, "").await), ["2-r0", "1-r0", "1-r0"]);
    let all = export(&approver, &org, "includeRestricted=true").await;
    assert_eq!(versions(&all).len(), 4);
    assert!(all[0]["origins"].to_string().contains("CC BY-NC-ND 4.0"), "{all:?}");
    let path = format!("GET /advisorytransfers/v1/groups/{org}/export");
    assert_eq!(ok(&approver, &path, Value::Null).await["restrictedEvents"], json!(1));

    // Where the newest statement may not be exported, an older one would be out of date.
    server.clock().advance(std::time::Duration::from_secs(1));
    let newer = json!({
        "advisories": [with("wget", &["CVE-2026-1"], vec![fixed("3-r0")])],
        "status": "APPROVED", "source": "somebody", "licence": "CC BY-NC-ND 4.0",
    });
    import(&approver, &org, newer).await;
    assert_eq!(versions(&export(&approver, &org, "").await), ["2-r0", "1-r0"]);
    assert_eq!(ok(&approver, &path, Value::Null).await["restrictedEvents"], json!(3));
}

async fn an_export_comes_by_artifact_and_in_pages(server: &TestServer) {
    let org = server.organization("acme").await;
    let approver = validate(server, &org, "approver", &["CREATE", "LIST", "UPDATE", "APPROVE"]).await;
    let names = ["zlib", "curl", "a b", "curl"];
    let advisories: Vec<Value> = names
        .iter()
        .enumerate()
        .map(|(at, name)| with(name, &[&format!("CVE-2026-{at}")], vec![fixed("1-r0")]))
        .collect();
    import(&approver, &org, json!({ "advisories": advisories, "status": "APPROVED" })).await;
    for query in ["pageSize=1", "pageSize=3", ""] {
        let exported = export(&approver, &org, query).await;
        let names: Vec<&str> = exported.iter().filter_map(|one| one["advisory"]["artifactName"].as_str()).collect();
        assert_eq!(names, ["a b", "curl", "curl", "zlib"], "{query}");
    }
    let path = format!("GET /advisorytransfers/v1/groups/{org}/export?pageToken=nonsense");
    rejected(&approver, &path, Value::Null, 400, "PAGE_TOKEN_INVALID").await;
}

/// Numbers that look random and are the same each time.
struct Draws(u64);

impl Draws {
    fn below(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % most
    }
}

/// Whatever is done to advisories, an export is made of what is approved, and of nothing else.
async fn nothing_pending_or_private_leaves_through_an_export(server: &TestServer) {
    let org = server.organization("acme").await;
    let (ours, theirs) = (server.group(&org, "ours").await, server.group(&org, "theirs").await);
    let approver = validate(server, &org, "approver", &["CREATE", "LIST", "UPDATE", "APPROVE", "DELETE"]).await;
    let mut draws = Draws(7);
    let mut waiting: Vec<(String, String)> = Vec::new();
    let mut approved: Vec<String> = Vec::new();
    for round in 0..120 {
        // Until it is approved, everything that is written has a word that no one else uses.
        let word = format!("word-{round}-");
        let note = json!({
            "truePositiveDetermination": { "note": word }, "findings": "c2VjcmV0LWZpbmRpbmdz", "issue": "secret-issue"
        });
        let alias = format!("CVE-2026-{}", draws.below(4));
        match draws.below(4) {
            0 | 1 => {
                let group = if draws.below(4) == 0 { &theirs } else { &ours };
                let body = json!({ "advisories": [with("curl", &[&alias], vec![note])] });
                let uid = import(&approver, group, body).await[0]["uid"].as_str().expect("a UIDP").to_owned();
                let events = ok(&approver, &format!("GET {ADVISORIES}/{uid}/events"), Value::Null).await;
                let found =
                    events["items"].as_array().expect("a list").iter().find(|one| one.to_string().contains(&word));
                let event = found.expect("the new event")["id"].as_str().expect("a UIDP").to_owned();
                waiting.push((event, word));
            }
            2 if !waiting.is_empty() => {
                let (event, word) = waiting.swap_remove(draws.below(waiting.len() as u64) as usize);
                let state = if draws.below(3) == 0 { "REJECTED" } else { "APPROVED" };
                let put = format!("PUT /vulnerabilities/v1/advisory_events/{event}");
                ok(&approver, &put, json!({ "status": state })).await;
                if state == "APPROVED" && event.starts_with(&ours) {
                    approved.push(word);
                }
            }
            _ => checked(&approver, &ours, &approved).await,
        }
    }
    assert!(approved.len() > 3 && waiting.len() > 3, "{} approved, {} waiting", approved.len(), waiting.len());
    checked(&approver, &ours, &approved).await;
    // A time that reveals a pending event would be exported as well.
    let before = export(&approver, &ours, "includeRestricted=true").await;
    server.clock().advance(std::time::Duration::from_mins(5));
    let approver = validate(server, &org, "later", &["CREATE", "LIST", "UPDATE", "APPROVE", "DELETE"]).await;
    let uid = before[0]["advisory"]["id"].as_str().expect("a UIDP").to_owned();
    event(&approver, &uid, fixed("9-r0")).await;
    assert_eq!(export(&approver, &ours, "includeRestricted=true").await, before);
    ok(&approver, &format!("DELETE {ADVISORIES}/{uid}"), Value::Null).await;
    assert_eq!(export(&approver, &ours, "").await.len(), before.len() - 1, "what is deleted goes no more");
}

/// The export holds every word that is approved in the group, and no other; and nothing that is for reviewers.
async fn checked(actor: &Actor, group: &str, approved: &[String]) {
    let exported = json!(export(actor, group, "includeRestricted=true").await).to_string();
    let words: std::collections::BTreeSet<&str> =
        exported.match_indices("word-").filter_map(|(at, _)| exported[at..].split('"').next()).collect();
    assert_eq!(words, approved.iter().map(String::as_str).collect());
    for secret in ["secret-issue", "c2VjcmV0", "PENDING", "REJECTED"] {
        assert!(!exported.contains(secret), "{secret} in {exported}");
    }
}

async fn a_batch_is_all_or_nothing_and_bounded(server: &TestServer) {
    let org = server.organization("acme").await;
    let author = validate(server, &org, "author", &["CREATE", "LIST"]).await;
    let post = format!("POST /advisorytransfers/v1/groups/{org}/import");
    let before = inventory(server).await;
    let many: Vec<Value> = (0..101).map(|at| with("curl", &[&format!("CVE-2026-{at}")], vec![])).collect();
    let wrong = vec![with("curl", &["CVE-2026-1"], vec![]), with("curl", &["not an id"], vec![])];
    for (advisories, field) in [(many, "advisories"), (wrong, "advisories[1].aliases[0]")] {
        let refusal = rejected(&author, &post, json!({ "advisories": advisories }), 400, "INVALID_ARGUMENT").await;
        assert_eq!(refusal.fields(), [field]);
    }
    let lines = json!({ "advisories": [], "source": "two\nlines" });
    rejected(&author, &post, lines, 400, "INVALID_ARGUMENT").await;
    assert_eq!(inventory(server).await, before);
}

each_engine!(
    an_import_creates_and_extends_and_the_same_again_changes_nothing,
    only_approvers_import_as_approved,
    what_is_approved_gets_no_alias_by_a_pending_import,
    restricted_content_is_not_exported_unless_requested,
    an_export_comes_by_artifact_and_in_pages,
    nothing_pending_or_private_leaves_through_an_export,
    a_batch_is_all_or_nothing_and_bounded,
);
