//! Findings of images: each opens and closes once, with an event that tells of it.

use std::collections::BTreeSet;
use std::time::Duration;

use bowline_contract::bowline::vulnerabilities::v1::{ClosingReason, ImageFindings};
use bowline_core::Error;
use bowline_store::{Engine, Row};
use bowline_testkit::{TestServer, each_engine};
use prost::Message as _;
use serde_json::{Value, json};

use crate::components::{attach, collected, cyclonedx, get};
use crate::documents::{artifact, push};
use crate::matching::{SBOM, import, matched, push_with, record};
use crate::support::*;

const OPENED: &str = "dev.bowline.registry.finding.opened.v1";
const CLOSED: &str = "dev.bowline.registry.finding.closed.v1";

/// The bodies of all events of findings so far, in order, each with whether the findings opened.
pub(crate) async fn told(server: &TestServer) -> Vec<(bool, ImageFindings)> {
    let db = &server.server().parts().storage.db;
    // On PostgreSQL the relay numbers them later.
    let number = if db.engine() == Engine::Sqlite { "seq" } else { "id" };
    let sql = format!(
        "SELECT event_type, body FROM outbox WHERE event_type IN ('{OPENED}', '{CLOSED}') AND customer ORDER BY {number}"
    );
    let read = |row: &Row<'_>| {
        let findings = ImageFindings::decode(row.bytes(1)?.as_slice()).expect("findings");
        Ok::<_, Error>((row.text(0)? == OPENED, findings))
    };
    db.read(move |tx| Box::pin(async move { tx.query(&sql, &[], read).await })).await.expect("the outbox")
}

/// What the events since `at` say: `+` opened and `-` closed, as words.
pub(crate) async fn lines(server: &TestServer, at: &mut usize) -> Vec<String> {
    matched(server).await;
    let all = told(server).await;
    let new = all[*at..].iter().flat_map(|(is_opened, image)| {
        image.findings.iter().map(move |finding| {
            let sign = if *is_opened { "+" } else { "-" };
            let reason = match finding.closing_reason() {
                ClosingReason::Unspecified => String::new(),
                reason => format!(" {}", reason.as_str_name()),
            };
            format!("{sign} {} {} {}{reason}", image.repo_name, finding.vulnerability, finding.version)
        })
    });
    let new = new.collect();
    *at = all.len();
    new
}

pub(crate) async fn delete(client: &Client, name: &str, digest: &str) {
    let reply = client.send(&format!("DELETE /v2/{name}/manifests/{digest}"), &[], b"").await;
    assert_eq!(reply.status, 202, "{}", reply.text());
}

async fn the_event_of_an_image_says_what_to_do(server: &TestServer) {
    let (org, client) = pusher(server, "acme").await;
    let name = format!("{org}/app");
    let purls = ["pkg:pypi/Flask@1.9", "pkg:npm/a@1.0.0"];
    let (image, _) = push_with(&client, &name, "1", &purls).await;
    assert_eq!(client.get(&format!("/v2/{name}/manifests/1")).await.status, 200);
    server.server().parts().registry.flush_pulls().await;
    let mut flask = record("GHSA-1", ("PyPI", "flask"), "1.10");
    flask["aliases"] = json!(["CVE-2026-1", "PYSEC-1"]);
    let mut npm = record("GHSA-2", ("npm", "a"), "");
    npm["severity"] = json!([]);
    import(server, "test", &[npm, flask], &[], "commit").await;
    matched(server).await;
    let [(true, event)] = &told(server).await[..] else { panic!("one event of what opened") };
    assert_eq!((event.repo_uid.as_str(), event.repo_name.as_str()), (&*repo_uid(server, "app").await, "app"));
    assert_eq!((event.digest.as_str(), &event.tags, event.finding_count), (&*image, &vec!["1".to_owned()], 2));
    assert!(event.last_pulled_at.is_some(), "{event:?}");
    assert!(event.last_pulled_by.starts_with(&org), "{event:?}");
    let [first, second] = &event.findings[..] else { panic!("two findings") };
    assert_eq!((first.vulnerability.as_str(), first.record_id.as_str()), ("CVE-2026-1", "GHSA-1"), "the most severe");
    assert_eq!((first.component.as_str(), first.purl.as_str()), ("Flask", "pkg:pypi/Flask@1.9"));
    assert_eq!((first.version.as_str(), first.fixed_version.as_str()), ("1.9", "1.10"));
    assert_eq!((&first.aliases, first.source.as_str()), (&vec!["PYSEC-1".to_owned()], "test"));
    assert_eq!((second.vulnerability.as_str(), second.fixed_version.as_str()), ("GHSA-2", ""));
    let group = "SELECT group_uid FROM outbox WHERE event_type LIKE '%finding%'";
    assert_eq!(texts(server, group).await, [org], "subscriptions of the group get it");
}

