//! The contract against its golden copies. `UPDATE_GOLDEN=1` writes them again.

#![expect(clippy::unwrap_used, reason = "a test may fail anywhere")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use bowline_contract::{Auth, Contract, Docs, MethodInfo, Verb, print_capabilities, print_packages};

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name)
}

#[expect(clippy::disallowed_methods, reason = "the switch that rewrites golden files")]
fn check_golden(name: &str, actual: &str) {
    if std::env::var("UPDATE_GOLDEN").is_ok() {
        std::fs::write(golden(name), actual).unwrap();
    }
    let expected = std::fs::read_to_string(golden(name)).unwrap_or_default();
    assert!(expected == actual, "{name} differs from its golden copy; UPDATE_GOLDEN=1 rewrites it");
}

fn printed() -> BTreeMap<String, String> {
    let contract = Contract::load();
    let mut files = print_packages(&contract);
    files.insert("capabilities.tsv".into(), print_capabilities(&contract));
    files
}

#[test]
fn the_printed_contract_is_golden() {
    for (name, text) in printed() {
        check_golden(&name, &text);
    }
}

#[test]
fn the_methods_are_listed() {
    let methods: Vec<String> = Contract::load().methods().iter().map(|method| method.full_name.clone()).collect();
    check_golden("methods.txt", &(methods.join("\n") + "\n"));
}

#[test]
fn the_gaps_are_known() {
    check_golden("gaps.txt", &(Contract::load().gaps().join("\n") + "\n"));
}

#[test]
fn there_are_226_methods_of_the_platform_and_every_one_is_documented() {
    let contract = Contract::load();
    let platform = contract.methods().iter().filter(|m| m.full_name.starts_with("chainguard.platform.")).count();
    assert_eq!(platform, 226);
    for method in contract.methods() {
        assert!(!Docs::load().of(&method.full_name).is_empty(), "{}", method.full_name);
    }
    contract.field_rules().compile();
}

#[test]
fn capability_bits_fit_and_are_unique() {
    let contract = Contract::load();
    let bits: BTreeSet<u32> = contract.capabilities().iter().map(|facts| facts.bit).collect();
    assert_eq!(bits.len(), contract.capabilities().iter().count());
    assert!(bits.iter().all(|bit| *bit < 256));
}

#[test]
fn built_in_roles_are_complete() {
    let contract = Contract::load();
    let roles = contract.built_in_roles();
    assert_eq!(roles.len(), 30);
    let internal = contract.capabilities().internal_only();
    for role in roles {
        assert!(!role.description.is_empty() && bowline_core::Uidp::is_valid(&role.uid), "{}", role.name);
        let internal = contract.capabilities().names(&role.capabilities.intersection(&internal));
        assert!(internal.is_empty() || role.name == "owner", "{} holds {internal:?}", role.name);
    }
    let size = |name: &str| roles.iter().find(|role| role.name == name).unwrap().capabilities.bits().count();
    assert_eq!((size("owner"), size("editor"), size("viewer"), size("console_viewer")), (138 + 8, 62, 51, 45));
    assert_eq!((size("registry.pull"), size("registry.push"), size("apk.pull")), (10, 20, 3));
}

#[test]
fn every_route_leads_to_its_method() {
    let contract = Contract::load();
    for method in contract.methods() {
        for binding in &method.bindings {
            let path = fill(&binding.template.to_string());
            let found = contract.routes().find(Some(binding.verb), &path);
            let found = found.unwrap_or_else(|miss| panic!("{path}: {miss:?}"));
            assert_eq!(contract.method(found.method).full_name, method.full_name, "{} {path}", binding.verb.name());
        }
    }
}

/// Puts a value in place of every variable.
fn fill(template: &str) -> String {
    let mut path = String::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('{') {
        let (variable, tail) = after.split_once('}').unwrap();
        path += before;
        path += if variable.ends_with("**") { "0123/4567" } else { "one" };
        rest = tail;
    }
    path + rest
}

#[test]
fn scope_fields_lead_to_strings() {
    let contract = Contract::load();
    let find = |name: &str| contract.by_full_name(name).unwrap().scope_field.clone();
    assert_eq!(find("chainguard.platform.iam.v2.GroupsService.UpdateGroup").as_deref(), Some("group.uid"));
    assert_eq!(find("chainguard.platform.iam.Groups.Update").as_deref(), Some("id"));
    assert_eq!(find("chainguard.platform.iam.v2.GroupsService.ListGroups"), None);
    let public = contract.methods().iter().filter(|m| matches!(m.auth, Auth::Public)).count();
    assert!(public >= 6, "{public}");
}

