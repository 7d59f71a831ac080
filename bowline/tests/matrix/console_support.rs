//! Pages of the console as callers of the matrix get them.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::body::Body;
use axum::http::{Request, header};
use bowline_authn::crypto::random_bytes;
use bowline_console::Console;
use bowline_pipeline::{ConsolePipeline, RequestOrigin};
use http_body_util::BodyExt as _;
use prost_reflect::{DynamicMessage, MessageDescriptor};
use serde_json::Value as Json;
use tower_service::Service as _;

use crate::calls::method;
use crate::contents;
use crate::fixture::{Caller, Fixture, Kind, Place};

/// Whether every caller opens every page at every place.
#[expect(clippy::disallowed_methods, reason = "the environment says how much is tried")]
pub(crate) fn tries_all() -> bool {
    std::env::var("BOWLINE_MATRIX").is_ok_and(|size| size == "whole")
}

/// The console of the fixture's server, in which any caller can have a session: by their token, as after a sign-in.
pub(crate) struct Browsers<'f> {
    fixture: &'f Fixture<'f>,
    console: Console,
    router: axum::Router,
    requests: AtomicUsize,
}

/// A call that a page made, out of its lines for a shell.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) method: String,
    pub(crate) request: Json,
    pub(crate) payload: Vec<u8>,
}

/// A page as it was shown.
pub(crate) struct Shown {
    pub(crate) address: String,
    pub(crate) status: u16,
    pub(crate) body: String,
    pub(crate) calls: Vec<Call>,
}

impl<'f> Browsers<'f> {
    pub(crate) fn new(fixture: &'f Fixture<'f>) -> Browsers<'f> {
        let api = ConsolePipeline::new(fixture.server.server().parts().pipeline.clone());
        let console = Console::new(api, Duration::from_secs(60), Arc::new(random_bytes::<32>), Arc::new(|_, _, _| ()));
        let router = console.router();
        Browsers { fixture, console, router, requests: AtomicUsize::new(0) }
    }

    /// The cookie of a new session of the caller.
    pub(crate) fn of(&self, caller: &Caller) -> String {
        let token = caller.actor.token.clone().expect("a caller with a token");
        let cookie = self.console.sessions().begin(token, &caller.actor.name).expect("a session");
        cookie.to_str().expect("a cookie is text").split(';').next().unwrap_or_default().to_owned()
    }

    /// Status and body of an address.
    pub(crate) async fn get(&self, cookie: &str, address: &str) -> (u16, String) {
        let number = self.requests.fetch_add(1, Ordering::Relaxed);
        let origin =
            RequestOrigin { address: IpAddr::V4(Ipv4Addr::LOCALHOST), request_id: format!("request-{number}").into() };
        let request = Request::get(address).header(header::COOKIE, cookie).extension(origin);
        let request = request.body(Body::empty()).expect("a request");
        let response = self.router.clone().call(request).await.expect("a router answers");
        let status = response.status().as_u16();
        let body = response.into_body().collect().await.expect("a whole page").to_bytes();
        (status, String::from_utf8(body.to_vec()).expect("a page is text"))
    }

    /// A page with its calls. Every one of them must have its lines.
    pub(crate) async fn open(&self, cookie: &str, address: &str) -> Shown {
        let (status, body) = self.get(cookie, address).await;
        let code = body.split_once("<details class=\"code\">").map_or("", |(_, code)| code);
        let lines = code.split("<code>grpcurl ").skip(1).filter_map(|rest| rest.split("</code>").next());
        let calls: Vec<Call> = lines.map(|line| self.read(&unescaped(line))).collect();
        assert_eq!(code.matches("<h2>").count(), calls.len(), "{address}: a call without a line: {code}");
        Shown { address: address.to_owned(), status, body, calls }
    }

    /// The page as data; absent where it is refused as a whole.
    pub(crate) async fn data(&self, cookie: &str, address: &str) -> Option<Json> {
        let mark = if address.contains('?') { '&' } else { '?' };
        let (status, body) = self.get(cookie, &format!("{address}{mark}format=json")).await;
        (status == 200)
            .then(|| serde_json::from_str(&body).unwrap_or_else(|error| panic!("{address}: {error}: {body}")))
    }

    /// A call out of its line for grpcurl.
    fn read(&self, line: &str) -> Call {
        let name = line.rsplit(' ').next().unwrap_or_default().replace('/', ".");
        let document = line.split_once(" -d '").map_or("{}".to_owned(), |(_, rest)| {
            let rest = rest.replace(r"'\''", "\u{1}");
            rest.split('\'').next().unwrap_or_default().replace('\u{1}', "'")
        });
        let request: Json = serde_json::from_str(&document).unwrap_or_else(|error| panic!("{line}: {error}"));
        let input = method(self.fixture, &name).input.clone();
        let payload = prost::Message::encode_to_vec(&decoded(self.fixture, &input, &request));
        Call { method: name, request, payload }
    }
}

/// A message out of its JSON.
pub(crate) fn decoded(fixture: &Fixture<'_>, message: &MessageDescriptor, json: &Json) -> DynamicMessage {
    let tables = &fixture.server.server().parts().pipeline.tables;
    let id = tables.message(message.full_name()).expect("a message of the contract");
    let mut wire = Vec::new();
    let read = tables.from_json(id, json.to_string().as_bytes(), &mut wire);
    assert!(read.is_ok(), "{}: {read:?}: {json}", message.full_name());
    DynamicMessage::decode(message.clone(), wire.as_slice()).expect("an encoded message")
}

