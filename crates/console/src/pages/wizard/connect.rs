//! The last step: what the workload needs, and whether it was here.

use bowline_contract::bowline::audit::v1::rpc::audit::ListEntries;
use bowline_contract::bowline::audit::v1::{ListEntriesRequest, ListEntriesResponse};
use bowline_contract::bowline::iam::v1::rpc::matchers::TestClaims;
use bowline_contract::v2::iam::rpc::identities_service::GetIdentity;
use bowline_contract::v2::iam::rpc::role_bindings_service::CreateRoleBinding;
use bowline_contract::v2::iam::{GetIdentityRequest, Identity};
use bowline_core::Result;
use maud::{Markup, html};

use super::draft::Platform;
use super::snippets::{Snippet, snippets};
use super::{START, Step, content, made, steps};
use crate::components::{action, facts, link, refused, section};
use crate::query::address;
use crate::shell::Content;
use crate::values::{badge, code, text, time};
use crate::visit::{Answer, Visit};

/// The page that shows it.
pub(in crate::pages) async fn show(visit: &mut Visit) -> Result<Content> {
    let uid = made(visit);
    let Some(platform) = Platform::of(&visit.query).filter(|_| !uid.is_empty()) else {
        let body = html! {
            p.empty { "This page is about an identity that the wizard made." }
            p { a.button href=(START) { "Begin" } }
        };
        return Ok(content("Connect the workload", body));
    };
    let identity = visit.call::<GetIdentity>(GetIdentityRequest { uid: uid.clone() }).await?;
    // A token that is issued is an entry by the identity about itself.
    let request = ListEntriesRequest {
        resource: uid.clone(),
        actor: uid.clone(),
        page_size: 1,
        order_by: "seq asc".to_owned(),
        ..ListEntriesRequest::default()
    };
    let issued = visit.answer::<ListEntries>(request).await?;
    let body = html! {
        (steps(visit, Step::Connect))
        (facts(&[
            ("Identity", link("/console/identity", &[("uid", &uid)], &identity.name)),
            ("Id", code(&uid)),
            ("Platform", text(platform.title())),
        ]))
        (section("exchange", "The first exchange", &first_exchange(visit, &identity, &issued)))
        @for Snippet { id, title, note, content } in snippets(visit, platform, &identity) {
            (section(id, title, &html! {
                p { (note) }
                pre tabindex="0" data-copy { code { (content) } }
            }))
        }
        p {
            (action::<CreateRoleBinding>(visit, "Give it another role", &[("role_binding.identity_uid", &uid)])) " "
            a href=(address(START, &[("in", &visit.scope())])) { "Another workload" }
        }
    };
    Ok(content("Connect the workload", body))
}

/// Whether the identity has got a token, and what to look at if it has not.
fn first_exchange(visit: &Visit, identity: &Identity, issued: &Answer<ListEntriesResponse>) -> Markup {
    let first = issued.result.as_ref().ok().and_then(|response| response.entries.first());
    // Without the right to read the audit log, the time says it after a minute.
    let seconds = |time: &Option<prost_types::Timestamp>| time.as_ref().map_or(0, |time| time.seconds);
    let is_seen = seconds(&identity.last_seen_time) > seconds(&identity.create_time);
    html! {
        @if let Some(entry) = first {
            p { (badge("good", "connected")) " It got its first token at " (time(entry.time.as_ref())) "." }
            p { a href=(address("/console/audit", &[("actor", &identity.uid), ("in", &visit.scope())])) { "What it did" } }
        } @else if is_seen {
            p { (badge("good", "connected")) " It got a token; the last was at " (time(identity.last_seen_time.as_ref())) "." }
        } @else {
            p role="status" {
                (badge("plain", "waiting")) " No token was issued to it yet. Start the workload, then "
                a href=(visit.query.address(visit.path, &[], &[])) { "look again" } "."
            }
            details {
                summary { "If it is refused" }
                p {
                    "A refused exchange says that the token does not match and little more, so that no one can find out by trying. "
                    "Compare a token that the workload has got: "
                    (action::<TestClaims>(visit, "Test claims", &[("parent", &visit.scope()), ("identity", &identity.uid)]))
                }
                p { "The audience of its token must be " (code(&visit.app.api.settings().auth_url)) ", unless you gave it another." }
            }
        }
        @if let Err(error) = &issued.result { (refused(error, Some(issued.method))) }
    }
}