#[test]
fn only_taking_away_and_accepting_itself_need_no_accepted_terms() {
    let contract = Contract::load();
    for method in contract.methods() {
        let deletes = method.bindings.iter().any(|binding| binding.verb == Verb::Delete);
        let is_scoped = matches!(method.auth, Auth::Capabilities { unscoped: false, .. });
        if deletes && is_scoped && method.scope_field.is_some() {
            assert!(method.terms_exempt, "{} takes something away: add it to terms_rules.proto", method.full_name);
        }
        let name = method.full_name.rsplit('.').next().unwrap();
        let takes = ["Delete", "BatchDelete", "Remove", "Revoke"].iter().any(|prefix| name.starts_with(prefix));
        assert!(!method.terms_exempt || takes || name == "AcceptTerms", "{} takes nothing away", method.full_name);
    }
    let accepts = contract.by_full_name("chainguard.platform.iam.v2.TermsService.AcceptTerms").unwrap();
    assert!(accepts.terms_exempt);
}

#[test]
fn only_what_takes_away_works_on_a_full_disk() {
    for method in Contract::load().methods() {
        let name = method.full_name.rsplit('.').next().unwrap();
        let takes = ["Delete", "BatchDelete", "Remove", "Revoke", "End"].iter().any(|prefix| name.starts_with(prefix));
        assert_eq!(method.frees_storage(), takes, "{}: see storage_rules.proto", method.full_name);
    }
}

#[test]
fn what_takes_away_is_confirmed() {
    let contract = Contract::load();
    for method in contract.methods() {
        let name = method.full_name.rsplit('.').next().unwrap();
        // Its result says what it would do.
        let takes = ["Delete", "BatchDelete", "Remove", "Revoke", "End", "Zap", "Apply"];
        let takes = takes.iter().any(|prefix| name.starts_with(prefix));
        assert!(contract.is_confirmed(method) || !takes, "{}: see confirmed_rules.proto", method.full_name);
    }
}

/// Everything with a verb other than GET was decided: whether people confirm it, or it takes nothing away that a page could
/// not give back. Updates replace what their form shows.
#[test]
fn every_method_that_changes_something_is_decided() {
    let contract = Contract::load();
    let is_change = |method: &&MethodInfo| method.bindings.first().is_some_and(|binding| binding.verb != Verb::Get);
    let changes = contract.methods().iter().filter(is_change).filter(|method| !contract.is_confirmed(method));
    let open: BTreeSet<&str> = changes.map(|method| method.full_name.as_str()).collect();
    let decided: BTreeSet<&str> = include_str!("takes_nothing_away.txt").lines().collect();
    let undecided: Vec<_> = open.difference(&decided).collect();
    assert!(undecided.is_empty(), "in confirmed_rules.proto or takes_nothing_away.txt: {undecided:#?}");
    let over: Vec<_> = decided.difference(&open).collect();
    assert!(over.is_empty(), "no line is needed for {over:#?}");
}

#[test]
fn a_server_event_is_recorded_and_not_printed() {
    let contract = Contract::load();
    for name in ["chainguard.platform.iam.Groups", "chainguard.platform.iam.v2.GroupsService"] {
        let method = contract.by_full_name(&format!("{name}.RequestGroupAccess")).unwrap();
        let event = method.event.as_ref().unwrap();
        assert_eq!(event.event_type, "dev.bowline.iam.group_access.requested.v1");
        assert!(event.customer && event.is_server_event && method.wire_event().is_none());
    }
    assert!(printed().values().all(|text| !text.contains("dev.bowline.")));
}

#[test]
fn operations_are_authorized_and_never_served() {
    let contract = Contract::load();
    assert!(!contract.operations().is_empty());
    for operation in contract.operations() {
        assert_eq!(contract.method(operation.index).full_name, operation.full_name);
        assert!(contract.by_grpc_path(&operation.grpc_path).is_none(), "{}", operation.full_name);
        assert!(contract.methods().iter().all(|method| method.full_name != operation.full_name));
        assert!(operation.bindings.is_empty(), "{}", operation.full_name);
        assert!(matches!(&operation.auth, Auth::Capabilities { needed, unscoped: false } if !needed.is_empty()));
    }
}
