//! The open findings of a scope, each with its advisory.

use bowline_testkit::{Actor, TestServer, each_engine};
use serde_json::{Value, json};

use crate::advisories::{create, event};
use crate::contents::digest;
use crate::posture::{report, tag};
use crate::support::{absent, each, execute, holder, image, ok, rejected};

const NEEDED: [&str; 4] = ["CAP_REPO_LIST", "CAP_TAG_LIST", "CAP_VULN_REPORT_LIST", "CAP_ADVISORIES_LIST"];

async fn list(actor: &Actor, scope: &str, query: &str) -> Value {
    ok(actor, &format!("GET /posture/v1/scopes/{scope}/findings?{query}"), Value::Null).await
}

/// Vulnerability and package of each finding.
fn named(list: &Value) -> Vec<String> {
    let (ids, packages) = (each(&list["findings"], "vulnerability"), each(&list["findings"], "package"));
    ids.iter().zip(packages).map(|(id, package)| format!("{id} {package}")).collect()
}

/// All findings, page by page.
async fn walked(actor: &Actor, scope: &str, query: &str) -> Vec<String> {
    let (mut all, mut token) = (Vec::new(), String::new());
    loop {
        let page = list(actor, scope, &format!("{query}&page_size=1&page_token={token}")).await;
        all.extend(named(&page));
        page["nextPageToken"].as_str().expect("a token").clone_into(&mut token);
        if token.is_empty() {
            return all;
        }
    }
}

/// An organization with a team, and a repository in the team with two tagged images and one that no tag names.
async fn filled(server: &TestServer) -> [String; 3] {
    let org = server.organization("acme").await;
    let team = server.group(&org, "team").await;
    let web = server.repo(&team, "web").await;
    for character in ['1', '2', '3'] {
        image(server, &web, &digest(character), 10).await;
    }
    for (name, character) in [("latest", '1'), ("v1", '1'), ("old", '2')] {
        tag(server, &web, name, &digest(character)).await;
    }
    report(server, &web, &digest('1'), &[("CVE-0", "Critical", "gone", "fixed")]).await;
    let first = [
        ("CVE-1", "Low", "curl", "unknown"),
        ("CVE-2", "High", "libssl3", "fixed"),
        ("CVE-2", "Low", "stdlib", "not-fixed"),
        ("CVE-3", "Medium", "curl", "wont-fix"),
        ("CVE-3", "Medium", "curl", "wont-fix"),
    ];
    report(server, &web, &digest('1'), &first).await;
    report(server, &web, &digest('2'), &[("CVE-4", "Medium", "curl", "unknown")]).await;
    report(server, &web, &digest('3'), &[("CVE-5", "Critical", "curl", "fixed")]).await;
    [org, team, web]
}

fn all() -> Vec<String> {
    let mut all = vec!["CVE-2 libssl3", "CVE-2 stdlib", "CVE-3 curl", "CVE-1 curl", "CVE-4 curl"];
    // The two packages of one vulnerability are in either order.
    all.sort_unstable();
    all.into_iter().map(String::from).collect()
}

fn sorted(mut findings: Vec<String>) -> Vec<String> {
    findings.sort_unstable();
    findings
}

