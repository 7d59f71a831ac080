//! Reports of scanners: taken in by a method of this server, read and counted as in the wire contract.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bowline_contract::v1::registry::rpc::vulnerabilities::ListVulnCountReports;
use bowline_contract::v1::registry::{RepoTagReference, VulnCountReportFilter};
use bowline_testkit::{Actor, TestServer, each_engine};
use serde_json::{Value, json};

use crate::contents::digest;
use crate::support::{call, each, execute, holder, image, inventory, number, ok, rejected};

const DAY: Duration = Duration::from_secs(24 * 3600);

/// A report of Grype that finds these, each in two packages.
fn grype(found: &[(&str, &str)]) -> Value {
    let mut matches = Vec::new();
    for (id, severity) in found {
        for package in ["a", "b"] {
            matches.push(json!({
                "vulnerability": { "id": id, "severity": severity, "fix": { "versions": ["2"], "state": "fixed" },
                    "cvss": [{ "version": "3.1", "metrics": { "baseScore": 7.2 } }] },
                "relatedVulnerabilities": [{ "id": format!("GHSA-{id}") }],
                "artifact": { "name": package, "version": "1", "type": "apk", "purl": format!("pkg:apk/{package}@1") }
            }));
        }
    }
    json!({ "matches": matches, "descriptor": { "version": "0.9", "db": { "built": "2026-01-02T03:04:05Z" } } })
}

async fn put(actor: &Actor, repo: &str, digest: &str, scanner: &str, report: &Value) -> Value {
    let report = STANDARD.encode(report.to_string());
    let body = json!({ "digest": digest, "scanner": scanner, "report": report });
    ok(actor, &format!("POST /scans/v1/repos/{repo}/reports"), body).await
}

async fn reports_are_taken_in_and_read_by_those_who_see_the_repository(server: &TestServer) {
    let org = server.organization("acme").await;
    let repo = server.repo(&org, "web").await;
    let (first, second) = (digest('1'), digest('2'));
    image(server, &repo, &first, 100).await;
    image(server, &repo, &second, 200).await;
    let operator = server.operator().await;
    let report = grype(&[("CVE-1", "Low"), ("CVE-2", "Critical")]);
    let stored = put(&operator, &repo, &first, "SCANNER_NAME_GRYPE", &report).await;
    assert_eq!((&stored["vulnerabilities"], &stored["scannerVersion"]), (&json!(2), &json!("0.9")));
    let trivy = json!({ "SchemaVersion": 2, "Results": [] });
    put(&operator, &repo, &first, "SCANNER_NAME_TRIVY", &trivy).await;
    let told = "SELECT count(*) FROM outbox WHERE event_type = 'dev.bowline.registry.scan_report.stored.v1'
                    AND body_type = 'bowline.registry.v1.ScanReport'";
    assert_eq!(number(server, told).await, 2);
    assert_eq!(number(server, "SELECT count(*) FROM audit WHERE kind = 'bowline.dev/ScanReport'").await, 2);

    let list = format!("GET /registry/v1/vuln_reports?repoId={repo}");
    let all = ok(&operator, &list, Value::Null).await;
    let scanners: Vec<&Value> =
        all["items"].as_array().expect("a list").iter().map(|item| &item["scanner"]["name"]).collect();
    assert_eq!(scanners, [&json!("TRIVY"), &json!("GRYPE")], "the newest first");
    let found = &all["items"][1]["vulnerabilities"];
    assert_eq!(each(found, "id"), ["CVE-2", "CVE-1"]);
    assert_eq!(found[0]["purls"], json!(["pkg:apk/a@1", "pkg:apk/b@1"]));
    assert_eq!(found[0]["aliases"], json!(["GHSA-CVE-2"]));
    assert_eq!(found[0]["cvss"], json!([{ "score": "7.2", "version": "3.1" }]));
    assert_eq!((&found[0]["severity"], &found[0]["fix"]["versions"]), (&json!("CRITICAL"), &json!(["2"])));
    let count = |list: &Value| list["items"].as_array().map_or(0, Vec::len);
    for (query, expected) in [
        (format!("digest={first}"), 2),
        (format!("digest={second}"), 0),
        (format!("digest={first}&scanner.name=TRIVY"), 1),
        (format!("repoId={repo}&tag=latest"), 0),
        (format!("digest={first}&tag=latest"), 2),
    ] {
        let list = ok(&operator, &format!("GET /registry/v1/vuln_reports?{query}"), Value::Null).await;
        assert_eq!(count(&list), expected, "{query}");
    }
    assert_eq!(call(&operator, "GET /registry/v1/vuln_reports", Value::Null).await.status, 400);

    let raw = format!("GET /registry/v1/vuln_reports/raw?digest={first}&scanner=GRYPE");
    let shown = ok(&operator, &raw, Value::Null).await;
    assert_eq!(shown["rawReport"], json!(report.to_string()));
    let none = format!("GET /registry/v1/vuln_reports/raw?digest={second}");
    assert_eq!(call(&operator, &none, Value::Null).await.status, 404);

    // Anyone who sees another group only sees none of it.
    let other = server.group(&org, "other").await;
    let outsider = holder(server, &org, "outsider", &other, &["CAP_VULN_REPORT_LIST"]).await.actor;
    assert_eq!(count(&ok(&outsider, &list, Value::Null).await), 0);
    assert_eq!(count(&ok(&outsider, &format!("GET /registry/v1/vuln_reports?digest={first}"), Value::Null).await), 0);
    assert_eq!(call(&outsider, &raw, Value::Null).await.status, 404);
}

