//! The hosts of packages, by every caller at every place, against the same oracle: what the contract says of the operations
//! behind their paths.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bowline_content::{Algorithm, Digest};
use bowline_contract::Method;
use bowline_contract::bowline::libraries::v1::rpc::python_host::{PublishFile, ReadPackages};
use bowline_contract::bowline::libraries::v1::rpc::{
    cargo_host, files_host, go_host, java_host, javascript_host as npm_host,
};
use bowline_testkit::python::{BOUNDARY, fields, file_name, wheel};
use bowline_testkit::{Engine, RestReply, TestServer, cargo, golang, maven, npm};
use http::HeaderMap;
use http::header::{AUTHORIZATION, CONTENT_TYPE};
use serde_json::json;

use crate::fixture::{Caller, Fixture, Place};
use crate::oracle;
use crate::sample::Sample;

/// A verb with a path, and the full name of the operation that it is.
type Route = (&'static str, &'static str);

/// A request of the index, and the operation that it is; `{file}` is the digest and name of a published file.
const ROUTES: &[Route] = &[
    ("GET simple/", ReadPackages::FULL_NAME),
    ("GET simple/kept/", ReadPackages::FULL_NAME),
    ("GET files/{file}", ReadPackages::FULL_NAME),
    ("HEAD files/{file}", ReadPackages::FULL_NAME),
    ("GET files/{file}.metadata", ReadPackages::FULL_NAME),
    ("POST legacy/", PublishFile::FULL_NAME),
];

/// The same of the registry of npm. Each one leaves what is there as it was: what would delete names an old revision, or a
/// tag that is not there, which those learn who may.
const NPM_ROUTES: &[Route] = &[
    ("GET kept", npm_host::ReadPackages::FULL_NAME),
    ("GET kept/latest", npm_host::ReadPackages::FULL_NAME),
    ("GET kept/-/kept-1.0.0.tgz", npm_host::ReadPackages::FULL_NAME),
    ("HEAD kept/-/kept-1.0.0.tgz", npm_host::ReadPackages::FULL_NAME),
    ("GET -/package/kept/dist-tags", npm_host::ReadPackages::FULL_NAME),
    ("POST -/npm/v1/security/advisories/bulk", npm_host::ReadPackages::FULL_NAME),
    ("POST -/npm/v1/security/audits", npm_host::ReadPackages::FULL_NAME),
    ("GET kept?write=true", npm_host::PublishFile::FULL_NAME),
    ("PUT kept", npm_host::DeprecateVersions::FULL_NAME),
    ("PUT -/package/kept/dist-tags/latest", npm_host::SetTag::FULL_NAME),
    ("DELETE kept/-/gone-1.0.0.tgz/-rev/1", npm_host::DeleteVersions::FULL_NAME),
    ("PUT kept/-rev/1-old", npm_host::DeleteVersions::FULL_NAME),
    ("DELETE kept/-rev/1-old", npm_host::DeleteVersions::FULL_NAME),
    ("DELETE -/package/kept/dist-tags/absent", npm_host::DeleteTag::FULL_NAME),
];

/// The same of the repository of Maven. What would delete names a version that is not there.
const JAVA_ROUTES: &[Route] = &[
    ("GET com/acme/kept/maven-metadata.xml", java_host::ReadPackages::FULL_NAME),
    ("GET com/acme/kept/1.0/kept-1.0.pom", java_host::ReadPackages::FULL_NAME),
    ("HEAD com/acme/kept/1.0/kept-1.0.pom", java_host::ReadPackages::FULL_NAME),
    ("GET com/acme/kept/1.0/kept-1.0.pom.sha1", java_host::ReadPackages::FULL_NAME),
    ("PUT com/acme/kept/1.0/kept-1.0.pom", java_host::PublishFile::FULL_NAME),
    ("PUT com/acme/kept/maven-metadata.xml", java_host::PublishFile::FULL_NAME),
    ("PUT com/acme/kept/maven-metadata.xml.sha1", java_host::PublishFile::FULL_NAME),
    ("DELETE com/acme/kept/absent/", java_host::DeleteVersion::FULL_NAME),
];

