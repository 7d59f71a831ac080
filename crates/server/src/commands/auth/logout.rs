use bowline_client::{ClientError, claims};
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
    let (mut failure, mut forgotten) = (None, 0);
    for audience in audiences {
        let kept = session.kept(&audience)?;
        let fresh = kept.fresh(Session::now());
        // An access token that has ended names no session any more.
        if let Some(token) = kept.refresh_token.or(fresh)
            && let Err(error) = session.issuer.revoke(&token).await
        {
            failure = Some(error);
        }
        if session.cache.remove(&audience)? {
            forgotten += 1;
            say(&format!("forgot the tokens for {}\n", spelled(&session, &audience, kept.token.as_deref())));
        }
    }
    if forgotten == 0 {
        say(&format!("nobody was signed in to {}: there was nothing to forget\n", session.api));
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

/// An audience as it is written: the cache's names have no slashes, the tokens do.
fn spelled(session: &Session, audience: &str, token: Option<&str>) -> String {
    let audiences = token.and_then(claims).map(|claims| claims.aud).unwrap_or_default();
    let known = audiences.into_iter().chain([session.api.clone()]).find(|known| known.replace('/', "-") == audience);
    known.unwrap_or_else(|| audience.to_owned())
}
