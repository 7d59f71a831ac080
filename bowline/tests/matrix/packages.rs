//! The index of Python, by every caller at every place, against the same oracle: what the contract says of the operations
//! behind its paths.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bowline_content::{Algorithm, Digest};
use bowline_contract::Method;
use bowline_contract::bowline::libraries::v1::rpc::python_host::{PublishFile, ReadPackages};
use bowline_testkit::python::{BOUNDARY, fields, file_name, wheel};
use bowline_testkit::{Engine, RestReply, TestServer};
use http::HeaderMap;
use http::header::{AUTHORIZATION, CONTENT_TYPE};

use crate::fixture::{Caller, Fixture, Place};
use crate::oracle;
use crate::sample::Sample;

/// A request of the index, and the operation that it is; `{file}` is the digest and name of a published file.
const ROUTES: &[(&str, &str)] = &[
    ("GET simple/", ReadPackages::FULL_NAME),
    ("GET simple/kept/", ReadPackages::FULL_NAME),
    ("GET files/{file}", ReadPackages::FULL_NAME),
    ("HEAD files/{file}", ReadPackages::FULL_NAME),
    ("GET files/{file}.metadata", ReadPackages::FULL_NAME),
    ("POST legacy/", PublishFile::FULL_NAME),
];

#[tokio::test]
async fn every_caller_at_every_path_of_the_index() {
    let server = TestServer::start(Engine::Sqlite).await;
    let fixture = Fixture::new(&server).await;
    for place in fixture.places.iter().filter(|place| place.exists) {
        let published = ask(&fixture, fixture.operator.token.as_deref(), place, "POST legacy/").await;
        assert_eq!(published.status, 200, "{}", published.text());
    }
    let (mut wrong, mut calls) = (Vec::new(), 0);
    let sample = Sample::of_environment(&fixture);
    for caller in &fixture.callers {
        for place in &fixture.places {
            for (number, (what, method)) in ROUTES.iter().enumerate() {
                if !sample.has(&fixture, number, caller, place) {
                    continue;
                }
                let expected = expected(&fixture, caller, method, place);
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
fn expected(fixture: &Fixture<'_>, caller: &Caller, method: &str, place: &Place) -> &'static [u16] {
    if caller.standing.is_nobody() {
        return &[401, 403];
    }
    let is_allowed = oracle::holds(caller, &oracle::needed(fixture, method), &place.group);
    if place.exists && is_allowed { &[200] } else { &[403] }
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
