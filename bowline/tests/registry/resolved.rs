//! Which vulnerabilities of images were resolved, day by day: out of the moves of tags, SBOMs and advisories.

use std::time::Duration;

use bowline_testkit::{Actor, TestServer, each_engine};
use serde_json::{Value, json};

use crate::support::*;

const DAY: Duration = Duration::from_secs(24 * 3600);

async fn post(actor: &Actor, path: &str, body: Value) -> Value {
    let reply = actor.rest("POST", path, Some(body)).await;
    assert_eq!(reply.status, 200, "{path}: {}", reply.text());
    reply.json()
}

/// An advisory of a package with these approved events.
async fn validated(server: &TestServer, group: &str, package: &str, alias: &str, events: &[Value]) {
    let operator = server.operator().await;
    let advisory = json!({ "artifactType": "apk", "artifactName": package, "aliases": [alias] });
    let body = json!({ "parentId": group, "advisory": advisory });
    let created = post(&operator, "/vulnerabilities/v1/advisories", body).await;
    let path = format!("/vulnerabilities/v1/advisories/{}/events", created["id"].as_str().unwrap());
    for event in events {
        post(&operator, &path, json!({ "advisoryEvent": event })).await;
    }
}

/// Pushes an image with an SBOM that has this package, and points the tag to it.
async fn pushed(client: &Client, name: &str, tag: &str, package: &str, purl: &str) {
    let of = digest_of(&client.image(name, tag, package.as_bytes()).await);
    let references = json!([{ "referenceType": "purl", "referenceLocator": purl }]);
    let packages = json!([{ "SPDXID": "SPDXRef-a", "name": package, "versionInfo": "1", "externalRefs": references }]);
    let sbom = json!({ "spdxVersion": "SPDX-2.3", "name": "app", "packages": packages }).to_string();
    client.blob(name, sbom.as_bytes()).await;
    let mut referrer = image(sbom.as_bytes());
    referrer["layers"][0]["mediaType"] = json!("application/spdx+json");
    referrer["subject"] = json!({ "mediaType": IMAGE, "digest": of, "size": 1 });
    assert_eq!(client.put(name, &digest_of(&referrer), &referrer).await.status, 201);
}

async fn resolutions_are_listed_on_their_day_for_the_image_of_that_day(server: &TestServer) {
    let (org, client) = pusher(server, "acme").await;
    let name = format!("{org}/app");
    let day = |offset: i64| server.clock().seconds() / 86400 * 86400 + offset * 86400;
    let first = day(0);
    pushed(&client, &name, "latest", "libcurl", "pkg:apk/x/libcurl@1?arch=x86_64&origin=curl").await;
    server.clock().advance(DAY * 2);
    // Two days later the tag has another image, with another package.
    let client = client_again(server, &org).await;
    pushed(&client, &name, "latest", "busybox", "pkg:apk/x/busybox@1").await;
    server.clock().advance(DAY);

    let at = |offset: i64, second: i64| {
        let time = prost_types::Timestamp { seconds: first + offset * 86400 + second, nanos: 0 };
        time.to_string()
    };
    let fixed = |time: String| json!({ "timestamp": time, "status": "APPROVED", "fixed": { "fixedVersion": "2" } });
    let dismissed = |time: String| {
        let why = json!({ "type": "COMPONENT_VULNERABILITY_MISMATCH" });
        json!({ "timestamp": time, "status": "APPROVED", "falsePositiveDetermination": why })
    };
    validated(server, &org, "curl", "CVE-1", &[fixed(at(1, 5)), dismissed(at(1, 6))]).await;
    validated(server, &org, "libcurl", "CVE-2", &[dismissed(at(1, 0))]).await;
    validated(server, &org, "curl", "CVE-3", &[fixed(at(3, 5))]).await;
    validated(server, &org, "busybox", "CVE-4", &[fixed(at(1, 5))]).await;
    validated(server, &org, "busybox", "CVE-5", &[fixed(at(3, 5))]).await;
    validated(server, &org, "busybox", "CVE-6", &[json!({ "timestamp": at(3, 1), "fixed": { "fixedVersion": "2" } })])
        .await;
    // Of another organization, and not public.
    let others = server.organization("others").await;
    validated(server, &others, "busybox", "CVE-7", &[fixed(at(3, 5))]).await;

    let operator = server.operator().await;
    let query = format!("image_refs=app:latest&start_time={}&end_time={}", at(0, 7), at(3, 9));
    let reply = operator.rest("GET", &format!("/advisory/v2/images/resolvedVulns?{query}"), None).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    let reply = reply.json();
    let reports = reply["resolvedVulnsReports"].as_array().unwrap();
    let seen: Vec<Vec<&str>> = reports.iter().map(|report| aliases(&report["resolvedVulns"])).collect();
    assert_eq!(seen, [vec![], vec!["CVE-1", "CVE-2"], vec![], vec!["CVE-5"]]);
    assert_eq!(reports[1]["date"], json!(at(1, 0)));
    let one = &reports[3]["resolvedVulns"][0];
    assert!(one["id"].as_str().unwrap().starts_with("BWL-"));
    assert_eq!(one["cvssSeverities"], json!([{ "type": "TYPE_UNSPECIFIED", "score": "" }]));

    // V1, the tag left open; and what others publish.
    let path = format!("/advisorysettings/v1/groups/{others}");
    assert_eq!(operator.rest("PATCH", &path, Some(json!({ "public": true }))).await.status, 200);
    let query = format!("image_refs=app&from={}&to={}", at(3, 0), at(3, 0));
    let reply = operator.rest("GET", &format!("/advisory/v1/images/resolved_vulns?{query}"), None).await.json();
    assert_eq!(aliases(&reply["items"][0]["resolvedVulns"]), ["CVE-5", "CVE-7"]);

    for (query, field) in [
        (format!("start_time={}&end_time={}", at(0, 0), at(1, 0)), "imageRefs"),
        (format!("image_refs=app&start_time={}", at(0, 0)), "endTime"),
        (format!("image_refs=app&start_time={}&end_time={}", at(1, 0), at(0, 0)), "endTime"),
        (format!("image_refs=app&start_time={}&end_time={}", at(-400, 0), at(0, 0)), "startTime"),
    ] {
        let reply = operator.rest("GET", &format!("/advisory/v2/images/resolvedVulns?{query}"), None).await;
        assert_eq!(reply.status, 400, "{query}");
        assert!(reply.text().contains(field), "{query}: {}", reply.text());
    }
    let counts = operator.rest("GET", "/registry/v1/vuln_reports/counts?references=app:latest", None).await;
    assert_eq!(counts.status, 200, "{}", counts.text());
}

fn aliases(found: &Value) -> Vec<&str> {
    let mut aliases: Vec<&str> =
        found.as_array().unwrap().iter().map(|one| one["aliases"][0].as_str().unwrap()).collect();
    aliases.sort_unstable();
    aliases
}

/// Tokens end after an hour.
async fn client_again(server: &TestServer, org: &str) -> Client {
    client(server, "registry.push", org).await
}

each_engine!(multi_thread: resolutions_are_listed_on_their_day_for_the_image_of_that_day);
