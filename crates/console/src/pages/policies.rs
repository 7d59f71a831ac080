use std::collections::HashMap;

use bowline_contract::bowline::libraries::v1::rpc::cargo_policies::{GetPolicies, SetPolicy};
use bowline_contract::bowline::libraries::v1::rpc::policy_ages::SetRule as SetAgeRule;
use bowline_contract::bowline::libraries::v1::rpc::policy_tests::SetPolicyTests;
use bowline_contract::bowline::libraries::v1::rpc::policy_vulnerabilities::SetRule;
use bowline_contract::bowline::libraries::v1::{self as own, CargoPoliciesInForce, GetCargoPoliciesRequest};
use bowline_contract::v1::libraries::rpc::library_policies::{DeletePolicy, ListPolicies, UpdatePolicy};
use bowline_contract::v1::libraries::rpc::library_policy_bindings::{DeleteBinding, ListBindings, UpdateBinding};
use bowline_contract::v1::libraries::rpc::library_policy_block_events::ListBlockEvents;
use bowline_contract::v1::libraries::{
    Ecosystem, LibraryPolicy, LibraryPolicyBinding, LibraryPolicyBindingFilter, LibraryPolicyBindingMode,
    LibraryPolicyBlockEvent, LibraryPolicyBlockEventFilter, LibraryPolicyFilter, LibraryPolicyType,
};
use bowline_core::Result;
use maud::{Markup, html};

use super::part;
use crate::components::{Field, List, action, edit, filters, refused, section, table};
use crate::shell::Content;
use crate::values::{badge, code, none, text, time, words};
use crate::visit::{ROWS, Visit};

/// An ecosystem that the wire contract does not have: its name in addresses of this page, and in texts.
type OwnEcosystem = (own::Ecosystem, &'static str, &'static str);

const OWN: [OwnEcosystem; 2] =
    [(own::Ecosystem::Cargo, "cargo", "Cargo"), (own::Ecosystem::Generic, "files", "generic files")];

/// Policies for packages in an organization, and where they apply.
pub(super) async fn list(visit: &mut Visit) -> Result<Content> {
    let parent = visit.scope();
    if parent.is_empty() {
        return Ok(choose("Package policies"));
    }
    let request = LibraryPolicyFilter {
        parent_id: parent.clone(),
        page_size: ROWS,
        page_token: visit.query.text("page"),
        name: visit.query.text("name"),
        ..LibraryPolicyFilter::default()
    };
    let response = visit.call::<ListPolicies>(request).await?;
    let request = LibraryPolicyBindingFilter {
        parent_id: parent.clone(),
        page_size: ROWS,
        ..LibraryPolicyBindingFilter::default()
    };
    let bindings = part(visit.call::<ListBindings>(request).await)?;
    let method = visit.last_method().map(str::to_owned);
    let of_own = for_own(visit, &parent).await?;
    let list = List {
        caption: "Policies",
        heads: &["Name", "Kind", "Cooldown", "Blocks", "Allows", "Licenses blocked", "Changed", "Actions"],
        rows: response.items.iter().map(|policy| row(visit, policy)).collect(),
        next: &response.next_page_token,
        total: Some(response.total_count),
        empty: "There is no policy here yet.",
        filters: &["name"],
    };
    let names: HashMap<&str, &str> =
        response.items.iter().map(|policy| (policy.id.as_str(), policy.name.as_str())).collect();
    let fields = [Field::Text { name: "name", label: "Name (whole)" }];
    let body = html! {
        (filters(visit, &["in"], &fields))
        (list.render(visit))
        (section("bindings", "Where they apply", &match &bindings {
            Ok(response) if response.items.is_empty() => html! { p.empty { "No policy applies to an ecosystem here." } },
            Ok(response) => {
                let rows: Vec<_> = response.items.iter().map(|binding| binding_row(visit, binding, &names)).collect();
                table("Policies of ecosystems", &["Ecosystem", "Policy", "Mode", "Since", "Actions"], &rows)
            }
            Err(error) => refused(error, method.as_deref()),
        }))
        @for (ecosystem, policies) in &of_own {
            (section(ecosystem.1, &format!("Where they apply to {}", ecosystem.2), &match policies {
                Ok(policies) => own_policies(visit, (&parent, *ecosystem), policies, &names),
                Err(error) => refused(error, visit.last_method()),
            }))
        }
    };
    Ok(Content::new("Package policies", body))
}

/// The policies in force for ecosystems that the contract does not have, which organizations alone have.
async fn for_own(visit: &mut Visit, parent: &str) -> Result<Vec<(OwnEcosystem, Result<CargoPoliciesInForce>)>> {
    let mut of_own = Vec::new();
    for ecosystem in OWN.into_iter().filter(|_| !parent.contains('/')) {
        let request = GetCargoPoliciesRequest { parent: parent.into(), ecosystem: ecosystem.0 as i32 };
        of_own.push((ecosystem, part(visit.call::<GetPolicies>(request).await)?));
    }
    Ok(of_own)
}

