//! Components of images that imported records of vulnerabilities affect: which match, who sees them, and when they go.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bowline_core::Clock as _;
use bowline_store::Engine;
use bowline_testkit::{Actor, TestServer, each_engine};
use serde_json::{Value, json};

use crate::components::{attach, collected, cyclonedx, get};
use crate::support::*;

const CRITICAL: &str = "CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:U/C:H/I:H/A:H";
pub(crate) const SBOM: &str = "application/vnd.cyclonedx+json";

/// A record of a package that is affected before `fixed`, or in all versions.
pub(crate) fn record(id: &str, (ecosystem, package): (&str, &str), fixed: &str) -> Value {
    let mut events = vec![json!({ "introduced": "0" })];
    if !fixed.is_empty() {
        events.push(json!({ "fixed": fixed }));
    }
    json!({
        "id": id,
        "modified": "2026-01-02T03:04:05Z",
        "severity": [{ "type": "CVSS_V3", "score": CRITICAL }],
        "affected": [{ "package": { "ecosystem": ecosystem, "name": package },
                       "ranges": [{ "type": "ECOSYSTEM", "events": events }] }],
    })
}

/// Calls a method of imports.
pub(crate) async fn post(server: &TestServer, path: &str, body: Value) -> Value {
    let reply = server.operator().await.rest("POST", &format!("/feeds/bowline/v1/imports{path}"), Some(body)).await;
    assert_eq!(reply.status, 200, "{path}: {}", reply.text());
    reply.json()
}

/// Imports records into a source, and ends the import in this way: `commit` or `abort`.
pub(crate) async fn import(server: &TestServer, source: &str, records: &[Value], removed: &[&str], end: &str) {
    let begin = json!({ "source": source, "licence": "CC0-1.0", "url": "https://example.com", "full": true });
    let uid = post(server, "", begin).await["uid"].as_str().expect("a uid").to_owned();
    let records: Vec<String> = records.iter().map(|record| STANDARD.encode(record.to_string())).collect();
    post(server, &format!("/{uid}/records"), json!({ "records": records, "removedIds": removed })).await;
    post(server, &format!("/{uid}:{end}"), json!({})).await;
}

/// Takes steps until everything is matched.
pub(crate) async fn matched(server: &TestServer) {
    let parts = server.server().parts();
    while parts.matching.step(server.clock().now()).await.expect("a step") {}
}

/// Pushes an image with an SBOM of these package URLs; the digests of the image and of the SBOM's manifest.
pub(crate) async fn push_with(client: &Client, name: &str, tag: &str, purls: &[&str]) -> (String, String) {
    let image = digest_of(&client.image(name, tag, format!("{name} {tag}").as_bytes()).await);
    let components: Vec<(&str, &str, &str, &str)> =
        purls.iter().map(|purl| (component_name(purl), "", *purl, "MIT")).collect();
    let referrer = attach(client, name, &image, SBOM, &cyclonedx(&components)).await;
    (image, referrer)
}

/// The name that a package URL ends with.
pub(crate) fn component_name(purl: &str) -> &str {
    purl.split(['@', '?']).next().and_then(|purl| purl.rsplit('/').next()).expect("a name")
}

async fn list(actor: &Actor, query: &str) -> Value {
    get(actor, &format!("/matches/v1/matches?{query}")).await
}

fn shown(response: &Value) -> Vec<String> {
    let text = |one: &Value, member: &str| one[member].as_str().unwrap_or_default().to_owned();
    let matches = response["matches"].as_array().cloned().unwrap_or_default();
    let line = |one: &Value| {
        let members = ["repoName", "purl", "recordId", "fixedVersion"].map(|member| text(one, member));
        members.join(" ").trim().to_owned()
    };
    matches.iter().map(line).collect()
}

