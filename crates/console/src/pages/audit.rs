use bowline_contract::bowline::audit::v1::rpc::audit::{GetEntry, GetHistory, ListEntries};
use bowline_contract::bowline::audit::v1::{Entry, GetEntryRequest, GetHistoryRequest, Image, ListEntriesRequest};
use bowline_core::{Error, Result, Uidp};
use bowline_pipeline::OPERATOR;
use maud::{Markup, html};
use serde_json::Value;

use super::{audit_live, required};
use crate::components::{Field, List, facts, filters, link, section, table};
use crate::names::Names;
use crate::query::address;
use crate::shell::Content;
use crate::values::{badge, code, day, none, text, time};
use crate::visit::{ROWS, Visit};

const ORDERS: [(&str, &str); 2] = [("", "newest first"), ("seq asc", "oldest first")];

/// What was changed, by whom, in a group and below.
pub(super) async fn list(visit: &mut Visit) -> Result<Content> {
    let scope = visit.scope();
    // Only an operator may read the whole server, which is said by the refusal.
    let request = ListEntriesRequest {
        within: scope,
        actor: visit.query.text("actor"),
        method: visit.query.text("method"),
        kind: visit.query.text("kind"),
        page_size: ROWS,
        page_token: visit.query.text("page"),
        order_by: visit.query.text("order"),
        ..ListEntriesRequest::default()
    };
    let fields = [
        Field::Text { name: "actor", label: "By identity (id)" },
        Field::Text { name: "method", label: "Method (full name)" },
        Field::Text { name: "kind", label: "Kind of resource" },
        Field::Choice { name: "order", label: "Order", options: &ORDERS },
    ];
    if visit.scope().is_empty() && !visit.session.is_operator {
        let body = html! {
            p { "The audit log is read by organization or group: choose one, its page leads here." }
            p { a.button href="/console/" { "Organizations" } }
        };
        return Ok(Content::new("Audit log", body));
    }
    let response = visit.call::<ListEntries>(request).await?;
    let names = names_in(visit, &response.entries).await?;
    let list = List {
        caption: "",
        heads: &[],
        rows: Vec::new(),
        next: &response.next_page_token,
        total: None,
        empty: "Nothing has been changed here yet.",
        filters: &["actor", "method", "kind"],
    };
    let body = html! {
        (filters(visit, &["in"], &fields))
        // The chain of a person, whose entries are their own, is verified by an operator.
        @if let Some(root) = visit.scope().split('/').next().filter(|root| !["", &visit.session.subject].contains(root)) {
            p { a href=(address("/console/audit-verify", &[("in", root)])) { "Verify the log" } }
        }
        @if visit.query.get("page").is_none() && visit.query.get("order").is_none() {
            (audit_live::section(visit, &response))
        }
        @if response.entries.is_empty() { (list.render(visit)) } @else {
            (timeline(&response.entries, &names, ""))
            (list.pager(visit))
        }
    };
    Ok(Content::new("Audit log", body))
}

/// The names of what entries are about and of who made the change.
///
/// # Errors
/// UNAUTHENTICATED: the session is over.
pub(crate) async fn names_in(visit: &mut Visit, entries: &[Entry]) -> Result<Names> {
    Names::of(visit, entries.iter().flat_map(|entry| [entry.resource.as_str(), entry.actor.as_str()])).await
}

/// Heads of a table of entries.
pub(super) const HEADS: [&str; 4] = ["What", "Resource", "By", "When"];

/// Entries in a table for each day.
pub(super) fn timeline(entries: &[Entry], names: &Names, empty: &str) -> Markup {
    if entries.is_empty() {
        return html! { p.empty { (empty) } };
    }
    let days: Vec<&[Entry]> = entries.chunk_by(|a, b| day(a.time.as_ref()) == day(b.time.as_ref())).collect();
    html! {
        @for entries in days {
            @let caption = format!("{} (UTC)", day(entries[0].time.as_ref()));
            (table(&caption, &HEADS, &entries.iter().map(|entry| row(entry, names)).collect::<Vec<_>>()))
        }
    }
}

/// Entries in a line each, for the tile of another page.
pub(super) fn brief(entries: &[Entry], names: &Names) -> Markup {
    html! {
        @if entries.is_empty() { p.empty { "Nothing has been changed here yet." } } @else {
            ul.plain {
                @for entry in entries {
                    @let (organization, number) = position(entry);
                    li {
                        (link("/console/audit-entry", &[("organization", organization), ("sequence", &number)], &what(entry)))
                        @if let Some(name) = names.get(&entry.resource) { " " span title=(entry.resource) { (text(name)) } }
                        " by " (actor(&entry.actor, names)) ", " (time(entry.time.as_ref()))
                    }
                }
            }
        }
    }
}

/// What was done, to what kind of resource.
pub(super) fn what(entry: &Entry) -> String {
    format!("{} {}", entry.kind.rsplit('/').next().unwrap_or(&entry.kind), verb(entry))
}

fn row(entry: &Entry, names: &Names) -> Vec<Markup> {
    let (organization, number) = position(entry);
    let parameters = [("organization", organization), ("sequence", number.as_str())];
    vec![
        html! {
            (link("/console/audit-entry", &parameters, &what(entry)))
            br; span.small { (entry.method) }
        },
        resource(&entry.resource, names),
        actor(&entry.actor, names),
        time(entry.time.as_ref()),
    ]
}

