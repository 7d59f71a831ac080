use bowline_contract::bowline::audit::v1::rpc::audit::ListEntries;
use bowline_contract::bowline::audit::v1::{Entry, ListEntriesRequest};
use bowline_contract::bowline::registry::v1::rpc::statistics::GetUsage;
use bowline_contract::bowline::registry::v1::{GetUsageRequest, Usage};
use bowline_contract::v1::common::UidpFilter;
use bowline_contract::v2::iam::rpc::groups_service::{GetGroup, ListGroups};
use bowline_contract::v2::iam::{GetGroupRequest, Group, ListGroupsRequest, OrgStatus};
use bowline_core::Result;
use maud::{Markup, html};

use super::{audit, below, parent, part, required};
use crate::components::{Field, List, facts, filters, link, refused, section};
use crate::query::address;
use crate::shell::Content;
use crate::values::{badge, bytes, code, none, text, time, words};
use crate::visit::{ROWS, Visit};

/// Heads of a table of groups.
pub(super) const HEADS: [&str; 4] = ["Name", "Description", "Id", "Created"];

/// Recent changes on the page of a group.
const RECENT: i32 = 10;

pub(super) fn row(group: &Group) -> Vec<Markup> {
    let name = html! {
        (link("/console/group", &[("uid", &group.uid)], &group.name))
        @if group.verified { " " (badge("good", "verified")) }
    };
    vec![name, text(&group.description), code(&group.uid), time(group.create_time.as_ref())]
}

/// All visible groups, or those below one.
pub(super) async fn list(visit: &mut Visit) -> Result<Content> {
    let request = ListGroupsRequest {
        uidp: below(&visit.scope()),
        name: visit.query.text("name"),
        page_size: ROWS,
        page_token: visit.query.text("page"),
        ..ListGroupsRequest::default()
    };
    let response = visit.call::<ListGroups>(request).await?;
    let list = List {
        caption: "Groups",
        heads: &HEADS,
        rows: response.groups.iter().map(row).collect(),
        next: &response.next_page_token,
        total: response.total_count,
        empty: "There is no group that you may see here.",
        filters: &["name"],
    };
    let fields = [Field::Text { name: "name", label: "Name (whole)" }];
    Ok(Content::new("Groups", html! { (filters(visit, &["in"], &fields)) (list.render(visit)) }))
}

/// One group: what it is, what is in it, what happened last.
pub(super) async fn show(visit: &mut Visit) -> Result<Content> {
    let uid = required(visit, "uid")?;
    let group = visit.call::<GetGroup>(GetGroupRequest { uid: uid.clone() }).await?;
    let children = ListGroupsRequest {
        uidp: Some(UidpFilter { children_of: uid.clone(), ..UidpFilter::default() }),
        page_size: ROWS,
        page_token: visit.query.text("page"),
        ..ListGroupsRequest::default()
    };
    let children = visit.call::<ListGroups>(children).await?;
    let usage = part(visit.call::<GetUsage>(GetUsageRequest { scope: uid.clone() }).await)?;
    let usage_method = visit.last_method().map(str::to_owned);
    let recent = ListEntriesRequest { within: uid.clone(), page_size: RECENT, ..ListEntriesRequest::default() };
    let recent = part(visit.call::<ListEntries>(recent).await)?;
    let recent_method = visit.last_method().map(str::to_owned);
    let changed: &[Entry] = recent.as_ref().map_or(&[], |response| &response.entries);
    let names = audit::names_in(visit, changed).await?;
    let list = List {
        caption: "Groups directly below",
        heads: &HEADS,
        rows: children.groups.iter().map(row).collect(),
        next: &children.next_page_token,
        total: children.total_count,
        empty: "There is no group below that you may see.",
        filters: &[],
    };
    let body = html! {
        (about(&group))
        (section("contents", "What is in it", &contents(&uid)))
        (section("groups", "Groups", &list.render(visit)))
        (section("usage", "Images stored", &match &usage {
            Ok(usage) => usage_of(usage),
            Err(error) => refused(error, usage_method.as_deref()),
        }))
        (section("recent", "Last changes", &match &recent {
            Ok(response) => audit::timeline(&response.entries, &names, "Nothing has been changed here yet."),
            Err(error) => refused(error, recent_method.as_deref()),
        }))
    };
    let content = Content::new(group.name, body);
    Ok(match parent(&uid) {
        "" => content.below("/console/".to_owned(), "Organizations"),
        parent => content.below(address("/console/group", &[("uid", parent)]), "Group above"),
    })
}

fn about(group: &Group) -> Markup {
    let limits = html! {
        @if group.resource_limits.is_empty() { (none()) } @else {
            ul.plain {
                @let sorted: std::collections::BTreeMap<_, _> = group.resource_limits.iter().collect();
                @for (name, limit) in sorted { li { (text(name)) ": " (limit) } }
            }
        }
    };
    let mut rows = vec![("Description", text(&group.description)), ("Id", code(&group.uid))];
    if parent(&group.uid).is_empty() {
        let status = OrgStatus::try_from(group.status).unwrap_or_default();
        rows.push(("Verified", crate::values::yes(group.verified)));
        rows.push(("Status", text(&words(status.as_str_name(), "ORG_STATUS_"))));
    }
    rows.push(("Limits", limits));
    rows.push(("Created", time(group.create_time.as_ref())));
    facts(&rows)
}

fn contents(uid: &str) -> Markup {
    const LISTS: [(&str, &str); 17] = [
        ("/console/identities", "Identities"),
        ("/console/access", "Who has access"),
        ("/console/bindings", "Role bindings"),
        ("/console/roles", "Roles"),
        ("/console/invites", "Invitations"),
        ("/console/providers", "Identity providers"),
        ("/console/repositories", "Repositories"),
        ("/console/find", "Find images"),
        ("/console/image-policies", "Image policies"),
        ("/console/upstreams", "Upstreams"),
        ("/console/findings", "Findings"),
        ("/console/matches", "Vulnerable components"),
        ("/console/posture", "Posture"),
        ("/console/advisories", "Advisories"),
        ("/console/policies", "Package policies"),
        ("/console/subscriptions", "Subscriptions"),
        ("/console/audit", "Audit log"),
    ];
    html! {
        ul.tabs { @for (page, name) in LISTS { li { a href=(address(page, &[("in", uid)])) { (name) } } } }
    }
}

fn usage_of(usage: &Usage) -> Markup {
    let quota = match usage.byte_quota {
        0 => text("no quota"),
        quota => text(&format!("{} of {} allowed", percent(usage.bytes, quota), bytes(quota))),
    };
    facts(&[
        ("Stored", text(&bytes(usage.bytes))),
        ("Quota", quota),
        ("Open uploads", text(&bytes(usage.upload_bytes))),
        ("Repositories", text(&usage.repos.to_string())),
        ("Tags", text(&usage.tags.to_string())),
    ])
}

fn percent(part: i64, whole: i64) -> String {
    format!("{:.0} %", part as f64 * 100.0 / whole.max(1) as f64)
}
