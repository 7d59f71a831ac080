//! The packages of an image, page by page.

use bowline_testkit::{Actor, TestServer, each_engine};
use serde_json::{Value, json};

use crate::documents::{artifact, push};
use crate::support::*;

/// An SBOM of these packages: names, versions and package URLs.
fn spdx(packages: &[(&str, &str, &str)]) -> String {
    let packages: Vec<Value> = packages
        .iter()
        .enumerate()
        .map(|(at, (name, version, purl))| {
            json!({ "SPDXID": format!("SPDXRef-{at}"), "name": name, "versionInfo": version, "licenseDeclared": "MIT",
                    "externalRefs": [{ "referenceType": "purl", "referenceLocator": purl }] })
        })
        .collect();
    let created = json!({ "created": "2026-01-02T03:04:05Z", "creators": [] });
    json!({ "spdxVersion": "SPDX-2.3", "name": "app", "creationInfo": created, "packages": packages }).to_string()
}

async fn list(actor: &Actor, image: &str, query: &str) -> Value {
    let path = format!("/images/v1/repos/{image}/packages?{query}");
    let reply = actor.rest("GET", &path, None).await;
    assert_eq!(reply.status, 200, "{path}: {}", reply.text());
    reply.json()
}

fn named(list: &Value) -> Vec<String> {
    let packages = list["packages"].as_array().unwrap();
    packages
        .iter()
        .map(|one| format!("{} {}", one["name"].as_str().unwrap(), one["version"].as_str().unwrap()))
        .collect()
}

async fn packages_are_listed_filtered_and_paged(server: &TestServer) {
    let (org, client) = pusher(server, "acme").await;
    let name = format!("{org}/app");
    let of = digest_of(&client.image(&name, "1", b"a layer").await);
    let repo = repo_uid(server, "app").await;
    let image = format!("{repo}/images/{of}");
    let operator = server.operator().await;
    let what = format!("/images/v1/repos/{image}/packages");
    assert_eq!(operator.rest("GET", &what, None).await.status, 404, "without an SBOM");
    let sbom = spdx(&[
        ("musl", "1.2", "pkg:apk/musl@1.2"),
        ("libssl3", "3.1", "pkg:apk/libssl3@3.1?origin=openssl"),
        ("libcrypto3", "3.1", "pkg:apk/libcrypto3@3.1?origin=openssl"),
        ("musl", "1.1", "pkg:apk/musl@1.1"),
        ("musl", "1.2", "pkg:apk/musl@1.2"),
    ]);
    let mut referrer = artifact("application/spdx+json", sbom.as_bytes());
    referrer["subject"] = json!({ "mediaType": IMAGE, "digest": of, "size": 1 });
    push(&client, &name, None, &referrer, sbom.as_bytes()).await;
    let all = ["libcrypto3 3.1", "libssl3 3.1", "musl 1.1", "musl 1.2"];
    let shown = list(&operator, &image, "").await;
    assert_eq!((named(&shown), &shown["totalCount"]), (all.map(String::from).to_vec(), &json!("4")));
    let purl = "pkg:apk/libssl3@3.1?origin=openssl";
    let package = json!({ "name": "libssl3", "version": "3.1", "purl": purl, "license": "MIT", "origin": "openssl" });
    assert_eq!(shown["packages"][1], package);
    for (query, expected) in [("", &all[..]), ("query=MUS", &all[2..]), ("query=OpenSSL", &all[..2]), ("query=zz", &[])]
    {
        let (mut walked, mut token) = (Vec::new(), String::new());
        loop {
            let page = list(&operator, &image, &format!("{query}&page_size=1&page_token={token}")).await;
            walked.extend(named(&page));
            page["nextPageToken"].as_str().unwrap_or_default().clone_into(&mut token);
            if token.is_empty() {
                break;
            }
        }
        assert_eq!(walked, expected, "{query}");
    }
    for (query, status) in
        [("page_size=-1", 400), ("architecture=riscv64", 404), (&*format!("query={}", "x".repeat(129)), 400)]
    {
        assert_eq!(operator.rest("GET", &format!("{what}?{query}"), None).await.status, status, "{query}");
    }
    let token = list(&operator, &image, "page_size=1").await["nextPageToken"].as_str().unwrap().to_owned();
    let of_another = format!("{what}?query=musl&page_size=1&page_token={token}");
    assert_eq!(operator.rest("GET", &of_another, None).await.status, 400);
    assert_eq!(server.stranger().await.rest("GET", &what, None).await.status, 403);
}

each_engine!(multi_thread: packages_are_listed_filtered_and_paged);