/// The same of the proxy of Go. What would delete names a version that is not there.
const GO_ROUTES: &[Route] = &[
    ("GET acme.example/kept/@v/list", go_host::ReadPackages::FULL_NAME),
    ("GET acme.example/kept/@latest", go_host::ReadPackages::FULL_NAME),
    ("GET acme.example/kept/@v/v1.0.0.info", go_host::ReadPackages::FULL_NAME),
    ("GET acme.example/kept/@v/v1.0.0.mod", go_host::ReadPackages::FULL_NAME),
    ("GET acme.example/kept/@v/v1.0.0.zip", go_host::ReadPackages::FULL_NAME),
    ("HEAD acme.example/kept/@v/v1.0.0.zip", go_host::ReadPackages::FULL_NAME),
    ("GET sumdb/sum.example/tile/absent", go_host::ReadPackages::FULL_NAME),
    ("PUT acme.example/kept/@v/v1.0.0.zip", go_host::PublishFile::FULL_NAME),
    ("DELETE acme.example/kept/@v/v1.0.1-absent.zip", go_host::DeleteVersion::FULL_NAME),
];

/// The same of the registry of Cargo.
const CARGO_ROUTES: &[Route] = &[
    ("GET config.json", cargo_host::ReadPackages::FULL_NAME),
    ("GET ac/me/acme-kept", cargo_host::ReadPackages::FULL_NAME),
    ("GET api/v1/crates/acme-kept/1.0.0/download", cargo_host::ReadPackages::FULL_NAME),
    ("HEAD api/v1/crates/acme-kept/1.0.0/download", cargo_host::ReadPackages::FULL_NAME),
    ("PUT api/v1/crates/new", cargo_host::PublishFile::FULL_NAME),
    ("DELETE api/v1/crates/acme-kept/1.0.0/yank", cargo_host::YankVersion::FULL_NAME),
    ("PUT api/v1/crates/acme-kept/1.0.0/unyank", cargo_host::UnyankVersion::FULL_NAME),
    ("DELETE api/v1/crates/acme-kept/1.0.1-absent", cargo_host::DeleteVersion::FULL_NAME),
];

/// The same of the host of generic files. What would delete names a version that is not there.
const FILES_ROUTES: &[Route] = &[
    ("GET kept/", files_host::ReadPackages::FULL_NAME),
    ("GET kept/1.0/", files_host::ReadPackages::FULL_NAME),
    ("GET kept/1.0/linux/kept", files_host::ReadPackages::FULL_NAME),
    ("HEAD kept/1.0/linux/kept", files_host::ReadPackages::FULL_NAME),
    ("PUT kept/1.0/linux/kept", files_host::PublishFile::FULL_NAME),
    ("DELETE kept/absent", files_host::DeleteVersion::FULL_NAME),
];

#[tokio::test]
async fn every_caller_at_every_path_of_generic_files() {
    every_caller("PUT kept/1.0/linux/kept", FILES_ROUTES, ask_files).await;
}

#[tokio::test]
async fn every_caller_at_every_path_of_cargo() {
    every_caller("PUT api/v1/crates/new", CARGO_ROUTES, ask_cargo).await;
}

#[tokio::test]
async fn every_caller_at_every_path_of_go() {
    every_caller("PUT acme.example/kept/@v/v1.0.0.zip", GO_ROUTES, ask_go).await;
}

#[tokio::test]
async fn every_caller_at_every_path_of_maven() {
    every_caller("PUT com/acme/kept/1.0/kept-1.0.pom", JAVA_ROUTES, ask_java).await;
}

#[tokio::test]
async fn every_caller_at_every_path_of_the_index() {
    every_caller("POST legacy/", ROUTES, ask).await;
}

