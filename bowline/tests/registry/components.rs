//! Images by their components: what SBOMs list is searched, and gone with its image.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bowline_core::Clock as _;
use bowline_identity::people;
use bowline_registry::components::SbomPosition;
use bowline_server::{Plan, collect};
use bowline_store::Engine;
use bowline_testkit::{Actor, Browser, TestServer, each_engine};
use serde_json::{Value, json};

use crate::documents::{artifact, push};
use crate::support::*;

const LOG4J: &str = "pkg:maven/org.apache.logging.log4j/log4j-core";

/// A CycloneDX document of these components: names, versions, package URLs and licenses.
pub(crate) fn cyclonedx(components: &[(&str, &str, &str, &str)]) -> String {
    let components: Vec<Value> = components
        .iter()
        .map(|(name, version, purl, license)| {
            json!({ "type": "library", "name": name, "version": version, "purl": purl,
                    "licenses": [{ "expression": license }] })
        })
        .collect();
    json!({ "bomFormat": "CycloneDX", "components": components }).to_string()
}

fn spdx(name: &str, version: &str, purl: &str, license: &str) -> String {
    let reference = json!({ "referenceType": "purl", "referenceLocator": purl });
    let package = json!({ "SPDXID": "SPDXRef-a", "name": name, "versionInfo": version, "licenseDeclared": license,
                          "externalRefs": [reference] });
    json!({ "spdxVersion": "SPDX-2.3", "name": "app", "packages": [package] }).to_string()
}

fn in_toto(predicate: &str) -> String {
    format!(r#"{{"_type":"https://in-toto.io/Statement/v1","predicateType":"x","predicate":{predicate}}}"#)
}

/// Pushes a document that refers to an image; the digest of its manifest.
pub(crate) async fn attach(client: &Client, name: &str, image: &str, media_type: &str, document: &str) -> String {
    let mut referrer = artifact(media_type, document.as_bytes());
    referrer["subject"] = json!({ "mediaType": IMAGE, "digest": image, "size": 1 });
    push(client, name, None, &referrer, document.as_bytes()).await
}

pub(crate) async fn get(actor: &Actor, path: &str) -> Value {
    let reply = actor.rest("GET", path, None).await;
    assert_eq!(reply.status, 200, "{path}: {}", reply.text());
    reply.json()
}

async fn find(actor: &Actor, query: &str) -> Value {
    get(actor, &format!("/components/v1/images?{query}")).await
}

fn named(response: &Value) -> Vec<String> {
    let text = |one: &Value, member: &str| one[member].as_str().unwrap_or_default().to_owned();
    let matches = response["matches"].as_array().cloned().unwrap_or_default();
    let named = matches.iter().map(|one| {
        format!("{} {} {}", text(one, "repoName"), text(one, "component"), text(one, "version")).trim().to_owned()
    });
    named.collect()
}

/// All matches, one a page.
async fn walked(actor: &Actor, query: &str) -> Vec<String> {
    let (mut found, mut token) = (Vec::new(), String::new());
    loop {
        let page = find(actor, &format!("{query}&page_size=1&page_token={token}")).await;
        found.extend(named(&page));
        page["nextPageToken"].as_str().unwrap_or_default().clone_into(&mut token);
        if token.is_empty() {
            return found;
        }
    }
}

/// Three images with SBOMs in different places; the organization, its client, and the digests.
async fn filled(server: &TestServer) -> (String, Client, [String; 3]) {
    let (org, client) = pusher(server, "acme").await;
    let image_of = |repo: &'static str, client: Client, org: String| async move {
        digest_of(&client.image(&format!("{org}/{repo}"), "1", repo.as_bytes()).await)
    };
    let old = image_of("old", client.clone(), org.clone()).await;
    let components = [
        ("log4j-core", "2.14.1", &*format!("{LOG4J}@2.14.1?type=jar"), "Apache-2.0"),
        ("Py_Thing", "1", "pkg:pypi/Py_Thing@1", "MIT OR GPL-3.0-only"),
    ];
    attach(&client, &format!("{org}/old"), &old, "application/vnd.cyclonedx+json", &cyclonedx(&components)).await;
    let new = image_of("new", client.clone(), org.clone()).await;
    let document = spdx("log4j-core", "2.17.1", &format!("{LOG4J}@2.17.1"), "Apache-2.0");
    let envelope = json!({ "payload": STANDARD.encode(in_toto(&document)), "signatures": [] }).to_string();
    let signed = artifact("application/vnd.dsse.envelope.v1+json", envelope.as_bytes());
    let tag = format!("{}.att", new.replace(':', "-"));
    push(&client, &format!("{org}/new"), Some(&tag), &signed, envelope.as_bytes()).await;
    let within = image_of("within", client.clone(), org.clone()).await;
    let name = format!("{org}/within");
    let statement = in_toto(&spdx("log4j-core", "2.9", &format!("{LOG4J}@2.9"), "NOASSERTION"));
    let beside = artifact("application/vnd.in-toto+json", statement.as_bytes());
    push(&client, &name, None, &beside, statement.as_bytes()).await;
    let annotations = json!({ "vnd.docker.reference.digest": within });
    let mut member = descriptor(IMAGE, beside.to_string().as_bytes());
    member["annotations"] = annotations;
    let image = json!({ "mediaType": IMAGE, "digest": within, "size": image(b"within").to_string().len() });
    let index = json!({ "schemaVersion": 2, "mediaType": INDEX, "manifests": [image, member] });
    assert_eq!(client.put(&name, "all", &index).await.status, 201);
    (org, client, [old, new, within])
}

