//! Statements about vulnerabilities in files: into a group of the server, and out of it.

mod convert;
mod documents;
mod export;
mod files;
mod import;
mod records;
mod report;
mod sending;
mod tree;
mod unconvert;

use bowline_feeds::{ReadFormat, WriteFormat};
use clap::Subcommand;

pub(crate) use export::Kind;
pub(super) use files::documents;
pub(super) use tree::Tree;

use super::rustsec;
use crate::error::CliError;

/// Formats that statements are read from.
#[derive(Subcommand)]
pub enum ImportFormat {
    /// Security databases in Alpine's form, as JSON or YAML
    Secdb(Box<import::ImportCommand>),
    /// OpenVEX 0.2.0
    Openvex(Box<import::ImportCommand>),
    /// CSAF 2.0 and 2.1, statements about products
    Csaf(Box<import::ImportCommand>),
    /// CycloneDX 1.4 to 1.7, vulnerabilities with an analysis
    Cyclonedx(Box<import::ImportCommand>),
    /// The JSON output of Grype: findings to review
    Grype(Box<import::ImportCommand>),
    /// The JSON output of Trivy: findings to review
    Trivy(Box<import::ImportCommand>),
    /// Bowline's own form
    Yaml(Box<import::ImportCommand>),
}

/// Formats that statements are written in.
#[derive(Subcommand)]
pub enum ExportFormat {
    /// A security database in Alpine's form
    Secdb(Box<export::ExportCommand>),
    /// OpenVEX 0.2.0, a document for each artifact, with the index of a repository of such
    Openvex(Box<export::ExportCommand>),
    /// CSAF 2.0, a document for each artifact, with the metadata of a provider
    Csaf(Box<export::ExportCommand>),
    /// CycloneDX 1.6, a document for each artifact
    Cyclonedx(Box<export::ExportCommand>),
    /// Records in OSV shape: an archive and an index for each ecosystem
    Osv(Box<export::ExportCommand>),
    /// Bowline's own form, a document for each artifact
    Yaml(Box<export::ExportCommand>),
    /// Imported records about crates as a RustSec database, for cargo audit
    Rustsec(Box<rustsec::ExportCommand>),
}

/// `bowline feeds import FORMAT`.
pub(crate) async fn import(format: ImportFormat) -> Result<(), CliError> {
    let (format, command) = match format {
        ImportFormat::Secdb(command) => (ReadFormat::Secdb, command),
        ImportFormat::Openvex(command) => (ReadFormat::OpenVex, command),
        ImportFormat::Csaf(command) => (ReadFormat::Csaf, command),
        ImportFormat::Cyclonedx(command) => (ReadFormat::CycloneDx, command),
        ImportFormat::Grype(command) => (ReadFormat::Grype, command),
        ImportFormat::Trivy(command) => (ReadFormat::Trivy, command),
        ImportFormat::Yaml(command) => (ReadFormat::Yaml, command),
    };
    import::run(format, *command).await
}

/// `bowline feeds export FORMAT`.
pub(crate) async fn export(format: ExportFormat) -> Result<(), CliError> {
    let (kind, command) = match format {
        ExportFormat::Secdb(command) => (Kind::Secdb, command),
        ExportFormat::Openvex(command) => (Kind::Documents(WriteFormat::OpenVex), command),
        ExportFormat::Csaf(command) => (Kind::Documents(WriteFormat::Csaf), command),
        ExportFormat::Cyclonedx(command) => (Kind::Documents(WriteFormat::CycloneDx), command),
        ExportFormat::Osv(command) => (Kind::Osv, command),
        ExportFormat::Yaml(command) => (Kind::Documents(WriteFormat::Yaml), command),
        ExportFormat::Rustsec(command) => return rustsec::export(*command).await,
    };
    export::run(kind, *command).await
}
