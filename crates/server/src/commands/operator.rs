use bowline_core::SystemClock;
use clap::{Args, Subcommand};

use crate::cli::print;
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
    let lifetime = seconds(&command.ttl)?;
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

/// `90s`, `15m` or `1h`: between a second and an hour.
fn seconds(text: &str) -> Result<i64, StartError> {
    let refuse = || StartError::Option(format!("--ttl {text}: a number with s, m or h, between 1s and 1h"));
    let split = text.len().checked_sub(1).ok_or_else(refuse)?;
    let (number, unit) = text.split_at_checked(split).ok_or_else(refuse)?;
    let factor = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3600,
        _ => return Err(refuse()),
    };
    let number: i64 = number.parse().map_err(|_| refuse())?;
    let seconds = number.checked_mul(factor).ok_or_else(refuse)?;
    if (1..=3600).contains(&seconds) { Ok(seconds) } else { Err(refuse()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lifetimes() {
        assert_eq!(seconds("1h").unwrap(), 3600);
        assert_eq!(seconds("15m").unwrap(), 900);
        for wrong in ["", "h", "0s", "2h", "-1m", "5", "1d", "é"] {
            assert!(seconds(wrong).is_err(), "{wrong}");
        }
    }
}