fn sorted(mut names: Vec<String>) -> Vec<String> {
    names.sort();
    names
}

async fn images_are_found_by_package_version_license_and_digest(server: &TestServer) {
    let (org, _, [old, new, within]) = filled(server).await;
    let operator = server.operator().await;
    let all = &["new log4j-core 2.17.1", "old log4j-core 2.14.1", "within log4j-core 2.9"][..];
    let python = "package=pkg:pypi/py-thing";
    for (query, expected) in [
        (format!("package={LOG4J}"), all),
        (format!("package={LOG4J}&below=2.17.1"), &all[1..]),
        (format!("package={LOG4J}&below=2.14"), &all[2..]),
        (format!("package={LOG4J}@2.14.1"), &all[1..2]),
        (format!("package={LOG4J}&digest={new}"), &all[..1]),
        (format!("package={LOG4J}&license=apache-2.0"), &all[..2]),
        ("license=GPL-3.0-only".to_owned(), &["old Py_Thing 1"]),
        ("license=mit+or+gpl-3.0-only".to_owned(), &["old Py_Thing 1"]),
        (python.to_owned(), &["old Py_Thing 1"]),
        ("package=pkg:npm/log4j-core".to_owned(), &[]),
        (format!("digest={old}"), &["old"]),
    ] {
        let query = format!("scope={org}&{query}");
        assert_eq!(sorted(named(&find(&operator, &query).await)), expected, "{query}");
        assert_eq!(sorted(walked(&operator, &query).await), expected, "{query}, page by page");
    }
    let shown = find(&operator, &format!("package={LOG4J}@2.9")).await["matches"][0].clone();
    for (member, expected) in [
        ("digest", json!(within)),
        ("tags", json!(["1", "all"])),
        ("purl", json!(format!("{LOG4J}@2.9"))),
        ("repoUid", json!(repo_uid(server, "within").await)),
    ] {
        assert_eq!(shown[member], expected, "{member}");
    }
    for wrong in [
        String::new(),
        "below=1".into(),
        "package=log4j".into(),
        format!("package={LOG4J}@1&below=2"),
        "digest=sha256:1".into(),
    ] {
        let reply = operator.rest("GET", &format!("/components/v1/images?{wrong}"), None).await;
        assert_eq!(reply.status, 400, "{wrong}: {}", reply.text());
    }
}

async fn licenses_are_counted_by_packages_and_images(server: &TestServer) {
    let (org, client, [old, ..]) = filled(server).await;
    let operator = server.operator().await;
    let listed = |actor: Actor, scope: String| async move {
        let response = get(&actor, &format!("/components/v1/licenses?scope={scope}")).await;
        let licenses = response["licenses"].as_array().cloned().unwrap_or_default();
        let line = |one: &Value| format!("{} {} {}", one["license"], one["packages"], one["images"]).replace('"', "");
        licenses.iter().map(line).collect::<Vec<_>>()
    };
    let all = [" 1 1", "Apache-2.0 1 2", "MIT OR GPL-3.0-only 1 1"];
    assert_eq!(listed(operator.clone(), org.clone()).await, all);
    let delete = format!("DELETE /v2/{org}/old/manifests/{old}");
    assert_eq!(client.send(&delete, &[], b"").await.status, 202);
    assert_eq!(listed(operator, org.clone()).await, [" 1 1", "Apache-2.0 1 1"]);
    assert!(listed(server.stranger().await, org).await.is_empty());
}

