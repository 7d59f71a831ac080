//! `bowline mcp`: methods of the contract as tools of the Model Context Protocol, over standard input and output.
//!
//! The contract's `mcp` option says which methods are tools, and what they do. A call is made with the rights of the
//! signed-in caller, like that of any other command.

mod server;
mod tools;

use bowline_client::ClientError;
use bowline_terminal::Work;
use clap::Args;
use rmcp::ServiceExt as _;

use crate::error::CliError;
use crate::session::Access;

const EXAMPLE: &str = "\
Example of a client's configuration:
  {\"mcpServers\": {\"bowline\": {\"command\": \"bowline\", \"args\": [\"mcp\", \"--context\", \"work\"]}}}";

/// `bowline mcp`.
#[derive(Args)]
#[command(after_help = EXAMPLE)]
pub struct McpCommand {
    #[command(flatten)]
    access: Access,
    /// Serve methods that change or delete something too
    #[arg(long)]
    allow_writes: bool,
    /// Serve only methods of these domains, such as iam,registry [default: all]
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    domains: Vec<String>,
}

/// Runs `bowline mcp`, until the client closes standard input.
pub fn run(command: McpCommand) -> Work<CliError> {
    Box::pin(execute(command))
}

async fn execute(command: McpCommand) -> Result<(), CliError> {
    if command.access.reads_stdin() {
        let message = "--token-file -: standard input carries the protocol; name a file, or set BOWLINE_TOKEN";
        return Err(ClientError::Usage(message.into()).into());
    }
    let session = command.access.session()?;
    let server = server::ToolServer::new(session, command.allow_writes, command.domains).await?;
    let broken =
        |error: &dyn std::fmt::Display| ClientError::Transport(format!("the client broke the protocol: {error}"));
    let running = match server.serve(rmcp::transport::stdio()).await {
        Ok(running) => running,
        // A client that leaves before it begins.
        Err(rmcp::service::ServerInitializeError::ConnectionClosed(_)) => return Ok(()),
        Err(error) => return Err(broken(&error).into()),
    };
    running.waiting().await.map_err(|error| broken(&error))?;
    Ok(())
}
