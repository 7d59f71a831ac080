use bowline_contract::bowline::people::v1::rpc::sessions::{EndSession, ListSessions};
use bowline_contract::bowline::people::v1::{ListSessionsRequest, Session};
use bowline_contract::v1::auth::WhoAmI;
use bowline_contract::v1::auth::rpc::auth::Validate;
use bowline_core::Result;
use maud::{Markup, html};

use super::part;
use crate::components::{List, action, facts, link, refused, section, table};
use crate::shell::Content;
use crate::values::{badge, code, count, text, time, yes};
use crate::visit::{ROWS, Visit};

/// Who the caller is, what they may do where, and where they are signed in.
pub(super) async fn show(visit: &mut Visit) -> Result<Content> {
    let me = visit.call::<Validate>(()).await?;
    let request = ListSessionsRequest { page_size: ROWS, page_token: visit.query.text("page") };
    let sessions = part(visit.call::<ListSessions>(request).await)?;
    let method = visit.last_method().map(str::to_owned);
    let body = html! {
        (about(visit, &me))
        (section("roles", "Your roles", &roles(visit, &me)))
        (section("sessions", "Where you are signed in", &match &sessions {
            Ok(response) => List {
                caption: "Sessions",
                heads: &["Session", "Browser", "Began", "Ends", "This one", "Actions"],
                rows: response.sessions.iter().map(|one| session(visit, one)).collect(),
                next: &response.next_page_token,
                total: None,
                empty: "There is no session of a person: you act with a token of its own.",
                filters: &[],
            }
            .render(visit),
            Err(error) => refused(error, method.as_deref()),
        }))
        (section("tokens", "Tokens for pulling", &html! {
            p { "A token for pulling has a key that only its holder keeps, so that the command line makes it:" }
            pre tabindex="0" data-copy { code { "bowline auth pull-token create --help" } }
        }))
    };
    Ok(Content::new("Your account", body))
}

fn about(visit: &Visit, me: &WhoAmI) -> Markup {
    let name = me.profile.as_ref().map_or("", |profile| profile.name.as_str());
    facts(&[
        ("Name", text(name)),
        ("E-mail", text(&me.email)),
        ("Id", code(&me.subject)),
        ("Acts as operator", yes(visit.session.is_operator)),
        ("This session ends", time(me.expiry.as_ref())),
    ])
}

fn roles(visit: &Visit, me: &WhoAmI) -> Markup {
    if me.capabilities.is_empty() {
        return html! {
            p.empty {
                @if visit.session.is_operator { "The operator may do everything, without a role." }
                @else { "You have no role yet: send your id to an administrator." }
            }
        };
    }
    let rows: Vec<_> = me
        .capabilities
        .iter()
        .map(|one| {
            let (group, role) = (one.group.clone().unwrap_or_default(), one.role.clone().unwrap_or_default());
            vec![
                link(
                    "/console/group",
                    &[("uid", &group.id)],
                    if group.name.is_empty() { &group.id } else { &group.name },
                ),
                link("/console/role", &[("uid", &role.id)], if role.name.is_empty() { &role.id } else { &role.name }),
                text(&count(one.capabilities.len() as i64, "capability", "capabilities")),
            ]
        })
        .collect();
    table("Roles by group", &["Group", "Role", "Allows"], &rows)
}

fn session(visit: &Visit, session: &Session) -> Vec<Markup> {
    vec![
        code(session.id.get(..8).unwrap_or(&session.id)),
        yes(session.browser),
        time(session.create_time.as_ref()),
        time(session.expire_time.as_ref()),
        if session.current {
            badge("good", "this one")
        } else {
            html! {}
        },
        action::<EndSession>(visit, "End", &[("id", &session.id)]),
    ]
}
