//! What was pushed beside images and as charts, told by the API.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bowline_contract::v1::registry::manifest_metadata_filter_entry::Filter;
use bowline_contract::v1::registry::rpc::registry::ListManifestMetadata;
use bowline_contract::v1::registry::{
    ManifestMetadata, ManifestMetadataFilter, ManifestMetadataFilterEntry, PkgMetadata,
};
use bowline_testkit::{TestServer, each_engine};
use serde_json::{Value, json};

use crate::support::*;

const SPDX: &str = r#"{ "spdxVersion": "SPDX-2.3", "name": "app", "comment": "of the tests",
  "creationInfo": { "created": "2026-01-02T03:04:05Z", "creators": ["Tool: maker-1", "Organization: Acme"] },
  "packages": [{ "SPDXID": "SPDXRef-a", "name": "musl", "versionInfo": "1.2", "licenseConcluded": "NOASSERTION",
    "licenseDeclared": "MIT", "externalRefs": [{ "referenceType": "purl", "referenceLocator": "pkg:apk/musl@1.2" }] }],
  "files": [{ "SPDXID": "SPDXRef-f", "fileName": "/lib/ld", "fileTypes": ["BINARY"] }],
  "relationships": [{ "spdxElementId": "SPDXRef-f", "relatedSpdxElement": "SPDXRef-a", "relationshipType": "CONTAINED_BY" }] }"#;

const CYCLONEDX: &str = r#"{ "bomFormat": "CycloneDX", "specVersion": "1.5",
  "metadata": { "timestamp": "2026-01-02T03:04:05Z", "tools": { "components": [{ "name": "maker", "version": "2" }] },
    "component": { "bom-ref": "root", "type": "container", "name": "app" } },
  "components": [{ "bom-ref": "a", "type": "library", "name": "musl", "version": "1.2", "purl": "pkg:apk/musl@1.2",
    "licenses": [{ "license": { "id": "MIT" } }], "components": [{ "type": "file", "name": "/lib/ld" }] }],
  "dependencies": [{ "ref": "root", "dependsOn": ["a"] }] }"#;

/// Asks for what is known of a digest.
async fn ask(server: &TestServer, path: &str) -> bowline_testkit::RestReply {
    server.operator().await.rest("GET", &format!("/registry/v1/repos/{path}"), None).await
}

async fn told(server: &TestServer, path: &str) -> Value {
    let reply = ask(server, path).await;
    assert_eq!(reply.status, 200, "{path}: {}", reply.text());
    reply.json()
}

/// A manifest with one layer.
pub(crate) fn artifact(media_type: &str, layer: &[u8]) -> Value {
    let mut manifest = image(layer);
    manifest["layers"][0]["mediaType"] = json!(media_type);
    manifest
}

/// Pushes a manifest with its layer.
pub(crate) async fn push(
    client: &Client,
    name: &str,
    reference: Option<&str>,
    manifest: &Value,
    layer: &[u8],
) -> String {
    client.blob(name, CONFIG_BYTES).await;
    client.blob(name, layer).await;
    let digest = digest_of(manifest);
    let reply = client.put(name, reference.unwrap_or(&digest), manifest).await;
    assert_eq!(reply.status, 201, "{}", reply.text());
    digest
}

