//! What a call returned, and what a preview of one says.

use bowline_contract::bowline::audit::v1::Image;
use bowline_contract::bowline::iam::v1::rpc::matchers::{TestClaims, TestIssuer};
use bowline_contract::bowline::iam::v1::{TestClaimsResponse, TestIssuerResponse};
use bowline_contract::bowline::preview::v1::{PreviewResponse, PreviewedChange};
use bowline_contract::v2::iam::GroupInvite;
use bowline_contract::v2::iam::rpc::group_invites_service::CreateGroupInvite;
use bowline_contract::{Method as _, MethodInfo};
use bowline_formats::percent::{self, NOT_UNRESERVED};
use maud::{Markup, html};
use prost::Message as _;
use serde_json::{Map, Value};

use super::form::Sheet;
use super::typed::{at, decode};
use super::{MADE, TESTED, title};
use crate::components::{MAX_ROWS, more, section, table};
use crate::pages::first_run::sign_in_link;
use crate::pages::wizard::results;
use crate::query::Query;
use crate::shell::Content;
use crate::values::{MAX_BLOCK, badge, beginning, bytes, code, count, none, text, yes};
use crate::visit::Visit;

/// Maximum bytes of a response that is shown.
const MAX_SHOWN: usize = 1 << 20;
/// Members of a resource that a preview shows of one change.
const MAX_MEMBERS: usize = 30;

/// The response of a method, which is shown once: the page is not kept, and its address has nothing of it.
pub(super) fn response(visit: &Visit, method: &MethodInfo, wire: &[u8], sheet: &Sheet<'_>) -> Content {
    let (back, next) = (&sheet.back, next(visit, method, wire, &sheet.next));
    // Only who came from a page that is about people needs the link; it has the code, which is shown once.
    let is_invitation = method.full_name == CreateGroupInvite::FULL_NAME && next.is_some();
    let link = is_invitation.then(|| invitation_link(visit, wire, &sheet.next)).flatten();
    let body = html! {
        p.notice role="status" { "Done." }
        @if wire.len() <= MAX_SHOWN && visit.has_secret(&method.output, wire) {
            p { strong { "The response has a secret. It is shown this once: copy it now." } }
        }
        @if let Some(link) = link {
            p { "The link for the person who is invited:" }
            pre tabindex="0" data-copy { code { (link) } }
        } @else {
            (shown(visit, method, wire))
        }
        @if let Some(next) = next { p { a.button href=(next) { "Continue" } } }
        @else if !back.is_empty() { p { a.button href=(back) { "Back" } } }
    };
    Content::new(title(method), body).below("/console/methods".to_owned(), "Methods")
}

/// What a method returned that only reads, before the page that comes next. After the test of an issuer, that page is
/// there only if it can be used.
pub(super) fn before_next(visit: &Visit, method: &MethodInfo, wire: &[u8], sheet: &Sheet<'_>) -> Content {
    let tested = (method.full_name == TestIssuer::FULL_NAME).then(|| TestIssuerResponse::decode(wire).ok()).flatten();
    let next = match &tested {
        Some(tested) if !tested.usable => None,
        Some(_) => {
            let issuer = sheet.typed.get("issuer").trim();
            let seal = visit.app.seal(&visit.key, std::iter::once((TESTED, issuer)));
            Some(with(&sheet.next, TESTED, &seal))
        }
        None => Some(sheet.next.clone()),
    };
    let body = html! {
        (shown(visit, method, wire))
        div.buttons {
            @if let Some(next) = next { a.button href=(next) { "Continue" } }
            @if !sheet.back.is_empty() { a href=(sheet.back) { "Back" } }
        }
    };
    Content::new(title(method), body)
}

/// An address with one more parameter.
fn with(address: &str, name: &str, value: &str) -> String {
    let sign = if address.contains('?') { '&' } else { '?' };
    format!("{address}{sign}{name}={}", percent::encode(value, NOT_UNRESERVED))
}

/// The link by which a person signs in to the console and accepts an invitation.
fn invitation_link(visit: &Visit, wire: &[u8], next: &str) -> Option<String> {
    let invite = GroupInvite::decode(wire).ok()?;
    let query = Query::read(next.split_once('?').map_or("", |(_, query)| query)).unwrap_or_default();
    Some(sign_in_link(&visit.app.api.settings().auth_url, &query.text("provider"), &invite.code))
}

/// How the test of an issuer went.
fn issuer_result(tested: &TestIssuerResponse) -> Markup {
    html! {
        @if tested.usable {
            p { (badge("good", "usable")) " The issuer answered, and has " (count(tested.key_ids.len() as i64, "key", "keys")) "." }
            ul.plain { @for id in tested.key_ids.iter().take(MAX_MEMBERS) { li { (code(id)) } } }
        } @else {
            p { (badge("bad", "not usable")) " " (text(&tested.problem)) }
            p.small { "Reason: " (code(&tested.reason)) }
        }
    }
}

/// The page that comes next, with the id of what was made.
fn next(visit: &Visit, method: &MethodInfo, wire: &[u8], next: &str) -> Option<String> {
    if next.is_empty() {
        return None;
    }
    let made = decode(visit.app.api.tables(), method.output.full_name(), wire);
    let made = made.as_ref().and_then(|made| at(made, "uid")).and_then(Value::as_str).unwrap_or_default();
    Some(with(next, MADE, made))
}