/// How an entry is found: by the sequence of its organization, or of the whole server where it belongs to none.
pub(super) fn position(entry: &Entry) -> (&str, String) {
    if Uidp::is_valid(&entry.organization) && entry.organization != OPERATOR {
        (&entry.organization, entry.sequence.to_string())
    } else {
        ("", entry.global_sequence.to_string())
    }
}

/// What was changed, with its history. Some entries are about things without a UIDP, such as one-time links.
fn resource(uid: &str, names: &Names) -> Markup {
    if Uidp::is_valid(uid) {
        html! { a href=(address("/console/history", &[("resource", uid)])) { (names.show(uid)) } }
    } else {
        code(uid)
    }
}

fn verb(entry: &Entry) -> &'static str {
    match (&entry.before, &entry.after) {
        (None, Some(_)) => "created",
        (Some(_), None) => "deleted",
        (Some(_), Some(_)) => "changed",
        (None, None) => "used",
    }
}

fn actor(uid: &str, names: &Names) -> Markup {
    match uid {
        "" => none(),
        OPERATOR => badge("plain", "operator"),
        uid => html! { a href=(address("/console/identity", &[("uid", uid)])) { (names.show(uid)) } },
    }
}

/// One entry: the resource before and after, field by field.
pub(super) async fn show(visit: &mut Visit) -> Result<Content> {
    let number = required(visit, "sequence")?;
    let sequence = number.parse().map_err(|_| Error::invalid_field("sequence", "must be a number"))?;
    let request = GetEntryRequest { sequence, organization: visit.query.text("organization") };
    let entry = visit.call::<GetEntry>(request).await?;
    let names = names_in(visit, std::slice::from_ref(&entry)).await?;
    let about = facts(&[
        ("When", time(entry.time.as_ref())),
        ("By", actor(&entry.actor, &names)),
        ("Method", code(&entry.method)),
        ("Kind", text(&entry.kind)),
        (
            "Resource",
            html! { (resource(&entry.resource, &names)) @if names.get(&entry.resource).is_some() { " " (code(&entry.resource)) } },
        ),
        ("Request id", code(&entry.request_id)),
        ("Number", text(&entry.sequence.to_string())),
        ("Hash in the chain", code(&entry.hash)),
    ]);
    let body = html! { (about) (section("change", "What changed", &difference(visit, &entry))) };
    Ok(Content::new(format!("Entry {}", entry.sequence), body)
        .below(address("/console/audit", &[("in", position(&entry).0)]), "Audit log"))
}

/// Maximum bytes of a snapshot that is shown.
const MAX_SNAPSHOT: usize = 256 << 10;

/// The members that differ between the two snapshots, as text.
fn difference(visit: &Visit, entry: &Entry) -> Markup {
    let bytes = |snapshot: &Option<Image>| {
        let content = snapshot.as_ref().and_then(|snapshot| snapshot.content.as_ref());
        content.map_or(0, |content| content.value.len())
    };
    if bytes(&entry.before) + bytes(&entry.after) > MAX_SNAPSHOT {
        return html! { p.empty { "The snapshots are too large to show: read them with a call below." } };
    }
    let before = members(visit, entry.before.as_ref());
    let after = members(visit, entry.after.as_ref());
    if before.is_empty() && after.is_empty() {
        return html! { p.empty { "The log keeps no snapshot of this resource." } };
    }
    let names: std::collections::BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let value = |value: Option<&Value>| match value {
        None | Some(Value::Null) => none(),
        Some(Value::String(value)) => text(value),
        Some(other) => code(&other.to_string()),
    };
    let rows: Vec<_> = names
        .into_iter()
        .map(|name| {
            let (old, new) = (before.get(name), after.get(name));
            let is_update = entry.before.is_some() && entry.after.is_some();
            let mark = if old == new || !is_update {
                html! {}
            } else {
                html! { " " (badge("good", "changed")) }
            };
            vec![html! { (name) (mark) }, value(old), value(new)]
        })
        .collect();
    table("The resource before and after", &["Field", "Before", "After"], &rows)
}

fn members(visit: &Visit, image: Option<&Image>) -> serde_json::Map<String, Value> {
    let content = image.and_then(|image| image.content.as_ref());
    let json = content.and_then(|content| visit.json(&content.type_url, &content.value));
    match json {
        Some(Value::Object(members)) => members,
        _ => serde_json::Map::new(),
    }
}

/// Everything that happened to one resource.
pub(super) async fn history(visit: &mut Visit) -> Result<Content> {
    let resource = required(visit, "resource")?;
    let request =
        GetHistoryRequest { resource: resource.clone(), page_size: ROWS, page_token: visit.query.text("page") };
    let response = visit.call::<GetHistory>(request).await?;
    let names = names_in(visit, &response.entries).await?;
    let list = List {
        caption: "",
        heads: &[],
        rows: Vec::new(),
        next: &response.next_page_token,
        total: None,
        empty: "Nothing has been recorded for this resource.",
        filters: &[],
    };
    let body = html! {
        p {
            "Changes of "
            @if let Some(name) = names.get(&resource) { (text(name)) " " }
            (code(&resource))
        }
        @if response.entries.is_empty() { (list.render(visit)) } @else {
            (timeline(&response.entries, &names, ""))
            (list.pager(visit))
        }
    };
    Ok(Content::new("History", body))
}