#[tokio::test]
async fn every_caller_at_every_path_of_npm() {
    every_caller("PUT kept", NPM_ROUTES, ask_npm).await;
}

async fn every_caller(
    publish: &str,
    routes: &[Route],
    ask: impl AsyncFn(&Fixture<'_>, Option<&str>, &Place, &str) -> RestReply,
) {
    let server = TestServer::start(Engine::Sqlite).await;
    let fixture = Fixture::new(&server).await;
    for place in fixture.places.iter().filter(|place| place.exists) {
        let published = ask(&fixture, fixture.operator.token.as_deref(), place, publish).await;
        assert!(matches!(published.status, 200 | 201), "{}", published.text());
    }
    let (mut wrong, mut calls) = (Vec::new(), 0);
    let sample = Sample::of_environment(&fixture);
    for caller in &fixture.callers {
        for place in &fixture.places {
            for (number, (what, method)) in routes.iter().enumerate() {
                if !sample.has(&fixture, number, caller, place) {
                    continue;
                }
                let expected = expected(&fixture, caller, (what, method), place);
                let reply = ask(&fixture, caller.actor.token.as_deref(), place, what).await;
                calls += 1;
                if !expected.contains(&reply.status) {
                    let (name, status, text) = (&caller.actor.name, reply.status, reply.text());
                    wrong.push(format!(
                        "{what} by {name} at {}: expected {expected:?}, got {status} {text}",
                        place.name
                    ));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {calls} calls:\n{}", wrong.len(), wrong.join("\n"));
    drop(fixture);
    server.stop().await;
}

/// How the caller is answered. Whom the server lets do nothing is refused before or after the exchange of the token.
fn expected(fixture: &Fixture<'_>, caller: &Caller, (what, method): Route, place: &Place) -> &'static [u16] {
    if caller.standing.is_nobody() {
        return &[401, 403];
    }
    let is_allowed = oracle::holds(caller, &oracle::needed(fixture, method), &place.group);
    match () {
        () if !place.exists || !is_allowed => &[403],
        () if what.ends_with("-rev/1-old") => &[409],
        () if what.ends_with("absent") || what.ends_with("absent/") || what.ends_with("absent.zip") => &[404],
        () => &[200, 201],
    }
}

async fn ask(fixture: &Fixture<'_>, token: Option<&str>, place: &Place, what: &str) -> RestReply {
    let (verb, path) = what.split_once(' ').expect("a verb and a path");
    let (name, bytes) = (file_name("kept", "1.0"), wheel("kept", "1.0", ""));
    let digest = Digest::of(Algorithm::Sha256, &bytes);
    let mut headers = HeaderMap::new();
    if let Some(token) = token {
        let value = format!("Basic {}", STANDARD.encode(format!("_token:{token}")));
        headers.insert(AUTHORIZATION, value.parse().expect("a header's value"));
    }
    let body = match verb {
        "POST" => {
            let content_type = format!("multipart/form-data; boundary={BOUNDARY}");
            headers.insert(CONTENT_TYPE, content_type.parse().expect("a header's value"));
            fields("kept", "1.0", digest.hex()).file(&name, &bytes).end().0
        }
        _ => Vec::new(),
    };
    let path = path.replace("{file}", &format!("{}/{name}", digest.hex()));
    let path = format!("/libraries/python/~{}/{path}", place.group.replace('/', ":"));
    fixture.server.anonymous().rest_with(verb, &path, headers, body).await
}

async fn ask_npm(fixture: &Fixture<'_>, token: Option<&str>, place: &Place, what: &str) -> RestReply {
    let (verb, path) = what.split_once(' ').expect("a verb and a path");
    let mut headers = HeaderMap::new();
    if let Some(token) = token {
        let value = format!("Basic {}", STANDARD.encode(format!("_token:{token}")));
        headers.insert(AUTHORIZATION, value.parse().expect("a header's value"));
    }
    let warnings = json!({ "name": "kept", "versions": { "1.0.0": {} } }).to_string().into_bytes();
    let path = format!("/libraries/javascript/~{}/{path}", place.group.replace('/', ":"));
    let sent = match (verb, what.ends_with("latest")) {
        ("PUT", true) => b"\"1.0.0\"".to_vec(),
        ("PUT", false) => warnings,
        ("POST", _) => b"{}".to_vec(),
        _ => Vec::new(),
    };
    let reply = fixture.server.anonymous().rest_with(verb, &path, headers.clone(), sent).await;
    if reply.status != 404 || what != "PUT kept" {
        return reply;
    }
    // The first one publishes what the others read.
    let tarball = npm::package(&npm::manifest("kept", "1.0.0"));
    let document = npm::document("kept", "1.0.0", "latest", &tarball).to_string().into_bytes();
    fixture.server.anonymous().rest_with(verb, &path, headers, document).await
}

async fn ask_java(fixture: &Fixture<'_>, token: Option<&str>, place: &Place, what: &str) -> RestReply {
    let (verb, path) = what.split_once(' ').expect("a verb and a path");
    let mut headers = HeaderMap::new();
    if let Some(token) = token {
        let value = format!("Basic {}", STANDARD.encode(format!("_token:{token}")));
        headers.insert(AUTHORIZATION, value.parse().expect("a header's value"));
    }
    let sent = if verb == "PUT" { maven::pom("com.acme", "kept", "1.0", "").into_bytes() } else { Vec::new() };
    let path = format!("/libraries/java/~{}/{path}", place.group.replace('/', ":"));
    fixture.server.anonymous().rest_with(verb, &path, headers, sent).await
}

async fn ask_go(fixture: &Fixture<'_>, token: Option<&str>, place: &Place, what: &str) -> RestReply {
    let (verb, path) = what.split_once(' ').expect("a verb and a path");
    let mut headers = HeaderMap::new();
    if let Some(token) = token {
        let value = format!("Basic {}", STANDARD.encode(format!("_token:{token}")));
        headers.insert(AUTHORIZATION, value.parse().expect("a header's value"));
    }
    let sent = if verb == "PUT" { golang::archive("acme.example/kept", "v1.0.0", &[]) } else { Vec::new() };
    let path = format!("/libraries/go/~{}/{path}", place.group.replace('/', ":"));
    fixture.server.anonymous().rest_with(verb, &path, headers, sent).await
}

async fn ask_cargo(fixture: &Fixture<'_>, token: Option<&str>, place: &Place, what: &str) -> RestReply {
    let (verb, path) = what.split_once(' ').expect("a verb and a path");
    let mut headers = HeaderMap::new();
    if let Some(token) = token {
        headers.insert(AUTHORIZATION, token.parse().expect("a header's value"));
    }
    let archive = cargo::archive("acme-kept", "1.0.0", "");
    let new = cargo::body(&cargo::announced("acme-kept", "1.0.0"), &archive);
    let sent = if path.ends_with("new") { new } else { Vec::new() };
    let path = format!("/libraries/cargo/~{}/{path}", place.group.replace('/', ":"));
    fixture.server.anonymous().rest_with(verb, &path, headers, sent).await
}

async fn ask_files(fixture: &Fixture<'_>, token: Option<&str>, place: &Place, what: &str) -> RestReply {
    let (verb, path) = what.split_once(' ').expect("a verb and a path");
    let mut headers = HeaderMap::new();
    if let Some(token) = token {
        let value = format!("Basic {}", STANDARD.encode(format!("_token:{token}")));
        headers.insert(AUTHORIZATION, value.parse().expect("a header's value"));
    }
    let sent = if verb == "PUT" { b"bytes".to_vec() } else { Vec::new() };
    let path = format!("/libraries/files/{}/{path}", place.group.replace('/', ":"));
    fixture.server.anonymous().rest_with(verb, &path, headers, sent).await
}
