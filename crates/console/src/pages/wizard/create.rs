//! Steps 5 and 6: the two forms that change something. Each is a call of its own, and the second needs what the first made.

use bowline_contract::v2::iam::rpc::identities_service::{CreateIdentity, GetIdentity};
use bowline_contract::v2::iam::rpc::role_bindings_service::CreateRoleBinding;
use bowline_contract::v2::iam::rpc::roles_service::GetRole;
use bowline_contract::v2::iam::{GetIdentityRequest, GetRoleRequest};
use bowline_core::Result;
use maud::html;

use super::{BIND, CONNECT, Draft, ROLES, Step, after, at, confirm, content, draft, made, steps};
use crate::components::{facts, link, refused};
use crate::shell::Content;
use crate::values::{beginning, code, text};
use crate::visit::Visit;

/// Maximum characters of a value in the summary: the key set of a cluster is long.
const LINE: usize = 300;

/// Step 5: the identity is created.
pub(in crate::pages) async fn create(visit: &mut Visit) -> Result<Content> {
    let workload = match draft(visit).await? {
        Draft::Ready(_, workload) => workload,
        Draft::Lacks(content) => return Ok(content),
    };
    let fields = workload.fields(&visit.query);
    let role = visit.query.text("role");
    let with = if role.is_empty() || role == "none" { CONNECT } else { BIND };
    let next = after(visit, with, &[]);
    let shown: Vec<_> = fields.iter().map(|(path, value)| (path.as_str(), code(beginning(value, LINE)))).collect();
    let body = html! {
        (steps(visit, Step::Create))
        p { "This creates the identity. It has no right before the next step gives it its role." }
        (facts(&shown))
        (confirm::<CreateIdentity>(visit, &fields, &next, "Create the identity", None))
        p { a.button.quiet href=(at(visit, ROLES, &[])) { "Back to the role" } }
    };
    Ok(content("Create the identity", body))
}

/// Step 6: it gets its role.
pub(in crate::pages) async fn bind(visit: &mut Visit) -> Result<Content> {
    let (uid, role) = (made(visit), visit.query.text("role"));
    if uid.is_empty() || role.is_empty() || role == "none" {
        let body = html! {
            p.empty { "This step needs an identity that was created, and a role for it." }
            p { a.button href=(super::START) { "Begin" } }
        };
        return Ok(content("Give it its role", body));
    }
    let group = visit.query.get("at").map_or_else(|| visit.scope(), str::to_owned);
    let identity = visit.answer::<GetIdentity>(GetIdentityRequest { uid: uid.clone() }).await?;
    let role_named = visit.answer::<GetRole>(GetRoleRequest { uid: role.clone() }).await?;
    let fields = [("parent", &group), ("role_binding.identity_uid", &uid), ("role_binding.role_uid", &role)];
    let fields: Vec<(String, String)> =
        fields.into_iter().map(|(path, value)| (path.to_owned(), value.clone())).collect();
    let next = after(visit, CONNECT, &[("identity", &uid)]);
    let who = match &identity.result {
        Ok(identity) => link("/console/identity", &[("uid", &uid)], &identity.name),
        Err(error) => refused(error, Some(identity.method)),
    };
    let what = match &role_named.result {
        Ok(role) => html! { (link("/console/role", &[("uid", &role.uid)], &role.name)) " " (text(&role.description)) },
        Err(error) => refused(error, Some(role_named.method)),
    };
    let body = html! {
        (steps(visit, Step::Bind))
        p { "The identity exists. This gives it its role, here and below; you must hold every right of the role yourself." }
        (facts(&[("Identity", who), ("Role", what), ("Where", link("/console/group", &[("uid", &group)], &group))]))
        (confirm::<CreateRoleBinding>(visit, &fields, &next, "Give it the role", None))
        p { a.button.quiet href=(next) { "Go on without a role" } }
    };
    Ok(content("Give it its role", body))
}
