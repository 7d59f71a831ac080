//! The vulnerabilities of all images of a scope, in numbers.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bowline_testkit::{Actor, TestServer, each_engine};
use serde_json::{Value, json};

use crate::contents::digest;
use crate::support::{absent, execute, holder, image, number, ok, rejected};

pub(crate) const DAY: Duration = Duration::from_secs(24 * 3600);

/// Stores a report of Grype: ids, severities, packages, and the state of the fix.
pub(crate) async fn report(server: &TestServer, repo: &str, digest: &str, findings: &[(&str, &str, &str, &str)]) {
    let matches: Vec<Value> = findings
        .iter()
        .map(|(id, severity, package, state)| {
            json!({
                "vulnerability": { "id": id, "severity": severity, "fix": { "versions": [], "state": state } },
                "relatedVulnerabilities": [{ "id": format!("GHSA-{id}") }],
                "artifact": { "name": package, "version": "1", "type": "apk",
                              "purl": format!("pkg:apk/wolfi/{package}@1?origin={package}-src") }
            })
        })
        .collect();
    let report = STANDARD.encode(json!({ "matches": matches }).to_string());
    let body = json!({ "digest": digest, "scanner": "SCANNER_NAME_GRYPE", "report": report });
    ok(&server.operator().await, &format!("POST /scans/v1/repos/{repo}/reports"), body).await;
}

pub(crate) async fn tag(server: &TestServer, repo: &str, name: &str, digest: &str) {
    let body = json!({ "name": name, "digest": digest });
    ok(&server.operator().await, &format!("POST /registry/v2/tags/{repo}"), body).await;
}

async fn posture(actor: &Actor, scope: &str, query: &str) -> Value {
    ok(actor, &format!("GET /posture/v1/scopes/{scope}?{query}"), Value::Null).await
}

const SEVERITIES: [&str; 6] = ["critical", "high", "medium", "low", "negligible", "unknown"];

/// Counts by severity, from the most severe on.
fn counts(of: &Value) -> Vec<i64> {
    SEVERITIES.iter().map(|severity| of[*severity].as_i64().unwrap_or_else(|| panic!("no {severity}: {of}"))).collect()
}

fn open(shown: &Value) -> Vec<Vec<i64>> {
    shown["days"].as_array().expect("days").iter().map(|day| counts(&day["open"])).collect()
}

fn sum<'a>(all: impl Iterator<Item = &'a Vec<i64>>) -> Vec<i64> {
    all.fold(vec![0; SEVERITIES.len()], |sum, one| sum.iter().zip(one).map(|(sum, one)| sum + one).collect())
}

/// A repository in a team and one beside it. On the first day `latest` of the team's is at the image 1, on the third at 2;
/// `old` stays at 1 until the fourth day, which is today.
async fn filled(server: &TestServer) -> [String; 4] {
    let org = server.organization("acme").await;
    let team = server.group(&org, "team").await;
    let (web, api) = (server.repo(&team, "web").await, server.repo(&org, "api").await);
    for (repo, character) in [(&web, '1'), (&web, '2'), (&api, '1')] {
        image(server, repo, &digest(character), 10).await;
    }
    let (one, two) = (digest('1'), digest('2'));
    tag(server, &web, "latest", &one).await;
    tag(server, &web, "old", &one).await;
    tag(server, &api, "latest", &one).await;
    let first = [("CVE-1", "Critical", "a", "fixed"), ("CVE-1", "Low", "b", "fixed"), ("CVE-2", "Low", "a", "unknown")];
    report(server, &web, &one, &first).await;
    report(server, &api, &one, &[("CVE-1", "High", "a", "fixed"), ("CVE-9", "Negligible", "a", "unknown")]).await;
    server.clock().advance(DAY * 2);
    report(server, &web, &two, &[("CVE-2", "Low", "a", "unknown"), ("CVE-3", "Medium", "a", "unknown")]).await;
    tag(server, &web, "latest", &two).await;
    server.clock().advance(DAY);
    let old = ok(&server.operator().await, "GET /registry/v1/tags?name=old", Value::Null).await;
    let old = old["items"][0]["id"].as_str().expect("a tag").to_owned();
    ok(&server.operator().await, &format!("DELETE /registry/v2/tags/{old}"), Value::Null).await;
    [org, team, web, api]
}

