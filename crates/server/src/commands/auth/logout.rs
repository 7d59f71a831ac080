use bowline_client::ClientError;
use clap::Args;

use crate::cli::say;
use crate::commands::session::{Session, Target};
use crate::error::StartError;

/// `bowline auth logout`.
#[derive(Args)]
pub(crate) struct LogoutCommand {
    #[command(flatten)]
    target: Target,
    /// Only the tokens of this audience [default: all audiences of the server]
    #[arg(long, value_name = "AUDIENCE")]
    audience: Option<String>,
}

pub(crate) async fn run(command: LogoutCommand) -> Result<(), StartError> {
    let session = Session::open(&command.target)?;
    let audiences = match command.audience {
        Some(audience) => vec![audience],
        None => session.audiences()?,
    };
    let mut failure = None;
    for audience in audiences {
        if let Some(refresh_token) = session.cache.read(&audience)?.refresh_token
            && let Err(error) = session.issuer.revoke(&refresh_token).await
        {
            failure = Some(error);
        }
        if session.cache.remove(&audience)? {
            say(&format!("forgot the tokens for {audience}\n"));
        }
    }
    match failure {
        // The files are gone all the same.
        Some(error) => Err(ClientError::SignIn(format!(
            "the tokens were forgotten here, but the session on the server could not be ended: {error}"
        ))
        .into()),
        None => Ok(()),
    }
}
