//! The newest stored report of an image in the words of the tenant's contract: one entry per vulnerability and package.

use bowline_contract::v1::registry as v1;
use bowline_contract::v1::registry::rpc::registry::GetVulnReport;
use bowline_contract::v1::registry::vulnerability::fix::State;
use bowline_contract::v1::tenant::vulnerability_record::{Cvss, RelatedVulnerability, Severity};
use bowline_contract::v1::tenant::{
    Fix, Package2, Scanner, VulnReport, VulnerabilityMatch, VulnerabilityRecord, fix::State as FixState,
};
use bowline_core::{Error, Result};
use bowline_pipeline::{Authorized, Handlers, handler};
use bowline_resources::kinds::SCAN_REPORT;
use bowline_resources::list::timestamp;
use bowline_store::{ReadTx, Row, Value};

use super::images;
use super::scan_reports::parse::{Finding, rank};

pub(crate) fn register(handlers: Handlers) -> Handlers {
    handlers.read::<GetVulnReport>(handler!(get))
}

async fn get(tx: &mut ReadTx, call: &Authorized<v1::VulnReportRequest>) -> Result<VulnReport> {
    let (repo, digest) = (call.require_scope()?, &call.request().digest);
    let manifest = images::require(tx, repo, digest).await?;
    let sql = format!(
        "SELECT scanner, scanner_version, database_built_at, created_at, findings FROM scan_reports {}
         WHERE repo = $1 AND digest = $2 ORDER BY created_at DESC LIMIT 1",
        tx.index_hint("scan_reports_by_digest")
    );
    let params = [Value::from(repo.as_str()), Value::from(&manifest.digest)];
    let matching = tx.query_opt(&sql, &params, |row| report(row, digest)).await?;
    matching.ok_or_else(|| Error::not_found(SCAN_REPORT, digest))
}

fn report(row: &Row<'_>, digest: &str) -> Result<VulnReport> {
    let findings: Vec<Finding> = serde_json::from_str(&row.text(4)?).map_err(Error::internal)?;
    let name = match row.int(0)? {
        1 => "grype",
        2 => "trivy",
        other => return Err(Error::internal(format!("scan_reports holds the unknown scanner {other}"))),
    };
    let created_at = row.int(3)?;
    Ok(VulnReport {
        id: format!("{digest}/{name}/{created_at}"),
        vulnerability_db_last_build_time: row.opt_int(2)?.and_then(timestamp),
        vulnerability_matches: findings.into_iter().map(matching).collect(),
        scanner: Some(Scanner { name: name.into(), version: row.text(1)? }),
        report_generation: timestamp(created_at),
        raw_vuln_report: Vec::new(),
        last_seen: None,
    })
}

fn matching(finding: Finding) -> VulnerabilityMatch {
    let related = finding.aliases.into_iter().map(|id| RelatedVulnerability { id, ..RelatedVulnerability::default() });
    VulnerabilityMatch {
        fix: fix(finding.fix_state, finding.fixed_versions),
        vulnerability: Some(VulnerabilityRecord {
            id: finding.id,
            description: finding.description,
            severity: severity(finding.severity) as i32,
            related_urls: finding.references,
            cvss: finding
                .ratings
                .into_iter()
                .map(|rating| Cvss { score: rating.score, version: rating.version })
                .collect(),
            related_vulnerabilities: related.collect(),
            ..VulnerabilityRecord::default()
        }),
        pkg: Some(Package2 {
            id: finding.purl.clone(),
            name: finding.package,
            version: finding.version,
            purl: finding.purl,
            ..Package2::default()
        }),
    }
}

/// The scale has nothing below low.
fn severity(number: i32) -> Severity {
    match rank(number) {
        5 => Severity::Critical,
        4 => Severity::High,
        3 => Severity::Medium,
        1 | 2 => Severity::Low,
        _ => Severity::Unknown,
    }
}

/// Absent if the scanner reported none.
fn fix(state: i32, versions: Vec<String>) -> Option<Fix> {
    let state = match State::try_from(state).unwrap_or_default() {
        State::Fixed => FixState::Fixed,
        State::NotFixed => FixState::NotFixed,
        State::WontFix => FixState::WontFix,
        State::Unknown if versions.is_empty() => return None,
        State::Unknown => FixState::Unknown,
    };
    Some(Fix { versions, state: state as i32 })
}
