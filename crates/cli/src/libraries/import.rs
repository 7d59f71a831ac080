//! Import of a directory into the catalogue: read here, sent to the server in batches.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use bowline_client::{Api, ClientError};
use bowline_contract::bowline::libraries::v1 as own;
use bowline_contract::bowline::libraries::v1::rpc::catalog::ImportVersions;
use bowline_contract::v1::libraries as v1;
use bowline_packages::{FileFacts, Layout, Package, Refusal, walk};
use bowline_terminal::{Output, Table, say};
use clap::{Args, ValueEnum};

use super::Ecosystem;
use crate::error::CliError;
use crate::print;
use crate::session::Access;

#[derive(Args)]
pub struct ImportCommand {
    #[command(flatten)]
    access: Access,
    /// Directory of wheels and sdists, of npm tarballs, or the root of a Maven repository
    #[arg(value_name = "DIRECTORY")]
    directory: PathBuf,
    /// What lies in it
    #[arg(long, value_name = "NAME")]
    ecosystem: Ecosystem,
    /// Where the packages were made
    #[arg(long, value_name = "SOURCE", default_value = "internal")]
    source: Source,
    /// Say what would be taken in, and change nothing
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    output: Output,
}

/// Where packages were made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Source {
    /// Built here
    Internal,
    /// Built here, with security fixes on top
    Remediated,
    /// From the public registry, unchanged
    Upstream,
}

/// Most versions of one request.
const BATCH: usize = 200;
/// Most files of a version in one request; the server accepts no more.
const MAX_FILES: usize = 500;

pub(crate) async fn run(command: ImportCommand) -> Result<(), CliError> {
    let layout = match command.ecosystem {
        Ecosystem::Java => Layout::Maven,
        Ecosystem::Python => Layout::Python,
        Ecosystem::JavaScript => Layout::Npm,
        Ecosystem::Go | Ecosystem::Cargo => {
            let text = "directories of Go modules and of crates cannot be imported: publish them, or set an upstream";
            return Err(ClientError::Usage(text.into()).into());
        }
    };
    let unreadable = |error| ClientError::Usage(format!("{}: {error}", command.directory.display()));
    let found = walk(layout, &command.directory).map_err(unreadable)?;
    let mut import = Import {
        api: command.access.session()?.api().await?,
        ecosystem: command.ecosystem.wire()?,
        source: match command.source {
            Source::Internal => v1::SourceType::Internal,
            Source::Remediated => v1::SourceType::InternalRemediated,
            Source::Upstream => v1::SourceType::UpstreamRegistry,
        },
        dry_run: command.dry_run,
        batch: BTreeMap::new(),
        report: Report::default(),
    };
    for (path, package) in found {
        match package {
            Ok(package) => import.add(package).await?,
            // What no one would take for a package needs no line of its own.
            Err(Refusal::Foreign) => import.report.foreign += 1,
            Err(refusal) => import.report.skip(&command.directory, &path, &refusal.to_string()),
        }
    }
    import.flush().await?;
    let report = import.report;
    print(&command.output.list(&report.table())?)?;
    if report.skipped > 0 {
        return Err(CliError::Skipped(report.skipped));
    }
    Ok(())
}

/// An import that is under way.
struct Import {
    api: Api,
    ecosystem: v1::Ecosystem,
    source: v1::SourceType,
    dry_run: bool,
    /// By name and version: the files of one version come one by one.
    batch: BTreeMap<(String, String), own::PackageVersion>,
    report: Report,
}

impl Import {
    async fn add(&mut self, package: Package) -> Result<(), CliError> {
        self.report.files += package.files.len();
        let key = (package.name.clone(), package.version.clone());
        match self.batch.get_mut(&key) {
            Some(known) if known.files.len() + package.files.len() <= MAX_FILES => {
                known.files.extend(package.files.into_iter().map(file));
                // The same file may lie in two directories.
                known.files.sort_by(|left, right| left.name.cmp(&right.name));
                known.files.dedup_by(|left, right| left.name == right.name);
            }
            Some(_) => {
                self.flush().await?;
                self.batch.insert(key, self.version(package));
            }
            None => _ = self.batch.insert(key, self.version(package)),
        }
        if self.batch.len() >= BATCH {
            self.flush().await?;
        }
        Ok(())
    }

