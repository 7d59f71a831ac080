use bowline_client::{Api, ClientError, LookupKind};
use bowline_contract::bowline::libraries::v1 as own;
use bowline_contract::bowline::libraries::v1::rpc::policy_tests::UpdatePolicy as UpdateTestedPolicy;
use bowline_contract::v1::libraries as v1;
use bowline_contract::v1::libraries::rpc::library_policies as methods;
use bowline_terminal::{Form, Output, Table, note, time};
use clap::{Args, Subcommand};

use crate::error::CliError;
use crate::print;
use crate::resolve;
use crate::resources::DryRun;
use crate::session::Access;

/// `bowline libraries policies`.
#[derive(Subcommand)]
pub enum PoliciesCommand {
    /// List policies
    List(ListCommand),
    /// Show one policy
    Get(GetCommand),
    /// Create a policy, which has no effect until it is bound; prints its UIDP
    Create(CreateCommand),
    /// Change the named fields of a policy
    Update(UpdateCommand),
    /// Delete a policy without bindings
    Delete(DeleteCommand),
}

#[derive(Args)]
pub struct ListCommand {
    #[command(flatten)]
    access: Access,
    /// Organization, by name or UIDP; all that the caller may see where none is named
    #[arg(value_name = "ORG")]
    organization: Option<String>,
    /// The same as ORG
    #[arg(long, value_name = "ORG", conflicts_with = "organization")]
    parent: Option<String>,
    #[command(flatten)]
    output: Output,
}

#[derive(Args)]
pub struct GetCommand {
    #[command(flatten)]
    access: Access,
    /// Policy, by UIDP
    #[arg(value_name = "UIDP")]
    id: String,
    #[command(flatten)]
    output: Output,
}

/// What a policy says.
#[derive(Args)]
struct PolicyArgs {
    /// What it is for
    #[arg(long, value_name = "TEXT")]
    description: Option<String>,
    /// Days that a version has to be public, 0 to 30
    #[arg(long, value_name = "DAYS")]
    cooldown_days: Option<i32>,
    /// Package URLs that are always refused, comma-separated; "" for none
    #[arg(long, value_name = "PURL,...", value_delimiter = ',')]
    block: Option<Vec<String>>,
    /// Package URLs that need not wait, comma-separated; "" for none
    #[arg(long, value_name = "PURL,...", value_delimiter = ',')]
    allow_young: Option<Vec<String>>,
    /// Package URLs that may be reported as malware, comma-separated; needs --because
    #[arg(long, value_name = "PURL,...", value_delimiter = ',', requires = "because")]
    allow_malware: Option<Vec<String>>,
    /// Why malware is let through
    #[arg(long, value_name = "TEXT")]
    because: Option<String>,
    /// SPDX identifiers of licenses that are refused, comma-separated; "" for none
    #[arg(long, value_name = "LICENSE,...", value_delimiter = ',')]
    block_licenses: Option<Vec<String>>,
}

#[derive(Args)]
pub struct CreateCommand {
    #[command(flatten)]
    access: Access,
    /// Organization, by name or UIDP
    #[arg(value_name = "ORG")]
    organization: String,
    /// Name of the policy
    #[arg(long)]
    name: String,
    #[command(flatten)]
    args: PolicyArgs,
    #[command(flatten)]
    dry_run: DryRun,
    #[command(flatten)]
    output: Output,
}

#[derive(Args)]
pub struct UpdateCommand {
    #[command(flatten)]
    access: Access,
    /// Policy, by UIDP
    #[arg(value_name = "UIDP")]
    id: String,
    /// New name
    #[arg(long)]
    name: Option<String>,
    /// Update it even if a test of the policy fails
    #[arg(long, conflicts_with = "dry_run")]
    force: bool,
    #[command(flatten)]
    args: PolicyArgs,
    #[command(flatten)]
    dry_run: DryRun,
    #[command(flatten)]
    output: Output,
}

#[derive(Args)]
pub struct DeleteCommand {
    #[command(flatten)]
    access: Access,
    /// Policy, by UIDP
    #[arg(value_name = "UIDP")]
    id: String,
    #[command(flatten)]
    dry_run: DryRun,
}

pub(crate) async fn run(command: PoliciesCommand) -> Result<(), CliError> {
    match command {
        PoliciesCommand::List(command) => list(command).await,
        PoliciesCommand::Get(command) => {
            let api = command.access.session()?.api().await?;
            described(&find(&api, &command.id).await?, command.output)
        }
        PoliciesCommand::Create(command) => create(command).await,
        PoliciesCommand::Update(command) => update(command).await,
        PoliciesCommand::Delete(command) => {
            let api = command.access.session()?.api().await?;
            command.dry_run.confirm(&format!("Delete the policy {}", command.id))?;
            let request = v1::DeleteLibraryPolicyRequest { id: command.id.clone() };
            if command.dry_run.call::<methods::DeletePolicy>(&api, &request, &Form::Table).await?.is_none() {
                return Ok(());
            }
            note(&format!("the policy {} is deleted\n", command.id));
            Ok(())
        }
    }
}

/// Everything that a filter finds.
async fn all(api: &Api, mut request: v1::LibraryPolicyFilter) -> Result<Vec<v1::LibraryPolicy>, ClientError> {
    request.page_size = 200;
    let mut policies = Vec::new();
    loop {
        let page = api.call::<methods::ListPolicies>(&request).await?;
        policies.extend(page.items);
        if page.next_page_token.is_empty() {
            return Ok(policies);
        }
        request.page_token = page.next_page_token;
    }
}

