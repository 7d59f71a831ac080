//! Every method has a command or a reason, and every command is well-formed.

use std::collections::BTreeSet;

use bowline_contract::Contract;
use clap::{Args as _, Command, Subcommand};

use super::*;
use crate::advisories::AdvisoriesCommand;
use crate::feeds::FeedsCommand;
use crate::libraries::LibrariesCommand;
use crate::registry::RegistryCommand;
use crate::search::SearchCommand;
use crate::vulns::VulnsCommand;

/// Methods that commands call which are written by hand, by such a command.
const HANDWRITTEN: &[(&str, &str)] = &[
    ("AdvisorySettingsService.GetAdvisorySettings", "advisories settings"),
    ("AdvisorySettingsService.UpdateAdvisorySettings", "advisories settings"),
    ("AdvisoryTransfers.ExportAdvisories", "feeds export yaml"),
    ("AdvisoryTransfers.ImportAdvisories", "feeds import yaml"),
    ("Catalog.ImportMalware", "libraries malware add"),
    ("Catalog.ImportVersions", "libraries import"),
    ("Catalog.RemoveMalware", "libraries malware remove"),
    ("PolicyTests.UpdatePolicy", "libraries policies update"),
    ("Previews.Preview", "access preview"),
    ("RecordImports.AbortImport", "feeds abort"),
    ("RecordImports.BeginImport", "feeds import osv"),
    ("RecordImports.CommitImport", "feeds import osv"),
    ("RecordImports.GetImport", "feeds abort"),
    ("RecordImports.ListImports", "feeds status"),
    ("RecordImports.ListRecords", "feeds import osv"),
    ("RecordImports.ListSources", "feeds sources"),
    ("RecordImports.ListStaged", "feeds import osv"),
    ("RecordImports.StageRecords", "feeds import osv"),
    ("Records.ListPackageRecords", "feeds export rustsec"),
    ("RegistryPolicies.ApplyRetention", "registry retention apply"),
    ("RegistryPolicies.GetGroupPolicy", "registry policy get"),
    ("RegistryPolicies.GetRepoPolicy", "registry policy get"),
    ("RegistryPolicies.PreviewRetention", "registry retention preview"),
    ("RegistryPolicies.UpdateGroupPolicy", "registry policy set"),
    ("RegistryPolicies.UpdateRepoPolicy", "registry policy set"),
    ("ReleaseCycles.ImportReleaseCycles", "feeds import cycles"),
    ("ReleaseCycles.ListReleaseProducts", "feeds cycles"),
    ("ScanReports.PutScanReport", "registry scan-report put"),
    ("Search.Search", "search"),
];

/// Methods without a command of their own, and why.
const OTHERS: &[(&str, &str)] = &[
    ("GroupsService.LookupGroup", "for a vendor's console"),
    ("GroupsService.RequestGroupAccess", "for a vendor's console"),
    ("GroupsService.CheckEligibility", "for a vendor's console"),
    ("IdentitiesService.LookupIdentity", "list by name instead"),
    ("IdentitiesService.UpdateIdentityMetadata", "a person's own, in the console"),
    ("IdentityProvidersService.RegenerateScimToken", "needs the etag of a response before"),
    ("IdentityProvidersService.SetScimEnabled", "needs the etag of a response before"),
    ("RoleBindingsService.BatchCreateRoleBindings", "create, as often as needed"),
    ("ExternalGroupRoleMappingsService.BatchDeleteExternalGroupRoleMappings", "delete, as often as needed"),
    ("Names.ResolveNames", "tables show names"),
];

/// Packages whose methods all have commands.
const PACKAGES: [&str; 3] = ["chainguard.platform.iam.v2.", "chainguard.platform.events.v2.", "bowline."];

fn all_resources() -> impl Iterator<Item = &'static Resource> {
    families().into_iter().flat_map(|(_, tables)| tables.iter().copied().flatten())
}

/// The handwritten commands of this crate with those made from the contract below them.
fn commands() -> Command {
    let below = |name: &'static str, add: fn(Command) -> Command| add(Command::new(name));
    Command::new("bowline").subcommands([
        below("access", AccessCommand::augment_subcommands),
        below("advisories", AdvisoriesCommand::augment_subcommands),
        below("feeds", FeedsCommand::augment_subcommands),
        below("libraries", LibrariesCommand::augment_subcommands),
        below("registry", RegistryCommand::augment_subcommands),
        below("search", SearchCommand::augment_args),
        below("vulns", VulnsCommand::augment_subcommands),
    ])
}

#[test]
fn every_method_has_its_command_or_a_reason() {
    let contract = Contract::load();
    let called: BTreeSet<&str> = all_resources().flat_map(|resource| resource.verbs).map(|verb| verb.method).collect();
    for name in &called {
        assert!(contract.by_full_name(name).is_some(), "{name} is in a table and not in the contract");
    }
    let served = contract.methods();
    let listed = || HANDWRITTEN.iter().chain(OTHERS);
    let missing = served.iter().filter(|method| {
        PACKAGES.iter().any(|package| method.full_name.starts_with(package))
            && !called.contains(method.full_name.as_str())
            && !listed().any(|(name, _)| *name == method.short_name())
    });
    let missing: Vec<&str> = missing.map(|method| method.full_name.as_str()).collect();
    assert!(missing.is_empty(), "no command and no reason: {missing:?}");
    for (name, why) in listed() {
        let ours = |method: &&bowline_contract::MethodInfo| {
            method.short_name() == *name && PACKAGES.iter().any(|package| method.full_name.starts_with(package))
        };
        let method = served.iter().find(ours).unwrap_or_else(|| panic!("{name} is no method"));
        assert!(!why.is_empty() && !called.contains(method.full_name.as_str()), "{name} has a command");
    }
    let mut all = commands();
    all.build();
    for (name, path) in HANDWRITTEN {
        let found = path.split(' ').try_fold(&all, |command, word| command.find_subcommand(word));
        assert!(found.is_some(), "{name}: there is no command {path}");
    }
}

#[test]
fn commands_are_well_formed_and_have_an_example() {
    for (name, add) in [
        ("iam", Iam::add as fn(Command) -> Command),
        ("access", Access::add),
        ("events", Events::add),
        ("audit", Audit::add),
        ("registry", Registry::add),
        ("registry repos", Repos::add),
        ("registry retention", Retention::add),
        ("registry policy", Policy::add),
        ("libraries", Libraries::add),
        ("vulns", Vulns::add),
        ("advisories", Advisories::add),
        ("server", Server::add),
    ] {
        // Doubled flags and the like panic here.
        let mut family = add(Command::new(name));
        family.clone().debug_assert();
        family.build();
        let about = |command: &Command| command.get_about().map(ToString::to_string).unwrap_or_default();
        let leaves = family.get_subcommands().flat_map(|group| group.get_subcommands().chain([group]));
        for command in leaves {
            assert!(!about(command).is_empty() && !about(command).starts_with('`'), "{name} {}", command.get_name());
        }
    }
    for verb in all_resources().flat_map(|resource| resource.verbs) {
        assert!(verb.example.contains(verb.name), "{}: {}", verb.method, verb.example);
    }
}
