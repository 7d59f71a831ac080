use bowline_contract::v2::iam::rpc::role_bindings_service::ListRoleBindings;
use bowline_contract::v2::iam::rpc::roles_service::{GetRole, ListRoles};
use bowline_contract::v2::iam::{GetRoleRequest, ListRoleBindingsRequest, ListRolesRequest, Role};
use bowline_core::Result;
use maud::{Markup, html};

use super::{below, bindings, part, required};
use crate::components::{Field, List, facts, filters, link, refused, section};
use crate::shell::Content;
use crate::values::{code, count, text, time};
use crate::visit::{ROWS, Visit};

/// Built-in roles and visible custom ones.
pub(super) async fn list(visit: &mut Visit) -> Result<Content> {
    let request = ListRolesRequest {
        uidp: below(&visit.scope()),
        name: visit.query.text("name"),
        page_size: ROWS,
        page_token: visit.query.text("page"),
        ..ListRolesRequest::default()
    };
    let response = visit.call::<ListRoles>(request).await?;
    let list = List {
        caption: "Roles",
        heads: &["Name", "Description", "Capabilities", "Of", "Id"],
        rows: response.roles.iter().map(row).collect(),
        next: &response.next_page_token,
        total: response.total_count,
        empty: "There is no custom role here. Built-in roles are listed everywhere.",
        filters: &["name"],
    };
    let fields = [Field::Text { name: "name", label: "Name (whole)" }];
    Ok(Content::new("Roles", html! { (filters(visit, &["in"], &fields)) (list.render(visit)) }))
}

fn row(role: &Role) -> Vec<Markup> {
    vec![
        link("/console/role", &[("uid", &role.uid)], &role.name),
        text(&role.description),
        text(&count(role.capabilities.len() as i64, "capability", "capabilities")),
        of(role),
        code(&role.uid),
    ]
}

fn of(role: &Role) -> Markup {
    match super::parent(&role.uid) {
        "" => text("this server"),
        group => link("/console/group", &[("uid", group)], group),
    }
}

/// One role: what it allows, and who holds it.
pub(super) async fn show(visit: &mut Visit) -> Result<Content> {
    let uid = required(visit, "uid")?;
    let role = visit.call::<GetRole>(GetRoleRequest { uid: uid.clone() }).await?;
    let request = ListRoleBindingsRequest {
        role: uid.clone(),
        page_size: ROWS,
        page_token: visit.query.text("page"),
        ..ListRoleBindingsRequest::default()
    };
    let holders = part(visit.call::<ListRoleBindings>(request).await)?;
    let method = visit.last_method().map(str::to_owned);
    let holders = match &holders {
        Ok(response) => List {
            caption: "Role bindings with this role",
            heads: &bindings::HEADS,
            rows: response.role_bindings.iter().map(|binding| bindings::row(visit, binding)).collect(),
            next: &response.next_page_token,
            total: response.total_count,
            empty: "No identity that you may see holds this role.",
            filters: &[],
        }
        .render(visit),
        Err(error) => refused(error, method.as_deref()),
    };
    let about = facts(&[
        ("Description", text(&role.description)),
        ("Of", of(&role)),
        ("Id", code(&role.uid)),
        ("Created", time(role.create_time.as_ref())),
    ]);
    let body = html! {
        (about)
        (section("capabilities", "What it allows", &capabilities(visit, &role)))
        (section("holders", "Who holds it", &holders))
    };
    Ok(Content::new(role.name, body).below("/console/roles".to_owned(), "Roles"))
}

fn capabilities(visit: &Visit, role: &Role) -> Markup {
    let known = visit.app.api.contract().capabilities();
    let mut names: Vec<&str> = role
        .capabilities
        .iter()
        .filter_map(|number| known.by_number(*number))
        .map(|facts| facts.name.as_str())
        .collect();
    names.sort_unstable();
    html! { ul.tabs { @for name in names { li { code { (name) } } } } }
}
