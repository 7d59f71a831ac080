//! Components of distributions: they match in their release and by their source package, and what cannot be compared is
//! counted. What was stored before that was known changes without events that say otherwise.

use bowline_store::Engine;
use bowline_testkit::{Actor, TestServer, each_engine};
use serde_json::{Value, json};

use crate::components::{collected, get};
use crate::finding_events::{delete, lines, told};
use crate::matching::{import, matched, push_with, record};
use crate::support::*;

const LIBSSL: &str = "pkg:deb/debian/libssl3@3.0.11-1?arch=amd64&distro=debian-12&upstream=openssl";
const LIBSSL_11: &str = "pkg:deb/debian/libssl3@3.0.11-1?arch=amd64&distro=debian-11&upstream=openssl";
/// Scores of 9.3 and 9.8.
const VERSION_4: &str = "CVSS:4.0/AV:N/AC:L/AT:N/PR:N/UI:N/VC:H/VI:H/VA:H/SC:N/SI:N/SA:N";
const VERSION_3: &str = "CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:U/C:H/I:H/A:H";

/// All matches of a scope: package URL, record and fix.
async fn all(actor: &Actor, scope: &str) -> (Vec<String>, Value) {
    let response = get(actor, &format!("/matches/v1/matches?scope={scope}&page_size=200")).await;
    let line = |one: &Value| {
        let member = |name: &str| one[name].as_str().unwrap_or_default();
        format!("{} {} {}", member("purl"), member("recordId"), member("fixedVersion"))
    };
    let mut lines: Vec<String> = response["matches"].as_array().expect("matches").iter().map(line).collect();
    lines.sort();
    (lines, response["uncomparedComponents"].clone())
}

/// The ids that the query API finds for a package URL.
async fn queried(server: &TestServer, purl: &str) -> Vec<String> {
    let body = json!({ "package": { "purl": purl } });
    let reply = server.anonymous().rest("POST", "/osv/v1/query", Some(body)).await;
    assert_eq!(reply.status, 200, "{purl}: {}", reply.text());
    let records = reply.json()["vulns"].as_array().cloned().unwrap_or_default();
    records.iter().map(|record| record["id"].as_str().expect("an id").to_owned()).collect()
}

async fn components_match_in_their_release_by_their_source(server: &TestServer) {
    let (org, client) = pusher(server, "acme").await;
    let rpm = "pkg:rpm/redhat/openssl-libs@3.0.7-24.el9?distro=rhel-9.2&epoch=1&upstream=openssl-3.0.7-24.el9.src.rpm";
    let alpine = "pkg:apk/alpine/libcrypto3@3.1.4-r5?distro=alpine-3.18.4&upstream=openssl";
    let ubuntu = "pkg:deb/ubuntu/libssl3@3.0.2-0ubuntu1?distro=ubuntu-22.04&upstream=openssl";
    let patched = "pkg:deb/debian/openssl@3.0.15-1?distro=debian-12";
    let purls = [LIBSSL, LIBSSL_11, rpm, alpine, ubuntu, patched, "pkg:apk/wolfi/libssl3@3.0-r1?origin=openssl"];
    push_with(&client, &format!("{org}/app"), "1", &purls).await;
    let records = [
        record("DEBIAN-1", ("Debian:12", "openssl"), "3.0.13-1"),
        record("DEBIAN-2", ("Debian:13", "openssl"), ""),
        record("DEBIAN-3", ("Debian:12", "libssl3"), ""),
        record("RHSA-1", ("Red Hat:enterprise_linux:9::baseos", "openssl-libs"), "1:3.0.7-25.el9"),
        record("RHSA-2", ("Red Hat:enterprise_linux:9::baseos", "openssl"), "1:3.0.7-24.el9"),
        record("RHSA-3", ("Red Hat:enterprise_linux:8::baseos", "openssl-libs"), ""),
        record("ALPINE-1", ("Alpine:v3.18", "openssl"), "3.1.4-r6"),
        record("ALPINE-2", ("Alpine:v3.19", "openssl"), ""),
        record("UBUNTU-1", ("Ubuntu:22.04:LTS", "openssl"), "3.0.2-0ubuntu1.10"),
        record("UBUNTU-2", ("Ubuntu:Pro:22.04:LTS", "openssl"), ""),
        record("CGA-1", ("Wolfi", "openssl"), "3.0-r2"),
    ];
    import(server, "test", &records, &[], "commit").await;
    matched(server).await;
    let operator = server.operator().await;
    let mut expected = vec![
        format!("{LIBSSL} DEBIAN-1 3.0.13-1"),
        format!("{rpm} RHSA-1 1:3.0.7-25.el9"),
        format!("{alpine} ALPINE-1 3.1.4-r6"),
        format!("{ubuntu} UBUNTU-1 3.0.2-0ubuntu1.10"),
        "pkg:apk/wolfi/libssl3@3.0-r1?origin=openssl CGA-1 3.0-r2".to_owned(),
    ];
    expected.sort();
    assert_eq!(all(&operator, &org).await, (expected, json!(0)));
    for (purl, ids) in
        [(LIBSSL, vec!["DEBIAN-1"]), (LIBSSL_11, vec![]), (rpm, vec!["RHSA-1"]), (ubuntu, vec!["UBUNTU-1"])]
    {
        assert_eq!(queried(server, purl).await, ids, "{purl}");
    }
    let without = "pkg:deb/debian/openssl@3.0.11-1";
    assert_eq!(queried(server, without).await, ["DEBIAN-1", "DEBIAN-2"], "a query without a release is about all");
}

