//! `bowline libraries`: packages of language ecosystems, and what organizations may do with them.

mod bindings;
mod blocked;
mod cache;
mod catalogue;
mod check;
mod configure;
mod configure_keyring;
mod doctor;
mod download;
mod entitlements;
mod import;
mod javascript_lock_files;
mod lock_files;
mod malware;
mod policies;
mod provenance;
mod publish;
mod publish_files;
mod why;
mod why_dependencies;

use bowline_contract::v1::libraries as v1;
use bowline_terminal::Work;
use clap::{Subcommand, ValueEnum};

use crate::error::CliError;
use crate::resources::{self, Generated, Libraries};

/// `bowline libraries`.
#[derive(Subcommand)]
pub enum LibrariesCommand {
    /// List packages
    Artifacts(catalogue::ArtifactsCommand),
    /// List the versions of a package, the highest first
    Versions(catalogue::VersionsCommand),
    /// Entitlements of an organization to ecosystems
    #[command(subcommand)]
    Entitlements(entitlements::EntitlementsCommand),
    /// Policies for downloads
    #[command(subcommand)]
    Policies(policies::PoliciesCommand),
    /// Bindings of policies to ecosystems
    #[command(subcommand)]
    Bindings(bindings::BindingsCommand),
    /// List downloads that policies refused, the latest first
    Blocked(blocked::BlockedCommand),
    /// Packages that are blocked as malicious
    #[command(subcommand)]
    Malware(malware::MalwareCommand),
    /// The resolution cache: the tiers that versions were served from
    #[command(subcommand)]
    Cache(cache::CacheCommand),
    /// Import the packages of a directory into the catalogue (operator)
    Import(import::ImportCommand),
    /// Files with which installers and publishers use the package hosts
    #[command(subcommand)]
    Configure(configure::ConfigureCommand),
    /// Publish packages of ecosystems whose clients do not
    #[command(subcommand)]
    Publish(publish::PublishCommand),
    /// Download generic files of a version, and verify their digests
    Download(download::DownloadCommand),
    /// Show the signed statements about a version, and who signed them
    Provenance(provenance::ProvenanceCommand),
    /// Show what the policy in force would refuse of a lock file; fails if that is anything
    Check(check::CheckCommand),
    /// Show where a project gets packages past the package hosts; fails if anywhere
    Doctor(doctor::DoctorCommand),
    /// Show whether an organization may download a version of a package, and why not
    Why(why::WhyCommand),
    #[command(flatten)]
    Generated(Generated<Libraries>),
}

/// Runs `bowline libraries`.
pub fn run(command: LibrariesCommand) -> Work<CliError> {
    Box::pin(execute(command))
}

async fn execute(command: LibrariesCommand) -> Result<(), CliError> {
    match command {
        LibrariesCommand::Artifacts(command) => catalogue::artifacts(command).await,
        LibrariesCommand::Versions(command) => catalogue::versions(command).await,
        LibrariesCommand::Entitlements(command) => entitlements::run(command).await,
        LibrariesCommand::Policies(command) => policies::run(command).await,
        LibrariesCommand::Bindings(command) => bindings::run(command).await,
        LibrariesCommand::Blocked(command) => blocked::run(command).await,
        LibrariesCommand::Malware(command) => malware::run(command).await,
        LibrariesCommand::Cache(command) => cache::run(command).await,
        LibrariesCommand::Import(command) => import::run(command).await,
        LibrariesCommand::Configure(command) => configure::run(command).await,
        LibrariesCommand::Publish(command) => publish::run(command).await,
        LibrariesCommand::Download(command) => download::run(command).await,
        LibrariesCommand::Provenance(command) => provenance::run(command).await,
        LibrariesCommand::Check(command) => check::run(command).await,
        LibrariesCommand::Doctor(command) => doctor::run(command),
        LibrariesCommand::Why(command) => why::run(command).await,
        LibrariesCommand::Generated(command) => resources::run(command).await,
    }
}

/// An ecosystem, as people write it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Ecosystem {
    Java,
    Python,
    #[value(name = "javascript", alias = "npm")]
    JavaScript,
    Go,
    Cargo,
}

/// Why crates are no part of requests that the wire contract defines.
const NO_CRATES: &str = "crates have no entitlements, bindings, catalogue or resolution cache: `bowline libraries cargo-policies` \
                         sets and shows their policies, and lists what those refused";

impl Ecosystem {
    /// The ecosystem in the wire contract.
    ///
    /// # Errors
    /// The contract does not have it.
    fn wire(self) -> Result<v1::Ecosystem, CliError> {
        match self {
            Ecosystem::Java => Ok(v1::Ecosystem::Java),
            Ecosystem::Python => Ok(v1::Ecosystem::Python),
            Ecosystem::JavaScript => Ok(v1::Ecosystem::Javascript),
            Ecosystem::Go => Ok(v1::Ecosystem::Go),
            Ecosystem::Cargo => Err(CliError::Option(NO_CRATES.into())),
        }
    }
}

/// The number that a filter of the wire contract has: zero for all ecosystems.
fn wire_number(ecosystem: Option<Ecosystem>) -> Result<i32, CliError> {
    ecosystem.map_or(Ok(0), |ecosystem| ecosystem.wire().map(|wire| wire as i32))
}

/// What a binding does, as people write it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Mode {
    /// Refuse
    Enforced,
    /// Serve, and record what would have been refused
    Log,
}

impl Mode {
    fn wire(self) -> v1::LibraryPolicyBindingMode {
        match self {
            Mode::Enforced => v1::LibraryPolicyBindingMode::Enforced,
            Mode::Log => v1::LibraryPolicyBindingMode::Log,
        }
    }
}

fn ecosystem_name(number: i32) -> String {
    v1::Ecosystem::try_from(number).unwrap_or_default().as_str_name().to_lowercase()
}

fn mode_name(number: i32) -> String {
    let name = v1::LibraryPolicyBindingMode::try_from(number).unwrap_or_default().as_str_name();
    name.trim_start_matches("LIBRARY_POLICY_BINDING_MODE_").to_lowercase()
}
