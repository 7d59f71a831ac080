//! Signed statements about files that groups published, such as how a file was built.
//!
//! The front verifies them while a file is published. They come and go with their file, and do not change.

use std::collections::{HashMap, HashSet};

use bowline_contract::bowline::libraries::v1::HostedAttestation;
use bowline_core::{Error, Micros, Reason, Result, Uidp};
use bowline_registry::trusted_root::CertifiedSigner;
use bowline_store::{ReadTx, Row, Value, WriteTx};

use super::package::{Which, hosted, repository};
use super::protocols::Protocol;
use super::publishing::NewFile;
use super::upstream_statements::{self, UpstreamStatements};
use super::views::View;
use super::{FileName, HostClient, HostError, Hosting, Lookup};

/// How the type of each kind of provenance begins.
const PROVENANCE: &str = "https://slsa.dev/provenance/";

/// A statement that came with a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileAttestation {
    /// What kind of statement it is, such as `https://slsa.dev/provenance/v1`.
    pub predicate_type: String,
    /// The JSON that was sent, in one spelling.
    pub document: String,
    /// Who signed it; absent if it was not verified.
    pub signer: Option<CertifiedSigner>,
    /// SHA-256 of the file beside it, if the file that it came with is a signature of that; else empty.
    pub subject_sha256: String,
}

impl FileAttestation {
    /// Whether it says how the file was built.
    pub fn is_provenance(&self) -> bool {
        is_provenance(&self.predicate_type)
    }

    /// As the audit log and the event have it.
    pub(super) fn shown(&self) -> HostedAttestation {
        let predicate_type = self.predicate_type.clone();
        match self.signer.clone() {
            None => HostedAttestation { predicate_type, ..HostedAttestation::default() },
            Some(CertifiedSigner { identity, issuer, source_repository, build_config: _ }) => {
                HostedAttestation { predicate_type, verified: true, identity, issuer, source_repository }
            }
        }
    }

    fn read(row: &Row<'_>) -> Result<FileAttestation> {
        let (source_repository, build_config) = (row.text(4)?, row.text(5)?);
        let signer = row.opt_text(2)?.zip(row.opt_text(3)?);
        let signer =
            signer.map(|(identity, issuer)| CertifiedSigner { identity, issuer, source_repository, build_config });
        let (predicate_type, document, subject_sha256) = (row.text(0)?, row.text(1)?, row.text(6)?);
        Ok(FileAttestation { predicate_type, document, signer, subject_sha256 })
    }
}

fn is_provenance(predicate_type: &str) -> bool {
    predicate_type.starts_with(PROVENANCE)
}

/// Statements about a file, by where that comes from.
#[derive(Debug)]
pub enum Attestations {
    /// Of a file that a group published, by predicate type.
    Hosted(Vec<FileAttestation>),
    /// Of a file of an upstream, which says so.
    Upstream(UpstreamStatements),
}

impl Hosting {
    /// The statements about a file of a version of a view. No policy withholds them.
    ///
    /// # Errors
    /// The caller may not read there, there are none, or the upstream of the package cannot be asked.
    pub async fn attestations<P: Protocol>(
        &self,
        client: &HostClient,
        path: Option<&str>,
        (package, version, file): (&str, &str, &str),
    ) -> std::result::Result<Lookup<Attestations>, HostError> {
        let named = FileName { name: file.into(), digest: None };
        let package = P::LANGUAGE.normalized(package);
        let of = (self.clone(), client.clone(), path.map(str::to_owned), package, version.to_owned(), named);
        let read = self.pipeline.db.read(move |tx| {
            let (hosting, client, path, package, version, named) = of.clone();
            Box::pin(async move {
                let view = View::open::<P>(tx, &client, path.as_deref()).await?;
                let Some(repository) = repository(tx, &view, &package).await? else {
                    return upstream_statements::find::<P>(
                        tx,
                        &hosting,
                        &view,
                        (&package, &version, &named),
                        client.now(),
                    )
                    .await;
                };
                let absent = || absent(&named.name, &package, &version);
                let found = hosted(tx, &repository.uid, &package, Which::Named(&named.name)).await?;
                let file = found
                    .file(&named)
                    .filter(|file| P::LANGUAGE.is_same_version(&file.version, &version) && file.is_of(view.moment));
                let found = of_file(tx, &repository.uid, &found.name, &file.ok_or_else(absent)?.name).await?;
                if found.is_empty() { Err(absent().into()) } else { Ok(Lookup::Here(Attestations::Hosted(found))) }
            })
        });
        read.await
    }
}