async fn hidden_repositories_are_as_if_they_were_not(server: &TestServer) {
    let (org, ..) = filled(server).await;
    let (other, client) = pusher(server, "other").await;
    let name = format!("{other}/theirs");
    let image = digest_of(&client.image(&name, "1", b"old").await);
    let document = cyclonedx(&[("log4j-core", "2.14.1", &format!("{LOG4J}@2.14.1?type=jar"), "MIT")]);
    attach(&client, &name, &image, "application/vnd.cyclonedx+json", &document).await;
    let reader = server.actor("owner", &other).await;
    for query in [format!("package={LOG4J}"), "license=mit".into(), format!("digest={image}")] {
        let own = find(&reader, &query).await;
        assert_eq!(own["matches"].as_array().map(Vec::len), Some(1), "{query}: {own}");
        assert_eq!(own["matches"][0]["repoName"], json!("theirs"), "{query}");
        assert_eq!(own["nextPageToken"], json!(""), "{query}");
        let nothing = find(&reader, &format!("{query}&scope={}", "0".repeat(40))).await;
        assert_eq!(find(&reader, &format!("{query}&scope={org}")).await, nothing, "{query}");
        assert_eq!(find(&server.stranger().await, &query).await, nothing, "{query}");
    }
}

async fn components_go_with_their_image(server: &TestServer) {
    let (org, client, [old, ..]) = filled(server).await;
    let operator = server.operator().await;
    let query = format!("package={LOG4J}@2.14.1");
    assert_eq!(named(&find(&operator, &query).await), ["old log4j-core 2.14.1"]);
    let components = || async { number(server, "SELECT count(*) FROM components").await };
    let before = components().await;
    let delete = format!("DELETE /v2/{org}/old/manifests/{old}");
    assert_eq!(client.send(&delete, &[], b"").await.status, 202);
    assert!(named(&find(&operator, &query).await).is_empty(), "its SBOM stays, and is about nothing");
    let repo = repo_uid(server, "old").await;
    assert_eq!(operator.rest("DELETE", &format!("/registry/v2/repos/{repo}"), None).await.status, 200);
    collected(server).await;
    assert_eq!(components().await, before - 2);
    let rest = "SELECT count(*) FROM component_packages p JOIN component_licenses l ON l.repo = p.repo
                WHERE p.package = 'pypi/py-thing' OR l.license = 'mit'";
    assert_eq!(number(server, rest).await, 0);
    assert_eq!(number(server, "SELECT count(*) FROM repo_sboms").await, 2);
}

pub(crate) async fn collected(server: &TestServer) {
    let parts = server.server().parts();
    let plan = Plan { until: server.clock().now(), is_dry_run: false };
    collect(&parts.storage.db, &parts.content, plan).await.unwrap();
}

/// The statement of the migration that notes what was pushed before it.
fn backfill(engine: Engine) -> &'static str {
    let text = match engine {
        Engine::Sqlite => include_str!("../../../crates/store/migrations/sqlite/0051_components.sql"),
        Engine::Postgres => include_str!("../../../crates/store/migrations/postgres/0051_components.sql"),
    };
    &text[text.find("INSERT INTO repo_sboms").expect("a statement")..]
}

async fn sboms_of_earlier_pushes_are_indexed_later(server: &TestServer) {
    let (org, ..) = filled(server).await;
    let operator = server.operator().await;
    let query = format!("scope={org}&package={LOG4J}");
    let before = find(&operator, &query).await;
    for sql in [
        "DELETE FROM components",
        "DELETE FROM component_packages",
        "DELETE FROM component_licenses",
        "DELETE FROM repo_sboms",
        backfill(server.server().parts().storage.db.engine()),
    ] {
        execute(server, sql).await;
    }
    let pending = find(&operator, &query).await;
    assert_eq!((named(&pending).len(), &pending["unindexedSboms"]), (0, &json!(3)));
    let registry = &server.server().parts().registry;
    let mut next = Some(SbomPosition::default());
    while let Some(from) = next {
        next = registry.index_pending(from).await.expect("they are read");
    }
    assert_eq!(find(&operator, &query).await, before);
}

