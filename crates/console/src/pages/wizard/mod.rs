//! The wizard for identities of workloads. Each step is an address, which has everything that was typed: a step can be
//! bookmarked, and Back goes back. Two forms at the end change something: the identity, and its role.

mod claims;
mod confirm;
mod connect;
mod create;
mod draft;
mod facts;
mod roles;
mod snippets;

use bowline_core::Result;
use maud::{Markup, html};

pub(crate) use claims::results;
pub(super) use claims::show as claims;
pub(super) use confirm::{call_form, confirm};
pub(super) use connect::show as connect;
pub(super) use create::{bind, create};
pub(super) use roles::show as roles;

use super::findings::choose;
use crate::method::MADE;
use crate::query::address;
use crate::shell::Content;
use crate::visit::Visit;
use draft::{CARRIED, PLATFORMS, Platform, Workload, workload};

/// Address of the first step.
pub(crate) const START: &str = "/console/identities/new";
const FACTS: &str = "/console/identities/new/facts";
const CLAIMS: &str = "/console/identities/new/claims";
const ROLES: &str = "/console/identities/new/role";
const CREATE: &str = "/console/identities/new/create";
const BIND: &str = "/console/identities/new/bind";
const CONNECT: &str = "/console/identities/new/connect";

/// The steps, in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    Platform,
    Facts,
    Claims,
    Role,
    Create,
    Bind,
    Connect,
}

const STEPS: [(Step, &str, &str); 7] = [
    (Step::Platform, START, "Platform"),
    (Step::Facts, FACTS, "Facts"),
    (Step::Claims, CLAIMS, "What matches"),
    (Step::Role, ROLES, "Role"),
    (Step::Create, CREATE, "Create"),
    (Step::Bind, BIND, "Give the role"),
    (Step::Connect, CONNECT, "Connect"),
];

/// The steps, with links to those that were done. What was created is not created again.
fn steps(visit: &Visit, now: Step) -> Markup {
    let is_made = now > Step::Create;
    html! {
        nav.crumbs aria-label="Steps" {
            ol {
                @for (step, path, title) in STEPS {
                    li aria-current=[(step == now).then_some("step")] {
                        @if step < now && (!is_made || step > Step::Create) {
                            a href=(at(visit, path, &[])) { (title) }
                        } @else if step == now { strong { (title) } } @else { (title) }
                    }
                }
            }
        }
    }
}

/// The address of a step with everything that was typed, and with these parameters in place of others.
fn at(visit: &Visit, path: &str, with: &[(&str, &str)]) -> String {
    let kept = CARRIED.iter().filter(|name| !with.iter().any(|(other, _)| other == *name));
    let kept: Vec<(&str, String)> = kept.map(|name| (*name, visit.query.text(name))).collect();
    let kept = kept.iter().map(|(name, value)| (*name, value.as_str()));
    address(path, &kept.chain(with.iter().copied()).collect::<Vec<_>>())
}

/// The address of a step after the identity was made, for which its name and what it trusts are over.
fn after(visit: &Visit, path: &str, with: &[(&str, &str)]) -> String {
    let gone = ["name", "description", "keys", "subject", "oidc-issuer", "cluster-issuer", "principal-id"];
    let gone: Vec<(&str, &str)> = gone.iter().map(|name| (*name, "")).collect();
    at(visit, path, &[&gone, with].concat())
}

/// The id of the identity that was made.
fn made(visit: &Visit) -> String {
    visit.query.get("identity").or_else(|| visit.query.get(MADE)).unwrap_or_default().to_owned()
}

fn content(title: &str, body: Markup) -> Content {
    Content::new(title, body).below("/console/identities".to_owned(), "Identities")
}

/// Step 1: where the workload runs.
pub(super) async fn start(visit: &mut Visit) -> Result<Content> {
    if visit.scope().is_empty() {
        return Ok(choose("A new workload identity"));
    }
    let body = html! {
        (steps(visit, Step::Platform))
        p {
            "A workload signs in with the token that its platform gives it: no password is made, stored or sent. Choose where it "
            "runs. Nothing is created before the last steps."
        }
        ul.choices {
            @for (_, key, title, sentence) in PLATFORMS {
                li {
                    a href=(at(visit, FACTS, &[("platform", key)])) { (title) }
                    p.small { (sentence) }
                }
            }
        }
        p.small {
            "For a program that has no such token, make a "
            a href=(address("/console/method", &[("name", "chainguard.platform.iam.v2.IdentitiesService.CreateIdentity")])) {
                "static key"
            }
            ", or a pull token with " code { "bowline auth pull-token create" } "."
        }
    };
    Ok(content("A new workload identity", body))
}

/// Step 2: the facts of the platform.
pub(super) async fn facts(visit: &mut Visit) -> Result<Content> {
    let Some(platform) = platform(visit) else { return start(visit).await };
    Ok(content(&format!("A workload of {}", platform.title()), facts::form(visit, platform, None)))
}

/// The platform of the address; absent for one that does not say, or no group.
fn platform(visit: &Visit) -> Option<Platform> {
    Platform::of(&visit.query).filter(|_| !visit.scope().is_empty())
}

/// The draft of the address, or the page that asks for what it lacks.
enum Draft {
    Ready(Platform, Workload),
    Lacks(Content),
}

async fn draft(visit: &mut Visit) -> Result<Draft> {
    let Some(platform) = platform(visit) else { return start(visit).await.map(Draft::Lacks) };
    Ok(match workload(platform, &visit.query) {
        Ok(workload) => Draft::Ready(platform, workload),
        Err(problem) => {
            let form = facts::form(visit, platform, Some(&problem));
            Draft::Lacks(content(&format!("A workload of {}", platform.title()), form))
        }
    })
}
