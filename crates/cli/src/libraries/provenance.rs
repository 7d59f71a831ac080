//! `bowline libraries provenance`: the signed statements about a version that a group published, or that an upstream has.
//!
//! Package hosts verify them while a file is published, and those of upstreams when they serve them. What pages of projects
//! name as addresses is not followed: each address is made here, so that the token goes to the package hosts alone.

use bowline_client::{ClientError, FileStatement, LazyClient, get_document};
use bowline_formats::percent::{self, NOT_UNRESERVED};
use bowline_formats::purl::PackageUrl;
use bowline_osv::{Affects, Event, Range, RangeKind, VersionQuery};
use bowline_packages::version_of_file;
use bowline_terminal::{Output, Table, public_url};
use clap::Args;
use serde_json::Value;

use super::configure::scope;
use crate::error::CliError;
use crate::print;
use crate::session::Access;

/// `bowline libraries provenance`.
#[derive(Args)]
pub struct ProvenanceCommand {
    #[command(flatten)]
    access: Access,
    /// Package URL with a version, such as pkg:pypi/app@1.0 or pkg:npm/%40acme/app@1.0.0
    #[arg(value_name = "PURL")]
    purl: String,
    /// Address of the package hosts [default: /libraries of the API]
    #[arg(long, value_name = "URL")]
    libraries_url: Option<String>,
    /// Group that published it or takes it from an upstream, by path or UIDP [default: the organization of the account]
    #[arg(long, value_name = "GROUP", value_parser = scope)]
    group: Option<String>,
    /// File of the version [default: all that have statements]
    #[arg(long, value_name = "NAME")]
    file: Option<String>,
    /// Print one statement as a bundle of Sigstore: the provenance of the build, else the first
    #[arg(long, conflicts_with = "output")]
    bundle: bool,
    #[command(flatten)]
    output: Output,
}

/// Maximum bytes of the page of a project, which names the files of all versions.
const PAGE_BYTES: usize = 64 << 20;
/// Maximum bytes of a document with the statements about a file.
const STATEMENT_BYTES: usize = 4 << 20;
/// How the type of each kind of provenance begins.
const PROVENANCE: &str = "https://slsa.dev/provenance/";
/// What stands in place of a signer that the server did not verify.
const NOT_VERIFIED: &str = "not verified";
/// Media types of the documents that package hosts serve.
const PAGE: &str = "application/vnd.pypi.simple.v1+json";
const INTEGRITY: &str = "application/vnd.pypi.integrity.v1+json";
const BUNDLE: &str = "application/vnd.dev.sigstore.bundle.v0.3+json";
const JSON: &str = "application/json";

/// Prints the statements about a version, or one of them as a bundle.
///
/// # Errors
/// The package URL names no version of Python or npm, the server refuses, or there is no statement.
pub(super) async fn run(command: ProvenanceCommand) -> Result<(), CliError> {
    let version = PublishedVersion::parse(&command.purl)?;
    let file = command.file.as_deref();
    version.require_file(file)?;
    let session = command.access.session()?;
    let url = match &command.libraries_url {
        Some(url) => public_url("libraries-url", url)?,
        None => format!("{}/libraries", session.api),
    };
    let libraries = url.trim_end_matches('/');
    let scope = command.group.as_ref().map(|scope| format!("/{scope}")).unwrap_or_default();
    let host = HostReader {
        base: format!("{libraries}/{}{scope}", version.word()),
        token: session.token(libraries).await?,
        http: session.http.clone(),
    };
    if command.bundle {
        let bundle = version.bundle(&host, file).await?;
        return print(&format!("{bundle:#}\n"));
    }
    let statements = version.statements(&host, file).await?;
    if statements.is_empty() {
        return Err(version.not_attested());
    }
    print(&command.output.list(&table(statements))?)
}

/// A line for each file and statement.
fn table(statements: Vec<(String, FileStatement)>) -> Table {
    let mut table = Table::new(&["file", "statement", "signer", "issuer", "source"]);
    for (file, FileStatement { predicate_type, signer }) in statements {
        let (signer, issuer, source) = match signer {
            None => (NOT_VERIFIED.to_owned(), String::new(), String::new()),
            Some(signer) => (signer.identity, signer.issuer, signer.source_repository),
        };
        table.push([file, predicate_type, signer, issuer, source]);
    }
    table
}

