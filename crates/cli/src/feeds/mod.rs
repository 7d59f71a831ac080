//! `bowline feeds`: the operator brings records of vulnerabilities, and groups bring and give statements about them.

mod cycles;
mod import;
mod known;
mod reading;
mod report;
mod rustsec;
mod vex;

use bowline_client::{Api, ClientError};
use bowline_contract::bowline::feeds::v1 as feeds;
use bowline_contract::bowline::feeds::v1::rpc::record_imports as methods;
use bowline_terminal::{Output, Table, Work, time};
use clap::{Args, Subcommand};
use feeds::ImportState;

use crate::error::CliError;
use crate::print;
use crate::session::Access;

/// `bowline feeds`.
#[derive(Subcommand)]
pub enum FeedsCommand {
    /// Import records of a source, or advisories into a group
    #[command(subcommand)]
    Import(FormatCommand),
    /// Export the approved advisories of a group, or imported records, as files
    #[command(subcommand)]
    Export(vex::ExportFormat),
    /// List the sources that records came from
    Sources(ListCommand),
    /// List the products whose release cycles are known
    Cycles(cycles::ListCommand),
    /// List imports, the newest first
    Status(StatusCommand),
    /// Abort the open import of a source
    Abort(AbortCommand),
}

/// `bowline feeds import`.
#[derive(Subcommand)]
pub enum FormatCommand {
    /// Records in OSV shape: a directory, such as a clone of a database, or a zip archive
    Osv(Box<import::ImportCommand>),
    /// Release cycles of products, in the form of endoflife.date: until when each version is supported
    Cycles(Box<cycles::ImportCommand>),
    #[command(flatten)]
    Statements(vex::ImportFormat),
}

#[derive(Args)]
pub struct ListCommand {
    #[command(flatten)]
    access: Access,
    #[command(flatten)]
    output: Output,
}

#[derive(Args)]
pub struct StatusCommand {
    #[command(flatten)]
    access: Access,
    /// Name of a source [default: all]
    #[arg(value_name = "SOURCE", default_value = "")]
    source: String,
    #[command(flatten)]
    output: Output,
}

#[derive(Args)]
pub struct AbortCommand {
    #[command(flatten)]
    access: Access,
    /// Name of the source
    #[arg(value_name = "SOURCE")]
    source: String,
    #[command(flatten)]
    output: Output,
}

/// Runs `bowline feeds`.
pub fn run(command: FeedsCommand) -> Work<CliError> {
    Box::pin(execute(command))
}

async fn execute(command: FeedsCommand) -> Result<(), CliError> {
    match command {
        FeedsCommand::Import(FormatCommand::Osv(command)) => import::run(*command).await,
        FeedsCommand::Import(FormatCommand::Cycles(command)) => cycles::import(*command).await,
        FeedsCommand::Import(FormatCommand::Statements(command)) => vex::import(command).await,
        FeedsCommand::Export(command) => vex::export(command).await,
        FeedsCommand::Sources(command) => sources(command).await,
        FeedsCommand::Cycles(command) => cycles::list(command).await,
        FeedsCommand::Status(command) => status(command).await,
        FeedsCommand::Abort(command) => abort(command).await,
    }
}

async fn sources(command: ListCommand) -> Result<(), CliError> {
    let api = command.access.session()?.api().await?;
    let sources = api.call::<methods::ListSources>(&feeds::ListSourcesRequest {}).await?.sources;
    let mut table = Table::new(&["source", "records", "licence", "imported", "url"]);
    for source in &sources {
        let row = [&source.name, &source.records.to_string(), &source.licence, &time(source.import_time), &source.url];
        table.push(row.map(String::clone));
    }
    print(&command.output.messages(&table, &sources)?)
}

async fn status(command: StatusCommand) -> Result<(), CliError> {
    let api = command.access.session()?.api().await?;
    let request = feeds::ListImportsRequest { source: command.source, ..Default::default() };
    let imports = api.call::<methods::ListImports>(&request).await?.imports;
    print(&command.output.messages(&table(&imports), &imports)?)
}

fn table(imports: &[feeds::RecordImport]) -> Table {
    let mut table = Table::new(&["import", "source", "state", "added", "changed", "removed", "begun", "ended"]);
    for import in imports {
        let state = import.state().as_str_name().trim_start_matches("IMPORT_STATE_").to_lowercase();
        let counts = [import.added, import.changed, import.removed].map(|count| count.to_string());
        let times = [time(import.begin_time), time(import.end_time)];
        table.push([import.uid.clone(), import.source.clone(), state].into_iter().chain(counts).chain(times));
    }
    table
}

async fn abort(command: AbortCommand) -> Result<(), CliError> {
    let api = command.access.session()?.api().await?;
    let sources = api.call::<methods::ListSources>(&feeds::ListSourcesRequest {}).await?.sources;
    let open = sources.into_iter().find(|source| source.name == command.source).map(|source| source.open_import_uid);
    let uid = open.filter(|uid| !uid.is_empty()).ok_or_else(|| {
        ClientError::Usage(format!("no import of {} is open; bowline feeds status lists imports", command.source))
    })?;
    let import = abort_whole(&api, &uid).await?;
    print(&command.output.message(&table(std::slice::from_ref(&import)), &import)?)
}

/// Gives an import up, and waits until nothing of it is left.
async fn abort_whole(api: &Api, uid: &str) -> Result<feeds::RecordImport, ClientError> {
    loop {
        let request = feeds::AbortImportRequest { uid: uid.into() };
        let import = api.call::<methods::AbortImport>(&request).await?;
        if import.state() != ImportState::Aborting {
            return Ok(import);
        }
    }
}