/// All matches, one a page.
async fn page_by_page(actor: &Actor, query: &str) -> Vec<String> {
    let (mut found, mut token) = (Vec::new(), String::new());
    loop {
        let page = list(actor, &format!("{query}&page_size=1&page_token={token}")).await;
        found.extend(shown(&page));
        page["nextPageToken"].as_str().unwrap_or_default().clone_into(&mut token);
        if token.is_empty() {
            return found;
        }
    }
}

fn sorted(mut lines: Vec<String>) -> Vec<String> {
    lines.sort();
    lines
}

/// Two images with affected components; the organization and its client.
async fn filled(server: &TestServer) -> (String, Client) {
    let (org, client) = pusher(server, "acme").await;
    let flask = ["pkg:pypi/Flask@1.9", "pkg:npm/%40babel/core@7.0.0", "pkg:generic/unknown@1", "pkg:pypi/flask"];
    push_with(&client, &format!("{org}/app"), "1", &flask).await;
    let other = ["pkg:pypi/flask@1.10", "pkg:deb/debian/curl@7.88-1?distro=debian-12", "pkg:maven/org.a/b@1.0"];
    push_with(&client, &format!("{org}/web"), "2", &other).await;
    let mut named = record("GHSA-1", ("PyPI", "flask"), "1.10");
    named["aliases"] = json!(["CVE-2026-1", "PYSEC-1"]);
    let mut debian = record("DEBIAN-CVE-2026-2", ("Debian:12", "curl"), "");
    debian["upstream"] = json!(["CVE-2026-2"]);
    debian["severity"] = json!([]);
    let mut withdrawn = record("PYSEC-9", ("PyPI", "flask"), "");
    withdrawn["withdrawn"] = json!("2026-01-03T00:00:00Z");
    let maven = record("GHSA-3", ("Maven", "org.a:b"), "2.0");
    let babel = record("GHSA-4", ("npm", "@babel/core"), "6");
    import(server, "test", &[named, debian, withdrawn, maven, babel], &[], "commit").await;
    matched(server).await;
    (org, client)
}

async fn components_match_the_records_of_their_packages(server: &TestServer) {
    let (org, _) = filled(server).await;
    let operator = server.operator().await;
    let flask = "app pkg:pypi/Flask@1.9 GHSA-1 1.10";
    let curl = "web pkg:deb/debian/curl@7.88-1?distro=debian-12 DEBIAN-CVE-2026-2";
    let maven = "web pkg:maven/org.a/b@1.0 GHSA-3 2.0";
    for (query, expected) in [
        (String::new(), vec![flask, curl, maven]),
        ("&vulnerability=CVE-2026-1".into(), vec![flask]),
        ("&vulnerability=PYSEC-1".into(), vec![flask]),
        ("&vulnerability=GHSA-1".into(), vec![flask]),
        ("&vulnerability=CVE-2026-2".into(), vec![curl]),
        ("&vulnerability=CVE-2026-9".into(), vec![]),
        ("&package=pkg:pypi/flask".into(), vec![flask]),
        ("&package=pkg:pypi/flask@1.9.0".into(), vec![flask]),
        ("&package=pkg:pypi/flask@1.8".into(), vec![]),
        ("&package=pkg:pypi/flask&vulnerability=CVE-2026-2".into(), vec![]),
        ("&severities=CRITICAL".into(), vec![flask, maven]),
        ("&severities=UNKNOWN&severities=LOW".into(), vec![curl]),
        ("&fix=FIX_CONDITION_FIXED".into(), vec![flask, maven]),
        ("&fix=FIX_CONDITION_NOT_FIXED".into(), vec![curl]),
        (format!("&scope={}", repo_uid(server, "web").await), vec![curl, maven]),
    ] {
        let query = if query.contains("scope=") { query } else { format!("scope={org}{query}") };
        assert_eq!(sorted(shown(&list(&operator, &query).await)), expected, "{query}");
        assert_eq!(sorted(page_by_page(&operator, &query).await), expected, "{query}, page by page");
    }
    let one = list(&operator, "vulnerability=CVE-2026-1").await["matches"][0].clone();
    for (member, expected) in [
        ("repoUid", json!(repo_uid(server, "app").await)),
        ("tags", json!(["1"])),
        ("version", json!("1.9")),
        ("vulnerability", json!("CVE-2026-1")),
        ("aliases", json!(["PYSEC-1"])),
        ("source", json!("test")),
        ("severity", json!("CRITICAL")),
    ] {
        assert_eq!(one[member], expected, "{member}: {one}");
    }
    for wrong in ["package=flask", "scope=nothing", "vulnerability=%01"] {
        let reply = operator.rest("GET", &format!("/matches/v1/matches?{wrong}"), None).await;
        assert_eq!(reply.status, 400, "{wrong}: {}", reply.text());
    }
}

