//! Reports of scanners: taken in, understood, and kept beside what was understood of them.

mod bounds;
mod grype;
pub(super) mod parse;
mod trivy;

use std::collections::BTreeSet;

use bowline_contract::bowline::registry::v1 as own;
use bowline_contract::bowline::registry::v1::rpc::scan_reports::PutScanReport;
use bowline_core::{Error, Micros, Result, Uidp};
use bowline_pipeline::{Authorized, Changed, Handlers};
use bowline_resources::kinds::SCAN_REPORT;
use bowline_resources::list::timestamp;
use bowline_store::{ReadTx, Value, WriteTx};

use self::parse::Report;
use super::images;

pub(crate) fn register(handlers: Handlers) -> Handlers {
    handlers.prepared_write::<PutScanReport, _>(prepare, |tx, call, prepared| Box::pin(put(tx, call, prepared)))
}

/// Maximum bytes of a report.
const MAX_BYTES: usize = 32 << 20;
/// Maximum number of stored reports of a manifest.
const MAX_REPORTS: i64 = 50;

/// A report, ready to be stored.
struct Prepared {
    digest: String,
    /// Digests of the image that was scanned, if the report says them.
    scanned: Vec<String>,
    scanner: i32,
    scanner_version: String,
    /// When the scanner's database was built.
    built: Option<Micros>,
    /// JSON: what was understood, and what is counted.
    findings: String,
    summary: String,
    vulnerabilities: usize,
    raw: String,
}

fn prepare(request: own::PutScanReportRequest) -> Result<Prepared> {
    let refuse = |description: String| Error::invalid_field("report", description);
    if request.report.len() > MAX_BYTES {
        return Err(refuse(format!("has {} bytes; at most {MAX_BYTES} are stored", request.report.len())));
    }
    let report = match request.scanner() {
        own::ScannerName::Grype => grype::report(&request.report),
        own::ScannerName::Trivy => trivy::report(&request.report),
        own::ScannerName::Unspecified => return Err(Error::invalid_field("scanner", "must be GRYPE or TRIVY")),
    };
    let report = report.map_err(refuse)?;
    if report.scanner_version.contains('\0') {
        return Err(refuse("has a NUL character in the version of the scanner".into()));
    }
    let summary = report.summary();
    Ok(Prepared {
        built: database_built(&report)?,
        findings: serde_json::to_string(&report.findings).map_err(Error::internal)?,
        vulnerabilities: summary.values().map(BTreeSet::len).sum(),
        summary: serde_json::to_string(&summary).map_err(Error::internal)?,
        raw: String::from_utf8(request.report).map_err(|_| refuse("is not UTF-8".into()))?,
        digest: request.digest,
        scanned: report.scanned,
        scanner: request.scanner,
        scanner_version: report.scanner_version,
    })
}

async fn put(tx: &mut WriteTx, call: &Authorized<()>, prepared: &Prepared) -> Result<Changed<own::ScanReport>> {
    let repo = call.require_scope()?;
    let manifest = images::require(tx, repo, &prepared.digest).await?;
    require_scanned(tx, &manifest.digest, &prepared.scanned).await?;
    let at = moment(tx, repo, &manifest.digest, call.now()).await?;
    insert(tx, repo, at, prepared).await?;
    forget_old(tx, repo, &manifest.digest).await?;
    let stored = own::ScanReport {
        repo_uid: repo.as_str().into(),
        digest: manifest.digest,
        scanner: prepared.scanner,
        scanner_version: prepared.scanner_version.clone(),
        database_build_time: prepared.built.and_then(timestamp),
        create_time: timestamp(at),
        vulnerabilities: i32::try_from(prepared.vulnerabilities).unwrap_or(i32::MAX),
    };
    Ok(Changed::one(SCAN_REPORT, repo, None, Some(&stored), stored.clone()).with_event(repo, &stored))
}

/// A tag may have moved since the scan, and a report of another image would make this one look clean. One that names no
/// digest, as of a directory or a list of packages, is taken as it is.
async fn require_scanned(tx: &mut ReadTx, manifest: &str, scanned: &[String]) -> Result<()> {
    let Some(first) = scanned.first() else { return Ok(()) };
    // The config of an image, and of an index its images and their configs.
    let sql = "SELECT f.digest FROM manifest_references f WHERE f.manifest = $1 AND f.kind IN (1, 3)
               UNION ALL
               SELECT g.digest FROM manifest_references f JOIN manifest_references g ON g.manifest = f.digest
               WHERE f.manifest = $1 AND f.kind = 3 AND g.kind = 1";
    let parts: Vec<String> = tx.query(sql, &[Value::from(manifest)], |row| row.text(0).map_err(Error::from)).await?;
    if scanned.iter().any(|digest| digest == manifest || parts.contains(digest)) {
        return Ok(());
    }
    let description =
        format!("is of {first}, not of {manifest}: give the digest of what was scanned, or scan this one");
    Err(Error::invalid_field("report", description))
}

fn database_built(report: &Report) -> Result<Option<Micros>> {
    if report.database_built.is_empty() {
        return Ok(None);
    }
    let time: prost_types::Timestamp = report
        .database_built
        .parse()
        .map_err(|_| Error::invalid_field("report", "has no RFC 3339 time where its database was built"))?;
    Ok(Some(bowline_resources::list::micros(time)))
}

/// Now, or right after the newest report of the manifest: each has a time of its own.
async fn moment(tx: &mut WriteTx, repo: &Uidp, digest: &str, now: Micros) -> Result<Micros> {
    let by_digest = tx.index_hint("scan_reports_by_digest");
    let sql = format!("SELECT max(created_at) FROM scan_reports {by_digest} WHERE repo = $1 AND digest = $2");
    let params = [Value::from(repo.as_str()), Value::from(digest)];
    let newest = tx.query_opt(&sql, &params, |row| row.opt_int(0).map_err(Error::from)).await?.flatten();
    Ok(newest.map_or(now, |newest| now.max(newest + 1)))
}

async fn insert(tx: &mut WriteTx, repo: &Uidp, at: Micros, prepared: &Prepared) -> Result<()> {
    let sql = "INSERT INTO scan_reports (repo, digest, scanner, created_at, org, scanner_version, database_built_at,
                                         findings, raw, summary)
               VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)";
    let params = [
        Value::from(repo.as_str()),
        Value::from(&prepared.digest),
        Value::from(prepared.scanner),
        Value::Int(at),
        Value::from(repo.root_str()),
        Value::from(&prepared.scanner_version),
        Value::OptInt(prepared.built),
        Value::from(&prepared.findings),
        Value::from(&prepared.raw),
        Value::from(&prepared.summary),
    ];
    tx.execute(sql, &params).await?;
    Ok(())
}

/// Keeps the newest reports of a manifest.
async fn forget_old(tx: &mut WriteTx, repo: &Uidp, digest: &str) -> Result<()> {
    let by_digest = tx.index_hint("scan_reports_by_digest");
    let sql = format!(
        "DELETE FROM scan_reports {by_digest} WHERE repo = $1 AND digest = $2 AND created_at <
           (SELECT min(created_at) FROM (SELECT created_at FROM scan_reports {by_digest}
              WHERE repo = $1 AND digest = $2 ORDER BY created_at DESC LIMIT $3) newest)"
    );
    tx.execute(&sql, &[Value::from(repo.as_str()), Value::from(digest), Value::Int(MAX_REPORTS)]).await?;
    Ok(())
}