/// A package host at a group, as the holder of a token for libraries.
struct HostReader {
    http: LazyClient,
    /// Address of the host with the group, without a slash at its end.
    base: String,
    token: String,
}

impl HostReader {
    /// The document at a path below the host.
    async fn get(&self, path: &str, media_type: &str, most: usize) -> Result<Value, ClientError> {
        get_document(&self.http, &format!("{}/{path}", self.base), &self.token, media_type, most).await
    }
}

/// A version of a package, in an ecosystem whose package host serves statements.
#[derive(Debug, PartialEq, Eq)]
enum PublishedVersion {
    Python { project: String, version: String },
    Npm { name: String, version: String },
}

impl PublishedVersion {
    /// The version that a package URL names.
    fn parse(text: &str) -> Result<PublishedVersion, CliError> {
        let refused = |why: String| CliError::Option(format!("{text} {why}"));
        let purl = PackageUrl::parse(text).map_err(|error| refused(format!("is no package URL: {error}")))?;
        let PackageUrl { kind, namespace, name, version, .. } = purl;
        let parsed = match kind.as_str() {
            "pypi" if namespace.is_empty() => PublishedVersion::Python { project: normalized(&name), version },
            "pypi" => return Err(refused("has a namespace, which projects of Python do not have".into())),
            "npm" => {
                let name = namespace.into_iter().chain([name]).collect::<Vec<_>>().join("/");
                PublishedVersion::Npm { name, version }
            }
            _ => {
                return Err(refused(
                    "must begin with pkg:pypi/ or pkg:npm/; statements of Java lie beside their file, as FILE.sigstore.json"
                        .into(),
                ));
            }
        };
        if parsed.version().is_empty() {
            return Err(refused("has no version: append one, such as @1.0".into()));
        }
        Ok(parsed)
    }

    fn version(&self) -> &str {
        match self {
            PublishedVersion::Python { version, .. } | PublishedVersion::Npm { version, .. } => version,
        }
    }

    /// The word that addresses of the package host begin with.
    fn word(&self) -> &'static str {
        match self {
            PublishedVersion::Python { .. } => "python",
            PublishedVersion::Npm { .. } => "javascript",
        }
    }

    /// Refuses another file than the one that a version of npm has.
    fn require_file(&self, file: Option<&str>) -> Result<(), CliError> {
        match (self, file) {
            (PublishedVersion::Npm { name, version }, Some(file)) if file != tarball(name, version) => {
                let text = format!("the version has one file, {}: leave --file out", tarball(name, version));
                Err(CliError::Option(text))
            }
            _ => Ok(()),
        }
    }

    /// The statements with the file that each is about.
    async fn statements(
        &self,
        host: &HostReader,
        file: Option<&str>,
    ) -> Result<Vec<(String, FileStatement)>, CliError> {
        let (project, version) = match self {
            PublishedVersion::Python { project, version } => (project, version),
            PublishedVersion::Npm { name, version } => {
                let document = self.get(host, &attestations_path(name, version), JSON).await?;
                let statements = FileStatement::of_npm(&document)?;
                return Ok(statements.into_iter().map(|statement| (tarball(name, version), statement)).collect());
            }
        };
        let mut statements = Vec::new();
        for file in self.files(host, project, version, file).await? {
            let path = integrity_path(project, version, &file, "provenance");
            let document = self.get(host, &path, INTEGRITY).await?;
            statements
                .extend(FileStatement::of_python(&document)?.into_iter().map(|statement| (file.clone(), statement)));
        }
        Ok(statements)
    }

    /// One statement as a bundle of Sigstore: the provenance of the build, else the first.
    async fn bundle(&self, host: &HostReader, file: Option<&str>) -> Result<Value, CliError> {
        match self {
            PublishedVersion::Npm { name, version } => {
                let document = self.get(host, &attestations_path(name, version), JSON).await?;
                npm_bundle(&document).cloned().ok_or_else(|| self.not_attested())
            }
            PublishedVersion::Python { project, version } => {
                let files = self.files(host, project, version, file).await?;
                match files.as_slice() {
                    [] => Err(self.not_attested()),
                    [file] => self.get(host, &integrity_path(project, version, file, "bundle.json"), BUNDLE).await,
                    several => {
                        let names = several.join(", ");
                        Err(CliError::Option(format!(
                            "several files of the version have statements: name one with --file: {names}"
                        )))
                    }
                }
            }
        }
    }

    /// The file that was named, or all files of a version of Python that have statements.
    async fn files(
        &self,
        host: &HostReader,
        project: &str,
        version: &str,
        file: Option<&str>,
    ) -> Result<Vec<String>, CliError> {
        if let Some(file) = file {
            return Ok(vec![file.to_owned()]);
        }
        let path = format!("simple/{}/", percent::encode(project, NOT_UNRESERVED));
        let page = host.get(&path, PAGE, PAGE_BYTES).await.map_err(|error| self.absent(error))?;
        let unreadable = || ClientError::Transport("the response is no page of a project".into());
        Ok(attested_files(&page, version).ok_or_else(unreadable)?)
    }

    async fn get(&self, host: &HostReader, path: &str, media_type: &str) -> Result<Value, CliError> {
        host.get(path, media_type, STATEMENT_BYTES).await.map_err(|error| self.absent(error))
    }

    /// An error of the package host; where something is absent, with what to do about it.
    fn absent(&self, error: ClientError) -> CliError {
        if error.is_absent() {
            CliError::NotAttested { message: error.to_string(), hint: self.hint() }
        } else {
            error.into()
        }
    }

    fn not_attested(&self) -> CliError {
        let (name, version) = match self {
            PublishedVersion::Python { project, version } => (project, version),
            PublishedVersion::Npm { name, version } => (name, version),
        };
        CliError::NotAttested { message: format!("{name} {version} has no signed statements here"), hint: self.hint() }
    }

    /// How statements come, and what else could be meant.
    fn hint(&self) -> &'static str {
        match self {
            PublishedVersion::Python { .. } => {
                "statements come with the file, or from its upstream: publish a version with its attestations beside it, by \
                 `uv publish dist/*`; --group names another group"
            }
            PublishedVersion::Npm { .. } => {
                "statements come with the version, or from its upstream: publish one with `npm publish --provenance`; --group \
                 names another group"
            }
        }
    }
}

