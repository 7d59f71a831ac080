//! `bowline advisories`: statements about vulnerabilities, and their review.

mod create;
mod event;
mod name;
mod read;
mod review;
mod settings;

use bowline_terminal::Work;
use clap::Subcommand;

use crate::error::CliError;
use crate::resources::{self, Advisories, Generated};

/// `bowline advisories`.
#[derive(Subcommand)]
pub enum AdvisoriesCommand {
    /// List advisories, with the state that the latest approved event of each gives
    List(Box<read::ListCommand>),
    /// Show an advisory with its events
    Get(read::GetCommand),
    /// Create an advisory in a group
    Create(create::CreateCommand),
    /// Add an event to an advisory; a reviewer approves it
    Event(event::EventCommand),
    /// Approve or reject an event
    Review(review::ReviewCommand),
    /// Review rules of a group, and whether its approved advisories are public
    Settings(settings::SettingsCommand),
    #[command(flatten)]
    Generated(Generated<Advisories>),
}

/// Runs `bowline advisories`.
pub fn run(command: AdvisoriesCommand) -> Work<CliError> {
    Box::pin(execute(command))
}

async fn execute(command: AdvisoriesCommand) -> Result<(), CliError> {
    match command {
        AdvisoriesCommand::List(command) => read::list(*command).await,
        AdvisoriesCommand::Get(command) => read::get(command).await,
        AdvisoriesCommand::Create(command) => create::run(command).await,
        AdvisoriesCommand::Event(command) => event::run(command).await,
        AdvisoriesCommand::Review(command) => review::run(command).await,
        AdvisoriesCommand::Settings(command) => settings::run(command).await,
        AdvisoriesCommand::Generated(command) => resources::run(command).await,
    }
}