async fn an_sbom_is_found_in_what_refers_to_the_image(server: &TestServer) {
    let (org, client) = pusher(server, "acme").await;
    let name = format!("{org}/app");
    let of = digest_of(&client.image(&name, "1", b"a layer").await);
    let repo = repo_uid(server, "app").await;
    for what in [format!("{repo}/digest/{of}/rawsbom"), format!("{repo}/digests/{of}/sbom")] {
        assert_eq!(ask(server, &what).await.status, 404, "{what}");
    }
    let mut referrer = artifact("application/spdx+json", SPDX.as_bytes());
    referrer["subject"] = json!({ "mediaType": IMAGE, "digest": of, "size": 1 });
    push(&client, &name, None, &referrer, SPDX.as_bytes()).await;
    let raw = told(server, &format!("{repo}/digest/{of}/rawsbom")).await;
    assert_eq!(raw["rawSbom"], json!(SPDX), "byte for byte");
    let sbom = told(server, &format!("{repo}/digests/{of}/sbom")).await;
    for (member, expected) in [
        ("id", json!(digest(SPDX.as_bytes()))),
        ("digest", json!(of)),
        ("format", json!("SPDX")),
        ("tool", json!("maker-1")),
        ("authors", json!("Organization: Acme")),
        ("name", json!("app")),
        ("generatedAt", json!("2026-01-02T03:04:05Z")),
        ("source", json!("INGESTED")),
    ] {
        assert_eq!(sbom[member], expected, "{member}");
    }
    let nodes = &sbom["graph"]["nodes"];
    let package = &nodes[0]["package"];
    assert_eq!((&package["purl"], &package["license"]), (&json!("pkg:apk/musl@1.2"), &json!("MIT")));
    assert_eq!(nodes[1]["file"]["name"], json!("/lib/ld"));
    let edge = json!({ "subjectId": "SPDXRef-a", "predicateId": "SPDXRef-f", "type": "CONTAINS" });
    assert_eq!(sbom["graph"]["edges"], json!([edge]));
    let filter = |digest: &str| ManifestMetadataFilter {
        repo_id: repo.clone(),
        items: vec![ManifestMetadataFilterEntry { filter: Some(Filter::ImageDigest(digest.into())) }],
    };
    let operator = server.operator().await;
    let described = operator.grpc::<ListManifestMetadata>(filter(&of)).await.unwrap().items;
    let package = PkgMetadata { purl: "pkg:apk/musl@1.2".into(), license: "MIT".into(), ..PkgMetadata::default() };
    assert_eq!(described, [ManifestMetadata { digest: of.clone(), pkg_metadata: vec![package] }]);
    assert!(operator.grpc::<ListManifestMetadata>(filter(&digest(b"none"))).await.unwrap().items.is_empty());
    let mut many = filter(&of);
    many.items = vec![many.items[0].clone(); 21];
    assert_eq!(operator.grpc::<ListManifestMetadata>(many).await.unwrap_err().code, 3);
    // Another repository has the image, and nothing attached to it.
    client.image(&format!("{org}/copy"), "1", b"a layer").await;
    let copy = repo_uid(server, "copy").await;
    assert_eq!(ask(server, &format!("{copy}/digest/{of}/rawsbom")).await.status, 404);
    // A blob that the repository shows no longer is not told either.
    assert_eq!(
        client.send(&format!("DELETE /v2/{name}/manifests/{}", digest_of(&referrer)), &[], b"").await.status,
        202
    );
    assert_eq!(ask(server, &format!("{repo}/digest/{of}/rawsbom")).await.status, 404);
}

