use bowline_contract::v1::libraries as v1;
use bowline_contract::v1::libraries::rpc::library_policy_bindings as methods;
use bowline_terminal::{Form, Output, Table, note, time};
use clap::{Args, Subcommand};

use super::{Ecosystem, Mode, ecosystem_name, mode_name};
use crate::error::CliError;
use crate::pages::ListOutput;
use crate::resolve;
use crate::resources::DryRun;
use crate::session::Access;
use crate::{pages, print};

/// `bowline libraries bindings`.
#[derive(Subcommand)]
pub enum BindingsCommand {
    /// List policy bindings
    List(ListCommand),
    /// Bind a policy to an ecosystem; prints the binding's UIDP
    Create(CreateCommand),
    /// Delete a policy binding
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
    output: ListOutput,
}

#[derive(Args)]
pub struct CreateCommand {
    #[command(flatten)]
    access: Access,
    /// Organization, by name or UIDP
    #[arg(value_name = "ORG")]
    organization: String,
    /// Policy, by UIDP
    #[arg(long, value_name = "UIDP")]
    policy: String,
    /// Ecosystem
    #[arg(long, value_name = "NAME")]
    ecosystem: Ecosystem,
    /// What happens to downloads that the policy does not want
    #[arg(long, value_name = "MODE", default_value = "enforced")]
    mode: Mode,
    #[command(flatten)]
    dry_run: DryRun,
    #[command(flatten)]
    output: Output,
}

#[derive(Args)]
pub struct DeleteCommand {
    #[command(flatten)]
    access: Access,
    /// Binding, by UIDP
    #[arg(value_name = "UIDP")]
    id: String,
    #[command(flatten)]
    dry_run: DryRun,
}

pub(crate) async fn run(command: BindingsCommand) -> Result<(), CliError> {
    match command {
        BindingsCommand::List(command) => list(command).await,
        BindingsCommand::Create(command) => create(command).await,
        BindingsCommand::Delete(command) => {
            let api = command.access.session()?.api().await?;
            let dry_run = command.dry_run;
            dry_run.confirm(&format!("Delete the binding {}, so that its policy is out of force", command.id))?;
            let request = v1::DeleteLibraryPolicyBindingRequest { id: command.id.clone() };
            if dry_run.call::<methods::DeleteBinding>(&api, &request, &Form::Table).await?.is_none() {
                return Ok(());
            }
            note(&format!("the binding {} is deleted; its policy is out of force there\n", command.id));
            Ok(())
        }
    }
}

async fn list(command: ListCommand) -> Result<(), CliError> {
    let api = command.access.session()?.api().await?;
    let parent_id = match command.organization.as_ref().or(command.parent.as_ref()) {
        Some(organization) => resolve::group(&api, organization).await?,
        None => String::new(),
    };
    let request = v1::LibraryPolicyBindingFilter { parent_id, page_size: 200, ..Default::default() };
    pages::print::<methods::ListBindings, v1::LibraryPolicyBinding>(
        &api,
        request,
        &command.output,
        &["uidp", "ecosystem", "mode", "policy", "updated"],
        |request| &mut request.page_token,
        |page| (page.items, page.next_page_token),
        |item| {
            let (ecosystem, mode) = (ecosystem_name(item.ecosystem), mode_name(item.mode));
            vec![item.id.clone(), ecosystem, mode, item.policy.clone(), time(item.updated_at)]
        },
    )
    .await
}

async fn create(command: CreateCommand) -> Result<(), CliError> {
    let api = command.access.session()?.api().await?;
    let binding = v1::LibraryPolicyBinding {
        policy: command.policy,
        ecosystem: command.ecosystem.wire()? as i32,
        mode: command.mode.wire() as i32,
        ..v1::LibraryPolicyBinding::default()
    };
    let parent_id = resolve::group(&api, &command.organization).await?;
    let request = v1::CreateLibraryPolicyBindingRequest { parent_id, binding: Some(binding) };
    let form = command.output.form();
    let Some(made) = command.dry_run.call::<methods::CreateBinding>(&api, &request, form).await? else {
        return Ok(());
    };
    let mut table = Table::without_head();
    table.push([made.id.clone()]);
    print(&command.output.message(&table, &made)?)
}