fn own_policies(
    visit: &Visit,
    (parent, (ecosystem, _, name)): (&str, OwnEcosystem),
    policies: &CargoPoliciesInForce,
    names: &HashMap<&str, &str>,
) -> Markup {
    let of_modes =
        [(&policies.enforced, LibraryPolicyBindingMode::Enforced), (&policies.logged, LibraryPolicyBindingMode::Log)];
    let bound = of_modes.into_iter().filter(|(policy, _)| !policy.is_empty());
    let rows: Vec<_> = bound.map(|(policy, kind)| vec![named(policy, names), mode(kind as i32)]).collect();
    html! {
        @if rows.is_empty() { p.empty { "No policy applies to " (name) " here." } }
        @else { (table(&format!("Policies of {name}"), &["Policy", "Mode"], &rows)) }
        p {
            (action::<SetPolicy>(visit, &format!("Set a policy of {name}"), &[
                ("parent", parent),
                ("ecosystem", ecosystem.as_str_name()),
            ]))
        }
    }
}

/// A policy by its name, if that is known.
fn named(policy: &str, names: &HashMap<&str, &str>) -> Markup {
    names.get(policy).map_or_else(|| code(policy), |name| text(name))
}

pub(super) fn choose(title: &str) -> Content {
    let body = html! {
        p { "Choose an organization: its page leads here." }
        p { a.button href="/console/" { "Organizations" } }
    };
    Content::new(title, body)
}

fn row(visit: &Visit, policy: &LibraryPolicy) -> Vec<Markup> {
    let kind = LibraryPolicyType::try_from(policy.policy_type).unwrap_or_default();
    let name = html! {
        (text(&policy.name))
        @if !policy.description.trim().is_empty() { br; span.small { (text(&policy.description)) } }
    };
    vec![
        name,
        text(&words(kind.as_str_name(), "LIBRARY_POLICY_TYPE_")),
        policy.cooldown_days.map_or_else(none, |days| text(&crate::values::count(i64::from(days), "day", "days"))),
        purls(policy.block_list.iter().map(|entry| entry.purl.as_str())),
        purls(policy.allow_list.iter().map(|entry| entry.purl.as_str())),
        text(&policy.blocked_licenses.join(", ")),
        time(policy.updated_at.as_ref()),
        html! {
            (edit::<UpdatePolicy>(visit, "Edit and exempt", &[("id", &policy.id)])) " "
            (action::<SetPolicyTests>(visit, "Set tests", &[("policy", &policy.id)])) " "
            (action::<SetRule>(visit, "Set vulnerability rule", &[("policy", &policy.id)])) " "
            (action::<SetAgeRule>(visit, "Set age rule", &[("policy", &policy.id)])) " "
            (action::<DeletePolicy>(visit, "Delete", &[("id", &policy.id)]))
        },
    ]
}

/// The first package URLs of a list, and how many there are more.
fn purls<'a>(list: impl ExactSizeIterator<Item = &'a str>) -> Markup {
    const SHOWN: usize = 10;
    let more = list.len().saturating_sub(SHOWN);
    if list.len() == 0 {
        return none();
    }
    html! {
        ul.plain {
            @for purl in list.take(SHOWN) { li { (code(purl)) } }
            @if more > 0 { li { "and " (more) " more" } }
        }
    }
}

fn binding_row(visit: &Visit, binding: &LibraryPolicyBinding, names: &HashMap<&str, &str>) -> Vec<Markup> {
    let policy = named(&binding.policy, names);
    let actions = html! {
        (edit::<UpdateBinding>(visit, "Edit", &[("id", &binding.id)])) " "
        (action::<DeleteBinding>(visit, "Remove", &[("id", &binding.id)]))
    };
    vec![ecosystem(binding.ecosystem), policy, mode(binding.mode), time(binding.created_at.as_ref()), actions]
}

pub(super) fn ecosystem(number: i32) -> Markup {
    text(&words(Ecosystem::try_from(number).unwrap_or_default().as_str_name(), ""))
}

fn mode(number: i32) -> Markup {
    match LibraryPolicyBindingMode::try_from(number).unwrap_or_default() {
        LibraryPolicyBindingMode::Enforced => badge("good", "enforced"),
        LibraryPolicyBindingMode::Log => badge("plain", "log only"),
        LibraryPolicyBindingMode::Unspecified => none(),
    }
}

/// Packages that policies of an organization kept out.
pub(super) async fn blocked(visit: &mut Visit) -> Result<Content> {
    let parent = visit.scope();
    if parent.is_empty() {
        return Ok(choose("Blocked packages"));
    }
    let request = LibraryPolicyBlockEventFilter {
        parent_id: parent,
        package_name: visit.query.text("name"),
        page_size: ROWS,
        page_token: visit.query.text("page"),
        ..LibraryPolicyBlockEventFilter::default()
    };
    let response = visit.call::<ListBlockEvents>(request).await?;
    let list = List {
        caption: "Blocked packages",
        heads: &["Package", "Why", "Mode", "Attempts", "Last", "Free from"],
        rows: response.items.iter().map(blocked_row).collect(),
        next: &response.next_page_token,
        total: Some(response.total_count),
        empty: "No package was blocked.",
        filters: &["name"],
    };
    let fields = [Field::Text { name: "name", label: "Package (whole name)" }];
    Ok(Content::new("Blocked packages", html! { (filters(visit, &["in"], &fields)) (list.render(visit)) }))
}

fn blocked_row(event: &LibraryPolicyBlockEvent) -> Vec<Markup> {
    vec![
        code(&event.purl),
        text(&event.reason),
        mode(event.mode),
        text(&event.attempt_count.to_string()),
        time(event.last_blocked_at.as_ref()),
        time(event.unblocks_at.as_ref()),
    ]
}
