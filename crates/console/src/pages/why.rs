use bowline_contract::bowline::iam::v1::rpc::access_explainer::ExplainAccess;
use bowline_contract::bowline::iam::v1::{
    AccessExplanation, AccessGrantor, AccessOutcome, AccessStep, ExplainAccessRequest,
};
use bowline_core::{Code, Result};
use maud::{Markup, html};

use crate::components::{Field, facts, filters, link, section, table};
use crate::shell::Content;
use crate::values::{badge, code, text};
use crate::visit::Visit;

/// Why an identity may do something somewhere, or may not.
pub(super) async fn show(visit: &mut Visit) -> Result<Content> {
    let fields = [
        Field::Text { name: "identity", label: "Identity (you, if empty)" },
        Field::Text { name: "method", label: "Method (full name)" },
        Field::Text { name: "capabilities", label: "Or capabilities, with commas" },
        Field::Text { name: "scope", label: "Where (id)" },
    ];
    let scope = visit.query.text("scope");
    let (method, capabilities) = (visit.query.text("method"), capabilities(visit));
    let form = filters(visit, &[], &fields);
    let method = if capabilities.is_empty() { method } else { String::new() };
    if scope.is_empty() || (method.is_empty() && capabilities.is_empty()) {
        let body = html! {
            (form)
            p.empty {
                "Say where, and name a method, such as " code { "chainguard.platform.iam.v2.GroupsService.CreateGroup" }
                ", or capabilities, such as " code { "groups.create" } ". The answer is the decision of this server, with "
                "the role bindings that led to it and those who can change it."
            }
        };
        return Ok(Content::new("Why?", body));
    }
    let request = ExplainAccessRequest { identity: visit.query.text("identity"), method, capabilities, scope };
    let answer = visit.call::<ExplainAccess>(request).await;
    let body = match &answer {
        Ok(explanation) => html! { (form) (explained(explanation)) },
        // The form stays: what it says is wrong, or asks about someone whose access the reader may not see.
        Err(error) if matches!(error.code(), Code::InvalidArgument | Code::PermissionDenied | Code::NotFound) => {
            html! { (form) p.notice role="alert" { (error.message()) } }
        }
        Err(_) => return answer.map(|_| Content::new("Why?", html! {})),
    };
    Ok(Content::new("Why?", body))
}

fn capabilities(visit: &Visit) -> Vec<String> {
    let text = visit.query.text("capabilities");
    text.split(',').map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

fn explained(answer: &AccessExplanation) -> Markup {
    let verdict = if answer.allowed { badge("good", "allowed") } else { badge("bad", "denied") };
    let names = |names: &[String]| html! { ul.tabs { @for name in names { li { code { (name) } } } } };
    let needed = match answer.capabilities.as_slice() {
        [] => text("nothing"),
        capabilities => names(capabilities),
    };
    let mut rows = vec![
        ("Who", html! { (link("/console/identity", &[("uid", &answer.identity)], &answer.identity)) }),
        ("Where", code(&answer.scope)),
    ];
    if !answer.method.is_empty() {
        rows.push(("Method", code(&answer.method)));
    }
    rows.push(("Needs", needed));
    if !answer.missing.is_empty() {
        rows.push(("Lacks", names(&answer.missing)));
    }
    html! {
        section aria-labelledby="decision" {
            h2 id="decision" { "The decision: " (verdict) }
            p { (answer.summary) }
            (facts(&rows))
        }
        (section("path", "Role bindings that were looked at", &steps(answer)))
        @if !answer.allowed { (section("grantors", "Who can change it", &grantors(&answer.grantors))) }
    }
}

fn steps(answer: &AccessExplanation) -> Markup {
    if answer.steps.is_empty() {
        return html! { p.empty { "There is no role binding of this identity that you may see." } };
    }
    let rows: Vec<_> = answer.steps.iter().map(step).collect();
    html! {
        (table("Each with what it gives here", &["Role", "Where", "Here", "Gives"], &rows))
        @if answer.more_steps { p.small { "There are more." } }
    }
}

fn step(step: &AccessStep) -> Vec<Markup> {
    let outcome = AccessOutcome::try_from(step.outcome).unwrap_or_default();
    let (kind, said) = match outcome {
        AccessOutcome::Gives => ("good", "gives it"),
        AccessOutcome::RoleLacks => ("bad", "the role lacks it"),
        AccessOutcome::BelowScope => ("bad", "counts only below"),
        AccessOutcome::DirectoryDeactivated => ("bad", "deactivated by the directory"),
        AccessOutcome::Unspecified => ("plain", "unknown"),
    };
    let shown = |name: &str, uid: &str| if name.trim().is_empty() { uid.to_owned() } else { name.to_owned() };
    vec![
        html! {
            (link("/console/role", &[("uid", &step.role)], &shown(&step.role_name, &step.role)))
            @if step.by_session { " " (badge("plain", "by a group of the sign-in")) }
        },
        link("/console/group", &[("uid", &step.group)], &shown(&step.group_name, &step.group)),
        badge(kind, said),
        text(&step.gives.join(", ")),
    ]
}

fn grantors(grantors: &[AccessGrantor]) -> Markup {
    if grantors.is_empty() {
        return html! { p.empty { "There is no one that you may see: ask the operator of this server." } };
    }
    let row = |one: &AccessGrantor| {
        let name = [&one.name, &one.email, &one.identity].into_iter().find(|name| !name.trim().is_empty());
        vec![
            link("/console/identity", &[("uid", &one.identity)], name.map_or("", String::as_str)),
            text(&one.email),
            text(if one.role_name.is_empty() { &one.role } else { &one.role_name }),
            link("/console/group", &[("uid", &one.group)], &one.group),
        ]
    };
    let rows: Vec<_> = grantors.iter().map(row).collect();
    table("Identities whose role may grant it", &["Who", "E-mail", "Role", "At"], &rows)
}