async fn hidden_images_are_as_if_they_were_not(server: &TestServer) {
    let (org, _) = filled(server).await;
    let (other, client) = pusher(server, "other").await;
    push_with(&client, &format!("{other}/theirs"), "1", &["pkg:pypi/flask@1.8"]).await;
    matched(server).await;
    let reader = server.actor("owner", &other).await;
    let stranger = server.stranger().await;
    for query in ["", "vulnerability=CVE-2026-1", "package=pkg:pypi/flask"] {
        let own = list(&reader, query).await;
        assert_eq!(shown(&own), ["theirs pkg:pypi/flask@1.8 GHSA-1 1.10"], "{query}");
        assert_eq!(own["nextPageToken"], json!(""), "{query}");
        let nothing = list(&stranger, query).await;
        assert!(shown(&nothing).is_empty(), "{query}: {nothing}");
        assert_eq!(list(&reader, &format!("{query}&scope={org}")).await, nothing, "{query}");
    }
    let without_images = server.actor("advisories.viewer", &org).await;
    assert!(shown(&list(&without_images, "").await).is_empty());
    assert_eq!(server.anonymous().rest("GET", "/matches/v1/matches", None).await.status, 401);
}

async fn tokens_belong_to_their_conditions(server: &TestServer) {
    filled(server).await;
    let operator = server.operator().await;
    let token = list(&operator, "page_size=1").await["nextPageToken"].as_str().expect("there are more").to_owned();
    let path = format!("/matches/v1/matches?page_size=1&package=pkg:pypi/flask&page_token={token}");
    assert_eq!(operator.rest("GET", &path, None).await.status, 400);
}

async fn a_commit_matches_the_packages_again_that_it_touches_and_no_others(server: &TestServer) {
    let (org, _) = filled(server).await;
    let operator = server.operator().await;
    execute(server, "UPDATE package_matches SET since = -1").await;
    let scope = format!("scope={org}");
    let before = sorted(shown(&list(&operator, &scope).await));
    import(server, "test", &[record("PYSEC-7", ("PyPI", "Flask"), "3")], &[], "abort").await;
    import(server, "other", &[record("PYSEC-5", ("PyPI", "Flask"), "1.9.1")], &[], "commit").await;
    matched(server).await;
    let rewritten = "SELECT package FROM package_matches WHERE since >= 0 ORDER BY record_id";
    assert_eq!(texts(server, rewritten).await, ["pypi/flask", "pypi/flask"]);
    let mut after = before.clone();
    after.push("app pkg:pypi/Flask@1.9 PYSEC-5 1.9.1".into());
    assert_eq!(sorted(shown(&list(&operator, &scope).await)), sorted(after));
    let mut changed = record("PYSEC-5", ("PyPI", "Flask"), "1.9.2");
    changed["severity"] = json!([]);
    import(server, "other", &[changed], &[], "commit").await;
    matched(server).await;
    let fixed = list(&operator, "vulnerability=PYSEC-5").await["matches"][0].clone();
    assert_eq!((&fixed["fixedVersion"], &fixed["severity"]), (&json!("1.9.2"), &json!("UNKNOWN")), "{fixed}");
    import(server, "other", &[], &["PYSEC-5"], "commit").await;
    matched(server).await;
    assert_eq!(sorted(shown(&list(&operator, &scope).await)), before);
}

