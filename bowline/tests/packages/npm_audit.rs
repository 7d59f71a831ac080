//! Audits by clients of npm, answered from imported records.

use std::io::Write as _;

use bowline_testkit::{TestServer, each_engine};
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};

use crate::support::*;

/// Stands for the record about the first package.
const NUMBER: u64 = 235_003_480_580_886;
const BULK: &str = "POST -/npm/v1/security/advisories/bulk";

/// Imports a record about each of these packages, fixed in 1.2.0.
async fn import(server: &TestServer, names: &[&str]) {
    let record = |(number, name): (usize, &&str)| {
        json!({
            "id": format!("GHSA-aaaa-bbbb-000{number}"), "modified": "2026-01-01T00:00:00Z",
            "summary": format!("{name} runs what it reads"), "database_specific": { "severity": "HIGH" },
            "affected": [{ "package": { "ecosystem": "npm", "name": name }, "ranges": [
                { "type": "SEMVER", "events": [{ "introduced": "0" }, { "fixed": "1.2.0" }] },
            ] }],
            "references": [{ "type": "ADVISORY", "url": "https://advisories.example/1" }],
        })
    };
    let records: Vec<Value> = names.iter().enumerate().map(record).collect();
    import_records(server, &records).await;
}

fn gzip(text: &str) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(text.as_bytes()).unwrap();
    encoder.finish().unwrap()
}

async fn versions_are_audited_by_package(server: &TestServer) {
    let (_, client) = npm_publisher(server, "acme").await;
    import(server, &["left", "@s/right"]).await;
    let asked =
        json!({ "left": ["1.0.0", "1.2.0", "1.1.0"], "@s/right": ["1.2.0"], "other": ["1.0.0"], "../x": ["1"] });
    for (headers, body) in
        [(vec![], asked.to_string().into_bytes()), (vec![("content-encoding", "gzip")], gzip(&asked.to_string()))]
    {
        let reply = client.send(BULK, &headers, &body).await;
        assert_eq!(reply.status, 200, "{}", reply.text());
        let wanted = json!({ "left": [{
            "id": NUMBER, "url": "https://advisories.example/1", "title": "left runs what it reads",
            "severity": "high", "vulnerable_versions": "<1.2.0", "cwe": [], "cvss": { "score": 0.0, "vectorString": null },
        }] });
        assert_eq!(reply.json(), wanted);
    }
    assert_eq!(client.send(BULK, &[], b"{}").await.json(), json!({}));
}

async fn a_tree_is_reported(server: &TestServer) {
    let (_, client) = npm_publisher(server, "acme").await;
    import(server, &["left"]).await;
    let left = json!({ "version": "1.1.0" });
    let tree = json!({ "name": "app", "version": "1.0.0", "dependencies": {
        "web": { "version": "3.0.0", "dependencies": { "left": left } }, "left": { "version": "1.2.0" },
    } });
    for path in ["audits", "audits/quick"] {
        let reply = client.send(&format!("POST -/npm/v1/security/{path}"), &[], tree.to_string().as_bytes()).await;
        assert_eq!(reply.status, 200, "{}", reply.text());
        let report = reply.json();
        let advisory = &report["advisories"][NUMBER.to_string()];
        assert_eq!(advisory["findings"], json!([{ "version": "1.1.0", "paths": ["web>left"] }]));
        assert_eq!(advisory["github_advisory_id"], "GHSA-aaaa-bbbb-0000");
        assert_eq!((&advisory["module_name"], &advisory["patched_versions"]), (&json!("left"), &json!(">=1.2.0")));
        assert_eq!(report["metadata"]["vulnerabilities"]["high"], 1);
        assert_eq!(report["actions"][0]["resolves"][0]["path"], "web>left");
    }
}

async fn nothing_is_said_of_own_names(server: &TestServer) {
    let (org, client) = npm_publisher(server, "acme").await;
    client.npm_publish("left", "1.0.0", "latest").await;
    import(server, &["left", "@own/right"]).await;
    let owner = server.actor("owner", &org).await;
    let path = format!("/packagereservations/v1/organizations/{org}:createReservation");
    let reserved = owner.rest("POST", &path, Some(json!({ "ecosystem": "JAVASCRIPT", "pattern": "@own/*" }))).await;
    assert_eq!(reserved.status, 200, "{}", reserved.text());
    let asked = json!({ "left": ["1.0.0"], "@own/right": ["1.0.0"] }).to_string();
    assert_eq!(client.send(BULK, &[], asked.as_bytes()).await.json(), json!({}));
    let (_, other) = npm_publisher(server, "other").await;
    assert_eq!(other.send(BULK, &[], asked.as_bytes()).await.json().as_object().unwrap().len(), 2);
}

async fn what_is_no_audit_is_refused(server: &TestServer) {
    let (org, client) = npm_publisher(server, "acme").await;
    let bomb = gzip(&" ".repeat(64 << 20));
    let long = vec![b' '; 5 << 20];
    let many = format!("{{{}}}", (0..20_001).map(|n| format!("\"p{n}\":[]")).collect::<Vec<_>>().join(","));
    for (headers, body, status) in [
        (vec![], &b"[]"[..], 400),
        (vec![], b"{", 400),
        (vec![("content-encoding", "gzip")], b"no gzip", 400),
        (vec![("content-encoding", "gzip")], &bomb, 413),
        (vec![], &long, 413),
        (vec![], many.as_bytes(), 400),
    ] {
        sentence(&client.send(BULK, &headers, body).await, status);
    }
    let publish = client.send("PUT left", &[("content-encoding", "gzip")], &gzip("{}")).await;
    assert!(sentence(&publish, 415).contains("send the body uncompressed"));
    sentence(&Client::anonymous(server).javascript().send(BULK, &[], b"{}").await, 401);
    let reader = Client::of(server, &server.actor("libraries.python.pull", &org).await).javascript();
    sentence(&reader.send(BULK, &[], b"{}").await, 403);
    assert_eq!(client.send("GET -/npm/v1/security/advisories/bulk", &[], &[]).await.header("allow"), Some("POST"));
}

each_engine!(
    a_tree_is_reported,
    nothing_is_said_of_own_names,
    versions_are_audited_by_package,
    what_is_no_audit_is_refused,
);
