use std::path::PathBuf;

use bowline_client::ClientError;
use bowline_contract::bowline::registry::v1 as own;
use bowline_contract::bowline::registry::v1::rpc::scan_reports::PutScanReport;
use bowline_terminal::{Output, Table, time};
use clap::{Args, Subcommand, ValueEnum};
use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::error::CliError;
use crate::input;
use crate::print;
use crate::registry::targets::{self, Image};
use crate::session::Access;

/// `bowline registry scan-report`.
#[derive(Subcommand)]
pub enum ScanReportCommand {
    /// Store a scanner's report about an image
    Put(PutCommand),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Scanner {
    Grype,
    Trivy,
}

#[derive(Args)]
pub struct PutCommand {
    #[command(flatten)]
    access: Access,
    /// Image: organization/name:tag or organization/name@digest, with the registry's host if you like
    #[arg(value_name = "IMAGE")]
    image: String,
    /// The scanner's JSON output, or - for standard input
    #[arg(long, value_name = "FILE")]
    file: PathBuf,
    /// What wrote it [default: what it looks like]
    #[arg(long, value_name = "NAME")]
    scanner: Option<Scanner>,
    #[command(flatten)]
    output: Output,
}

/// Largest report, in bytes; the server takes no larger one.
const REPORT_BYTES: u64 = 32 << 20;

pub(crate) async fn run(command: ScanReportCommand) -> Result<(), CliError> {
    let ScanReportCommand::Put(command) = command;
    let report = input::read(&command.file, REPORT_BYTES)?;
    let scanner = match command.scanner {
        Some(scanner) => scanner,
        None => guessed(&report)
            .ok_or_else(|| ClientError::Usage("the report looks like none of Grype or Trivy; say --scanner".into()))?,
    };
    let session = command.access.session()?;
    let api = session.api().await?;
    let image = Image::parse(&command.image);
    let repo = targets::repo(&session, &api, image.repo).await?;
    let digest = match (image.digest, image.tag) {
        (Some(digest), _) => digest.to_owned(),
        (None, tag) => targets::tag(&api, &repo, tag.unwrap_or("latest")).await?.digest,
    };
    let scanner = match scanner {
        Scanner::Grype => own::ScannerName::Grype,
        Scanner::Trivy => own::ScannerName::Trivy,
    };
    let request = own::PutScanReportRequest { repo_uid: repo, digest, scanner: scanner.into(), report };
    let stored = api.call::<PutScanReport>(&request).await?;
    let mut table = Table::new(&["digest", "vulnerabilities", "scanner version", "stored"]);
    table.push([
        stored.digest.clone(),
        stored.vulnerabilities.to_string(),
        stored.scanner_version.clone(),
        time(stored.create_time),
    ]);
    print(&command.output.message(&table, &stored)?)
}

/// Whose report it is, by the members that only theirs have.
fn guessed(report: &[u8]) -> Option<Scanner> {
    #[derive(Deserialize)]
    struct Members {
        matches: Option<IgnoredAny>,
        #[serde(rename = "SchemaVersion")]
        schema_version: Option<IgnoredAny>,
    }
    match serde_json::from_slice(report).ok()? {
        Members { matches: Some(_), .. } => Some(Scanner::Grype),
        Members { schema_version: Some(_), .. } => Some(Scanner::Trivy),
        Members { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_are_told_apart() {
        assert_eq!(guessed(br#"{"matches":[],"descriptor":{}}"#), Some(Scanner::Grype));
        assert_eq!(guessed(br#"{"SchemaVersion":2}"#), Some(Scanner::Trivy));
        for text in ["", "[]", "{}", "{\"matches\""] {
            assert_eq!(guessed(text.as_bytes()), None, "{text}");
        }
    }
}