async fn findings_open_and_close_once(server: &TestServer) {
    let (org, client) = pusher(server, "acme").await;
    let (name, mut at) = (format!("{org}/app"), 0);
    let flask = "pkg:pypi/flask@1.9";
    let (image, referrer) = push_with(&client, &name, "1", &[flask]).await;
    assert_eq!(lines(server, &mut at).await, [""; 0]);
    import(server, "test", &[record("PYSEC-1", ("PyPI", "flask"), "2")], &[], "commit").await;
    assert_eq!(lines(server, &mut at).await, ["+ app PYSEC-1 1.9"]);
    let components = [(flask, "", flask, "MIT"), ("pkg:npm/b@1", "", "pkg:npm/b@1", "MIT")];
    let second = attach(&client, &name, &image, SBOM, &cyclonedx(&components)).await;
    let mut again = record("PYSEC-1", ("PyPI", "flask"), "3");
    again["severity"] = json!([]);
    import(server, "test", &[again.clone()], &[], "commit").await;
    let mut same = record("GHSA-1", ("PyPI", "flask"), "");
    same["aliases"] = json!(["PYSEC-1"]);
    assert_eq!(lines(server, &mut at).await, [""; 0], "another SBOM with it, another fix");
    import(server, "other", &[same], &[], "commit").await;
    assert_eq!(lines(server, &mut at).await, ["+ app GHSA-1 1.9"]);
    delete(&client, &name, &referrer).await;
    assert_eq!(lines(server, &mut at).await, [""; 0], "the other SBOM has it");
    delete(&client, &name, &second).await;
    let gone = |id: &str| format!("- app {id} 1.9 CLOSING_REASON_COMPONENT_REMOVED");
    assert_eq!(lines(server, &mut at).await, [gone("GHSA-1"), gone("PYSEC-1")]);
    attach(&client, &name, &image, SBOM, &cyclonedx(&components)).await;
    assert_eq!(lines(server, &mut at).await, ["+ app GHSA-1 1.9", "+ app PYSEC-1 1.9"], "again");
    import(server, "other", &[], &["GHSA-1"], "commit").await;
    assert_eq!(lines(server, &mut at).await, ["- app GHSA-1 1.9 CLOSING_REASON_RECORD_CHANGED"]);
    delete(&client, &name, &image).await;
    assert_eq!(lines(server, &mut at).await, ["- app PYSEC-1 1.9 CLOSING_REASON_IMAGE_DELETED"]);
    assert_eq!(number(server, "SELECT count(*) FROM image_findings").await, 0);
}