/// The name of a project as addresses have it (PEP 503).
fn normalized(name: &str) -> String {
    let parts: Vec<&str> = name.split(['-', '_', '.']).filter(|part| !part.is_empty()).collect();
    parts.join("-").to_lowercase()
}

/// The name of the one file of a version of npm.
fn tarball(name: &str, version: &str) -> String {
    format!("{}-{version}.tgz", name.rsplit('/').next().unwrap_or(name))
}

/// Where the statements about a version of npm are, below the package host.
fn attestations_path(name: &str, version: &str) -> String {
    format!("-/npm/v1/attestations/{}", percent::encode(&format!("{name}@{version}"), NOT_UNRESERVED))
}

/// Where the statements about a file of Python are, below the package host.
fn integrity_path(project: &str, version: &str, file: &str, document: &str) -> String {
    let [project, version, file] = [project, version, file].map(|part| percent::encode(part, NOT_UNRESERVED));
    format!("integrity/{project}/{version}/{file}/{document}")
}

/// The files of a version that have statements, by the page of the project; absent if it is no such page.
fn attested_files(page: &Value, version: &str) -> Option<Vec<String>> {
    let query = VersionQuery::new("PyPI", Some(version));
    // Two spellings are of one version if one is in the range that begins and ends with the other.
    let is_same = |other: String| {
        let events = vec![Event::Introduced(other.clone()), Event::LastAffected(other.clone())];
        let range = Range { kind: RangeKind::Ecosystem, repo: None, events };
        other == version || query.is_in(&Affects::range("PyPI", &range))
    };
    let name = |file: &Value| {
        let name = file["filename"].as_str()?;
        let is_plain = name.bytes().all(|byte| byte.is_ascii_graphic());
        let is_attested = is_plain && file["provenance"].is_string();
        // Names of files have no dash in a version.
        (is_attested && is_same(version_of_file(name)?.replace('_', "-"))).then(|| name.to_owned())
    };
    Some(page["files"].as_array()?.iter().filter_map(name).collect())
}

/// The bundle of the provenance in a document of npm, else its first.
fn npm_bundle(document: &Value) -> Option<&Value> {
    let attestations = document["attestations"].as_array()?;
    let is_provenance = |one: &&Value| one["predicateType"].as_str().is_some_and(|kind| kind.starts_with(PROVENANCE));
    let chosen = attestations.iter().find(is_provenance).or(attestations.first())?;
    chosen.get("bundle")
}

#[cfg(test)]
#[path = "provenance_tests.rs"]
mod tests;
