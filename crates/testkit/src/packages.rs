//! Publishing versions of small packages to a group, given by names or UIDPs joined by `:`, as someone with an API token. Those
//! of Python are in `python`.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::HeaderMap;
use http::header::{AUTHORIZATION, CONTENT_TYPE};

use serde_json::Value;

use crate::{Actor, TestServer, cargo, golang, maven, npm};

/// Publishes a version of a JavaScript package as `latest`.
pub async fn publish_javascript(server: &TestServer, actor: &Actor, group: &str, name: &str, version: &str) {
    publish_manifest(server, actor, group, &npm::manifest(name, version)).await;
}

/// The same of one with this `package.json`, which has a name and a version.
pub async fn publish_manifest(server: &TestServer, actor: &Actor, group: &str, manifest: &Value) {
    let text = |member: &str| manifest[member].as_str().expect("a text");
    let (name, version) = (text("name"), text("version"));
    let document = npm::document(name, version, "latest", &npm::package(manifest));
    let path = format!("javascript/~{group}/{}", name.replace('/', "%2f"));
    put(server, actor, &path, document.to_string().into_bytes()).await;
}

/// Publishes the POM of a version of a Java package, given as `group:artifact`.
pub async fn publish_java(server: &TestServer, actor: &Actor, group: &str, name: &str, version: &str) {
    let (maven_group, artifact) = name.split_once(':').expect("a group and an artifact");
    let directory = format!("{}/{artifact}/{version}", maven_group.replace('.', "/"));
    let pom = maven::pom(maven_group, artifact, version, &maven::license("MIT"));
    put(server, actor, &format!("java/~{group}/{directory}/{artifact}-{version}.pom"), pom.into_bytes()).await;
}

/// Publishes a version of a Go module, whose path has no upper case.
pub async fn publish_go(server: &TestServer, actor: &Actor, group: &str, module: &str, version: &str) {
    let path = format!("go/~{group}/{module}/@v/{version}.zip");
    put(server, actor, &path, golang::archive(module, version, &[])).await;
}

/// Publishes a version of a crate.
pub async fn publish_crate(server: &TestServer, actor: &Actor, group: &str, name: &str, version: &str) {
    let body = cargo::body(&cargo::announced(name, version), &cargo::archive(name, version, "license = \"MIT\"\n"));
    put(server, actor, &format!("cargo/~{group}/api/v1/crates/new"), body).await;
}

/// Publishes a generic file, whose bytes are its path.
pub async fn publish_generic(server: &TestServer, actor: &Actor, group: &str, name: &str, version: &str) {
    let path = format!("files/~{group}/{name}/{version}/tool.bin");
    put(server, actor, &path, path.clone().into_bytes()).await;
}

async fn put(server: &TestServer, actor: &Actor, path: &str, body: Vec<u8>) {
    let basic = STANDARD.encode(format!("_token:{}", actor.token.as_deref().expect("the actor has a token")));
    let value = |text: &str| text.parse().expect("a header's value");
    let headers = HeaderMap::from_iter([
        (AUTHORIZATION, value(&format!("Basic {basic}"))),
        (CONTENT_TYPE, value("application/json")),
    ]);
    let reply = server.anonymous().rest_with("PUT", &format!("/libraries/{path}"), headers, body).await;
    assert!(matches!(reply.status, 200 | 201), "{path}: {}", reply.text());
}