/// One policy: the contract has only lists of them.
async fn find(api: &Api, id: &str) -> Result<v1::LibraryPolicy, ClientError> {
    let parent_id = id.rsplit_once('/').map(|(parent, _)| parent.to_owned()).unwrap_or_default();
    let policies = all(api, v1::LibraryPolicyFilter { parent_id, ..v1::LibraryPolicyFilter::default() }).await?;
    let found = policies.into_iter().find(|policy| policy.id == id);
    found
        .ok_or_else(|| ClientError::not_found(LookupKind::Other, format!("there is no policy {id:?} that you may see")))
}

async fn list(command: ListCommand) -> Result<(), CliError> {
    let api = command.access.session()?.api().await?;
    let parent_id = match command.organization.as_ref().or(command.parent.as_ref()) {
        Some(organization) => resolve::group(&api, organization).await?,
        None => String::new(),
    };
    let policies = all(&api, v1::LibraryPolicyFilter { parent_id, ..v1::LibraryPolicyFilter::default() }).await?;
    let mut table = Table::new(&["uidp", "name", "cooldown days", "blocked", "allowed", "licenses", "updated"]);
    for policy in &policies {
        table.push([
            policy.id.clone(),
            policy.name.clone(),
            policy.cooldown_days.map(|days| days.to_string()).unwrap_or_default(),
            policy.block_list.len().to_string(),
            policy.allow_list.len().to_string(),
            policy.blocked_licenses.len().to_string(),
            time(policy.updated_at),
        ]);
    }
    print(&command.output.messages(&table, &policies)?)
}

async fn create(command: CreateCommand) -> Result<(), CliError> {
    let api = command.access.session()?.api().await?;
    let mut policy = v1::LibraryPolicy { name: command.name, ..v1::LibraryPolicy::default() };
    command.args.fill(&mut policy);
    let parent_id = resolve::group(&api, &command.organization).await?;
    let request = v1::CreateLibraryPolicyRequest { parent_id, policy: Some(policy) };
    match command.dry_run.call::<methods::CreatePolicy>(&api, &request, command.output.form()).await? {
        Some(policy) => made(&policy, command.output),
        None => Ok(()),
    }
}

async fn update(command: UpdateCommand) -> Result<(), CliError> {
    let api = command.access.session()?.api().await?;
    let mut policy = find(&api, &command.id).await?;
    if let Some(name) = command.name {
        policy.name = name;
    }
    command.args.fill(&mut policy);
    if !command.force {
        return match command.dry_run.call::<methods::UpdatePolicy>(&api, &policy, command.output.form()).await? {
            Some(policy) => described(&policy, command.output),
            None => Ok(()),
        };
    }
    let request = own::UpdateTestedPolicyRequest { policy: Some(policy), force: true };
    let updated = api.call::<UpdateTestedPolicy>(&request).await?;
    for failed in &updated.failed {
        let purl = failed.test.as_ref().map(|test| test.purl.as_str()).unwrap_or_default();
        note(&format!("a test of the policy fails from now on: {purl}\n"));
    }
    let policy = updated.policy.ok_or_else(|| ClientError::Transport("it sent no policy".into()))?;
    described(&policy, command.output)
}

impl PolicyArgs {
    fn fill(&self, policy: &mut v1::LibraryPolicy) {
        let given = |list: &Vec<String>| list.iter().filter(|one| !one.is_empty()).cloned().collect::<Vec<_>>();
        if let Some(description) = &self.description {
            policy.description.clone_from(description);
        }
        if self.cooldown_days.is_some() {
            policy.cooldown_days = self.cooldown_days;
        }
        if let Some(block) = &self.block {
            policy.block_list = given(block).into_iter().map(|purl| v1::LibraryBlockListEntry { purl }).collect();
        }
        if let Some(young) = &self.allow_young {
            policy.allow_list.retain(|entry| entry.bypass_malware);
            let entry = |purl| v1::LibraryAllowListEntry { purl, bypass_cooldown: true, ..Default::default() };
            policy.allow_list.extend(given(young).into_iter().map(entry));
        }
        if let Some(malware) = &self.allow_malware {
            policy.allow_list.retain(|entry| !entry.bypass_malware);
            let justification = self.because.clone().unwrap_or_default();
            let entry = |purl| v1::LibraryAllowListEntry {
                purl,
                bypass_cooldown: false,
                bypass_malware: true,
                justification: justification.clone(),
            };
            policy.allow_list.extend(given(malware).into_iter().map(entry));
        }
        if let Some(licenses) = &self.block_licenses {
            policy.blocked_licenses = given(licenses);
        }
    }
}

fn made(policy: &v1::LibraryPolicy, output: Output) -> Result<(), CliError> {
    let mut table = Table::without_head();
    table.push([policy.id.clone()]);
    print(&output.message(&table, policy)?)
}

fn described(policy: &v1::LibraryPolicy, output: Output) -> Result<(), CliError> {
    let mut table = Table::new(&["field", "value"]);
    let mut row = |field: &str, value: String| table.push([field.to_owned(), value]);
    row("uidp", policy.id.clone());
    row("name", policy.name.clone());
    row("description", policy.description.clone());
    row("cooldown days", policy.cooldown_days.map_or_else(|| "7 (default)".into(), |days| days.to_string()));
    for entry in &policy.block_list {
        row("block", entry.purl.clone());
    }
    for entry in &policy.allow_list {
        let what = match (entry.bypass_cooldown, entry.bypass_malware) {
            (true, true) => "young and reported",
            (true, false) => "young",
            (false, true) => "reported",
            (false, false) => "nothing",
        };
        row("allow", format!("{} ({what}) {}", entry.purl, entry.justification).trim_end().to_owned());
    }
    for license in &policy.blocked_licenses {
        row("block license", license.clone());
    }
    row("updated", time(policy.updated_at));
    print(&output.message(&table, policy)?)
}