async fn what_closes_is_named_as_when_it_opened(server: &TestServer) {
    let (org, client) = pusher(server, "acme").await;
    let (name, purl) = (format!("{org}/app"), "pkg:pypi/Flask@1.9?x=y");
    let named = async |is_opened: bool, reason: ClosingReason| {
        matched(server).await;
        let events = told(server).await;
        let (was_opened, event) = events.last().expect("an event");
        let [finding] = &event.findings[..] else { panic!("one finding: {event:?}") };
        assert_eq!((*was_opened, finding.closing_reason()), (is_opened, reason));
        let names = (finding.component.as_str(), finding.purl.as_str(), finding.version.as_str());
        assert_eq!(names, ("Flask", purl, "1.9"), "{reason:?}");
    };
    let open = ClosingReason::Unspecified;
    let flask = || record("PYSEC-1", ("PyPI", "flask"), "2");
    let (image, referrer) = push_with(&client, &name, "1", &[purl]).await;
    import(server, "test", &[flask()], &[], "commit").await;
    named(true, open).await;
    import(server, "test", &[], &["PYSEC-1"], "commit").await;
    named(false, ClosingReason::RecordChanged).await;
    import(server, "test", &[flask()], &[], "commit").await;
    named(true, open).await;
    delete(&client, &name, &referrer).await;
    collected(server).await;
    named(false, ClosingReason::ComponentRemoved).await;
    let components = [("Flask", "", purl, "MIT")];
    let again = attach(&client, &name, &image, SBOM, &cyclonedx(&components)).await;
    named(true, open).await;
    delete(&client, &name, &again).await;
    delete(&client, &name, &image).await;
    collected(server).await;
    named(false, ClosingReason::ImageDeleted).await;
}

async fn whatever_names_the_sbom_of_an_image_comes_in_any_order(server: &TestServer) {
    let (org, client) = pusher(server, "acme").await;
    import(server, "test", &[record("PYSEC-1", ("PyPI", "flask"), "2")], &[], "commit").await;
    let (name, mut at) = (format!("{org}/app"), 0);
    let document = cyclonedx(&[("flask", "1.9", "pkg:pypi/flask@1.9", "MIT")]);
    let later = image(b"later");
    attach(&client, &name, &digest_of(&later), SBOM, &document).await;
    assert_eq!(lines(server, &mut at).await, [""; 0], "there is no image yet");
    client.image(&name, "later", b"later").await;
    assert_eq!(lines(server, &mut at).await, ["+ app PYSEC-1 1.9"]);
    // By a tag, as cosign names what is attached.
    let tagged = digest_of(&client.image(&name, "tagged", b"tagged").await);
    let unnamed = artifact(SBOM, document.as_bytes());
    let tag = format!("{}.att", tagged.replace(':', "-"));
    push(&client, &name, Some(&tag), &unnamed, document.as_bytes()).await;
    assert_eq!(lines(server, &mut at).await, ["+ app PYSEC-1 1.9"]);
    delete(&client, &name, &tag).await;
    assert_eq!(lines(server, &mut at).await, ["- app PYSEC-1 1.9 CLOSING_REASON_COMPONENT_REMOVED"]);
    // By an index that names both, as builders do.
    let built = client.image(&name, "built", b"built").await;
    let member = |manifest: &Value| json!({ "mediaType": manifest["mediaType"], "digest": digest_of(manifest), "size": manifest.to_string().len() });
    let mut attestation = member(&unnamed);
    attestation["annotations"] = json!({ "vnd.docker.reference.digest": digest_of(&built) });
    let index = json!({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.index.v1+json",
        "manifests": [member(&built), attestation],
    });
    let reply = client.put(&name, "index", &index).await;
    assert_eq!(reply.status, 201, "{}", reply.text());
    assert_eq!(lines(server, &mut at).await, ["+ app PYSEC-1 1.9"]);
    delete(&client, &name, &digest_of(&index)).await;
    assert_eq!(lines(server, &mut at).await, ["- app PYSEC-1 1.9 CLOSING_REASON_COMPONENT_REMOVED"]);
}

