//! The registry's own routes, by every caller at every place, against the same oracle: what the contract says of the
//! operations behind them.

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bowline_content::{Algorithm, Digest};
use bowline_contract::Method;
use bowline_contract::bowline::registry::v1::rpc::content::{
    DeleteBlob, DeleteManifest, ListCatalog, ListReferrers, ListTags, PullBlob, PullManifest, PushBlob, PushManifest,
};
use bowline_contract::v1::registry::rpc::registry::UpdateTag;
use bowline_contract::v2::registry::rpc::tags_service::{CreateTag, DeleteTag};
use bowline_testkit::{Actor, Engine, RestReply, TestServer};
use http::HeaderMap;
use http::header::{AUTHORIZATION, CONTENT_TYPE};
use serde_json::json;

use crate::fixture::{Caller, Fixture, Place, Standing};
use crate::oracle;

const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const CONFIG: &[u8] = b"{}";
/// A blob that no manifest names.
const SPARE: &[u8] = b"spare";

/// A request of the distribution protocol, and the operations that it is.
struct Route {
    what: &'static str,
    needed: &'static [&'static str],
    /// What an allowed one is answered with.
    status: u16,
    /// It does not create what is not there, so that it can be requested where nothing is.
    finds: bool,
}

const fn route(what: &'static str, needed: &'static [&'static str], status: u16) -> Route {
    Route { what, needed, status, finds: true }
}

const fn creates(what: &'static str, needed: &'static [&'static str], status: u16) -> Route {
    Route { what, needed, status, finds: false }
}

/// `{config}`, `{manifest}` and `{fresh}` are digests; `v1` is a tag of `{manifest}`.
const ROUTES: &[Route] = &[
    route("GET manifests/v1", &[PullManifest::FULL_NAME], 200),
    route("HEAD manifests/{manifest}", &[PullManifest::FULL_NAME], 200),
    route("GET blobs/{config}", &[PullBlob::FULL_NAME], 200),
    route("HEAD blobs/{config}", &[PullBlob::FULL_NAME], 200),
    route("GET tags/list", &[ListTags::FULL_NAME], 200),
    route("GET _chainguard/history/v1", &[ListTags::FULL_NAME], 200),
    route("GET _bowline/history/v1", &[ListTags::FULL_NAME], 200),
    route("GET referrers/{manifest}", &[ListReferrers::FULL_NAME], 200),
    creates("POST blobs/uploads/", &[PushBlob::FULL_NAME], 202),
    creates("POST blobs/uploads/?digest={config}", &[PushBlob::FULL_NAME], 201),
    creates("POST blobs/uploads/?mount={nowhere}", &[PushBlob::FULL_NAME], 202),
    creates("PUT manifests/{manifest}", &[PushManifest::FULL_NAME], 201),
    creates("PUT manifests/another", &[PushManifest::FULL_NAME, CreateTag::FULL_NAME], 201),
    creates("PUT manifests/moving", &[PushManifest::FULL_NAME, UpdateTag::FULL_NAME], 201),
    route("DELETE manifests/doomed", &[DeleteTag::FULL_NAME], 202),
    route("DELETE manifests/{fresh}", &[DeleteManifest::FULL_NAME], 202),
    route("DELETE blobs/{spare}", &[DeleteBlob::FULL_NAME], 202),
];

#[tokio::test]
async fn every_caller_at_every_route_of_the_registry() {
    let server = TestServer::start(Engine::Sqlite).await;
    let fixture = Fixture::new(&server).await;
    let operator = at_registry(&fixture, &fixture.operator).await;
    for place in fixture.places.iter().filter(|place| place.exists) {
        furnish(&operator, place).await;
    }
    let mut wrong = Vec::new();
    let mut calls = 0;
    for caller in &fixture.callers {
        let actor = at_registry(&fixture, &caller.actor).await;
        let caller = of_registry(&fixture, caller);
        for place in &fixture.places {
            for route in ROUTES.iter().filter(|route| place.exists || route.finds) {
                let expected = expected(&fixture, &caller, route, place);
                let reply = ask(&operator, &actor, route, place).await;
                calls += 1;
                if reply.status != expected {
                    let text = reply.text();
                    let name = &caller.actor.name;
                    wrong.push(format!(
                        "{} by {name} at {}: expected {expected}, got {} {text}",
                        route.what, place.name, reply.status
                    ));
                }
            }
        }
        wrong.extend(catalog(&fixture, &caller, &actor).await);
    }
    assert!(wrong.is_empty(), "{} of {calls} calls:\n{}", wrong.len(), wrong.join("\n"));
    drop(fixture);
    server.stop().await;
}

/// The caller with a token for the registry where the token service gives one.
async fn at_registry(fixture: &Fixture<'_>, actor: &Actor) -> Actor {
    let Some(token) = actor.token.as_deref() else { return actor.clone() };
    let mut headers = HeaderMap::new();
    let value = format!("Basic {}", STANDARD.encode(format!("_token:{token}")));
    headers.insert(AUTHORIZATION, value.parse().expect("a header's value"));
    let reply = fixture.server.anonymous().rest_with("GET", "/token?service=registry", headers, Vec::new()).await;
    match reply.status {
        200 => actor.with_token(reply.json()["token"].as_str().expect("a token")),
        // It is presented as it is, and must be refused.
        _ => actor.clone(),
    }
}

/// What the caller is here: the API's token for the registry is a good one.
fn of_registry(fixture: &Fixture<'_>, caller: &Caller) -> Caller {
    let mut here = Caller {
        actor: caller.actor.clone(),
        standing: caller.standing.clone(),
        only: caller.only.clone(),
        inside: caller.inside.clone(),
    };
    if caller.actor.name == "other audience" {
        let owner = fixture.callers.iter().find(|known| known.actor.name == "owner");
        here.standing = owner.expect("an owner among the callers").standing.clone();
    }
    here
}

fn expected(fixture: &Fixture<'_>, caller: &Caller, route: &Route, place: &Place) -> u16 {
    if matches!(caller.standing, Standing::Anonymous) {
        return 401;
    }
    let needed: BTreeSet<String> = route.needed.iter().flat_map(|method| oracle::needed(fixture, method)).collect();
    let above = place.group.rsplit_once('/').map_or(place.group.as_str(), |(above, _)| above);
    let lists = oracle::needed(fixture, ListCatalog::FULL_NAME);
    match place.exists {
        true if oracle::holds(caller, &needed, &place.group) => route.status,
        // A client would take a 404 for a registry that has no referrers at all.
        false if oracle::holds(caller, &lists, above) && route.what.contains("referrers") => 200,
        false if oracle::holds(caller, &lists, above) => 404,
        _ => 403,
    }
}

/// Makes again what the route may take away, and asks.
async fn ask(operator: &Actor, actor: &Actor, route: &Route, place: &Place) -> RestReply {
    let (verb, rest) = route.what.split_once(' ').expect("a verb and a path");
    if place.exists && verb != "GET" && verb != "HEAD" {
        furnish(operator, place).await;
    }
    let [kept, fresh] = [manifest("kept"), manifest("doomed")];
    let named: [(&str, &[u8]); 5] = [
        ("{config}", CONFIG),
        ("{manifest}", &kept),
        ("{fresh}", &fresh),
        ("{spare}", SPARE),
        ("{nowhere}", b"nowhere"),
    ];
    let path = named.iter().fold(rest.to_owned(), |path, (name, content)| path.replace(name, &digest(content)));
    let content = match verb {
        "PUT" => kept.clone(),
        "POST" if rest.contains("?digest") => CONFIG.to_vec(),
        _ => Vec::new(),
    };
    actor.rest_with(verb, &format!("{}/{path}", base(place)), typed(), content).await
}

/// What is in the repository of a place: `another` is no tag, and `moving` is one of another manifest.
async fn furnish(operator: &Actor, place: &Place) {
    let base = base(place);
    let [kept, moved, fresh] = [manifest("kept"), manifest("moved"), manifest("doomed")];
    for blob in [CONFIG, SPARE] {
        sent(operator, "POST", &format!("{base}/blobs/uploads/?digest={}", digest(blob)), blob).await;
    }
    for (reference, content) in [("v1", &kept), ("moving", &moved), ("doomed", &kept), (&digest(&fresh), &fresh)] {
        sent(operator, "PUT", &format!("{base}/manifests/{reference}"), content).await;
    }
    operator.rest_with("DELETE", &format!("{base}/manifests/another"), HeaderMap::new(), Vec::new()).await;
}

fn base(place: &Place) -> String {
    format!("/v2/{}/oci", place.group)
}

async fn sent(operator: &Actor, verb: &str, path: &str, content: &[u8]) {
    let reply = operator.rest_with(verb, path, typed(), content.to_vec()).await;
    assert_eq!(reply.status, 201, "{verb} {path}: {}", reply.text());
}

fn typed() -> HeaderMap {
    HeaderMap::from_iter([(CONTENT_TYPE, MANIFEST.parse().expect("a header's value"))])
}

fn manifest(name: &str) -> Vec<u8> {
    let config = json!({ "mediaType": "application/vnd.oci.empty.v1+json", "digest": digest(CONFIG), "size": 2 });
    let manifest = json!({
        "schemaVersion": 2, "mediaType": MANIFEST, "artifactType": "application/vnd.example",
        "config": config, "layers": [config], "annotations": { "name": name },
    });
    manifest.to_string().into_bytes()
}

fn digest(content: &[u8]) -> String {
    Digest::of(Algorithm::Sha256, content).as_str().to_owned()
}

/// The catalog shows the repositories of the places where the caller may list, and no other.
async fn catalog(fixture: &Fixture<'_>, caller: &Caller, actor: &Actor) -> Option<String> {
    let reply = actor.rest_with("GET", "/v2/_catalog?n=1000", HeaderMap::new(), Vec::new()).await;
    let name = &caller.actor.name;
    if matches!(caller.standing, Standing::Anonymous) {
        return (reply.status != 401).then(|| format!("the catalog for {name}: {}", reply.text()));
    }
    let needed = oracle::needed(fixture, ListCatalog::FULL_NAME);
    let shown = reply.text().matches("/oci\"").count();
    let there = fixture.places.iter().filter(|place| place.exists && oracle::holds(caller, &needed, &place.group));
    let expected = there.count();
    (shown != expected).then(|| format!("the catalog for {name}: {shown} of {expected} places"))
}
