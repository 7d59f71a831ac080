//! `bowline registry`: repositories, their tags, and what is set for them.

mod charts;
mod history;
mod policy;
mod repos;
mod retention;
mod scan_report;
mod tags;
pub(crate) mod targets;
mod upstream;

use bowline_terminal::Work;
use clap::Subcommand;

use crate::error::CliError;

/// `bowline registry`.
#[derive(Subcommand)]
pub enum RegistryCommand {
    /// Repositories of container images
    #[command(subcommand)]
    Repos(repos::ReposCommand),
    /// Tags of a repository
    #[command(subcommand)]
    Tags(tags::TagsCommand),
    /// Helm charts, and the images that they use
    #[command(subcommand)]
    Charts(charts::ChartsCommand),
    /// Show the digests that a tag has named, the newest first
    History(history::HistoryCommand),
    /// Retention rules
    #[command(subcommand)]
    Retention(retention::RetentionCommand),
    /// Policies: public access, immutable tags, quotas, upstreams
    #[command(subcommand)]
    Policy(policy::PolicyCommand),
    /// Reports of scanners
    #[command(subcommand)]
    ScanReport(scan_report::ScanReportCommand),
}

/// Runs `bowline registry`.
pub fn run(command: RegistryCommand) -> Work<CliError> {
    Box::pin(execute(command))
}

async fn execute(command: RegistryCommand) -> Result<(), CliError> {
    match command {
        RegistryCommand::Repos(command) => repos::run(command).await,
        RegistryCommand::Tags(command) => tags::run(command).await,
        RegistryCommand::Charts(command) => charts::run(command).await,
        RegistryCommand::History(command) => history::run(command).await,
        RegistryCommand::Retention(command) => retention::run(command).await,
        RegistryCommand::Policy(command) => policy::run(command).await,
        RegistryCommand::ScanReport(command) => scan_report::run(command).await,
    }
}
