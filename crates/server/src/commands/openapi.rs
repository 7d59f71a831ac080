use bowline_contract::{ApiVersion, Contract};
use clap::{Args, ValueEnum};

use crate::commands::print;
use crate::error::StartError;

/// `bowline openapi`.
#[derive(Args)]
pub struct OpenapiCommand {
    /// Version of the API
    #[arg(long, value_enum)]
    version: Version,
    /// Address of the server, for the document's `servers`
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:8080")]
    base_url: String,
}

#[derive(Clone, Copy, ValueEnum)]
enum Version {
    V1,
    V2,
}

/// Runs `bowline openapi`.
pub fn run(command: OpenapiCommand) -> Result<(), StartError> {
    let version = match command.version {
        Version::V1 => ApiVersion::V1,
        Version::V2 => ApiVersion::V2,
    };
    let document = bowline_rpc::openapi(&Contract::load(), version, &command.base_url);
    let text = serde_json::to_string_pretty(&document).map_err(|error| StartError::Defect(error.to_string()))?;
    print(&format!("{text}\n"))
}
