//! The part of the audit log that grows while it is shown: what the script fills, and what stands there without one.

use bowline_contract::bowline::audit::v1::{Entry, ListEntriesResponse};
use bowline_core::Uidp;
use bowline_core::rfc3339::{self, Digits};
use bowline_pipeline::OPERATOR;
use maud::{Markup, html};
use serde_json::{Value, json};

use super::audit::{HEADS, position, what};
use crate::components::table;
use crate::live::{AFTER, LIVE};
use crate::names::Names;
use crate::query::address;
use crate::values::{MAX_VALUE, beginning};
use crate::visit::Visit;

/// Where new entries appear, for a list whose first page is shown with the newest first.
pub(super) fn section(visit: &Visit, list: &ListEntriesResponse) -> Markup {
    let newest = match list.entries.first() {
        Some(entry) if visit.scope().is_empty() => entry.global_sequence.to_string(),
        Some(entry) => entry.sequence.to_string(),
        // Nothing matches so far; with more pages, it is not known yet.
        None if list.next_page_token.is_empty() => "0".to_owned(),
        None => String::new(),
    };
    let stream = visit.query.address(LIVE, &["order", "page", "notice", "format", AFTER], &[(AFTER, &newest)]);
    html! {
        div.live data-live=(stream) {
            p { a href=(visit.query.address(visit.path, &["notice", "format"], &[])) { "Reload" } " to see newer entries." }
            div hidden { (table("New since this page was opened", &HEADS, &[])) }
        }
    }
}

/// The cells of an entry's row, for the script, which makes texts and links of them alone.
pub(crate) fn cells(entry: &Entry, names: &Names) -> Value {
    let (organization, number) = position(entry);
    let parameters = [("organization", organization), ("sequence", number.as_str())];
    let seconds = entry.time.as_ref().map_or(0, |time| time.seconds);
    let at = rfc3339::text(seconds.saturating_mul(1_000_000), Digits::Fewest);
    let shown = at.get(..16).unwrap_or(&at).replace('T', " ");
    let resource = Some(address("/console/history", &[("resource", &entry.resource)]));
    let actor = Some(address("/console/identity", &[("uid", &entry.actor)]));
    json!([
        [
            { "text": what(entry), "link": address("/console/audit-entry", &parameters) },
            { "text": beginning(&entry.method, MAX_VALUE), "kind": "small" },
        ],
        [named(&entry.resource, resource.filter(|_| Uidp::is_valid(&entry.resource)), names)],
        [match entry.actor.as_str() {
            "" => json!({ "text": "none", "kind": "none" }),
            OPERATOR => json!({ "text": "operator", "kind": "badge plain" }),
            actor_uid => named(actor_uid, actor, names),
        }],
        [{ "text": format!("{shown} UTC"), "time": at }],
    ])
}

fn named(uid: &str, link: Option<String>, names: &Names) -> Value {
    match names.get(uid) {
        Some(name) => json!({ "text": beginning(name, MAX_VALUE), "title": uid, "link": link }),
        None => json!({ "text": beginning(uid, MAX_VALUE), "kind": "code", "link": link }),
    }
}
