use bowline_contract::v1::vulnerabilities as v1;
use bowline_contract::v1::vulnerabilities::rpc::advisories::Create;
use bowline_terminal::{Output, Table};
use clap::Args;

use crate::error::CliError;
use crate::print;
use crate::resolve;
use crate::resources::DryRun;
use crate::session::Access;

#[derive(Args)]
pub struct CreateCommand {
    #[command(flatten)]
    access: Access,
    /// Organization or group
    #[arg(value_name = "GROUP")]
    group: String,
    /// Package, image or library that the advisory is about
    #[arg(long, value_name = "NAME")]
    artifact: String,
    /// What the artifact is: apk, image, library
    #[arg(long, value_name = "TYPE", default_value = "apk")]
    artifact_type: String,
    /// Architecture of the artifact, such as `x86_64`
    #[arg(long, value_name = "ARCHITECTURE", default_value = "")]
    architecture: String,
    /// Vulnerabilities by their names, comma-separated
    #[arg(long, value_name = "CVE,...", value_delimiter = ',', required = true)]
    alias: Vec<String>,
    /// Component of the artifact that has them
    #[arg(long, value_name = "NAME")]
    component: Option<String>,
    /// What the component is, such as go-module
    #[arg(long, value_name = "TYPE")]
    component_type: Option<String>,
    /// Path of the component in the artifact
    #[arg(long, value_name = "PATH")]
    component_location: Option<String>,
    #[command(flatten)]
    dry_run: DryRun,
    #[command(flatten)]
    output: Output,
}

pub(super) async fn run(command: CreateCommand) -> Result<(), CliError> {
    let session = command.access.session()?;
    let api = session.api().await?;
    let advisory = v1::Advisory {
        artifact_name: command.artifact,
        artifact_type: command.artifact_type,
        artifact_architecture: command.architecture,
        component_name: command.component,
        component_type: command.component_type,
        component_location: command.component_location,
        aliases: command.alias,
        ..v1::Advisory::default()
    };
    let parent_id = resolve::group(&api, &command.group).await?;
    let request = v1::CreateAdvisoryRequest { parent_id, advisory: Some(advisory) };
    let Some(created) = command.dry_run.call::<Create>(&api, &request, command.output.form()).await? else {
        return Ok(());
    };
    // The identifier alone, for the next command.
    let mut table = Table::without_head();
    table.push([created.advisory_id.clone()]);
    print(&command.output.message(&table, &created)?)
}