async fn open_findings_are_listed_filtered_and_paged(server: &TestServer) {
    let [org, team, web] = filled(server).await;
    let operator = server.operator().await;
    for scope in [&org, &team, &web] {
        let shown = named(&list(&operator, scope, "").await);
        assert_eq!(sorted(shown.clone()), all());
        assert_eq!(shown[2..], ["CVE-3 curl", "CVE-1 curl", "CVE-4 curl"], "image after image, the most severe first");
        assert_eq!(walked(&operator, scope, "").await, shown, "page by page");
    }
    let shown = list(&operator, &org, "query=LIBSSL").await;
    let finding = &shown["findings"][0];
    for (member, expected) in [
        ("repoUid", json!(web)),
        ("repoName", json!("web")),
        ("digest", json!(digest('1'))),
        ("tags", json!(["latest", "v1"])),
        ("aliases", json!(["GHSA-CVE-2"])),
        ("severity", json!("HIGH")),
        ("version", json!("1")),
        ("packageType", json!("apk")),
        ("fixState", json!("FIXED")),
        ("status", json!("FINDING_STATUS_NO_ADVISORY")),
        ("advisory", Value::Null),
    ] {
        assert_eq!(finding[member], expected, "{member}");
    }
    for (query, expected) in [
        ("severities=HIGH", vec!["CVE-2 libssl3", "CVE-2 stdlib"]),
        ("severities=LOW", vec!["CVE-1 curl"]),
        ("severities=LOW&severities=MEDIUM", vec!["CVE-1 curl", "CVE-3 curl", "CVE-4 curl"]),
        ("severities=CRITICAL", vec![]),
        ("fix_states=FIXED", vec!["CVE-2 libssl3"]),
        ("fix_states=WONT_FIX&severities=MEDIUM", vec!["CVE-3 curl"]),
        ("query=ghsa-cve-4", vec!["CVE-4 curl"]),
        ("query=%25", vec![]),
    ] {
        assert_eq!(sorted(named(&list(&operator, &org, query).await)), expected, "{query}");
        assert_eq!(sorted(walked(&operator, &org, query).await), expected, "{query}, page by page");
    }
    // As many high vulnerabilities as the posture counts.
    let posture = ok(&operator, &format!("GET /posture/v1/scopes/{org}"), Value::Null).await;
    assert_eq!(
        posture["days"][29]["open"],
        json!({ "critical": 0, "high": 1, "medium": 2, "low": 1, "negligible": 0, "unknown": 0 })
    );
}

/// An advisory about a package, or about a component of one, with an approved event.
async fn advisory(server: &TestServer, group: &str, about: (&str, &str, &str), said: Value) -> String {
    let operator = server.operator().await;
    let (artifact, component, alias) = about;
    let mut body = json!({ "artifactType": "apk", "artifactName": artifact, "aliases": [alias] });
    if !component.is_empty() {
        body["componentName"] = json!(component);
        body["componentType"] = json!("go-module");
    }
    let uid = create(&operator, group, body).await["id"].as_str().expect("an id").to_owned();
    if !said.is_null() {
        let added = event(&operator, &uid, said).await;
        let review = json!({ "reviews": [{ "uid": added, "status": "APPROVED" }] });
        ok(&operator, &format!("POST /advisoryreviews/v1/groups/{group}:batchReviewEvents"), review).await;
    }
    uid
}

fn status(list: &Value, finding: &str) -> Value {
    let at = named(list).iter().position(|one| one == finding);
    list["findings"][at.unwrap_or_else(|| panic!("no {finding}: {list}"))].clone()
}

async fn findings_have_the_status_of_their_advisories(server: &TestServer) {
    let [org, team, _] = filled(server).await;
    let operator = server.operator().await;
    advisory(server, &org, ("libssl3-src", "", "ghsa-cve-2"), json!({ "fixed": { "fixedVersion": "3.1" } })).await;
    let of_team = advisory(server, &team, ("curl", "", "CVE-3"), Value::Null).await;
    advisory(server, &org, ("curl", "", "CVE-3"), json!({ "fixNotPlanned": {} })).await;
    advisory(
        server,
        &org,
        ("go", "stdlib", "CVE-2"),
        json!({ "falsePositiveDetermination": { "type": "VULNERABLE_CODE_NOT_IN_EXECUTION_PATH" } }),
    )
    .await;
    advisory(server, &org, ("wget", "", "CVE-1"), json!({ "fixNotPlanned": {} })).await;
    let shown = list(&operator, &org, "").await;
    for (finding, expected, by, more) in [
        ("CVE-2 libssl3", "FIXED", "ADVISORY_MATCH_PACKAGE", 0),
        ("CVE-2 stdlib", "NOT_AFFECTED", "ADVISORY_MATCH_COMPONENT", 0),
        ("CVE-3 curl", "UNDER_REVIEW", "ADVISORY_MATCH_PACKAGE", 1),
    ] {
        let finding = status(&shown, finding);
        assert_eq!(finding["status"], json!(format!("FINDING_STATUS_{expected}")), "{finding}");
        assert_eq!(
            (&finding["advisory"]["match"], &finding["moreAdvisories"]),
            (&json!(by), &json!(more)),
            "{finding}"
        );
    }
    assert_eq!(status(&shown, "CVE-3 curl")["advisory"]["uid"], json!(of_team), "the nearest group decides");
    assert_eq!(status(&shown, "CVE-1 curl")["status"], json!("FINDING_STATUS_NO_ADVISORY"), "of another package");
    for (query, expected) in [
        ("statuses=FINDING_STATUS_NO_ADVISORY", vec!["CVE-1 curl", "CVE-4 curl"]),
        ("statuses=FINDING_STATUS_FIXED&statuses=FINDING_STATUS_NOT_AFFECTED", vec!["CVE-2 libssl3", "CVE-2 stdlib"]),
        ("statuses=FINDING_STATUS_AFFECTED", vec![]),
        ("statuses=FINDING_STATUS_NO_ADVISORY&severities=LOW", vec!["CVE-1 curl"]),
    ] {
        assert_eq!(sorted(named(&list(&operator, &org, query).await)), expected, "{query}");
        assert_eq!(sorted(walked(&operator, &org, query).await), expected, "{query}, page by page");
    }
}

