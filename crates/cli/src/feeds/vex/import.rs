//! `bowline feeds import FORMAT`: reads documents, and sends what they check.

use std::path::{Path, PathBuf};

use bowline_contract::Contract;
use bowline_contract::v1::vulnerabilities::ReviewStatus;
use bowline_feeds::{Artifact, Limits, ReadFormat, Reading};
use bowline_terminal::{Output, say};
use clap::Args;

use super::files;
use super::report::Report;
use super::sending::{Origin, Sender};
use crate::error::CliError;
use crate::print;
use crate::session::Access;
use crate::{input, resolve};

#[derive(Args)]
pub struct ImportCommand {
    #[command(flatten)]
    access: Access,
    /// A document, a directory of documents, or - for standard input
    #[arg(value_name = "PATH")]
    path: PathBuf,
    /// Group that gets the statements: UIDP, organization or organization/group
    #[arg(long, value_name = "GROUP")]
    group: String,
    /// Bring them as approved, which takes the right to approve; without it they wait for a review
    #[arg(long)]
    approved: bool,
    /// Where they come from: a name or an address [default: what the document says, else the name of the file]
    #[arg(long, value_name = "NAME")]
    source: Option<String>,
    /// License of the source, as an SPDX expression
    #[arg(long = "license", alias = "licence", value_name = "SPDX")]
    licence: Option<String>,
    /// What a scanner's report is about, as TYPE/NAME [default: the image that it names]
    #[arg(long, value_name = "TYPE/NAME")]
    artifact: Option<String>,
    /// Show what would change, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Write everything that was skipped, reduced or refused to this file, as JSON
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// End with 1 if anything was skipped or refused
    #[arg(long)]
    strict: bool,
    #[command(flatten)]
    output: Output,
}

/// Reads documents, sends advisories and reports problems.
pub(super) async fn run(format: ReadFormat, command: ImportCommand) -> Result<(), CliError> {
    let scanned = command.artifact.as_deref().map(artifact).transpose()?;
    let documents = files::documents(&command.path)?;
    if command.licence.is_none() && is_of_others(format) {
        say("no --license: exports will hand on what is imported here\n");
    }
    let session = command.access.session()?;
    let api = session.api().await?;
    let group = resolve::group(&api, &command.group).await?;
    let status = if command.approved { ReviewStatus::Approved } else { ReviewStatus::Pending };
    let contract = Contract::load();
    let mut sender = Sender::new(&api, contract.field_rules(), &group, status, command.dry_run);
    let mut report = Report::new(command.dry_run);
    let origin = origin(format, &command);
    let is_single = documents.len() == 1 && documents[0] == command.path;
    for path in &documents {
        let reading = match read(format, path, scanned.as_ref()) {
            Ok(reading) => reading,
            Err(error) if is_single => return Err(error),
            Err(error) => {
                report.unreadable(path, &error.to_string());
                continue;
            }
        };
        report.problems(path, reading.problems);
        for advisory in reading.advisories {
            sender.add(path, advisory, &origin, &mut report).await?;
        }
    }
    sender.finish(&mut report).await?;
    if let Some(path) = &command.report {
        report.write(path)?;
    }
    say(&report.talk());
    print(&command.output.list(&report.table())?)?;
    if command.strict && report.is_incomplete() {
        return Err(CliError::Document("not everything was taken in; see above".into()));
    }
    Ok(())
}

/// Formats in which others publish. Findings and one's own form are one's own.
fn is_of_others(format: ReadFormat) -> bool {
    !matches!(format, ReadFormat::Yaml | ReadFormat::Grype | ReadFormat::Trivy)
}

fn read(format: ReadFormat, path: &Path, scanned: Option<&Artifact>) -> Result<Reading, CliError> {
    let limits = Limits::default();
    let bytes = input::read(path, limits.bytes as u64)?;
    bowline_feeds::read_of(format, &bytes, scanned, &limits)
        .map_err(|error| CliError::Document(format!("{}: {error}", path.display())))
}

/// Own statements come from nowhere else; those of others from the file or directory if no one says more.
fn origin(format: ReadFormat, command: &ImportCommand) -> Origin {
    let file = command.path.file_name().map(|name| name.to_string_lossy().into_owned()).filter(|name| name != "-");
    let usual = if format == ReadFormat::Yaml { None } else { file };
    Origin {
        source: command.source.clone().or(usual).unwrap_or_default(),
        licence: command.licence.clone().unwrap_or_default(),
    }
}

fn artifact(text: &str) -> Result<Artifact, CliError> {
    let (kind, name) = text
        .split_once('/')
        .filter(|(kind, name)| !kind.is_empty() && !name.is_empty())
        .ok_or_else(|| CliError::Option(format!("--artifact {text}: write TYPE/NAME, such as image/nginx")))?;
    Ok(Artifact { kind: kind.into(), name: name.into(), architecture: String::new() })
}