async fn what_is_not_indexed_is_listed_with_the_reason(server: &TestServer) {
    let (org, client) = pusher(server, "acme").await;
    let name = format!("{org}/app");
    let image = digest_of(&client.image(&name, "1", b"a layer").await);
    let many = format!(r#"{{"bomFormat":"CycloneDX","components":[{}{{}}]}}"#, "{},".repeat(1_000_000));
    let deep = format!(
        r#"{{"bomFormat":"CycloneDX","components":[{}{}]}}"#,
        r#"{"components":["#.repeat(500),
        "]}".repeat(500)
    );
    let long = cyclonedx(&[("x", &"1".repeat(501), "", "MIT")]);
    let cycle = r#"{"bomFormat":"CycloneDX","components":[{"bom-ref":"a","name":"a","purl":"pkg:npm/a@1"},
        {"bom-ref":"b","name":"b"}],"dependencies":[{"ref":"a","dependsOn":["b"]},{"ref":"b","dependsOn":["a"]}]}"#;
    let large = format!(r#"{{"bomFormat":"CycloneDX","x":"{}"}}"#, "y".repeat(17 << 20));
    for document in [&many, &deep, &long, &large, r#"{"bomFormat":"#, cycle] {
        attach(&client, &name, &image, "application/vnd.cyclonedx+json", document).await;
    }
    attach(&client, &name, &image, "application/json", "{}").await;
    let operator = server.operator().await;
    let listed = get(&operator, &format!("/components/v1/unindexed?scope={org}")).await;
    let mut reasons: Vec<(String, String)> = Vec::new();
    for one in listed["sboms"].as_array().expect("a list") {
        let text = |member: &str| one[member].as_str().expect("a text").to_owned();
        reasons.push((text("digest"), text("reason")));
    }
    let mut expected: Vec<(String, String)> = [
        (&*many, "UNINDEXED_REASON_TOO_MANY_COMPONENTS"),
        (&deep, "UNINDEXED_REASON_UNREADABLE"),
        (&long, "UNINDEXED_REASON_TEXT_TOO_LONG"),
        (&large, "UNINDEXED_REASON_TOO_LARGE"),
        (r#"{"bomFormat":"#, "UNINDEXED_REASON_UNREADABLE"),
    ]
    .map(|(document, reason)| (digest(document.as_bytes()), reason.to_owned()))
    .to_vec();
    reasons.sort();
    expected.sort();
    assert_eq!(reasons, expected);
    let found = find(&operator, &format!("scope={org}&package=pkg:npm/a")).await;
    assert_eq!((named(&found), &found["unindexedSboms"]), (vec!["app a 1".to_owned()], &json!(5)));
    let first = get(&operator, &format!("/components/v1/unindexed?scope={org}&page_size=2")).await;
    assert_eq!(first["sboms"].as_array().map(Vec::len), Some(2));
    let token = first["nextPageToken"].as_str().expect("there are more");
    let second = get(&operator, &format!("/components/v1/unindexed?scope={org}&page_size=3&page_token={token}")).await;
    assert_eq!((second["sboms"].as_array().map(Vec::len), &second["nextPageToken"]), (Some(3), &json!("")));
}

async fn images_with_a_vulnerability_are_found_by_their_newest_report(server: &TestServer) {
    let (org, _, [old, ..]) = filled(server).await;
    let operator = server.operator().await;
    let repo = repo_uid(server, "old").await;
    let report = |ids: &[&str]| {
        let found = |id: &&str| {
            json!({ "vulnerability": { "id": id, "severity": "High", "fix": { "versions": [], "state": "unknown" } },
                    "artifact": { "name": "log4j-core", "version": "2.14.1", "type": "java-archive" } })
        };
        let matches: Vec<Value> = ids.iter().map(found).collect();
        let target = json!({ "manifestDigest": old, "imageID": digest(CONFIG_BYTES), "repoDigests": [] });
        json!({ "matches": matches, "source": { "type": "image", "target": target } }).to_string()
    };
    for (ids, expected) in [(&["CVE-2021-44228"][..], 1), (&[], 0)] {
        let body = json!({ "digest": old, "scanner": "SCANNER_NAME_GRYPE", "report": STANDARD.encode(report(ids)) });
        let reply = operator.rest("POST", &format!("/scans/v1/repos/{repo}/reports"), Some(body)).await;
        assert_eq!(reply.status, 200, "{}", reply.text());
        for query in ["", &format!("&package={LOG4J}"), &format!("&digest={old}")] {
            let query = format!("scope={org}&cve=CVE-2021-44228{query}");
            assert_eq!(walked(&operator, &query).await.len(), expected, "{query}");
        }
        assert!(walked(&operator, "cve=CVE-2021-4422").await.is_empty());
    }
}

/// A browser in which the operator is signed in, by a link that works once.
async fn browser_of_operator(server: &TestServer) -> Browser {
    let db = &server.server().parts().storage.db;
    let code = people::create_operator_link(db, [7; 16], "a look", server.clock().now()).await.expect("a link");
    let browser = server.browser();
    browser.post("/oauth/operator", &[("code", &code), ("answer", "console")]).await;
    browser
}

async fn pages_show_images_licenses_and_what_is_not_indexed(server: &TestServer) {
    let (org, client, [old, ..]) = filled(server).await;
    attach(&client, &format!("{org}/old"), &old, "application/spdx+json", "no JSON").await;
    let browser = browser_of_operator(server).await;
    let page = async |path: &str| {
        let reply = browser.get(path).await;
        assert_eq!(reply.status, 200, "{path}: {}", reply.text());
        reply.text()
    };
    let empty = page(&format!("/console/find?in={org}")).await;
    assert!(empty.contains("Give one condition at least") && !empty.contains("<table"), "{empty}");
    let found = page(&format!("/console/find?in={org}&package={LOG4J}&below=2.17.1")).await;
    for text in ["2.14.1", "2.9", "1 SBOM is not indexed", &*format!("digest={}", old.replace(':', "%3A"))] {
        assert!(found.contains(text), "{text}: {found}");
    }
    assert!(!found.contains("2.17.1</code>"), "only what is below: {found}");
    let licenses = page(&format!("/console/licenses?in={org}")).await;
    assert!(licenses.contains("license=Apache-2.0") && licenses.contains("MIT OR GPL-3.0-only"), "{licenses}");
    let unindexed = page(&format!("/console/unindexed-sboms?in={org}")).await;
    assert!(unindexed.contains("unreadable"), "{unindexed}");
}

async fn searches_go_on_beyond_what_one_page_examines(server: &TestServer) {
    let (org, client) = pusher(server, "acme").await;
    let image = digest_of(&client.image(&format!("{org}/app"), "1", b"app").await);
    // More than a page examines, and more than is examined at once, in the order in which they are stored.
    let versions: Vec<String> = (0..2400).map(|n| format!("2.{n}")).collect();
    let purls: Vec<String> = versions.iter().map(|version| format!("pkg:pypi/flask@{version}")).collect();
    let components: Vec<(&str, &str, &str, &str)> =
        versions.iter().zip(&purls).map(|(version, purl)| ("flask", version.as_str(), purl.as_str(), "MIT")).collect();
    attach(&client, &format!("{org}/app"), &image, "application/vnd.cyclonedx+json", &cyclonedx(&components)).await;
    let operator = server.operator().await;
    let package = format!("scope={org}&package=pkg:pypi/flask");
    for (wanted, name) in [("2.300", "app flask 2.300"), ("2.2390", "app flask 2.2390")] {
        assert_eq!(walked(&operator, &format!("{package}@{wanted}")).await, [name]);
    }
    let (mut found, mut token) = (Vec::new(), String::new());
    for size in [200, 200, 200] {
        let page = find(&operator, &format!("{package}&page_size={size}&page_token={token}")).await;
        found.extend(named(&page));
        page["nextPageToken"].as_str().expect("there are more").clone_into(&mut token);
    }
    let expected: Vec<String> = versions[..600].iter().map(|version| format!("app flask {version}")).collect();
    assert_eq!(found, expected, "each once, and pages are full");
}

each_engine!(
    multi_thread: images_are_found_by_package_version_license_and_digest,
    licenses_are_counted_by_packages_and_images,
    hidden_repositories_are_as_if_they_were_not,
    components_go_with_their_image,
    sboms_of_earlier_pushes_are_indexed_later,
    what_is_not_indexed_is_listed_with_the_reason,
    images_with_a_vulnerability_are_found_by_their_newest_report,
    pages_show_images_licenses_and_what_is_not_indexed,
    searches_go_on_beyond_what_one_page_examines,
);
