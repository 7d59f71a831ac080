use bowline_client::{ClientError, ExchangeRequest};
use clap::Args;

use crate::error::CliError;
use crate::print;
use crate::session::Access;

/// `bowline auth token`.
#[derive(Args)]
pub struct TokenCommand {
    #[command(flatten)]
    access: Access,
    /// Audience of the token [default: the API]
    #[arg(long, value_name = "AUDIENCE")]
    audience: Option<String>,
    /// Capabilities that the token may use, such as groups.list; all where none is named
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    capabilities: Vec<String>,
    /// Groups that the token may act in; all where none is named
    #[arg(long, value_name = "UIDP,...", value_delimiter = ',')]
    scope: Vec<String>,
}

pub(crate) async fn run(command: TokenCommand) -> Result<(), CliError> {
    let session = command.access.session()?;
    let audience = command.audience.unwrap_or_else(|| session.api.clone());
    let token = if command.capabilities.is_empty() && command.scope.is_empty() {
        session.token(&audience).await?
    } else {
        let whole = session.token(&session.api).await?;
        let request = ExchangeRequest {
            audiences: vec![audience],
            capabilities: command.capabilities,
            scopes: command.scope,
            ..ExchangeRequest::default()
        };
        let narrowed = session.issuer.exchange(&whole, &request).await?.token;
        narrowed.ok_or_else(|| ClientError::Transport("the issuer gave no token".into()))?
    };
    print(&format!("{token}\n"))
}
