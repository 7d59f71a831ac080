//! Stored reports of scanners, as the wire contract reads them.

use std::collections::BTreeMap;

use bowline_contract::v1::registry as v1;
use bowline_contract::v1::registry::rpc::vulnerabilities::{GetRawVulnReport, ListVulnReports};
use bowline_contract::v1::registry::vulnerability::Fix;
use bowline_core::{Error, Micros, Reason, Result, UidRange, Uidp, intersect};
use bowline_pipeline::{Authorized, Handlers};
use bowline_store::{ReadTx, Row, Value};

use super::scan_reports::parse::{Finding, rank};
use super::tags;
use crate::kinds::SCAN_REPORT;
use crate::list::{self, timestamp};

pub(crate) fn register(handlers: Handlers) -> Handlers {
    handlers
        .read::<ListVulnReports>(|tx, call| Box::pin(list(tx, call)))
        .read::<GetRawVulnReport>(|tx, call| Box::pin(raw(tx, call)))
}

/// Bytes of findings that one answer may be made of.
const MOST_BYTES: i64 = 100 << 20;

/// Which reports are meant, within one visible range. Empty texts and zeros mean any.
struct Wanted {
    range: UidRange,
    digest: String,
    scanner: i32,
    since: Micros,
}

impl Wanted {
    const CONDITIONS: &'static str = "repo >= $1 AND repo < $2 AND (digest = $3 OR $3 = '')
                                      AND (scanner = $4 OR $4 = 0) AND created_at >= $5";

    fn params(&self) -> [Value<'_>; 5] {
        [
            Value::from(&self.range.lower),
            Value::from(&self.range.upper),
            Value::from(&self.digest),
            Value::from(self.scanner),
            Value::Int(self.since),
        ]
    }
}

async fn list(tx: &mut ReadTx, call: &Authorized<v1::VulnReportFilter>) -> Result<v1::VulnReportList> {
    let request = call.request();
    if request.repo_id.is_empty() && request.digest.is_empty() {
        return Err(Error::invalid_field("repoId", "repo_id or digest is required"));
    }
    let mut ranges = call.visible();
    if !request.repo_id.is_empty() {
        ranges = intersect(&ranges, &[UidRange::single(&request.repo_id)]);
    }
    let Some(digest) = wanted_digest(tx, request, ranges.is_empty()).await? else {
        return Ok(v1::VulnReportList::default());
    };
    let mut items = Vec::new();
    for range in ranges {
        let wanted = Wanted {
            range,
            digest: digest.clone(),
            scanner: request.scanner.as_ref().map_or(0, |scanner| scanner.name),
            since: request.created_since.map_or(i64::MIN, list::micros),
        };
        items.extend(reports(tx, &wanted).await?);
    }
    items.sort_by_key(|(created_at, _)| std::cmp::Reverse(*created_at));
    Ok(v1::VulnReportList { items: items.into_iter().map(|(_, report)| report).collect() })
}

/// The digest to look for, empty for any; absent where the tag is at none.
async fn wanted_digest(tx: &mut ReadTx, request: &v1::VulnReportFilter, is_hidden: bool) -> Result<Option<String>> {
    if !request.digest.is_empty() || request.tag.is_empty() {
        return Ok(Some(request.digest.clone()));
    }
    let Some(repo) = Uidp::parse(&request.repo_id).ok().filter(|_| !is_hidden) else { return Ok(None) };
    let tag = tags::find_by_name(tx, &repo, &request.tag).await?;
    Ok(tag.map(|tag| tag.digest).filter(|digest| !digest.is_empty()))
}

async fn reports(tx: &mut ReadTx, wanted: &Wanted) -> Result<Vec<(Micros, v1::VulnReport)>> {
    let sql = format!("SELECT count(*), sum(length(findings)) FROM scan_reports WHERE {}", Wanted::CONDITIONS);
    let sizes = tx.query_opt(&sql, &wanted.params(), |row| row.opt_int(1).map_err(Error::from)).await?;
    if sizes.flatten().unwrap_or(0) > MOST_BYTES {
        return Err(Error::new(
            Reason::RequestTooLarge,
            "The reports are larger than 100 MB: name a digest, a scanner, or a later created_since",
        ));
    }
    let sql = format!(
        "SELECT digest, scanner, scanner_version, database_built_at, created_at, findings FROM scan_reports WHERE {}",
        Wanted::CONDITIONS
    );
    tx.query(&sql, &wanted.params(), report).await
}