async fn many_findings_are_counted_and_a_part_is_named(server: &TestServer) {
    let (org, client) = pusher(server, "acme").await;
    push_with(&client, &format!("{org}/app"), "1", &["pkg:pypi/flask@1.9"]).await;
    let records: Vec<_> = (0..130).map(|n| record(&format!("PYSEC-{n}"), ("PyPI", "flask"), "2")).collect();
    import(server, "test", &records, &[], "commit").await;
    matched(server).await;
    let all: Vec<String> = records.iter().map(|record| record["id"].as_str().expect("an id").to_owned()).collect();
    import(server, "test", &[], &all.iter().map(String::as_str).collect::<Vec<_>>(), "commit").await;
    matched(server).await;
    let [(true, opened), (false, closed)] = &told(server).await[..] else { panic!("two events") };
    for event in [opened, closed] {
        assert_eq!((event.findings.len(), event.finding_count), (100, 130));
        let named: BTreeSet<&str> = event.findings.iter().map(|finding| finding.vulnerability.as_str()).collect();
        assert_eq!(named.len(), 100, "each once");
    }
}

async fn what_one_step_does_not_write_is_told_by_the_next(server: &TestServer) {
    let (org, client) = pusher(server, "acme").await;
    let purls: Vec<String> = (0..25).map(|minor| format!("pkg:pypi/flask@1.{minor}")).collect();
    let purls: Vec<&str> = purls.iter().map(String::as_str).collect();
    let (image, _) = push_with(&client, &format!("{org}/app"), "1", &purls).await;
    let records: Vec<_> = (0..100).map(|n| record(&format!("PYSEC-{n}"), ("PyPI", "flask"), "2")).collect();
    import(server, "test", &records, &[], "commit").await;
    matched(server).await;
    delete(&client, &format!("{org}/app"), &image).await;
    matched(server).await;
    for is_opened in [true, false] {
        let events: Vec<i32> = told(server)
            .await
            .into_iter()
            .filter_map(|(was_opened, image)| (was_opened == is_opened).then_some(image.finding_count))
            .collect();
        assert!(events.len() > 1 && events.iter().sum::<i32>() == 2500, "{is_opened}: {events:?}");
    }
    assert_eq!(number(server, "SELECT count(*) FROM image_findings").await, 0);
}

/// Creates an advisory about a package, or a component of one; its UIDP.
pub(crate) async fn advisory(
    server: &TestServer,
    group: &str,
    (artifact, component): (&str, &str),
    alias: &str,
) -> String {
    let mut body = json!({ "artifactType": "apk", "artifactName": artifact, "aliases": [alias] });
    if !component.is_empty() {
        body["componentName"] = json!(component);
        body["componentType"] = json!("go-module");
    }
    let path = "/vulnerabilities/v1/advisories";
    let created = answer(server, "POST", path, json!({ "parentId": group, "advisory": body })).await;
    created["id"].as_str().expect("an id").to_owned()
}

/// Adds an approved event to an advisory.
pub(crate) async fn say(server: &TestServer, advisory: &str, said: Value) {
    let path = format!("/vulnerabilities/v1/advisories/{advisory}/events");
    let event = answer(server, "POST", &path, json!({ "advisoryEvent": said })).await;
    let group = advisory.rsplit_once('/').expect("a group").0;
    let review = json!({ "reviews": [{ "uid": event["id"], "status": "APPROVED" }] });
    answer(server, "POST", &format!("/advisoryreviews/v1/groups/{group}:batchReviewEvents"), review).await;
}

async fn answer(server: &TestServer, verb: &str, path: &str, body: Value) -> Value {
    let reply = server.operator().await.rest(verb, path, Some(body)).await;
    assert_eq!(reply.status, 200, "{path}: {}", reply.text());
    reply.json()
}

pub(crate) fn not_affected() -> Value {
    json!({ "falsePositiveDetermination": { "type": "VULNERABLE_CODE_NOT_IN_EXECUTION_PATH" } })
}

