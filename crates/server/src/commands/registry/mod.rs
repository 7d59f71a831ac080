//! `bowline registry`: repositories, their tags, and what is set for them.

mod charts;
mod history;
mod place;
mod policy;
mod repos;
mod retention;
mod scan_report;
mod stored;
mod tags;
mod upstream;

use clap::Subcommand;

use crate::error::StartError;

/// `bowline registry`.
#[derive(Subcommand)]
pub(crate) enum RegistryCommand {
    /// Repositories of container images
    #[command(subcommand)]
    Repos(repos::ReposCommand),
    /// Tags of a repository
    #[command(subcommand)]
    Tags(tags::TagsCommand),
    /// Helm charts, and the images that they use
    #[command(subcommand)]
    Charts(charts::ChartsCommand),
    /// Show what a tag has named, newest first
    History(history::HistoryCommand),
    /// Which images stay
    #[command(subcommand)]
    Retention(retention::RetentionCommand),
    /// Who may pull, which tags never move, how much is stored
    #[command(subcommand)]
    Policy(policy::PolicyCommand),
    /// What scanners found in images
    #[command(subcommand)]
    ScanReport(scan_report::ScanReportCommand),
    /// On the server's machine: take away what no repository shows any more, as the server does by itself
    Gc(Box<stored::GcCommand>),
    /// On the server's machine: read every blob, and name those that are missing or damaged
    Verify(Box<stored::VerifyCommand>),
}

pub(crate) async fn run(command: RegistryCommand) -> Result<(), StartError> {
    match command {
        RegistryCommand::Repos(command) => repos::run(command).await,
        RegistryCommand::Tags(command) => tags::run(command).await,
        RegistryCommand::Charts(command) => charts::run(command).await,
        RegistryCommand::History(command) => history::run(command).await,
        RegistryCommand::Retention(command) => retention::run(command).await,
        RegistryCommand::Policy(command) => policy::run(command).await,
        RegistryCommand::ScanReport(command) => scan_report::run(command).await,
        RegistryCommand::Gc(command) => stored::gc(*command).await,
        RegistryCommand::Verify(command) => stored::check(*command).await,
    }
}