async fn advisories_that_the_caller_may_not_list_are_as_if_they_were_not(server: &TestServer) {
    let [org, team, _] = filled(server).await;
    let other = server.organization("other").await;
    advisory(server, &org, ("curl", "", "CVE-1"), json!({ "fixNotPlanned": {} })).await;
    let vendor = advisory(server, &other, ("curl", "", "CVE-4"), json!({ "fixNotPlanned": {} })).await;
    advisory(server, &other, ("curl", "", "CVE-3"), Value::Null).await;
    let reader = holder(server, &org, "reader", &team, &NEEDED).await.actor;
    let hidden = list(&reader, &team, "").await;
    let none = |list: &Value, finding: &str| {
        assert_eq!(status(list, finding)["status"], json!("FINDING_STATUS_NO_ADVISORY"), "{finding}");
    };
    none(&hidden, "CVE-1 curl");
    none(&hidden, "CVE-4 curl");
    // Without the advisories, the response has the same bytes.
    execute(server, "UPDATE advisories SET deleted_at = 1 WHERE org <> $1", &["none"]).await;
    assert_eq!(list(&reader, &team, "").await, hidden);
    execute(server, "UPDATE advisories SET deleted_at = NULL WHERE org <> $1", &["none"]).await;
    // What a public group says in approved events is shown to everyone, and nothing else of it; it decides nothing.
    let operator = server.operator().await;
    ok(&operator, &format!("PATCH /advisorysettings/v1/groups/{other}?updateMask=public"), json!({ "public": true }))
        .await;
    let shown = list(&reader, &team, "").await;
    let finding = status(&shown, "CVE-4 curl");
    assert_eq!(
        (&finding["advisory"]["uid"], &finding["advisory"]["latestEventType"]),
        (&json!(""), &json!("EVENT_TYPE_FILTER_FIX_NOT_PLANNED"))
    );
    none(&shown, "CVE-4 curl");
    let of_operator = status(&list(&operator, &team, "").await, "CVE-4 curl");
    assert_eq!(of_operator["advisory"]["uid"], json!(vendor));
    assert_eq!(of_operator["advisory"]["advisoryId"], finding["advisory"]["advisoryId"]);
    none(&shown, "CVE-1 curl");
    none(&shown, "CVE-3 curl");
}