async fn advisories_close_findings_and_open_them_again(server: &TestServer) {
    let (org, client) = pusher(server, "acme").await;
    let (others, other_client) = pusher(server, "others").await;
    push_with(&client, &format!("{org}/app"), "1", &["pkg:apk/wolfi/libssl3@3.0-r1?origin=openssl"]).await;
    push_with(&client, &format!("{org}/web"), "1", &["pkg:apk/wolfi/libssl3@3.1-r0?origin=openssl"]).await;
    push_with(&other_client, &format!("{others}/theirs"), "1", &["pkg:apk/wolfi/libssl3@3.0-r1"]).await;
    let mut ssl = record("CGA-abcd-efgh-ijkm", ("Wolfi", "libssl3"), "4");
    ssl["aliases"] = json!(["GHSA-jfh8-c2jp-5v3q"]);
    import(server, "test", &[ssl], &[], "commit").await;
    let mut at = 0;
    let id = "CGA-abcd-efgh-ijkm";
    let opened = |repo: &str, version: &str| format!("+ {repo} {id} {version}");
    let closed = |repo: &str, version: &str| format!("- {repo} {id} {version} CLOSING_REASON_ADVISORY");
    let mut first = lines(server, &mut at).await;
    first.sort();
    assert_eq!(first, [opened("app", "3.0-r1"), opened("theirs", "3.0-r1"), opened("web", "3.1-r0")]);
    // By the origin of the package and an alias of the record; of its own organization alone.
    let of_org = advisory(server, &org, ("openssl", ""), "ghsa-JFH8-c2jp-5v3q").await;
    assert_eq!(lines(server, &mut at).await, [""; 0], "it says nothing yet");
    say(server, &of_org, json!({ "fixed": { "fixedVersion": "3.1-r0" } })).await;
    assert_eq!(lines(server, &mut at).await, [closed("web", "3.1-r0")], "fixed in this version, not below it");
    let listed = get(&server.operator().await, &format!("/matches/v1/matches?scope={org}")).await;
    for one in listed["matches"].as_array().expect("matches") {
        assert_eq!(one["status"], json!("FINDING_STATUS_FIXED"), "{one}");
        assert_eq!(one["closedByAdvisory"], json!(one["repoName"] == json!("web")), "{one}");
        assert_eq!(one["advisory"]["uid"], json!(of_org), "{one}");
    }
    server.clock().advance(Duration::from_secs(1));
    say(server, &of_org, not_affected()).await;
    assert_eq!(lines(server, &mut at).await, [closed("app", "3.0-r1")]);
    server.clock().advance(Duration::from_secs(1));
    say(server, &of_org, json!({ "truePositiveDetermination": { "note": "n" } })).await;
    let mut again = lines(server, &mut at).await;
    again.sort();
    assert_eq!(again, [opened("app", "3.0-r1"), opened("web", "3.1-r0")]);
    for (what, artifact, component, alias) in [
        ("another package", "curl", "", "GHSA-jfh8-c2jp-5v3q"),
        ("another component", "openssl", "stdlib", "GHSA-jfh8-c2jp-5v3q"),
        ("another vulnerability", "openssl", "", "CVE-2026-7"),
    ] {
        let other = advisory(server, &org, (artifact, component), alias).await;
        say(server, &other, not_affected()).await;
        assert_eq!(lines(server, &mut at).await, [""; 0], "{what}");
    }
    server.clock().advance(Duration::from_secs(1));
    say(server, &of_org, not_affected()).await;
    assert_eq!(lines(server, &mut at).await.len(), 2);
    let push = push_with(&client, &format!("{org}/new"), "1", &["pkg:apk/wolfi/libssl3@3.0-r1?origin=openssl"]).await;
    assert_eq!(lines(server, &mut at).await, [""; 0], "what comes later is closed from the beginning");
    delete(&client, &format!("{org}/new"), &push.0).await;
    let path = format!("/vulnerabilities/v1/advisories/{of_org}");
    assert_eq!(server.operator().await.rest("DELETE", &path, None).await.status, 200);
    assert_eq!(lines(server, &mut at).await.len(), 2, "without the advisory both are open again");
}

