use bowline_contract::v1::common::UidpFilter;
use bowline_contract::v2::iam::rpc::groups_service::{ListGroups, LookupGroup, RequestGroupAccess};
use bowline_contract::v2::iam::{Group, ListGroupsRequest, LookupGroupRequest};
use bowline_core::{Code, Result};
use maud::{Markup, html};

use super::{first_run, groups};
use crate::components::{List, action, link};
use crate::shell::Content;
use crate::values::{badge, code};
use crate::visit::{ROWS, Visit};

/// An organization, which leads to its home.
fn row(group: &Group) -> Vec<Markup> {
    let mut cells = groups::row(group);
    cells[0] = html! {
        (link("/console/home", &[("in", &group.uid)], &group.name))
        @if group.verified { " " (badge("good", "verified")) }
    };
    cells
}

/// The organizations that the caller sees.
pub(super) async fn show(visit: &mut Visit) -> Result<Content> {
    let request = ListGroupsRequest {
        uidp: Some(UidpFilter { in_root: true, ..UidpFilter::default() }),
        page_size: ROWS,
        page_token: visit.query.text("page"),
        ..ListGroupsRequest::default()
    };
    let response = visit.call::<ListGroups>(request).await?;
    let is_empty = response.groups.is_empty() && visit.query.get("page").is_none();
    let has_organizations = !is_empty;
    let first_run = first_run::invitation(visit, has_organizations).await?;
    let joinable = if is_empty && !visit.session.is_operator { joinable(visit).await? } else { None };
    let list = List {
        caption: "Organizations",
        heads: &groups::HEADS,
        rows: response.groups.iter().map(row).collect(),
        next: &response.next_page_token,
        total: response.total_count,
        empty: if visit.session.is_operator {
            "There is no organization yet."
        } else {
            "You are not a member of an organization yet."
        },
        filters: &[],
    };
    Ok(Content::new(
        "Organizations",
        html! {
            (first_run)
            (list.render(visit))
            @if is_empty {
                @if !visit.session.is_operator {
                    @if let Some(group) = &joinable {
                        p {
                            "The organization of your e-mail address is " bdi { (group.name) } ". "
                            (action::<RequestGroupAccess>(visit, "Ask its owners for access", &[("group_uid", &group.uid)]))
                        }
                    }
                    p { "Send your id to an administrator, who can give you a role: " (code(&visit.session.subject)) }
                }
            }
        },
    ))
}

/// The organization that the caller may ask for access; absent where there is none.
async fn joinable(visit: &mut Visit) -> Result<Option<Group>> {
    match visit.call::<LookupGroup>(LookupGroupRequest {}).await {
        Ok(response) => Ok(response.group),
        Err(error) if error.code() == Code::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}