/// More approved advisories of a public group than are read, and pending ones, about the vulnerability of another.
async fn what_another_group_publishes_neither_fails_nor_decides_a_list(server: &TestServer) {
    let [org, team, _] = filled(server).await;
    let other = server.organization("other").await;
    let operator = server.operator().await;
    ok(&operator, &format!("PATCH /advisorysettings/v1/groups/{other}?updateMask=public"), json!({ "public": true }))
        .await;
    for (n, kind) in ["0", "2"].into_iter().enumerate() {
        flood(server, &format!("{other}/{n:07x}"), kind).await;
    }
    let own = advisory(server, &org, ("curl", "", "CVE-4"), json!({ "fixNotPlanned": {} })).await;
    advisory(server, &org, ("curl", "", "CVE-1"), json!({ "fixNotPlanned": {} })).await;
    let reader = holder(server, &org, "reader", &team, &NEEDED).await.actor;
    for (actor, expected) in [(&operator, "FINDING_STATUS_AFFECTED"), (&reader, "FINDING_STATUS_NO_ADVISORY")] {
        let shown = list(actor, &team, "").await;
        let finding = status(&shown, "CVE-4 curl");
        assert_eq!(finding["status"], json!(expected));
        assert_eq!(status(&shown, "CVE-1 curl")["status"], json!(expected), "others are read as well");
        assert_eq!(finding["moreAdvisories"], json!(if expected.ends_with("AFFECTED") { 1_000 } else { 999 }));
    }
    let shown = list(&operator, &team, "").await;
    assert_eq!(status(&shown, "CVE-4 curl")["advisory"]["uid"], json!(own));
    // An approved advisory of an own public group decides for those who may not list advisories there, too.
    ok(&operator, &format!("PATCH /advisorysettings/v1/groups/{org}?updateMask=public"), json!({ "public": true }))
        .await;
    let finding = status(&list(&reader, &team, "").await, "CVE-4 curl").clone();
    assert_eq!((&finding["status"], &finding["advisory"]["uid"]), (&json!("FINDING_STATUS_AFFECTED"), &json!("")));
}

/// Stores 11,000 advisories about CVE-4 in curl, with UIDPs that begin with this, and this latest determination.
async fn flood(server: &TestServer, prefix: &str, kind: &str) {
    let many = "WITH RECURSIVE many (n) AS (SELECT 100000000 UNION ALL SELECT n + 1 FROM many WHERE n < 100010999) ";
    let advisories = format!(
        "INSERT INTO advisories (uid, parent, org, advisory_id, legacy_id, artifact_name, artifact_type,
           artifact_architecture, component_name, component_location, component_type, aliases, first_alias, author,
           latest_event_type, latest_judgement_type, latest_event_at, event_count, event_bytes, created_at, updated_at)
         {many} SELECT $1 || n, substr($1, 1, 40), substr($1, 1, 40), $1 || n, '', 'curl', 'apk', '', '', '', '', '[]',
           '', 'bot', {kind}, {kind}, 0, 0, 0, 0, 0 FROM many"
    );
    let aliases = format!("INSERT INTO advisory_aliases (alias, advisory) {many} SELECT 'CVE-4', $1 || n FROM many");
    execute(server, advisories.leak(), &[prefix]).await;
    execute(server, aliases.leak(), &[prefix]).await;
}

async fn lists_of_findings_that_mean_nothing_are_refused(server: &TestServer) {
    let [org, team, web] = filled(server).await;
    let operator = server.operator().await;
    let what = |scope: &str, query: &str| format!("GET /posture/v1/scopes/{scope}/findings?{query}");
    for (query, field) in [("page_size=-1", "pageSize"), ("query=%00", "query"), ("severities=AWFUL", "severities")] {
        let refusal = rejected(&operator, &what(&org, query), Value::Null, 400, "INVALID_ARGUMENT").await;
        assert_eq!(refusal.fields(), [field], "{query}");
    }
    let first = list(&operator, &org, "page_size=1").await;
    let token = first["nextPageToken"].as_str().expect("a token");
    let of_another = what(&org, &format!("page_size=1&severities=LOW&page_token={token}"));
    rejected(&operator, &of_another, Value::Null, 400, "PAGE_TOKEN_INVALID").await;
    rejected(&operator, &what(&absent(&org), ""), Value::Null, 404, "NOT_FOUND").await;
    let reader = holder(server, &org, "reader", &team, &NEEDED).await.actor;
    assert_eq!(sorted(named(&list(&reader, &web, "").await)), all());
    rejected(&reader, &what(&org, ""), Value::Null, 403, "PERMISSION_DENIED").await;
    let less = holder(server, &org, "less", &team, &NEEDED[..3]).await.actor;
    rejected(&less, &what(&team, ""), Value::Null, 403, "PERMISSION_DENIED").await;
}

each_engine!(
    open_findings_are_listed_filtered_and_paged,
    findings_have_the_status_of_their_advisories,
    advisories_that_the_caller_may_not_list_are_as_if_they_were_not,
    what_another_group_publishes_neither_fails_nor_decides_a_list,
    lists_of_findings_that_mean_nothing_are_refused,
);
