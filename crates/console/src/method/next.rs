//! Forms of one step of several: what a step returned, and the page that comes next.

use bowline_contract::bowline::iam::v1::rpc::matchers::{TestClaims, TestIssuer};
use bowline_contract::bowline::iam::v1::{TestClaimsResponse, TestIssuerResponse};
use bowline_contract::v2::iam::GroupInvite;
use bowline_contract::v2::iam::rpc::group_invites_service::CreateGroupInvite;
use bowline_contract::{Method as _, MethodInfo};
use bowline_core::Result;
use bowline_formats::percent::{self, NOT_UNRESERVED};
use bytes::Bytes;
use maud::{Markup, html};
use prost::Message as _;
use serde_json::Value;

use super::form::Sheet;
use super::outcome::shown;
use super::typed::{at, decode};
use super::{MADE, TESTED, title};
use crate::pages::first_run::sign_in_link;
use crate::pages::wizard::results;
use crate::query::Query;
use crate::shell::Content;
use crate::values::{badge, code, count, text};
use crate::visit::Visit;

/// Keys of an issuer that are shown.
const MAX_KEYS: usize = 30;

/// What a method returned that only reads, before the page that comes next. After the test of an issuer, that page is
/// there only if it can be used.
pub(super) async fn before_next(visit: &Visit, method: &MethodInfo, wire: Bytes, sheet: &Sheet<'_>) -> Result<Content> {
    let tested =
        (method.full_name == TestIssuer::FULL_NAME).then(|| TestIssuerResponse::decode(wire.clone()).ok()).flatten();
    let next = match &tested {
        Some(tested) if !tested.usable => None,
        Some(_) => {
            let issuer = sheet.typed.get("issuer").trim();
            let seal = visit.app.seal(&visit.key, std::iter::once((TESTED, issuer)));
            Some(with(&sheet.next, TESTED, &seal))
        }
        None => Some(sheet.next.clone()),
    };
    let response = shown(visit, method, wire).await?;
    let body = html! {
        (response)
        div.buttons {
            @if let Some(next) = next { a.button href=(next) { "Continue" } }
            @if !sheet.back.is_empty() { a href=(sheet.back) { "Back" } }
        }
    };
    Ok(Content::new(title(method), body))
}

/// An address with one more parameter.
fn with(address: &str, name: &str, value: &str) -> String {
    let sign = if address.contains('?') { '&' } else { '?' };
    format!("{address}{sign}{name}={}", percent::encode(value, NOT_UNRESERVED))
}

/// The link by which a person signs in to the console and accepts an invitation.
pub(super) fn invitation_link(visit: &Visit, method: &MethodInfo, wire: &[u8], next: &str) -> Option<String> {
    // Only who came from a page that is about people needs the link; it has the code, which is shown once.
    if next.is_empty() || method.full_name != CreateGroupInvite::FULL_NAME {
        return None;
    }
    let invite = GroupInvite::decode(wire).ok()?;
    let query = Query::read(next.split_once('?').map_or("", |(_, query)| query)).unwrap_or_default();
    Some(sign_in_link(&visit.app.api.settings().auth_url, &query.text("provider"), &invite.code))
}

/// A response that has a view of its own.
pub(super) fn view_of(method: &MethodInfo, wire: &[u8]) -> Option<Markup> {
    match method.full_name.as_str() {
        TestClaims::FULL_NAME => TestClaimsResponse::decode(wire).ok().map(|tested| results(&tested)),
        TestIssuer::FULL_NAME => TestIssuerResponse::decode(wire).ok().map(|tested| issuer_result(&tested)),
        _ => None,
    }
}

/// How the test of an issuer went.
fn issuer_result(tested: &TestIssuerResponse) -> Markup {
    html! {
        @if tested.usable {
            p { (badge("good", "usable")) " The issuer answered, and has " (count(tested.key_ids.len() as i64, "key", "keys")) "." }
            ul.plain { @for id in tested.key_ids.iter().take(MAX_KEYS) { li { (code(id)) } } }
        } @else {
            p { (badge("bad", "not usable")) " " (text(&tested.problem)) }
            p.small { "Reason: " (code(&tested.reason)) }
        }
    }
}

/// The page that comes next, with the id of what was made.
pub(super) fn next(visit: &Visit, method: &MethodInfo, wire: &[u8], next: &str) -> Option<String> {
    if next.is_empty() {
        return None;
    }
    let made = decode(visit.app.api.tables(), method.output.full_name(), wire);
    let made = made.as_ref().and_then(|made| at(made, "uid")).and_then(Value::as_str).unwrap_or_default();
    Some(with(next, MADE, made))
}