pub(crate) fn unescaped(html: &str) -> String {
    html.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&amp;", "&")
}

/// The address of a page about a place. A new page needs a line here.
pub(crate) fn address(path: &str, place: &Place) -> String {
    let of = |kind: Kind| place.lasting[&kind].clone();
    let (group, image) = (place.group.clone(), contents::digest('a'));
    let root = group.split('/').next().unwrap_or_default().to_owned();
    let query: Vec<(&str, String)> = match path.strip_prefix("/console/").expect("a page of the console") {
        "" | "first-run" | "help" | "me" | "methods" | "operator" | "organizations" | "packages" => vec![],
        "access" | "advisories" | "audit" | "bindings" | "blocked" | "exceptions" | "findings" | "groups" | "home"
        | "identities" | "invites" | "policies" | "posture" | "providers" | "repositories" | "roles"
        | "subscriptions" | "upstreams" | "licenses" | "unindexed-sboms" | "image-policies" | "image-verdicts"
        | "matches" | "audit-verify" | "first-run/provider" | "first-run/person" | "identities/new" => {
            vec![("in", group)]
        }
        "find" => vec![("in", group), ("license", "MIT".into())],
        "first-run/test" | "first-run/save" => {
            vec![("in", group), ("issuer", "https://issuer.example".into()), ("client", "bowline".into())]
        }
        "identities/new/facts" => vec![("in", group), ("platform", "github".into())],
        "identities/new/claims" | "identities/new/role" | "identities/new/create" => vec![
            ("in", group),
            ("platform", "github".into()),
            ("repo", "acme/site".into()),
            ("jobs", "all".into()),
            ("name", "never made".into()),
        ],
        "identities/new/bind" | "identities/new/connect" => vec![
            ("in", group),
            ("platform", "github".into()),
            ("identity", of(Kind::Identity)),
            ("role", of(Kind::Role)),
        ],
        "search" => vec![("in", group), ("q", "thing".into())],
        "decision" => vec![("in", group), ("purl", "pkg:npm/left-pad@1.3.0".into())],
        "group" => vec![("uid", group)],
        "advisory" => vec![("uid", of(Kind::Advisory))],
        "identity" => vec![("uid", of(Kind::Identity))],
        "provider" => vec![("uid", of(Kind::Provider))],
        "role" => vec![("uid", of(Kind::Role))],
        "repository" => vec![("uid", of(Kind::Repo))],
        "deliveries" => vec![("uid", of(Kind::Subscription))],
        "delivery" => vec![("uid", of(Kind::Subscription)), ("number", "999".into())],
        "image" | "image-packages" => vec![("repo", of(Kind::Repo)), ("digest", image)],
        "compare" => vec![("repo", of(Kind::Repo)), ("from", image.clone()), ("to", image)],
        "policy" | "tags" => vec![("repo", of(Kind::Repo))],
        "tag-history" => vec![("tag", of(Kind::Tag))],
        "audit-entry" => vec![("organization", root), ("sequence", "1".into())],
        "history" => vec![("resource", group)],
        "package" => vec![("id", "python:nothing".into())],
        "why" => vec![("identity", of(Kind::Identity)), ("capabilities", "groups.list".into()), ("scope", group)],
        "method" => vec![
            ("name", "chainguard.platform.iam.v2.GroupsService.GetGroup".into()),
            ("send", "true".into()),
            ("f.uid", group),
        ],
        other => panic!("{other} has no address here: say what it is about"),
    };
    if query.is_empty() {
        return path.to_owned();
    }
    format!("{path}?{}", url::form_urlencoded::Serializer::new(String::new()).extend_pairs(query).finish())
}

/// A text whose addresses are easy to search, also those in others.
fn plain(text: &str) -> String {
    text.replace("%25", "%").replace("%2F", "/").replace("%3D", "=")
}

/// The UIDPs in a text, also in an address.
pub(crate) fn uids(text: &str) -> BTreeSet<String> {
    let text = plain(text);
    let runs = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '/');
    runs.map(|run| run.trim_matches('/')).filter(|run| is_uid(run)).map(String::from).collect()
}

fn is_uid(run: &str) -> bool {
    let is_hex = |part: &str| part.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    run.split('/').enumerate().all(|(at, part)| is_hex(part) && part.len() == if at == 0 { 40 } else { 16 })
}

/// A page without UIDPs and without what is another one each time: the request's id, and what forms and links carry.
pub(crate) fn masked(page: &str) -> String {
    let mut text = plain(page);
    let mut known: Vec<String> = uids(&text).into_iter().collect();
    known.sort_by_key(|uid| std::cmp::Reverse(uid.len()));
    for uid in known {
        text = text.replace(&uid, "UID");
    }
    for start in ["Request id: <code>", "name=\"form\" value=\"", "name=\"token\" value=\"", "seal="] {
        let mut parts = text.split(start);
        let first = parts.next().unwrap_or_default().to_owned();
        text = parts.fold(first, |all, part| {
            format!("{all}{start}{}", part.trim_start_matches(|c: char| c.is_ascii_alphanumeric() || "-_.".contains(c)))
        });
    }
    text
}
