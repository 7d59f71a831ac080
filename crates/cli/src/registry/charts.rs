use bowline_contract::v1::registry as v1;
use bowline_contract::v1::registry::rpc::charts as methods;
use bowline_contract::v1::registry::rpc::registry::ListChartsByImageRepo;
use bowline_terminal::{Output, Table};
use clap::{Args, Subcommand, ValueEnum};

use crate::error::CliError;
use crate::print;
use crate::registry::targets;
use crate::resolve as groups;
use crate::session::Access;

/// `bowline registry charts`.
#[derive(Subcommand)]
pub enum ChartsCommand {
    /// Add a chart, with synchronized repositories for its images; prints what was created
    Add(AddCommand),
    /// Find a chart in a catalogue of this server; prints the UIDP of its repository
    Find(FindCommand),
    /// List the charts that use images of a repository
    Using(UsingCommand),
}

#[derive(Args)]
pub struct AddCommand {
    #[command(flatten)]
    access: Access,
    /// Repository of the chart: organization/name, organization/group/name, or UIDP
    #[arg(value_name = "CHART")]
    chart: String,
    /// Tag of the chart whose images count [default: the newest]
    #[arg(long)]
    tag: Option<String>,
    /// Organization or group that gets it
    #[arg(long, value_name = "GROUP")]
    parent: String,
    /// Only say what would be made
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    output: Output,
}

/// Catalogues that the contract knows.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Catalog {
    Community,
    Iamguarded,
}

#[derive(Args)]
pub struct FindCommand {
    #[command(flatten)]
    access: Access,
    /// Name of the chart
    #[arg(value_name = "NAME")]
    name: String,
    /// Catalogue to look in
    #[arg(long, value_enum, default_value_t = Catalog::Community)]
    catalog: Catalog,
    #[command(flatten)]
    output: Output,
}

#[derive(Args)]
pub struct UsingCommand {
    #[command(flatten)]
    access: Access,
    /// Repository: organization/name, organization/group/name, or UIDP
    #[arg(value_name = "REPO")]
    repo: String,
    #[command(flatten)]
    output: Output,
}

pub(crate) async fn run(command: ChartsCommand) -> Result<(), CliError> {
    match command {
        ChartsCommand::Add(command) => add(command).await,
        ChartsCommand::Find(command) => find(command).await,
        ChartsCommand::Using(command) => using(command).await,
    }
}

async fn add(command: AddCommand) -> Result<(), CliError> {
    let session = command.access.session()?;
    let api = session.api().await?;
    let request = v1::AddChartRequest {
        parent_id: groups::group(&api, &command.parent).await?,
        source_repo_id: targets::repo(&session, &api, &command.chart).await?,
        dry_run: command.dry_run,
        tag: command.tag.unwrap_or_default(),
    };
    let added = api.call::<methods::AddChart>(&request).await?.repos;
    let mut table = Table::new(&["repository", "state", "uidp"]);
    for repo in &added {
        let state = match (repo.created, command.dry_run) {
            (true, false) => "created",
            (true, true) => "to be created",
            (false, _) => "there already",
        };
        table.push([repo.name.clone(), state.into(), repo.id.clone()]);
    }
    print(&command.output.messages(&table, &added)?)
}

async fn find(command: FindCommand) -> Result<(), CliError> {
    let catalog = match command.catalog {
        Catalog::Community => v1::ChartCatalog::Community,
        Catalog::Iamguarded => v1::ChartCatalog::Iamguarded,
    };
    let api = command.access.session()?.api().await?;
    let request = v1::FindChartRequest { catalog: catalog as i32, name: command.name };
    let found = api.call::<methods::FindChart>(&request).await?;
    let mut table = Table::without_head();
    table.push([found.source_repo_id.clone()]);
    print(&command.output.message(&table, &found)?)
}

async fn using(command: UsingCommand) -> Result<(), CliError> {
    let session = command.access.session()?;
    let api = session.api().await?;
    let repo_id = targets::repo(&session, &api, &command.repo).await?;
    let request = v1::ListChartsByImageRepoRequest { repo_id };
    let found = api.call::<ListChartsByImageRepo>(&request).await?.chart_image_bindings;
    let mut table = Table::new(&["chart"]);
    for binding in &found {
        table.push([binding.chart_repo.clone()]);
    }
    print(&command.output.messages(&table, &found)?)
}