    fn version(&self, package: Package) -> own::PackageVersion {
        own::PackageVersion {
            ecosystem: self.ecosystem as i32,
            name: package.name,
            version: package.version,
            source: self.source as i32,
            description: package.description,
            license: package.license,
            publish_time: None,
            files: package.files.into_iter().map(file).collect(),
            npm_manifest: package.manifest,
            npm_file_count: i64::try_from(package.file_count).unwrap_or(i64::MAX),
        }
    }

    /// Tells the server what was gathered. It takes a batch as a whole or not at all: one that it calls wrong is halved
    /// until nothing but the version is left out that is to blame.
    async fn flush(&mut self) -> Result<(), CliError> {
        let versions: Vec<_> = std::mem::take(&mut self.batch).into_values().collect();
        if versions.is_empty() {
            return Ok(());
        }
        let mut parts = vec![versions];
        while let Some(versions) = parts.pop() {
            let mut request = own::ImportVersionsRequest { versions, dry_run: self.dry_run };
            match self.api.call::<ImportVersions>(&request).await {
                Ok(answer) => answer.outcomes().for_each(|outcome| self.report.count(outcome)),
                Err(error) if error.is_invalid_argument() => match request.versions.as_slice() {
                    [version] => self.report.refuse(version, &error.to_string()),
                    versions => {
                        let half = versions.len() / 2;
                        parts.push(request.versions.split_off(half));
                        parts.push(request.versions);
                    }
                },
                Err(error) => return Err(error.into()),
            }
        }
        let Report { created, updated, unchanged, .. } = &self.report;
        say(&format!("{} versions so far, {created} of them new\n", created + updated + unchanged));
        Ok(())
    }
}

fn file(facts: FileFacts) -> own::PackageFile {
    own::PackageFile {
        name: facts.name,
        size_bytes: i64::try_from(facts.size_bytes).unwrap_or(i64::MAX),
        sha256: facts.sha256,
        sha512: facts.sha512,
    }
}

/// What became of a directory.
#[derive(Default)]
struct Report {
    created: usize,
    updated: usize,
    unchanged: usize,
    files: usize,
    skipped: usize,
    foreign: usize,
}

impl Report {
    fn count(&mut self, outcome: own::ImportOutcome) {
        match outcome {
            own::ImportOutcome::Created => self.created += 1,
            own::ImportOutcome::Updated => self.updated += 1,
            own::ImportOutcome::Unchanged | own::ImportOutcome::Unspecified => self.unchanged += 1,
        }
    }

    fn skip(&mut self, directory: &Path, path: &Path, reason: &str) {
        self.skipped += 1;
        Report::tell(&path.strip_prefix(directory).unwrap_or(path).display().to_string(), reason);
    }

    /// The server does not take this version.
    fn refuse(&mut self, version: &own::PackageVersion, reason: &str) {
        self.skipped += version.files.len().max(1);
        Report::tell(&format!("{} {}", version.name, version.version), reason);
    }

    fn tell(what: &str, reason: &str) {
        // Names in archives are not to steer the terminal.
        let plain = |text: &str| text.replace(|c: char| c.is_control(), " ");
        say(&format!("skipped: {}: {}\n", plain(what), plain(reason)));
    }

    fn table(&self) -> Table {
        let mut table = Table::new(&["created", "updated", "unchanged", "files", "skipped", "other files"]);
        let numbers = [self.created, self.updated, self.unchanged, self.files, self.skipped, self.foreign];
        table.push(numbers.map(|number| number.to_string()));
        table
    }
}
