use bowline_core::SystemClock;
use clap::{Args, Subcommand};

use crate::cli::print;
use crate::commands::duration::seconds;
use crate::error::StartError;
use crate::options::{Options, public_url};
use crate::storage::{Storage, mint_operator_token};

/// `bowline operator`.
#[derive(Subcommand)]
pub(crate) enum OperatorCommand {
    /// Print a token of the operator, who may do everything; the server need not run
    Token(Box<TokenCommand>),
}

/// `bowline operator token`.
#[derive(Args)]
pub(crate) struct TokenCommand {
    #[command(flatten)]
    options: Options,
    /// Audience of the token [default: the API's]
    #[arg(long, value_name = "AUDIENCE")]
    audience: Option<String>,
    /// How long the token lives, such as 15m; an hour at most
    #[arg(long, value_name = "TIME", default_value = "1h")]
    ttl: String,
}

pub(crate) async fn run(command: OperatorCommand) -> Result<(), StartError> {
    let OperatorCommand::Token(command) = command;
    let lifetime = seconds("ttl", &command.ttl, 3600)?;
    let options = command.options.with_file()?;
    let issuer = match (&options.auth_url, &options.base_url) {
        (Some(url), _) => Some(public_url("auth-url", url)?),
        (None, Some(url)) => Some(public_url("base-url", url)?),
        (None, None) => None,
    };
    let audience = match (&command.audience, &options.base_url) {
        (Some(audience), _) => Some(audience.clone()),
        (None, Some(url)) => Some(public_url("base-url", url)?),
        (None, None) => None,
    };
    let storage = Storage::open(&options).await?;
    let token = mint_operator_token(&storage, &SystemClock, issuer, audience, lifetime).await;
    storage.db.close().await;
    print(&format!("{}\n", token?))
}