/// The refusal where a file has no statements.
pub(super) fn absent(file: &str, package: &str, version: &str) -> Error {
    Error::new(Reason::NotFound, format!("{file} of {package} {version} has no attestations here"))
}

async fn of_file(tx: &mut ReadTx, repository: &Uidp, package: &str, file: &str) -> Result<Vec<FileAttestation>> {
    let sql = "SELECT predicate_type, document, identity, issuer, source_repository, build_config, subject_sha256
         FROM hosted_attestations
               WHERE repository = $1 AND package = $2 AND file = $3 ORDER BY predicate_type";
    tx.query(sql, &[Value::from(repository.as_str()), Value::from(package), Value::from(file)], FileAttestation::read)
        .await
}

/// The files of a package that have statements.
pub(super) async fn attested_files(tx: &mut ReadTx, repository: &Uidp, package: &str) -> Result<HashSet<String>> {
    let sql = "SELECT DISTINCT file FROM hosted_attestations WHERE repository = $1 AND package = $2";
    let params = [Value::from(repository.as_str()), Value::from(package)];
    let rows = tx.query(sql, &params, |row| row.text(0).map_err(Error::from)).await?;
    Ok(rows.into_iter().collect())
}

/// The files of a package that have verified provenance, each with its predicate type. Clients of npm take what a document names
/// for trust, and verify it not at all or later.
pub(super) async fn verified_provenance(
    tx: &mut ReadTx,
    repository: &Uidp,
    package: &str,
) -> Result<HashMap<String, String>> {
    let sql = "SELECT file, predicate_type FROM hosted_attestations
               WHERE repository = $1 AND package = $2 AND identity IS NOT NULL";
    let read = |row: &Row<'_>| Ok::<_, Error>((row.text(0)?, row.text(1)?));
    let rows = tx.query(sql, &[Value::from(repository.as_str()), Value::from(package)], read).await?;
    Ok(rows.into_iter().filter(|(_, predicate_type)| is_provenance(predicate_type)).collect())
}

/// Stores the statements about a new file.
pub(super) async fn insert(
    tx: &mut WriteTx,
    repository: &Uidp,
    (file, sort_key): (&NewFile, &[u8]),
    now: Micros,
) -> Result<()> {
    let sql =
        "INSERT INTO hosted_attestations (repository, package, file, predicate_type, sort_key, document, identity,
                                                issuer, source_repository, build_config, created_at, subject_sha256)
               VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)";
    for attestation in &file.attestations {
        let of_signer = |text: fn(&CertifiedSigner) -> &str| attestation.signer.as_ref().map(text);
        let params = [
            Value::from(repository.as_str()),
            Value::from(&file.package),
            Value::from(&file.name),
            Value::from(&attestation.predicate_type),
            Value::from(sort_key),
            Value::from(&attestation.document),
            Value::OptText(of_signer(|signer| &signer.identity)),
            Value::OptText(of_signer(|signer| &signer.issuer)),
            Value::from(of_signer(|signer| &signer.source_repository).unwrap_or_default()),
            Value::from(of_signer(|signer| &signer.build_config).unwrap_or_default()),
            Value::Int(now),
            Value::from(&attestation.subject_sha256),
        ];
        tx.execute(sql, &params).await?;
    }
    Ok(())
}

/// Refuses statements about a file that is there without them, or with them unverified: who sends them expects them to be there.
pub(super) async fn require_stored(tx: &mut WriteTx, repository: &Uidp, file: &NewFile) -> Result<()> {
    if file.attestations.is_empty() {
        return Ok(());
    }
    let stored = of_file(tx, repository, &file.package, &file.name).await?;
    let is_as_good = |old: &FileAttestation, new: &FileAttestation| old.signer.is_some() || new.signer.is_none();
    let is_stored =
        |new: &FileAttestation| stored.iter().any(|old| old.document == new.document && is_as_good(old, new));
    if file.attestations.iter().all(is_stored) {
        return Ok(());
    }
    let text = format!(
        "{} already exists without these attestations, or with unverified ones: publish another version",
        file.name
    );
    Err(Error::new(Reason::AlreadyExists, text))
}