fn scanner(row: &Row<'_>) -> Result<v1::Scanner> {
    Ok(v1::Scanner {
        name: i32::try_from(row.int(1)?).unwrap_or_default(),
        version: row.text(2)?,
        db_build_time: row.opt_int(3)?.and_then(timestamp),
    })
}

fn report(row: &Row<'_>) -> Result<(Micros, v1::VulnReport)> {
    let findings: Vec<Finding> = serde_json::from_str(&row.text(5)?).map_err(Error::internal)?;
    let created_at = row.int(4)?;
    let report = v1::VulnReport {
        digest: row.text(0)?,
        scanner: Some(scanner(row)?),
        created_at: timestamp(created_at),
        vulnerabilities: merged(findings),
    };
    Ok((created_at, report))
}

/// One vulnerability for all packages that have it, the most severe first.
fn merged(findings: Vec<Finding>) -> Vec<v1::Vulnerability> {
    fn add(list: &mut Vec<String>, items: impl IntoIterator<Item = String>) {
        for item in items {
            if !item.is_empty() && !list.contains(&item) {
                list.push(item);
            }
        }
    }
    let mut by_id: BTreeMap<String, v1::Vulnerability> = BTreeMap::new();
    for finding in findings {
        let one = by_id.entry(finding.id.clone()).or_insert_with(|| v1::Vulnerability {
            id: finding.id,
            severity: finding.severity,
            description: finding.description,
            fix: Some(Fix { state: finding.fix_state, ..Fix::default() }),
            ..v1::Vulnerability::default()
        });
        if rank(finding.severity) > rank(one.severity) {
            one.severity = finding.severity;
        }
        add(&mut one.aliases, finding.aliases);
        add(&mut one.purls, [finding.purl]);
        add(&mut one.locations, [finding.location]);
        add(&mut one.related_urls, finding.references);
        if let Some(fix) = &mut one.fix {
            add(&mut fix.versions, finding.fixed_versions);
        }
    }
    let mut all: Vec<v1::Vulnerability> = by_id.into_values().collect();
    all.sort_by_key(|one| -rank(one.severity));
    all
}

async fn raw(tx: &mut ReadTx, call: &Authorized<v1::GetRawVulnReportRequest>) -> Result<v1::RawVulnReport> {
    let request = call.request();
    if request.digest.is_empty() {
        return Err(Error::invalid_field("digest", "digest is required"));
    }
    let at = request.created_at.map(list::micros);
    let mut newest: Option<(Micros, v1::RawVulnReport)> = None;
    for range in call.visible() {
        let (digest, since) = (request.digest.clone(), at.unwrap_or(i64::MIN));
        let wanted = Wanted { range, digest, scanner: request.scanner, since };
        let sql = format!(
            "SELECT digest, scanner, scanner_version, database_built_at, created_at, raw FROM scan_reports
             WHERE {} AND created_at <= $6 ORDER BY created_at DESC LIMIT 1",
            Wanted::CONDITIONS
        );
        let mut params = wanted.params().to_vec();
        params.push(Value::Int(at.unwrap_or(i64::MAX)));
        let found = tx.query_opt(&sql, &params, raw_report).await?;
        newest = newest.into_iter().chain(found).max_by_key(|(created_at, _)| *created_at);
    }
    newest.map(|(_, report)| report).ok_or_else(|| Error::not_found(SCAN_REPORT, &request.digest))
}

fn raw_report(row: &Row<'_>) -> Result<(Micros, v1::RawVulnReport)> {
    let created_at = row.int(4)?;
    let report = v1::RawVulnReport {
        digest: row.text(0)?,
        scanner: Some(scanner(row)?),
        created_at: timestamp(created_at),
        raw_report: row.text(5)?,
        raw_report_url: String::new(),
    };
    Ok((created_at, report))
}