/// The response as a document, or as its own page shows it.
pub(super) fn shown(visit: &Visit, method: &MethodInfo, wire: &[u8]) -> Markup {
    if wire.len() > MAX_SHOWN {
        let size = bytes(wire.len() as i64);
        return html! { p.empty { "The response has " (size) ": read it with the command line." } };
    }
    if let (TestClaims::FULL_NAME, Ok(tested)) = (method.full_name.as_str(), TestClaimsResponse::decode(wire)) {
        return results(&tested);
    }
    if let (TestIssuer::FULL_NAME, Ok(tested)) = (method.full_name.as_str(), TestIssuerResponse::decode(wire)) {
        return issuer_result(&tested);
    }
    html! {
        @match decode(visit.app.api.tables(), method.output.full_name(), wire) {
            Some(Value::Object(members)) if members.is_empty() => { p { "The response is empty." } }
            Some(json) => { (document(&json)) }
            None => { p.empty { "The response cannot be shown: read it with the command line." } }
        }
    }
}

fn document(json: &Value) -> Markup {
    let whole = serde_json::to_string_pretty(json).unwrap_or_default();
    let shown = beginning(&whole, MAX_BLOCK);
    html! {
        pre tabindex="0" data-copy { code { (shown) } }
        @if shown.len() < whole.len() {
            p.small { "This is the beginning of " (bytes(whole.len() as i64)) "." }
        }
    }
}

/// What a call would do.
pub(super) fn preview(visit: &Visit, effects: &PreviewResponse) -> Markup {
    html! {
        p.notice role="status" { "This is a preview: nothing was changed." }
        (section("preview-access", "Who gains and loses what", &capabilities(effects)))
        (section("preview-changes", "What would change", &changes(visit, effects)))
        (section("preview-events", "Events that would be sent", &events(effects)))
        @if let Some(retention) = &effects.retention {
            @let removed: Vec<_> = retention.removed.iter().take(MAX_ROWS).collect();
            (section("preview-retention", "What retention would remove", &html! {
                p { (retention.removed.len()) " manifests would go, " (retention.kept) " stay." }
                @if !removed.is_empty() {
                    (table("Manifests that would go", &["Digest", "Tags", "Size"], &removed.iter().map(|one| vec![
                        code(&one.digest), text(&one.tags.join(", ")), text(&bytes(one.size)),
                    ]).collect::<Vec<_>>()))
                    (more(retention.removed.len()))
                }
            }))
        }
    }
}

fn capabilities(effects: &PreviewResponse) -> Markup {
    let names = |names: &[String]| html! { @if names.is_empty() { (none()) } @else { (text(&names.join(", "))) } };
    let rows: Vec<_> = effects
        .capability_changes
        .iter()
        .take(MAX_ROWS)
        .map(|one| vec![code(&one.identity), code(&one.scope), names(&one.gained), names(&one.lost)])
        .collect();
    html! {
        @if rows.is_empty() { p.empty { "No one that you may list gains or loses a capability." } } @else {
            (table("By identity and place", &["Identity", "Where", "Gains", "Loses"], &rows))
            (more(effects.capability_changes.len() + usize::try_from(effects.more_capability_changes).unwrap_or(0)))
        }
        @if effects.capability_changes_incomplete {
            p.small { "There are more role bindings than a preview reads: this is not all." }
        }
    }
}

fn changes(visit: &Visit, effects: &PreviewResponse) -> Markup {
    let rows: Vec<_> = effects.changes.iter().take(MAX_ROWS).map(|one| change(visit, one)).collect();
    html! {
        @if rows.is_empty() { p.empty { "Nothing that you may list." } } @else {
            (table("Resources", &["Resource", "Kind", "What", "Fields"], &rows))
            (more(effects.changes.len() + usize::try_from(effects.more_changes).unwrap_or(0)))
        }
    }
}

fn change(visit: &Visit, change: &PreviewedChange) -> Vec<Markup> {
    let what = match (&change.before, &change.after) {
        (None, _) => "created",
        (Some(_), None) => "deleted",
        (Some(_), Some(_)) => "changed",
    };
    let (before, after) = (members(visit, change.before.as_ref()), members(visit, change.after.as_ref()));
    let is_other = |name: &&String| before.get(*name) != after.get(*name);
    let mut names: Vec<&String> = before.keys().chain(after.keys()).filter(is_other).collect();
    names.sort();
    names.dedup();
    let value = |members: &Map<String, Value>, name: &str| match members.get(name) {
        None => none(),
        Some(Value::String(value)) => text(value),
        Some(other) => code(&other.to_string()),
    };
    let fields = html! {
        ul.plain {
            @for name in names.iter().take(MAX_MEMBERS) {
                li {
                    (name) ": " (value(&before, name))
                    @if what == "changed" { " becomes " (value(&after, name)) }
                    @else if what == "created" { (value(&after, name)) }
                }
            }
        }
    };
    vec![code(&change.resource), text(&change.kind), text(what), fields]
}

fn members(visit: &Visit, image: Option<&Image>) -> Map<String, Value> {
    let content = image.and_then(|image| image.content.as_ref());
    match content.and_then(|content| visit.json(&content.type_url, &content.value)) {
        Some(Value::Object(members)) => members,
        _ => Map::new(),
    }
}

fn events(effects: &PreviewResponse) -> Markup {
    let row = |event: &bowline_contract::bowline::preview::v1::PreviewedEvent| {
        vec![code(&event.r#type), code(&event.subject), yes(event.delivered)]
    };
    let rows: Vec<_> = effects.events.iter().take(MAX_ROWS).map(row).collect();
    html! {
        @if rows.is_empty() { p.empty { "None." } } @else {
            (table("Events", &["Type", "About", "Subscriptions get it"], &rows))
        }
    }
}