async fn attestations_by_tag_and_in_an_index_are_looked_into(server: &TestServer) {
    let (org, client) = pusher(server, "acme").await;
    let name = format!("{org}/app");
    let amd64 = image(b"amd64");
    let of = push(&client, &name, None, &amd64, b"amd64").await;
    let statement = format!(r#"{{"predicateType":"https://cyclonedx.org/bom","predicate":{CYCLONEDX}}}"#);
    let envelope = json!({ "payload": STANDARD.encode(&statement), "signatures": [] }).to_string();
    let signed = artifact("application/vnd.dsse.envelope.v1+json", envelope.as_bytes());
    push(&client, &name, Some(&format!("{}.att", of.replace(':', "-"))), &signed, envelope.as_bytes()).await;
    let repo = repo_uid(server, "app").await;
    assert_eq!(told(server, &format!("{repo}/digest/{of}/rawsbom")).await["rawSbom"], json!(CYCLONEDX));
    let sbom = told(server, &format!("{repo}/digests/{of}/sbom")).await;
    assert_eq!((&sbom["format"], &sbom["tool"]), (&json!("CycloneDX"), &json!("maker 2")));
    assert_eq!(sbom["graph"]["nodes"].as_array().unwrap().len(), 3);
    assert_eq!(sbom["graph"]["nodes"][1]["package"]["license"], json!("MIT"));
    let types: Vec<&Value> = sbom["graph"]["edges"].as_array().unwrap().iter().map(|edge| &edge["type"]).collect();
    assert_eq!(types, [&json!("CONTAINS"), &json!("DEPENDS_ON")]);

    // A builder's index: the image for an architecture, and beside it what is said of it.
    let arm64 = image(b"arm64");
    push(&client, &name, None, &arm64, b"arm64").await;
    let statement = format!(r#"{{"predicateType":"https://spdx.dev/Document","predicate":{SPDX}}}"#);
    let said = artifact("application/vnd.in-toto+json", statement.as_bytes());
    push(&client, &name, None, &said, statement.as_bytes()).await;
    let member = |manifest: &Value, architecture: &str| {
        let mut member = descriptor(IMAGE, manifest.to_string().as_bytes());
        member["platform"] = json!({ "os": architecture, "architecture": architecture });
        member
    };
    let mut beside = member(&said, "unknown");
    beside["annotations"] = json!({
        "vnd.docker.reference.type": "attestation-manifest", "vnd.docker.reference.digest": digest_of(&arm64)
    });
    let manifests = json!([member(&amd64, "amd64"), member(&arm64, "arm64"), beside]);
    let index = json!({ "schemaVersion": 2, "mediaType": INDEX, "manifests": manifests });
    assert_eq!(client.put(&name, "2", &index).await.status, 201);
    let index = digest_of(&index);
    let of_arm64 = told(server, &format!("{repo}/digest/{index}/rawsbom?arch=arm64")).await;
    assert_eq!(of_arm64["rawSbom"], json!(SPDX));
    let usual = told(server, &format!("{repo}/digest/{index}/rawsbom")).await;
    assert_eq!(usual["rawSbom"], json!(CYCLONEDX));
}

async fn unparsable_sboms_are_reported(server: &TestServer) {
    let (org, client) = pusher(server, "acme").await;
    let name = format!("{org}/app");
    let of = digest_of(&client.image(&name, "1", b"a layer").await);
    let repo = repo_uid(server, "app").await;
    let odd = br#"{"spdxVersion":"SPDX-2.3","packages":7}"#;
    let mut referrer = artifact("application/spdx+json", odd);
    referrer["subject"] = json!({ "mediaType": IMAGE, "digest": of, "size": 1 });
    push(&client, &name, None, &referrer, odd).await;
    let reply = ask(server, &format!("{repo}/digests/{of}/sbom")).await;
    assert_eq!((reply.status, &reply.json()["code"]), (400, &json!(9)), "{}", reply.text());
    assert_eq!(ask(server, &format!("{repo}/digest/{of}/rawsbom")).await.status, 200);
}

/// A gzipped tar archive of `redis/Chart.yaml` and `redis/values.yaml`.
const CHART: &str = concat!(
    "H4sIAAAAAAACA+3U3wrCIBTHca97CqH7ms4VdNuTSAkN9id0C3r7ZN0ZtSsHo+/n5ggKIj/P8e5ah73IqoiOVTXVKK2fa6WVLoWs",
    "xALGMFgfr/d9P/w6N7efPm4l/JT/+Wb9sHvatsmV/8GY7/krk+RvChPzL8g/u8627iSnX7AR+Dvv/n/YZnQh1wCY7X+t0/4vY6H/",
    "F8n/3tQXG05Sya3sO8cUAAAAAAAAAAAAAABgdV5mBMdfACgAAA==",
);

async fn a_chart_tells_of_itself(server: &TestServer) {
    let (org, client) = pusher(server, "acme").await;
    let name = format!("{org}/charts/redis");
    let annotation = "- name: redis\n  image: r.example/redis:1.10\n- image: r.example/init\n";
    let metadata = json!({
        "name": "redis", "version": "1.2.3", "appVersion": "7", "description": "d", "apiVersion": "v2",
        "annotations": { "artifacthub.io/images": annotation },
        "dependencies": [{ "name": "common", "version": "2.x", "repository": "oci://r.example/charts" }],
    });
    let metadata = metadata.to_string();
    let archive = STANDARD.decode(CHART).unwrap();
    client.blob(&name, metadata.as_bytes()).await;
    let mut chart = artifact("application/vnd.cncf.helm.chart.content.v1.tar+gzip", &archive);
    chart["config"] = descriptor("application/vnd.cncf.helm.config.v1+json", metadata.as_bytes());
    let of = push(&client, &name, Some("1.2.3"), &chart, &archive).await;
    let repo = repo_uid(server, "redis").await;
    let told = told(server, &format!("{repo}/digests/{of}/chart")).await;
    for (member, expected) in [
        ("name", json!("redis")),
        ("version", json!("1.2.3")),
        ("appVersion", json!("7")),
        ("annotations", json!({ "artifacthub.io/images": annotation })),
        (
            "images",
            json!([
                { "name": "redis", "image": "r.example/redis:1.10", "requirement": "REQUIREMENT_UNSPECIFIED" },
                { "name": "", "image": "r.example/init", "requirement": "REQUIREMENT_UNSPECIFIED" },
            ]),
        ),
        ("raw", json!("name: redis\n")),
        ("values", json!("replicas: 1 # one\n")),
        ("changelog", json!("")),
    ] {
        assert_eq!(told[member], expected, "{member}");
    }
    assert_eq!(told["dependencies"][0]["repository"], json!("oci://r.example/charts"));
    // An image is no chart.
    let image = digest_of(&client.image(&name, "image", b"a layer").await);
    assert_eq!(ask(server, &format!("{repo}/digests/{image}/chart")).await.status, 404);
}

async fn the_newest_scan_is_returned_match_by_match(server: &TestServer) {
    let (org, client) = pusher(server, "acme").await;
    let name = format!("{org}/app");
    let of = digest_of(&client.image(&name, "1", b"a layer").await);
    let repo = repo_uid(server, "app").await;
    let path = format!("{repo}/digests/{of}/vulnreport");
    assert_eq!(ask(server, &path).await.status, 404);
    let found = |id: &str, severity: &str| {
        json!({
            "vulnerability": { "id": id, "severity": severity, "fix": { "versions": ["2"], "state": "fixed" } },
            "artifact": { "name": "musl", "version": "1", "type": "apk", "purl": "pkg:apk/musl@1" }
        })
    };
    for matches in [json!([found("CVE-1", "Low")]), json!([found("CVE-2", "Critical"), found("CVE-3", "Negligible")])] {
        let report = json!({ "matches": matches, "descriptor": { "version": "0.9" } }).to_string();
        let body = json!({ "digest": of, "scanner": "SCANNER_NAME_GRYPE", "report": STANDARD.encode(report) });
        let reply = server.operator().await.rest("POST", &format!("/scans/v1/repos/{repo}/reports"), Some(body)).await;
        assert_eq!(reply.status, 200, "{}", reply.text());
    }
    let report = told(server, &path).await;
    assert_eq!(report["scanner"], json!({ "name": "grype", "version": "0.9" }));
    let matches = report["vulnerabilityMatches"].as_array().unwrap();
    let told: Vec<(&Value, &Value)> =
        matches.iter().map(|one| (&one["vulnerability"]["id"], &one["vulnerability"]["severity"])).collect();
    assert_eq!(told, [(&json!("CVE-2"), &json!("CRITICAL")), (&json!("CVE-3"), &json!("LOW"))]);
    assert_eq!(matches[0]["pkg"]["purl"], json!("pkg:apk/musl@1"));
    assert_eq!(matches[0]["fix"], json!({ "versions": ["2"], "state": "FIXED" }));
    // Nothing ties an image to the values of a chart here.
    assert_eq!(ask(server, &format!("{repo}/digests/{of}/helm")).await.status, 404);
}

each_engine!(
    multi_thread:
    an_sbom_is_found_in_what_refers_to_the_image,
    attestations_by_tag_and_in_an_index_are_looked_into,
    unparsable_sboms_are_reported,
    a_chart_tells_of_itself,
    the_newest_scan_is_returned_match_by_match
);