async fn one_version_in_two_releases_is_two_things(server: &TestServer) {
    let (org, client) = pusher(server, "acme").await;
    push_with(&client, &format!("{org}/new"), "1", &[LIBSSL]).await;
    let (_, old) = push_with(&client, &format!("{org}/old"), "1", &[LIBSSL_11]).await;
    let records = [
        record("DEBIAN-1", ("Debian:12", "openssl"), "4"),
        record("DEBIAN-2", ("Debian:11", "openssl"), "5"),
        record("DEBIAN-3", ("Debian:10", "openssl"), ""),
    ];
    import(server, "test", &records, &[], "commit").await;
    let mut at = 0;
    let mut opened = lines(server, &mut at).await;
    opened.sort();
    assert_eq!(opened, ["+ new DEBIAN-1 3.0.11-1", "+ old DEBIAN-2 3.0.11-1"]);
    // A commit about one release changes nothing in the other.
    import(server, "test", &[], &["DEBIAN-1"], "commit").await;
    assert_eq!(lines(server, &mut at).await, ["- new DEBIAN-1 3.0.11-1 CLOSING_REASON_RECORD_CHANGED"]);
    delete(&client, &format!("{org}/old"), &old).await;
    assert_eq!(lines(server, &mut at).await, ["- old DEBIAN-2 3.0.11-1 CLOSING_REASON_COMPONENT_REMOVED"]);
    collected(server).await;
    matched(server).await;
    let origins = "SELECT replace(origin, '\t', ' ') FROM package_versions";
    assert_eq!(texts(server, origins).await, ["12 openssl  "], "the other release went with its SBOM");
    assert_eq!(number(server, "SELECT count(*) FROM package_matches").await, 0);
}

async fn what_cannot_be_compared_is_counted_and_matches_nothing(server: &TestServer) {
    let (org, client) = pusher(server, "acme").await;
    let unknown = [
        "pkg:deb/debian/curl@7.88-1?arch=amd64",
        "pkg:deb/debian/curl@7.88-1?distro=sid",
        "pkg:apk/alpine/curl@8?distro=alpine-edge",
        "pkg:rpm/suse/curl@8?distro=sles-15.5",
        "pkg:pypi/flask",
    ];
    let others = ["pkg:generic/curl@1", "pkg:oci/app", "pkg:npm/a@1"];
    let purls: Vec<&str> = unknown.into_iter().chain(others).collect();
    let (image, _) = push_with(&client, &format!("{org}/app"), "1", &purls).await;
    let (same, _) = push_with(&client, &format!("{org}/same"), "1", &purls).await;
    let records = [
        record("DEBIAN-1", ("Debian:12", "curl"), ""),
        record("PYSEC-1", ("PyPI", "flask"), ""),
        record("ALPINE-1", ("Alpine:v3.18", "curl"), ""),
    ];
    import(server, "test", &records, &[], "commit").await;
    matched(server).await;
    let operator = server.operator().await;
    assert_eq!(all(&operator, &org).await, (vec![], json!(10)), "each in each SBOM");
    assert_eq!(all(&operator, &repo_uid(server, "app").await).await, (vec![], json!(5)));
    let (other, _) = pusher(server, "other").await;
    let reader = server.actor("owner", &other).await;
    let nothing = get(&reader, "/matches/v1/matches").await;
    assert_eq!(nothing["uncomparedComponents"], json!(0), "of hidden images nothing is said");
    for (repo, image) in [("app", image), ("same", same)] {
        delete(&client, &format!("{org}/{repo}"), &image).await;
    }
    collected(server).await;
    matched(server).await;
    assert_eq!(number(server, "SELECT count(*) FROM package_matches").await, 0);
}

