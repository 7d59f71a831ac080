//! Step 4: what the identity may do, and where.

use bowline_contract::v1::common::UidpFilter;
use bowline_contract::v2::iam::rpc::groups_service::ListGroups;
use bowline_contract::v2::iam::rpc::roles_service::ListRoles;
use bowline_contract::v2::iam::{ListGroupsRequest, ListRolesRequest, Role};
use bowline_core::Result;
use maud::{Markup, html};

use super::draft::{CARRIED, Platform};
use super::{CREATE, Draft, Step, at, content, draft, steps};
use crate::components::refused;
use crate::pages::{below, parent};
use crate::shell::Content;
use crate::values::{beginning, count, text};
use crate::visit::Visit;

/// Groups and roles that can be chosen from.
const CHOICES: i32 = 200;

/// The page of step 4.
pub(in crate::pages) async fn show(visit: &mut Visit) -> Result<Content> {
    let platform = match draft(visit).await? {
        Draft::Ready(platform, _) => platform,
        Draft::Lacks(content) => return Ok(content),
    };
    let request = ListRolesRequest { page_size: CHOICES, ..ListRolesRequest::default() };
    let roles = visit.answer::<ListRoles>(request).await?;
    let request = ListGroupsRequest { uidp: below(&visit.scope()), page_size: CHOICES, ..ListGroupsRequest::default() };
    let groups = visit.answer::<ListGroups>(request).await?;
    let scope = visit.scope();
    let uidp = UidpFilter { ids: vec![scope.clone()], ..UidpFilter::default() };
    let request = ListGroupsRequest { uidp: Some(uidp), page_size: 1, ..ListGroupsRequest::default() };
    let own = visit.answer::<ListGroups>(request).await?;
    let error = own.result.as_ref().err().or(groups.result.as_ref().err());
    let name = own.result.as_ref().ok().and_then(|response| response.groups.first()).map(|group| group.name.clone());
    let mut places = vec![(scope.clone(), name.unwrap_or_else(|| scope.clone()))];
    places.extend(
        groups.result.iter().flat_map(|response| &response.groups).map(|one| (one.uid.clone(), one.name.clone())),
    );
    let body = html! {
        (steps(visit, Step::Role))
        p {
            "An identity has no right until it has a role. A role holds in one group and everything below it: choose the narrowest "
            "that does the work. More can be given at any time."
        }
        form.request method="get" action=(CREATE) {
            @for name in CARRIED.iter().filter(|name| !matches!(**name, "role" | "at")) {
                @if let Some(value) = visit.query.get(name) { input type="hidden" name=(name) value=(value); }
            }
            @match &roles.result {
                Ok(response) => (choices(visit, platform, &response.roles, &scope)),
                Err(error) => (refused(error, Some(roles.method))),
            }
            div.field {
                label for="w-at" { "Where" }
                p.small id="w-at-hint" { "The group, with everything below it." }
                @if let Some(error) = error { (refused(error, Some(own.method))) }
                select id="w-at" name="at" aria-describedby="w-at-hint" {
                    @for (uid, name) in &places {
                        option value=(uid) selected[visit.query.get("at").unwrap_or(&scope) == uid] {
                            (beginning(name, 100)) @if *uid == scope { " (where the identity is)" }
                        }
                    }
                }
            }
            div.buttons {
                button type="submit" { "Continue: look at it whole" }
                a href=(at(visit, super::CLAIMS, &[])) { "Back" }
            }
        }
    };
    Ok(content("What the identity may do", body))
}

/// Roles that can be bound in a group: built-in ones, and those of the group and above.
fn choices(visit: &Visit, platform: Platform, roles: &[Role], scope: &str) -> Markup {
    let is_usable = |role: &&Role| match parent(&role.uid) {
        "" => true,
        group => scope == group || scope.strip_prefix(group).is_some_and(|rest| rest.starts_with('/')),
    };
    let rank = |role: &&Role| platform.roles().iter().position(|name| *name == role.name);
    let mut roles: Vec<&Role> = roles.iter().filter(is_usable).collect();
    roles.sort_by_key(|role| (rank(role).unwrap_or(usize::MAX), role.capabilities.len()));
    let (first, rest): (Vec<&Role>, Vec<&Role>) = roles.iter().partition(|role| rank(role).is_some());
    let chosen = visit.query.get("role").map(str::to_owned);
    // The narrowest of those that such workloads use.
    let chosen = chosen.or_else(|| first.first().map(|role| role.uid.clone())).unwrap_or_default();
    html! {
        fieldset {
            legend { "Role" }
            @for role in first { (choice(role, role.uid == chosen)) }
            @let is_rest = rest.iter().any(|role| role.uid == chosen);
            details open[is_rest] {
                summary { "All other roles" }
                @for role in rest { (choice(role, role.uid == chosen)) }
            }
            div.option {
                input type="radio" id="w-none" name="role" value="none" checked[chosen == "none"];
                label for="w-none" { "No role yet" }
            }
        }
    }
}

fn choice(role: &Role, is_chosen: bool) -> Markup {
    let id = format!("w-role-{}", role.uid.replace('/', "-"));
    html! {
        div.option {
            input type="radio" id=(id) name="role" value=(role.uid) checked[is_chosen];
            label for=(id) {
                (text(&role.name)) " "
                span.small { (count(role.capabilities.len() as i64, "capability", "capabilities")) }
            }
            @if !role.description.trim().is_empty() { p.small { (text(&role.description)) } }
        }
    }
}
