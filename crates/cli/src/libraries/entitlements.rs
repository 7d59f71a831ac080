use bowline_contract::v1::libraries as v1;
use bowline_contract::v1::libraries::rpc::entitlements as methods;
use bowline_terminal::{Form, Output, Table, note};
use clap::{Args, Subcommand};

use super::{Ecosystem, ecosystem_name};
use crate::error::CliError;
use crate::print;
use crate::resolve;
use crate::resources::DryRun;
use crate::session::Access;

/// `bowline libraries entitlements`.
#[derive(Subcommand)]
pub enum EntitlementsCommand {
    /// List the entitlements of an organization
    List(ListCommand),
    /// Grant an organization an ecosystem, or change the grant
    Create(CreateCommand),
    /// Withdraw an ecosystem
    Delete(DeleteCommand),
}

#[derive(Args)]
pub struct ListCommand {
    #[command(flatten)]
    access: Access,
    /// Organization, by name or UIDP
    #[arg(value_name = "ORG")]
    organization: String,
    #[command(flatten)]
    output: Output,
}

#[derive(Args)]
pub struct CreateCommand {
    #[command(flatten)]
    access: Access,
    /// Organization, by name or UIDP
    #[arg(value_name = "ORG")]
    organization: String,
    /// Ecosystem
    #[arg(long, value_name = "NAME")]
    ecosystem: Ecosystem,
    /// Also serve versions from upstream that are not built here
    #[arg(long)]
    upstream: bool,
    /// Days that a version has to be public before it is served
    #[arg(long, value_name = "DAYS", default_value_t = 7)]
    cooldown_days: i32,
    #[command(flatten)]
    dry_run: DryRun,
    #[command(flatten)]
    output: Output,
}

#[derive(Args)]
pub struct DeleteCommand {
    #[command(flatten)]
    access: Access,
    /// Entitlement, by UIDP
    #[arg(value_name = "UIDP")]
    id: String,
    #[command(flatten)]
    dry_run: DryRun,
}

pub(crate) async fn run(command: EntitlementsCommand) -> Result<(), CliError> {
    match command {
        EntitlementsCommand::List(command) => {
            let api = command.access.session()?.api().await?;
            let parent_id = resolve::group(&api, &command.organization).await?;
            let request = v1::EntitlementFilter { parent_id, ecosystems: Vec::new() };
            print_table(&api.call::<methods::List>(&request).await?.items, command.output)
        }
        EntitlementsCommand::Create(command) => create(command).await,
        EntitlementsCommand::Delete(command) => {
            let api = command.access.session()?.api().await?;
            command.dry_run.confirm(&format!("Withdraw the entitlement {}", command.id))?;
            let request = v1::DeleteEntitlementRequest { id: command.id.clone() };
            if command.dry_run.call::<methods::Delete>(&api, &request, &Form::Table).await?.is_none() {
                return Ok(());
            }
            note(&format!("the entitlement {} is withdrawn\n", command.id));
            Ok(())
        }
    }
}

async fn create(command: CreateCommand) -> Result<(), CliError> {
    let api = command.access.session()?.api().await?;
    let policy = if command.upstream { v1::Policy::ChainguardAndUpstream } else { v1::Policy::Chainguard };
    let request = v1::CreateEntitlementRequest {
        parent_id: resolve::group(&api, &command.organization).await?,
        ecosystem: command.ecosystem.wire()? as i32,
        policy: policy as i32,
        cooldown_days: command.cooldown_days,
        ..v1::CreateEntitlementRequest::default()
    };
    match command.dry_run.call::<methods::Create>(&api, &request, command.output.form()).await? {
        Some(made) => print_table(&[made], command.output),
        None => Ok(()),
    }
}

fn print_table(items: &[v1::Entitlement], output: Output) -> Result<(), CliError> {
    let mut table = Table::new(&["uidp", "ecosystem", "upstream", "cooldown days"]);
    for item in items {
        let upstream = item.policy() == v1::Policy::ChainguardAndUpstream;
        table.push([
            item.id.clone(),
            ecosystem_name(item.ecosystem),
            upstream.to_string(),
            item.cooldown_days.to_string(),
        ]);
    }
    print(&output.messages(&table, items)?)
}