/// The counts of a tag by day, as the wire contract has them.
async fn counted(actor: &Actor, repo: &str, tag: &str, from: &str) -> Vec<(String, Vec<i64>)> {
    let what = format!("GET /registry/v1/vuln_reports/counts?repo={repo}&tag={tag}&from={from}");
    let list = ok(actor, &what, Value::Null).await;
    let of = |item: &Value| {
        let count = |severity: &&str| {
            let all = item["vulnCounts"].as_array().expect("counts");
            let found = all.iter().find(|one| one["severity"] == severity.to_uppercase().as_str());
            found.map_or(0, |one| one["count"].as_i64().expect("a count"))
        };
        (item["date"].as_str().expect("a date").to_owned(), SEVERITIES.iter().map(count).collect())
    };
    list["items"].as_array().expect("a list").iter().map(of).collect()
}

async fn findings_are_counted_by_severity_and_day_as_in_count_reports(server: &TestServer) {
    let [org, team, web, api] = filled(server).await;
    let operator = server.operator().await;
    let shown = posture(&operator, &org, "").await;
    assert_eq!(open(&shown).len(), 30);
    let days = &open(&shown)[26..];
    let (first, third, last) = (vec![1, 1, 0, 1, 1, 0], vec![1, 1, 1, 2, 1, 0], vec![0, 1, 1, 1, 1, 0]);
    assert_eq!(days, [first.clone(), first, third, last], "both tags at one image count once");
    let of_team = posture(&operator, &team, "").await;
    assert_eq!(
        open(&of_team)[26..],
        [vec![1, 0, 0, 1, 0, 0], vec![1, 0, 0, 1, 0, 0], vec![1, 0, 1, 2, 0, 0], vec![0, 0, 1, 1, 0, 0]]
    );
    assert_eq!(posture(&operator, &web, "").await["days"], of_team["days"]);
    assert_eq!(
        (&shown["repos"], &shown["countedRepos"], &shown["incomplete"]),
        (&json!("2"), &json!(2), &json!(false))
    );
    assert_eq!(
        (&of_team["repos"], &of_team["vulnerabilities"], &shown["vulnerabilities"]),
        (&json!("1"), &json!(2), &json!(4))
    );
    let images: Vec<&Value> = shown["days"].as_array().expect("days")[26..].iter().map(|day| &day["images"]).collect();
    assert_eq!(images, [&json!(2), &json!(2), &json!(3), &json!(2)]);

    // One definition: on days on which the tags are at different images, the posture is the sum of their counts.
    let from = shown["days"][26]["day"].as_str().expect("a day");
    let mut tags = Vec::new();
    for (repo, tag) in [(&web, "latest"), (&web, "old"), (&api, "latest")] {
        tags.push(counted(&operator, repo, tag, from).await);
    }
    for day in [28, 29] {
        let date = shown["days"][day]["day"].as_str().expect("a day");
        let of_day = tags.iter().flatten().filter(|(at, _)| at == date).map(|(_, counts)| counts);
        assert_eq!(open(&shown)[day], sum(of_day), "{date}");
    }
}

async fn ages_and_times_until_a_fix_follow_the_first_report(server: &TestServer) {
    let [org, _, web, _] = filled(server).await;
    let operator = server.operator().await;
    let shown = posture(&operator, &web, "").await;
    // CVE-1 went with the tag `old` on the last day, three days after its report.
    let fixed: Vec<Vec<i64>> =
        shown["days"].as_array().expect("days").iter().map(|day| counts(&day["fixed"])).collect();
    assert_eq!((sum(fixed.iter()), &fixed[29]), (vec![1, 0, 0, 0, 0, 0], &vec![1, 0, 0, 0, 0, 0]));
    assert_eq!(
        shown["fixTimes"],
        json!([{ "severity": "CRITICAL", "fixed": 1, "meanDays": 3, "medianDays": 3, "p90Days": 3 }])
    );
    server.clock().advance(DAY * 5);
    let operator = server.operator().await;
    let shown = posture(&operator, &org, "").await;
    let ages: Vec<(i64, Vec<i64>)> = shown["ages"]
        .as_array()
        .expect("ages")
        .iter()
        .map(|age| (age["fromDays"].as_i64().expect("days"), counts(&age["open"])))
        .collect();
    // CVE-3 is six days old, all others eight.
    assert_eq!(ages[..2], [(0, vec![0, 0, 1, 0, 0, 0]), (7, vec![0, 1, 0, 1, 1, 0])]);
    assert_eq!(sum(ages.iter().map(|(_, counts)| counts)), open(&shown)[29], "the ages sum to the last day");
    // What was fixed before the first day is not counted.
    let today = shown["days"][29]["day"].as_str().expect("a day");
    let late = posture(&operator, &org, &format!("start_time={today}")).await;
    assert_eq!((open(&late).len(), &late["fixTimes"]), (1, &json!([])));
}

