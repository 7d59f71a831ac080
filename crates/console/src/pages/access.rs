use bowline_contract::bowline::iam::v1::rpc::access_explainer::ListEffectiveAccess;
use bowline_contract::bowline::iam::v1::{AccessEntry, ListEffectiveAccessRequest};
use bowline_core::Result;
use maud::{Markup, html};

use crate::components::{List, link};
use crate::shell::Content;
use crate::values::{badge, time};
use crate::visit::{ROWS, Visit};

/// Heads of a table of the roles of one identity.
pub(super) const HEADS_OF_ONE: [&str; 4] = ["Role", "Where", "Since", "Ends"];

pub(super) fn row_of_one(entry: &AccessEntry) -> Vec<Markup> {
    vec![
        link("/console/role", &[("uid", &entry.role)], named(&entry.role_name, &entry.role)),
        link("/console/group", &[("uid", &entry.group)], named(&entry.group_name, &entry.group)),
        time(entry.create_time.as_ref()),
        time(entry.expire_time.as_ref()),
    ]
}

fn named<'a>(name: &'a str, uid: &'a str) -> &'a str {
    if name.trim().is_empty() { uid } else { name }
}

/// Everyone who may do something in a group, by a role there or above.
pub(super) async fn effective(visit: &mut Visit) -> Result<Content> {
    let scope = visit.scope();
    if scope.is_empty() {
        let body = html! {
            p { "Choose a group: its page leads to everyone who has access to it." }
            p { a.button href="/console/groups" { "Groups" } }
        };
        return Ok(Content::new("Who has access", body));
    }
    let request = ListEffectiveAccessRequest { scope, page_size: ROWS, page_token: visit.query.text("page") };
    let response = visit.call::<ListEffectiveAccess>(request).await?;
    let list = List {
        caption: "Identities with a role here or above",
        heads: &["Identity", "Role", "Given at", "How", "Since", "Ends"],
        rows: response.entries.iter().map(row).collect(),
        next: &response.next_page_token,
        total: None,
        empty: "No identity has a role here or above.",
        filters: &[],
    };
    Ok(Content::new("Who has access", list.render(visit)))
}

fn row(entry: &AccessEntry) -> Vec<Markup> {
    let name = [&entry.identity_name, &entry.email].into_iter().find(|name| !name.trim().is_empty());
    let identity = html! {
        (link("/console/identity", &[("uid", &entry.identity)], name.unwrap_or(&entry.identity)))
        @if entry.inactive { " " (badge("bad", "inactive")) }
    };
    let how = if entry.inherited { badge("plain", "from above") } else { badge("good", "here") };
    let mut row = vec![identity];
    let rest = row_of_one(entry);
    let (names, times) = rest.split_at(2);
    row.extend(names.iter().cloned());
    row.push(how);
    row.extend(times.iter().cloned());
    row
}