async fn an_advisory_about_one_record_is_about_all_of_the_vulnerability(server: &TestServer) {
    let (org, client) = pusher(server, "acme").await;
    push_with(&client, &format!("{org}/app"), "1", &["pkg:pypi/flask@1.9"]).await;
    let records = ["GHSA-1", "PYSEC-1"].map(|id| {
        let mut record = record(id, ("PyPI", "flask"), "2");
        record["aliases"] = json!(["CVE-2026-1"]);
        record
    });
    import(server, "test", &records, &[], "commit").await;
    let mut at = 0;
    assert_eq!(lines(server, &mut at).await, ["+ app CVE-2026-1 1.9"]);
    let advisory = advisory(server, &org, ("flask", ""), "PYSEC-1").await;
    say(server, &advisory, not_affected()).await;
    assert_eq!(lines(server, &mut at).await, ["- app CVE-2026-1 1.9 CLOSING_REASON_ADVISORY"]);
    let listed = get(&server.operator().await, &format!("/matches/v1/matches?scope={org}")).await;
    let closed: Vec<&Value> =
        listed["matches"].as_array().expect("matches").iter().map(|one| &one["closedByAdvisory"]).collect();
    assert_eq!(closed, [true, true]);
}

async fn images_are_found_by_their_findings(server: &TestServer) {
    let (org, client) = pusher(server, "acme").await;
    let operator = server.operator().await;
    let mut digests = BTreeSet::new();
    for tag in 0..5 {
        let (image, _) =
            push_with(&client, &format!("{org}/app"), &tag.to_string(), &[&format!("pkg:pypi/flask@1.{tag}")]).await;
        digests.extend((tag < 4).then_some(image));
    }
    let mut flask = record("GHSA-1", ("PyPI", "flask"), "1.4");
    flask["aliases"] = json!(["CVE-2026-1"]);
    import(server, "test", &[flask], &[], "commit").await;
    matched(server).await;
    for (query, expected) in [
        ("cve=CVE-2026-1", 4),
        ("cve=CVE-2026-1&package=pkg:pypi/flask", 4),
        ("cve=CVE-2026-1&package=pkg:pypi/flask&below=1.2", 2),
        ("cve=CVE-2026-2", 0),
    ] {
        let (mut found, mut token) = (Vec::new(), String::new());
        loop {
            let path = format!("/components/v1/images?scope={org}&{query}&page_size=1&page_token={token}");
            let page = get(&operator, &path).await;
            let images = page["matches"].as_array().into_iter().flatten();
            found.extend(images.filter_map(|image| image["digest"].as_str().map(String::from)));
            page["nextPageToken"].as_str().unwrap_or_default().clone_into(&mut token);
            if token.is_empty() {
                break;
            }
        }
        assert_eq!(found.len(), expected, "{query}: {found:?}");
        assert!(found.iter().all(|digest| digests.contains(digest)), "{query}: {found:?}");
    }
    assert_eq!(get(&server.stranger().await, "/components/v1/images?cve=CVE-2026-1").await["matches"], json!([]));
    // Deleted, and not looked at yet.
    for image in &digests {
        delete(&client, &format!("{org}/app"), image).await;
    }
    assert_eq!(get(&operator, "/components/v1/images?cve=CVE-2026-1").await["matches"], json!([]));
}

each_engine!(
    multi_thread: the_event_of_an_image_says_what_to_do,
    findings_open_and_close_once,
    what_closes_is_named_as_when_it_opened,
    whatever_names_the_sbom_of_an_image_comes_in_any_order,
    many_findings_are_counted_and_a_part_is_named,
    what_one_step_does_not_write_is_told_by_the_next,
    advisories_close_findings_and_open_them_again,
    an_advisory_about_one_record_is_about_all_of_the_vulnerability,
    images_are_found_by_their_findings,
);