async fn an_image_without_a_report_is_unknown_and_fixes_nothing(server: &TestServer) {
    let [_, team, web, _] = filled(server).await;
    image(server, &web, &digest('3'), 10).await;
    tag(server, &web, "latest", &digest('3')).await;
    let operator = server.operator().await;
    let shown = posture(&operator, &team, "").await;
    let today = &shown["days"][29];
    assert_eq!((&today["images"], &today["unreportedImages"]), (&json!(0), &json!(1)));
    assert_eq!((sum(open(&shown)[29..].iter()), counts(&today["fixed"])), (vec![0; 6], vec![1, 0, 0, 0, 0, 0]));
    report(server, &web, &digest('3'), &[]).await;
    let shown = posture(&operator, &team, "").await;
    assert_eq!(counts(&shown["days"][29]["fixed"]), [1, 0, 1, 1, 0, 0], "the report says that they are gone");
}

async fn a_posture_that_cannot_be_shown_is_refused(server: &TestServer) {
    let [org, team, web, _] = filled(server).await;
    let operator = server.operator().await;
    let before_1970 = "start_time=1960-01-01T00:00:00Z&end_time=1960-01-02T00:00:00Z";
    for query in ["start_time=1971-01-01T00:00:00Z", "start_time=2200-01-01T00:00:00Z", before_1970] {
        let what = format!("GET /posture/v1/scopes/{org}?{query}");
        let refusal = rejected(&operator, &what, Value::Null, 400, "INVALID_ARGUMENT").await;
        assert_eq!(refusal.fields(), ["startTime"], "{query}");
    }
    let reader = holder(server, &org, "reader", &team, &["CAP_VULN_REPORT_LIST"]).await.actor;
    assert_eq!(posture(&reader, &web, "").await, posture(&operator, &web, "").await);
    let above = format!("GET /posture/v1/scopes/{org}");
    rejected(&reader, &above, Value::Null, 403, "PERMISSION_DENIED").await;
    let nowhere = format!("GET /posture/v1/scopes/{}", absent(&org));
    rejected(&operator, &nowhere, Value::Null, 404, "NOT_FOUND").await;
}

/// More reports than one posture counts, in the second repository: only the first is counted, and the response says so.
async fn a_scope_with_too_many_reports_says_what_was_counted(server: &TestServer) {
    let org = server.organization("acme").await;
    let mut repos = [server.repo(&org, "web").await, server.repo(&org, "api").await];
    repos.sort();
    for repo in &repos {
        image(server, repo, &digest('1'), 10).await;
        tag(server, repo, "latest", &digest('1')).await;
        report(server, repo, &digest('1'), &[("CVE-1", "High", "a", "unknown")]).await;
    }
    let sql = "WITH RECURSIVE many (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM many WHERE n < 50000)
               INSERT INTO scan_summaries (repo, digest, created_at, scanner, summary)
               SELECT s.repo, s.digest, m.n, 1, '{}' FROM many m CROSS JOIN scan_summaries s WHERE s.repo = $1";
    execute(server, sql, &[&repos[1]]).await;
    let operator = server.operator().await;
    let shown = posture(&operator, &org, "").await;
    assert_eq!((&shown["incomplete"], &shown["countedRepos"], &shown["repos"]), (&json!(true), &json!(1), &json!("2")));
    assert_eq!(open(&shown)[29], [0, 1, 0, 0, 0, 0]);
}

async fn summaries_follow_their_reports(server: &TestServer) {
    let [org, _, web, _] = filled(server).await;
    let (reports, summaries) = ("SELECT count(*) FROM scan_reports", "SELECT count(*) FROM scan_summaries");
    assert_eq!((number(server, reports).await, number(server, summaries).await), (3, 3));
    for n in 0..51 {
        report(server, &web, &digest('2'), &[(&format!("CVE-{n}"), "Low", "a", "unknown")]).await;
    }
    assert_eq!(
        (number(server, reports).await, number(server, summaries).await),
        (52, 52),
        "fifty of an image are stored"
    );
    let operator = server.operator().await;
    ok(&operator, &format!("DELETE /registry/v2/repos/{web}"), Value::Null).await;
    assert_eq!((number(server, reports).await, number(server, summaries).await), (1, 1));
    assert_eq!(posture(&operator, &org, "").await["countedRepos"], json!(1));
}

each_engine!(
    findings_are_counted_by_severity_and_day_as_in_count_reports,
    ages_and_times_until_a_fix_follow_the_first_report,
    an_image_without_a_report_is_unknown_and_fixes_nothing,
    a_posture_that_cannot_be_shown_is_refused,
    a_scope_with_too_many_reports_says_what_was_counted,
    summaries_follow_their_reports,
);