async fn the_highest_score_of_any_version_is_the_severity(server: &TestServer) {
    let (org, client) = pusher(server, "acme").await;
    push_with(&client, &format!("{org}/app"), "1", &["pkg:pypi/flask@1"]).await;
    let low = "CVSS:3.1/AV:N/AC:H/PR:N/UI:R/S:U/C:L/I:N/A:N";
    let with = |id: &str, severity: Value| {
        let mut record = record(id, ("PyPI", "flask"), "2");
        record["severity"] = severity;
        record
    };
    let of = |kind: &str, score: &str| json!({ "type": kind, "score": score });
    let records = [
        with("A-1", json!([of("CVSS_V4", VERSION_4)])),
        with("A-2", json!([of("CVSS_V3", low), of("CVSS_V4", VERSION_4)])),
        with("A-3", json!([of("CVSS_V3", VERSION_3), of("CVSS_V4", "CVSS:4.0/AV:N")])),
        with("A-4", json!([of("CVSS_V4", "CVSS:4.0/AV:N")])),
    ];
    import(server, "test", &records, &[], "commit").await;
    matched(server).await;
    let severities = async || {
        let response = get(&server.operator().await, &format!("/matches/v1/matches?scope={org}")).await;
        let matches = response["matches"].as_array().cloned().expect("matches");
        let line = |one: &Value| format!("{} {}", one["recordId"], one["severity"]).replace('"', "");
        matches.iter().map(line).collect::<Vec<String>>()
    };
    let expected = ["A-1 CRITICAL", "A-2 CRITICAL", "A-3 CRITICAL", "A-4 UNKNOWN"];
    assert_eq!(severities().await, expected);
    let [(true, event)] = &told(server).await[..] else { panic!("one event") };
    // As an earlier version stored them: the migration lets them be scored again, and no finding opens or closes by that.
    for sql in ["UPDATE package_matches SET severity = 0", "UPDATE package_matches SET since = -1"] {
        execute(server, sql).await;
    }
    execute(server, of_migration(server, "UPDATE package_versions SET state = 1")).await;
    matched(server).await;
    assert_eq!(severities().await, expected);
    assert_eq!(told(server).await, [(true, event.clone())]);
}

/// A statement of the migration that brought origins, from these words on.
fn of_migration(server: &TestServer, begin: &str) -> &'static str {
    let text = match server.server().parts().storage.db.engine() {
        Engine::Sqlite => include_str!("../../../crates/store/migrations/sqlite/0071_component_origins.sql"),
        Engine::Postgres => include_str!("../../../crates/store/migrations/postgres/0071_component_origins.sql"),
    };
    let statement = &text[text.find(begin).expect("a statement")..];
    &statement[..statement.find(';').expect("an end")]
}

async fn findings_that_stay_are_not_told_again_after_the_migration(server: &TestServer) {
    let (org, client) = pusher(server, "acme").await;
    // The SBOM is one that needs more than one step.
    let many: Vec<String> = (0..450).map(|n| format!("pkg:deb/debian/a{n}@1?distro=debian-12")).collect();
    let curl = "pkg:deb/debian/curl@7.88-1?distro=debian-12";
    let mut purls: Vec<&str> = many.iter().map(String::as_str).collect();
    purls.extend([curl, "pkg:pypi/flask@1", "pkg:pypi/flask"]);
    push_with(&client, &format!("{org}/app"), "1", &purls).await;
    let records = [record("DEBIAN-1", ("Debian:12", "curl"), ""), record("PYSEC-1", ("PyPI", "flask"), "")];
    import(server, "test", &records, &[], "commit").await;
    matched(server).await;
    let before = (told(server).await, all(&server.operator().await, &org).await);
    assert_eq!((before.0.len(), before.1.0.len(), &before.1.1), (1, 2, &json!(1)));
    for sql in [
        "UPDATE components SET origin = ''",
        "UPDATE repo_sboms SET uncompared = 0",
        "DELETE FROM package_versions WHERE package LIKE 'deb/%'",
        "DELETE FROM package_matches WHERE package LIKE 'deb/%'",
        "DELETE FROM version_sboms WHERE package LIKE 'deb/%'",
        "INSERT INTO waiting_images (repo, digest, noted) SELECT DISTINCT repo, digest, 1 FROM image_findings",
        of_migration(server, "INSERT INTO unmatched_sboms"),
    ] {
        execute(server, sql).await;
    }
    matched(server).await;
    assert_eq!((told(server).await, all(&server.operator().await, &org).await), before);
}

each_engine!(
    multi_thread: components_match_in_their_release_by_their_source,
    one_version_in_two_releases_is_two_things,
    what_cannot_be_compared_is_counted_and_matches_nothing,
    the_highest_score_of_any_version_is_the_severity,
    findings_that_stay_are_not_told_again_after_the_migration,
);
