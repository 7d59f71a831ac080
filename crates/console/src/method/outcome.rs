//! What a call returned, and what a preview of one says.

use bowline_contract::MethodInfo;
use bowline_contract::bowline::audit::v1::Image;
use bowline_contract::bowline::preview::v1::{PreviewResponse, PreviewedChange};
use bowline_core::{Error, Result};
use bytes::Bytes;
use maud::{Markup, html};
use prost_reflect::DynamicMessage;
use serde_json::{Map, Value};

use super::form::Sheet;
use super::next::{invitation_link, next, view_of};
use super::title;
use super::typed::decode;
use crate::components::{MAX_ROWS, more, section, table};
use crate::hidden::{self, Hidden};
use crate::shell::Content;
use crate::values::{MAX_BLOCK, beginning, bytes, code, none, text, yes};
use crate::visit::Visit;

/// Maximum bytes of a response that is shown.
const MAX_SHOWN: usize = 1 << 20;
/// Members of a resource that a preview shows of one change.
const MAX_MEMBERS: usize = 30;

/// The response of a method, which is shown once: the page is not kept, and its address has nothing of it.
pub(super) async fn response(visit: &Visit, method: &MethodInfo, wire: Bytes, sheet: &Sheet<'_>) -> Result<Content> {
    let (back, next) = (&sheet.back, next(visit, method, &wire, &sheet.next));
    let link = invitation_link(visit, method, &wire, &sheet.next);
    let hidden = hidden_of(visit, method, &wire).await?;
    let document = document(visit, method, wire, hidden.clone()).await?;
    let secrets: Vec<&Hidden> = hidden.iter().filter(|one| one.is_secret).collect();
    let body = html! {
        p.notice role="status" { "Done." }
        @if let Some(link) = link {
            p { "The link for the person who is invited:" }
            pre tabindex="0" data-copy { code { (link) } }
        } @else {
            (once(&secrets))
            (document)
        }
        @if let Some(next) = next { p { a.button href=(next) { "Continue" } } }
        @else if !back.is_empty() { p { a.button href=(back) { "Back" } } }
    };
    let mut content = Content::new(title(method), body).below("/console/methods".to_owned(), "Methods");
    content.is_shown_once = !secrets.is_empty();
    Ok(content)
}

/// The response of a method that only reads.
pub(super) async fn shown(visit: &Visit, method: &MethodInfo, wire: Bytes) -> Result<Markup> {
    if wire.len() <= MAX_SHOWN
        && let Some(view) = view_of(method, &wire)
    {
        return Ok(view);
    }
    let hidden = if wire.len() > MAX_SHOWN { Vec::new() } else { hidden_of(visit, method, &wire).await? };
    document(visit, method, wire, hidden).await
}

/// What of a response a document does not have.
async fn hidden_of(visit: &Visit, method: &MethodInfo, wire: &Bytes) -> Result<Vec<Hidden>> {
    let (app, output, message) = (visit.app.clone(), method.output.clone(), wire.clone());
    let find = move || {
        let message = DynamicMessage::decode(output, message).map_err(Error::internal)?;
        Ok(hidden::of(app.api.contract(), &message))
    };
    visit.aside_if_large(wire.len(), find).await?
}

/// Secrets that the API returns once: whole, whatever else the response has.
fn once(secrets: &[&Hidden]) -> Markup {
    html! {
        @for one in secrets {
            p { strong { "A secret, which is shown this once: copy it now." } " Field " code { (one.path) } ":" }
            pre tabindex="0" data-copy { code { (one.value) } }
        }
    }
}

/// The response as a document, without what is hidden.
async fn document(visit: &Visit, method: &MethodInfo, wire: Bytes, hidden: Vec<Hidden>) -> Result<Markup> {
    if wire.len() > MAX_SHOWN {
        let size = bytes(wire.len() as i64);
        return Ok(html! { p.empty { "The response has " (size) ": read it with the command line." } });
    }
    let (app, name, length) = (visit.app.clone(), method.output.full_name().to_owned(), wire.len());
    let read = move || {
        let json = decode(app.api.tables(), &name, &wire)?;
        Some(serde_json::to_string_pretty(&hidden::replaced(json, &hidden)).unwrap_or_default())
    };
    let whole = visit.aside_if_large(length, read).await?;
    Ok(match whole.as_deref() {
        Some("{}") => html! { p { "The response is empty." } },
        Some(whole) => pretty(whole),
        None => html! { p.empty { "The response cannot be shown: read it with the command line." } },
    })
}

fn pretty(whole: &str) -> Markup {
    let shown = beginning(whole, MAX_BLOCK);
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

#[cfg(test)]
mod tests {
    use bowline_contract::Contract;
    use bowline_contract::v2::iam::GroupInvite;
    use prost::Message as _;

    use super::*;

    #[test]
    fn a_secret_is_shown_whole() {
        let contract = Contract::load();
        // The response of a longer one is cut.
        let code = "\"".repeat(70 << 10);
        let invite = GroupInvite { uid: "x".repeat(70 << 10), code: code.clone(), ..GroupInvite::default() };
        let message = contract.pool().get_message_by_name("chainguard.platform.iam.v2.GroupInvite").unwrap();
        let message = DynamicMessage::decode(message, invite.encode_to_vec().as_slice()).unwrap();
        let hidden = hidden::of(&contract, &message);
        let shown = once(&hidden.iter().collect::<Vec<_>>()).into_string();
        assert!(shown.contains(&code.replace('"', "&quot;")) && shown.contains("shown this once"), "{}", shown.len());
        let document = hidden::replaced(serde_json::json!({ "uid": "a", "code": code }), &hidden);
        assert_eq!(document, serde_json::json!({ "uid": "a", "code": "(above)" }));
    }
}
