use std::path::PathBuf;

use bowline_client::{Api, ClientError};
use bowline_contract::bowline::libraries::v1 as own;
use bowline_contract::bowline::libraries::v1::Decision;
use bowline_contract::bowline::libraries::v1::rpc::decisions::{EvaluatePolicy, ExplainPackage};
use bowline_contract::v1::libraries as v1;
use bowline_contract::v1::libraries::rpc::library_policies::ListPolicies;
use bowline_contract::v1::libraries::rpc::library_policy_bindings::ListBindings;
use bowline_terminal::{Output, Table, note, time};
use clap::Args;

use super::{Ecosystem, Mode, lock_files, why};
use crate::error::CliError;
use crate::session::Access;
use crate::{input, print, resolve};

/// `bowline libraries check`.
#[derive(Args)]
pub struct CheckCommand {
    #[command(flatten)]
    access: Access,
    /// Lock file of uv, Poetry, PDM, pip, npm, pnpm, yarn, bun, Gradle, Go or cargo
    #[arg(value_name = "LOCKFILE")]
    file: PathBuf,
    /// Organization, by name or UIDP [default: the only one of the caller]
    #[arg(long, value_name = "ORG")]
    organization: Option<String>,
    #[command(flatten)]
    output: Output,
}

/// Bytes of a lock file.
const FILE_BYTES: u64 = 64 << 20;
/// The reasons of versions that are too young, or whose age is not known.
const OF_AGE: [&str; 2] = ["COOLDOWN", "FREEZE"];
/// By what versions are checked where no policy is in force.
const NO_POLICY: &str = "freezes alone, since no policy is in force for this ecosystem";
/// A version of a crate, of which no more is read than which policy decides about it.
const ANY_CRATE: &str = "pkg:cargo/any@0.0.0";
/// Versions that a call evaluates.
const AT_ONCE: usize = 100;

/// What the policy in force, exceptions and freezes would refuse of what a lock file pins.
///
/// # Errors
/// The file cannot be read, the server refuses, or a version would be refused.
pub(super) async fn run(command: CheckCommand) -> Result<(), CliError> {
    let unreadable = |why: String| CliError::Option(format!("{} {why}", command.file.display()));
    let text =
        String::from_utf8(input::read(&command.file, FILE_BYTES)?).map_err(|_| unreadable("is no UTF-8".into()))?;
    let name = command.file.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let file = lock_files::read(name, &text).map_err(unreadable)?;
    let api = command.access.session()?.api().await?;
    let organization = match &command.organization {
        Some(organization) => resolve::group(&api, organization).await?,
        None => why::only_organization(&api).await?,
    };
    for other in &file.others {
        note(&format!("not checked: {other}\n"));
    }
    let policy = policy_in_force(&api, &organization, file.ecosystem).await?;
    let by = policy.as_ref().map_or_else(|| NO_POLICY.to_owned(), |policy| format!("the policy {}", policy.name));
    let policy = policy.unwrap_or_else(|| without_rules(file.ecosystem));
    let purls: Vec<String> = file.versions.into_iter().collect();
    let mut refused = Vec::new();
    for purls in purls.chunks(AT_ONCE) {
        let request = own::EvaluatePolicyRequest {
            parent: organization.clone(),
            policy: Some(policy.clone()),
            purls: purls.to_vec(),
            // Those of the policy, which has its id.
            vulnerability_rule: None,
            age_source: 0,
        };
        refused.extend(api.call::<EvaluatePolicy>(&request).await?.decisions.into_iter().filter(|one| !one.allowed));
    }
    // Of packages that no one has requested yet no age is known.
    let (unknown, refused): (Vec<_>, Vec<_>) =
        refused.into_iter().partition(|one: &Decision| !one.known && OF_AGE.contains(&&*one.reason));
    for decision in unknown {
        note(&format!("not known here, so its age is not checked: {}\n", decision.purl));
    }
    note(&format!("checked by {by}: {} versions\n", purls.len()));
    show(&command.output, &refused)
}

/// What an ecosystem without a policy is like: freezes alone refuse.
fn without_rules(ecosystem: Ecosystem) -> v1::LibraryPolicy {
    let kind = match ecosystem {
        Ecosystem::Java => "maven",
        Ecosystem::Python => "pypi",
        Ecosystem::JavaScript => "npm",
        Ecosystem::Go => "golang",
        Ecosystem::Cargo => "cargo",
    };
    let everything = v1::LibraryAllowListEntry {
        purl: format!("pkg:{kind}/"),
        bypass_cooldown: true,
        bypass_malware: true,
        justification: NO_POLICY.into(),
    };
    v1::LibraryPolicy { name: "none".into(), allow_list: vec![everything], ..v1::LibraryPolicy::default() }
}

/// Prints what is refused; fails if that is anything.
fn show(output: &Output, refused: &[Decision]) -> Result<(), CliError> {
    let mut table = Table::new(&["package", "reason", "because of", "allowed from", "fixed in"]);
    for decision in refused {
        let Decision { purl, reason, matched, allowed_time, fixed_version, .. } = decision.clone();
        table.push([purl, reason, matched, time(allowed_time), fixed_version]);
    }
    print(&output.messages(&table, refused)?)?;
    if refused.is_empty() { Ok(()) } else { Err(CliError::WouldBeRefused(refused.len())) }
}

/// The enforced policy of an ecosystem, as a draft.
async fn policy_in_force(
    api: &Api,
    organization: &str,
    ecosystem: Ecosystem,
) -> Result<Option<v1::LibraryPolicy>, CliError> {
    let uid = enforced(api, organization, ecosystem).await?;
    if uid.is_empty() {
        return Ok(None);
    }
    let mut request = v1::LibraryPolicyFilter {
        parent_id: organization.into(),
        page_size: 200,
        ..v1::LibraryPolicyFilter::default()
    };
    loop {
        let page = api.call::<ListPolicies>(&request).await?;
        if let Some(policy) = page.items.into_iter().find(|policy| policy.id == uid) {
            return Ok(Some(policy));
        }
        if page.next_page_token.is_empty() {
            let text = format!("the policy {uid} is in force, and you may not read it");
            return Err(ClientError::Usage(text).into());
        }
        request.page_token = page.next_page_token;
    }
}

/// UIDP of the enforced policy of an ecosystem; empty without one.
async fn enforced(api: &Api, organization: &str, ecosystem: Ecosystem) -> Result<String, CliError> {
    if ecosystem == Ecosystem::Cargo {
        // The contract has no bindings of crates. The policy in force decides about all of them.
        let request = own::ExplainPackageRequest { parent: organization.into(), purl: ANY_CRATE.into() };
        return Ok(api.call::<ExplainPackage>(&request).await?.policy);
    }
    let request = v1::LibraryPolicyBindingFilter {
        parent_id: organization.into(),
        ecosystem: ecosystem.wire()? as i32,
        mode: Mode::Enforced.wire() as i32,
        ..v1::LibraryPolicyBindingFilter::default()
    };
    let binding = api.call::<ListBindings>(&request).await?.items.pop();
    Ok(binding.map(|binding| binding.policy).unwrap_or_default())
}