async fn versions_go_with_their_last_sbom(server: &TestServer) {
    let (org, client) = filled(server).await;
    let name = format!("{org}/copy");
    let (_, referrer) = push_with(&client, &name, "1", &["pkg:pypi/flask@1.9", "pkg:pypi/flask@1.0"]).await;
    matched(server).await;
    let versions = "SELECT version FROM package_versions WHERE package = 'pypi/flask' ORDER BY version";
    let matches = "SELECT version FROM package_matches WHERE package = 'pypi/flask' ORDER BY version";
    assert_eq!(texts(server, versions).await, ["1.0", "1.10", "1.9"]);
    assert_eq!(texts(server, matches).await, ["1.0", "1.9"]);
    assert_eq!(client.send(&format!("DELETE /v2/{name}/manifests/{referrer}"), &[], b"").await.status, 202);
    collected(server).await;
    matched(server).await;
    assert_eq!(texts(server, versions).await, ["1.10", "1.9"], "another SBOM has 1.9");
    assert_eq!(texts(server, matches).await, ["1.9"]);
    push_with(&client, &name, "1", &["pkg:pypi/flask@1.9", "pkg:pypi/flask@1.0"]).await;
    matched(server).await;
    assert_eq!(texts(server, matches).await, ["1.0", "1.9"], "it came back");
}

/// The statement of the migration that notes what was indexed before it.
fn backfill(engine: Engine) -> &'static str {
    let text = match engine {
        Engine::Sqlite => include_str!("../../../crates/store/migrations/sqlite/0053_package_matches.sql"),
        Engine::Postgres => include_str!("../../../crates/store/migrations/postgres/0053_package_matches.sql"),
    };
    let statement = &text[text.find("INSERT INTO unmatched_sboms").expect("a statement")..];
    &statement[..statement.find(';').expect("an end")]
}

async fn what_was_indexed_before_is_matched_later(server: &TestServer) {
    let (org, _) = filled(server).await;
    let operator = server.operator().await;
    let before = list(&operator, &format!("scope={org}")).await;
    for sql in ["DELETE FROM package_matches", "DELETE FROM package_versions"] {
        execute(server, sql).await;
    }
    execute(server, backfill(server.server().parts().storage.db.engine())).await;
    matched(server).await;
    assert_eq!(list(&operator, &format!("scope={org}")).await, before);
}

async fn pages_are_complete_beyond_what_one_examines(server: &TestServer) {
    let (org, client) = pusher(server, "acme").await;
    // More components of one package than a page examines; the last ones are affected.
    let purls: Vec<String> = (0..2100).map(|minor| format!("pkg:pypi/flask@2.{minor}")).collect();
    let mut purls: Vec<&str> = purls.iter().map(String::as_str).collect();
    purls.push("pkg:pypi/flask@1.1");
    push_with(&client, &format!("{org}/app"), "1", &purls).await;
    for tag in 0..25 {
        push_with(&client, &format!("{org}/small"), &tag.to_string(), &[&format!("pkg:npm/a@1.0.{tag}")]).await;
    }
    let records = [record("PYSEC-1", ("PyPI", "flask"), "2"), record("GHSA-1", ("npm", "a"), "")];
    import(server, "test", &records, &[], "commit").await;
    matched(server).await;
    let operator = server.operator().await;
    let scope = format!("scope={org}");
    for (query, expected) in [("", 26), ("&vulnerability=PYSEC-1", 1), ("&vulnerability=GHSA-1", 25)] {
        let query = format!("{scope}{query}");
        assert_eq!(page_by_page(&operator, &query).await.len(), expected, "{query}");
    }
}

each_engine!(
    multi_thread: components_match_the_records_of_their_packages,
    hidden_images_are_as_if_they_were_not,
    tokens_belong_to_their_conditions,
    a_commit_matches_the_packages_again_that_it_touches_and_no_others,
    versions_go_with_their_last_sbom,
    what_was_indexed_before_is_matched_later,
    pages_are_complete_beyond_what_one_examines,
);
