//! What the tests of records share: small records, and imports of them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bowline_services::follow_imports;
use bowline_testkit::{Actor, TestServer};
use serde_json::{Value, json};

use crate::support::{call, ok};

/// A record of a PyPI package that is affected before `fixed`.
pub(crate) fn record(id: &str, package: &str, fixed: &str) -> Value {
    json!({
        "schema_version": "1.7.0",
        "id": id,
        "modified": "2026-01-02T03:04:05Z",
        "summary": format!("{id} in {package}"),
        "details": "Long words.",
        "severity": [{ "type": "CVSS_V3", "score": "CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:U/C:H/I:H/A:H" }],
        "affected": [{
            "package": { "ecosystem": "PyPI", "name": package },
            "ranges": [{ "type": "ECOSYSTEM", "events": [{ "introduced": "0" }, { "fixed": fixed }] }],
        }],
        "references": [{ "type": "WEB", "url": format!("https://example.com/{id}") }],
    })
}

/// The same record with other ids.
pub(crate) fn with_aliases(mut record: Value, aliases: &[&str]) -> Value {
    record["aliases"] = json!(aliases);
    record
}

/// Begins an import.
pub(crate) async fn begin(actor: &Actor, source: &str, full: bool) -> String {
    let body = json!({ "source": source, "licence": "CC0-1.0", "url": "https://example.com/feed", "full": full });
    let import = ok(actor, "POST /feeds/bowline/v1/imports", body).await;
    import["uid"].as_str().expect("a uid").into()
}

/// Stages records.
pub(crate) async fn stage(actor: &Actor, import: &str, records: &[Value], removed: &[&str]) -> Value {
    let records: Vec<String> = records.iter().map(|record| STANDARD.encode(record.to_string())).collect();
    let body = json!({ "records": records, "removedIds": removed });
    ok(actor, &format!("POST /feeds/bowline/v1/imports/{import}/records"), body).await
}

/// Commits an import.
pub(crate) async fn commit(actor: &Actor, import: &str) -> Value {
    ok(actor, &format!("POST /feeds/bowline/v1/imports/{import}:commit"), json!({})).await
}

/// A whole import of a few records.
pub(crate) async fn import(server: &TestServer, source: &str, records: &[Value]) -> Value {
    let operator = server.operator().await;
    let import = begin(&operator, source, false).await;
    stage(&operator, &import, records, &[]).await;
    commit(&operator, &import).await
}

/// One step of what follows a commit; true if there is more to do.
pub(crate) async fn sweep_once(server: &TestServer) -> bool {
    let now = server.clock().seconds() * 1_000_000;
    let db = &server.server().parts().storage.db;
    db.write(move |tx| Box::pin(async move { follow_imports(tx, now).await })).await.expect("a step")
}

/// Takes steps until nothing is left to be done. Replaced records stay until the matches of components have followed.
pub(crate) async fn sweep_all(server: &TestServer) {
    let now = server.clock().seconds() * 1_000_000;
    while server.server().parts().matching.step(now).await.expect("a step") {}
    while sweep_once(server).await {}
}

/// Ids that the query API finds for a version of a PyPI package.
pub(crate) async fn found(actor: &Actor, package: &str, version: &str) -> Vec<String> {
    let query = json!({ "package": { "ecosystem": "PyPI", "name": package }, "version": version });
    ids(&ok(actor, "POST /osv/v1/query", query).await)
}

/// The ids of an answer.
pub(crate) fn ids(answer: &Value) -> Vec<String> {
    let vulns = answer["vulns"].as_array().cloned().unwrap_or_default();
    vulns.iter().map(|vuln| vuln["id"].as_str().unwrap_or_default().to_owned()).collect()
}

/// Calls the query API, which must refuse.
pub(crate) async fn refused_by_osv(actor: &Actor, what: &str, body: Value, status: u16, code: i32) -> String {
    let reply = call(actor, what, body).await;
    assert_eq!(reply.status, status, "{what}: {}", reply.text());
    let error = reply.json();
    assert_eq!(error["code"], json!(code), "{what}: {error}");
    assert_eq!(error.as_object().map(serde_json::Map::len), Some(2), "{error}");
    error["message"].as_str().unwrap_or_default().into()
}
