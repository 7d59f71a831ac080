use bowline_contract::v2::iam::rpc::role_bindings_service::{DeleteRoleBinding, ListRoleBindings};
use bowline_contract::v2::iam::{ListRoleBindingsRequest, RoleBinding};
use bowline_core::Result;
use maud::{Markup, html};

use super::below;
use crate::components::{Field, List, action, filters, named};
use crate::shell::Content;
use crate::values::{code, time};
use crate::visit::{ROWS, Visit};

/// Heads of a table of role bindings.
pub(super) const HEADS: [&str; 6] = ["Identity", "Role", "Where", "Since", "Id", "Actions"];

/// Role bindings in a group and below, or all visible ones.
pub(super) async fn list(visit: &mut Visit) -> Result<Content> {
    let request = ListRoleBindingsRequest {
        uidp: below(&visit.scope()),
        identity: visit.query.text("identity"),
        role: visit.query.text("role"),
        page_size: ROWS,
        page_token: visit.query.text("page"),
        ..ListRoleBindingsRequest::default()
    };
    let response = visit.call::<ListRoleBindings>(request).await?;
    let list = List {
        caption: "Role bindings",
        heads: &HEADS,
        rows: response.role_bindings.iter().map(|binding| row(visit, binding)).collect(),
        next: &response.next_page_token,
        total: response.total_count,
        empty: "There is no role binding that you may see here.",
        filters: &["identity", "role"],
    };
    let fields = [
        Field::Text { name: "identity", label: "Id of the identity" },
        Field::Text { name: "role", label: "Id of the role" },
    ];
    Ok(Content::new("Role bindings", html! { (filters(visit, &["in"], &fields)) (list.render(visit)) }))
}

pub(super) fn row(visit: &Visit, binding: &RoleBinding) -> Vec<Markup> {
    let identity = binding.identity.clone().unwrap_or_default();
    let (role, group) = (binding.role.clone().unwrap_or_default(), binding.group.clone().unwrap_or_default());
    let shown = [&identity.name, &identity.email];
    let shown = shown.into_iter().find(|text| !text.trim().is_empty()).map_or("", String::as_str);
    vec![
        named("/console/identity", &identity.uid, shown),
        named("/console/role", &role.uid, &role.name),
        named("/console/group", &group.uid, &group.name),
        time(binding.create_time.as_ref()),
        code(&binding.uid),
        action::<DeleteRoleBinding>(visit, "Remove", &[("uid", &binding.uid)]),
    ]
}
