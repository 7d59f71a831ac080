//! `bowline vulns`: what is known of vulnerabilities. Anyone may ask.

use std::collections::HashSet;

use bowline_client::Api;
use bowline_contract::v2::advisory as v2;
use bowline_contract::v2::advisory::rpc::security_advisory_service::ListVulnerabilityMetadata;
use bowline_osv::{Rating, highest_score};
use bowline_terminal::{Output, Table, Work};
use clap::{Args, Subcommand};

use crate::error::CliError;
use crate::print;
use crate::resources::{self, Generated, Vulns};
use crate::session::{Session, Target};

/// `bowline vulns`.
#[derive(Subcommand)]
pub enum VulnsCommand {
    /// Show metadata of vulnerabilities, by their ids or aliases
    Get(GetCommand),
    #[command(flatten)]
    Generated(Generated<Vulns>),
}

#[derive(Args)]
pub struct GetCommand {
    #[command(flatten)]
    target: Target,
    /// Ids, such as CVE-2024-3094
    #[arg(value_name = "ID", required = true)]
    ids: Vec<String>,
    #[command(flatten)]
    output: Output,
}

/// Runs `bowline vulns`.
pub fn run(command: VulnsCommand) -> Work<CliError> {
    Box::pin(execute(command))
}

async fn execute(command: VulnsCommand) -> Result<(), CliError> {
    match command {
        VulnsCommand::Get(command) => get(command).await,
        VulnsCommand::Generated(command) => resources::run(command).await,
    }
}

async fn get(command: GetCommand) -> Result<(), CliError> {
    let api = Api::new(&Session::open(&command.target)?.api, None)?;
    let mut found = Vec::new();
    let mut request =
        v2::ListVulnerabilityMetadataRequest { ids: command.ids.clone(), page_size: 200, ..Default::default() };
    loop {
        let page = api.call::<ListVulnerabilityMetadata>(&request).await?;
        found.extend(page.vulnerability_metadata);
        if page.next_page_token.is_empty() {
            break;
        }
        request.page_token = page.next_page_token;
    }
    let mut table = Table::new(&["id", "severity", "summary"]);
    for metadata in &found {
        table.push([metadata.id.clone(), severity(&metadata.severities), metadata.summary.clone()]);
    }
    print(&command.output.messages(&table, &found)?)?;
    let known: HashSet<&str> = found.iter().map(|metadata| metadata.id.as_str()).collect();
    let unknown: Vec<String> = command.ids.into_iter().filter(|id| !known.contains(id.as_str())).collect();
    if unknown.is_empty() { Ok(()) } else { Err(CliError::Unknown(unknown)) }
}

/// The worst score in words, or the vectors where there is none.
fn severity(severities: &[v2::Severity]) -> String {
    match highest_score(severities.iter().map(|severity| severity.score.as_str())) {
        Some(score) => format!("{:?} {score:.1}", Rating::of(score)),
        None => severities.iter().map(|severity| severity.score.as_str()).collect::<Vec<_>>().join(" "),
    }
}
