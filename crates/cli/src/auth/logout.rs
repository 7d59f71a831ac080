use bowline_client::{ClientError, Tokens, claims};
use bowline_terminal::say;
use clap::Args;

use crate::error::CliError;
use crate::session::{Session, Target};

/// `bowline auth logout`.
#[derive(Args)]
pub struct LogoutCommand {
    #[command(flatten)]
    target: Target,
    /// Only the tokens of this audience [default: all audiences of the server]
    #[arg(long, value_name = "AUDIENCE")]
    audience: Option<String>,
}

pub(crate) async fn run(command: LogoutCommand) -> Result<(), CliError> {
    let session = Session::open(&command.target)?;
    let audiences = match command.audience {
        Some(audience) => vec![audience],
        None => session.audiences()?,
    };
    let (mut failures, mut forgotten) = (Vec::new(), 0);
    for audience in audiences {
        let kept = session.cache.read(&audience)?;
        let named = spelled(&session, &audience, kept.token.as_deref());
        // An access token that has ended names no session any more.
        if let Some(token) = kept.refresh_token.clone().or(kept.fresh(Session::now())) {
            if let Some(other) = other_issuer(&session, &kept) {
                failures.push(format!(
                    "the tokens for {named} are of the issuer {other} and were left: end their session with --issuer {other}"
                ));
                continue;
            }
            if let Err(error) = session.issuer.revoke(&token).await {
                // The files go all the same.
                failures.push(format!(
                    "the tokens for {named} were forgotten here, but their session on the server could not be ended: {error}"
                ));
            }
        }
        if session.cache.remove(&audience)? {
            forgotten += 1;
            say(&format!("forgot the tokens for {named}\n"));
        }
    }
    if !failures.is_empty() {
        return Err(ClientError::SignIn(failures.join("; ")).into());
    }
    if forgotten == 0 {
        say(&format!("not signed in to {}: nothing to remove\n", session.api));
    }
    Ok(())
}

/// The issuer of the tokens, if it is another than the session's. Tokens that do not say are the session's own.
fn other_issuer(session: &Session, kept: &Tokens) -> Option<String> {
    let issuer = kept.token.as_deref().and_then(claims).map(|claims| claims.iss)?;
    (issuer != session.issuer.url()).then_some(issuer)
}

/// An audience as it is written: the cache's names have no slashes, the tokens do.
fn spelled(session: &Session, audience: &str, token: Option<&str>) -> String {
    let audiences = token.and_then(claims).map(|claims| claims.aud).unwrap_or_default();
    let known = audiences.into_iter().chain([session.api.clone()]).find(|known| known.replace('/', "-") == audience);
    known.unwrap_or_else(|| audience.to_owned())
}
