//! `bowline auth`: signing in, and tokens for everything else.

mod configure_docker;
mod login;
mod logout;
mod pull_token;
mod status;
mod token;

use bowline_terminal::Work;
use clap::Subcommand;

use crate::error::CliError;

/// `bowline auth`.
#[derive(Subcommand)]
pub enum AuthCommand {
    /// Sign in with a browser or an identity token
    Login(Box<login::LoginCommand>),
    /// Print a token for the API or another audience
    Token(Box<token::TokenCommand>),
    /// Show who is signed in, and their roles
    Status(Box<status::StatusCommand>),
    /// Sign out: delete the tokens, and end the session
    Logout(Box<logout::LogoutCommand>),
    /// Configure docker, podman and similar clients to get credentials from bowline
    ConfigureDocker(Box<configure_docker::ConfigureDockerCommand>),
    /// Pull tokens: long-lived credentials for registry and package clients
    #[command(subcommand)]
    PullToken(pull_token::PullTokenCommand),
}

/// Runs `bowline auth`.
pub fn run(command: AuthCommand) -> Work<CliError> {
    Box::pin(execute(command))
}

async fn execute(command: AuthCommand) -> Result<(), CliError> {
    match command {
        AuthCommand::Login(command) => login::run(*command).await,
        AuthCommand::Token(command) => token::run(*command).await,
        AuthCommand::Status(command) => status::run(*command).await,
        AuthCommand::Logout(command) => logout::run(*command).await,
        AuthCommand::ConfigureDocker(command) => configure_docker::run(*command).await,
        AuthCommand::PullToken(command) => pull_token::run(command).await,
    }
}