async fn what_is_no_report_changes_nothing(server: &TestServer) {
    let org = server.organization("acme").await;
    let repo = server.repo(&org, "web").await;
    let first = digest('1');
    image(server, &repo, &first, 100).await;
    let operator = server.operator().await;
    let reader = server.actor("viewer", &org).await;
    let before = inventory(server).await;
    let path = format!("POST /scans/v1/repos/{repo}/reports");
    let body =
        |scanner: &str, report: &str| json!({ "digest": first, "scanner": scanner, "report": STANDARD.encode(report) });
    for (scanner, report) in [
        ("SCANNER_NAME_GRYPE", "{}"),
        ("SCANNER_NAME_TRIVY", "{}"),
        ("SCANNER_NAME_GRYPE", "no JSON"),
        ("SCANNER_NAME_UNSPECIFIED", r#"{"matches":[]}"#),
        ("SCANNER_NAME_GRYPE", r#"{"matches":[],"descriptor":{"version":"1\u0000"}}"#),
        ("SCANNER_NAME_TRIVY", r#"{"SchemaVersion":2,"Trivy":{"Version":"\u0000"}}"#),
    ] {
        rejected(&operator, &path, body(scanner, report), 400, "INVALID_ARGUMENT").await;
    }
    let mut unknown = body("SCANNER_NAME_GRYPE", r#"{"matches":[]}"#);
    unknown["digest"] = json!(digest('9'));
    rejected(&operator, &path, unknown, 404, "NOT_FOUND").await;
    // Who may not store reports does not have one read.
    rejected(&reader, &path, body("SCANNER_NAME_GRYPE", "no JSON"), 403, "PERMISSION_DENIED").await;
    assert_eq!(inventory(server).await, before);
}

async fn fifty_reports_of_a_manifest_are_kept(server: &TestServer) {
    let org = server.organization("acme").await;
    let repo = server.repo(&org, "web").await;
    let first = digest('1');
    image(server, &repo, &first, 100).await;
    let operator = server.operator().await;
    for number in 0..52 {
        put(&operator, &repo, &first, "SCANNER_NAME_GRYPE", &grype(&[(&format!("CVE-{number}"), "Low")])).await;
    }
    assert_eq!(number(server, "SELECT count(*) FROM scan_reports").await, 50);
    assert_eq!(number(server, "SELECT count(*) FROM scan_reports WHERE summary LIKE '%CVE-1\"%'").await, 0);
}

async fn counts_follow_the_tag_from_day_to_day(server: &TestServer) {
    let org = server.organization("acme").await;
    let repo = server.repo(&org, "web").await;
    let (first, second) = (digest('1'), digest('2'));
    image(server, &repo, &first, 100).await;
    image(server, &repo, &second, 200).await;
    let operator = server.operator().await;
    let tag = async |operator: &Actor, digest: &str| {
        let body = json!({ "name": "latest", "digest": digest });
        ok(operator, &format!("POST /registry/v2/tags/{repo}"), body).await
    };
    tag(&operator, &first).await;
    put(&operator, &repo, &first, "SCANNER_NAME_GRYPE", &grype(&[("CVE-1", "Low"), ("CVE-2", "High")])).await;
    server.clock().advance(DAY);
    let operator = server.operator().await;
    put(&operator, &repo, &second, "SCANNER_NAME_GRYPE", &grype(&[("CVE-3", "Critical")])).await;
    server.clock().advance(DAY);
    let operator = server.operator().await;
    tag(&operator, &second).await;

    let counts = "GET /registry/v1/vuln_reports/counts?repo=web&tag=latest".to_owned();
    let list = ok(&operator, &counts, Value::Null).await;
    let ids = |list: &Value| -> Vec<Value> {
        list["items"].as_array().expect("a list").iter().map(|item| item["cveIds"].clone()).collect()
    };
    assert_eq!(ids(&list), [json!(["CVE-1", "CVE-2"]), json!(["CVE-1", "CVE-2"]), json!(["CVE-3"])]);
    let (day, last) = (&list["items"][0], &list["items"][2]);
    assert_eq!(
        (&day["highCveIds"], &day["sizeBytes"], &last["sizeBytes"]),
        (&json!(["CVE-2"]), &json!("100"), &json!("200"))
    );
    let expected = json!([{ "severity": "LOW", "count": 1 }, { "severity": "HIGH", "count": 1 }]);
    assert_eq!(day["vulnCounts"], expected);
    let all = ok(&operator, &counts.replace("counts?", "counts_cumulative?"), Value::Null).await;
    assert_eq!(ids(&all)[2], json!(["CVE-1", "CVE-2", "CVE-3"]));
    let from = last["date"].as_str().expect("a date");
    assert_eq!(ids(&ok(&operator, &format!("{counts}&from={from}"), Value::Null).await).len(), 1);
    assert_eq!(call(&operator, &format!("{counts}&from=1970-01-01T00:00:00Z"), Value::Null).await.status, 400);
    assert_eq!(call(&operator, "GET /registry/v1/vuln_reports/counts", Value::Null).await.status, 400);

    let references = ["web", "absent", "web"].map(|repo| RepoTagReference { repo: repo.into(), tag: "latest".into() });
    let request = VulnCountReportFilter { references: references.into(), ..VulnCountReportFilter::default() };
    let reply = operator.grpc::<ListVulnCountReports>(request).await.expect("counts");
    assert_eq!(reply.items.len(), 3);
    let outsider =
        holder(server, &org, "outsider", &server.group(&org, "other").await, &["CAP_VULN_REPORT_LIST"]).await;
    assert_eq!(ids(&ok(&outsider.actor, &counts, Value::Null).await), Vec::<Value>::new());
    execute(server, "DELETE FROM scan_reports WHERE repo = $1", &[&repo]).await;
    assert_eq!(ids(&ok(&operator, &counts, Value::Null).await), Vec::<Value>::new());
}

each_engine!(
    reports_are_taken_in_and_read_by_those_who_see_the_repository,
    what_is_no_report_changes_nothing,
    fifty_reports_of_a_manifest_are_kept,
    counts_follow_the_tag_from_day_to_day
);
