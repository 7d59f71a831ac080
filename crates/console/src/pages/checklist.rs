//! The first steps of an organization that has no image yet, each with its command.

use bowline_calls::quoted;
use bowline_contract::v2::events::ListSubscriptionsRequest;
use bowline_contract::v2::events::rpc::subscriptions_service::ListSubscriptions;
use bowline_contract::v2::iam::rpc::group_invites_service::ListGroupInvites;
use bowline_contract::v2::iam::rpc::identities_service::ListIdentities;
use bowline_contract::v2::iam::{ListGroupInvitesRequest, ListIdentitiesRequest, RelationshipType};
use bowline_core::Result;
use maud::{Markup, html};

use super::{below, parent};
use crate::components::section;
use crate::query::address;
use crate::values::badge;
use crate::visit::{Answer, Visit};

/// What commands have in place of a path that is not known here.
const UNKNOWN: &str = "PATH";

/// A step with its command.
struct Step {
    title: &'static str,
    /// Where its result is listed.
    page: &'static str,
    /// Whether it is done; absent where the caller may not know.
    is_done: Option<bool>,
    command: String,
}

/// The steps, of which those are ticked that left something.
pub(super) async fn show(visit: &mut Visit, scope: &str) -> Result<Markup> {
    let request = ListGroupInvitesRequest { uidp: below(scope), page_size: 1, ..ListGroupInvitesRequest::default() };
    let invites = visit.answer::<ListGroupInvites>(request).await?;
    let request = ListIdentitiesRequest {
        uidp: below(scope),
        relationship_type: RelationshipType::ClaimMatch.into(),
        page_size: 1,
        ..ListIdentitiesRequest::default()
    };
    let identities = visit.answer::<ListIdentities>(request).await?;
    let request = ListSubscriptionsRequest { uidp: below(scope), page_size: 1, ..ListSubscriptionsRequest::default() };
    let subscriptions = visit.answer::<ListSubscriptions>(request).await?;
    super::name_scope(visit).await?;
    let path = plain_name(visit, scope).unwrap_or(UNKNOWN);
    // Paths of images begin with the id: names of organizations are not unique before the operator has verified them.
    let image = quoted(&format!("{}/{scope}/app:latest", visit.app.api.settings().registry_audience));
    let parent_of_new = quoted(scope);
    let steps = [
        Step {
            title: "Invite someone",
            page: "/console/invites",
            is_done: done(&invites, |response| response.group_invites.len()),
            command: format!(
                "bowline iam invites create --parent {parent_of_new} --role viewer --ttl 168h --single-use"
            ),
        },
        Step {
            title: "Let a workload sign in",
            page: super::wizard::START,
            is_done: done(&identities, |response| response.identities.len()),
            command: format!("bowline iam identities create github {path}/build --repo acme/site --role registry.push"),
        },
        Step {
            title: "Push an image",
            page: "/console/repositories",
            is_done: Some(false),
            command: format!("{}\nbowline auth configure-docker\ndocker push {image}", sign_in(visit)),
        },
        Step {
            title: "Store what a scanner found",
            page: "/console/findings",
            is_done: Some(false),
            command: format!(
                "grype {image} -o json > report.json\nbowline registry scan-report put {path}/app:latest --file report.json"
            ),
        },
        Step {
            title: "Send events to a program of yours",
            page: "/console/subscriptions",
            is_done: done(&subscriptions, |response| response.subscriptions.len()),
            command: format!(
                "bowline events subscriptions create --parent {parent_of_new} --sink https://hooks.example/bowline"
            ),
        },
    ];
    let rows = html! {
        @if path == UNKNOWN { p { (UNKNOWN) " is the path of this group, such as acme/team." } }
        ol.steps { @for step in &steps { (step.render(scope)) } }
    };
    Ok(html! { div.wide { (section("first-steps", "First steps", &rows)) } })
}

/// The name of an organization that is a path in commands as it is.
fn plain_name<'v>(visit: &'v Visit, scope: &str) -> Option<&'v str> {
    let is_plain = |name: &str| name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
    visit.scope_name.as_deref().filter(|name| parent(scope).is_empty() && is_plain(name))
}

/// The command that signs in to this server as the session did. Without its id, the provider of an organization is found by
/// the name of a verified organization alone.
fn sign_in(visit: &Visit) -> String {
    let provider = visit.session.provider.as_deref();
    let provider = provider.map(|uid| format!(" --identity-provider {}", quoted(uid))).unwrap_or_default();
    format!("bowline auth login --api {}{provider}", quoted(&visit.app.api.settings().base_url))
}

fn done<T>(answer: &Answer<T>, number: impl Fn(&T) -> usize) -> Option<bool> {
    answer.result.as_ref().ok().map(|response| number(response) > 0)
}

impl Step {
    fn render(&self, scope: &str) -> Markup {
        html! {
            li {
                a href=(address(self.page, &[("in", scope)])) { (self.title) } " "
                @match self.is_done {
                    Some(true) => { (badge("good", "done")) }
                    Some(false) => { (badge("plain", "to do")) }
                    None => { (badge("plain", "you may not see it")) }
                }
                pre tabindex="0" data-copy { code { (self.command) } }
            }
        }
    }
}
