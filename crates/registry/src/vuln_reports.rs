//! Stored reports of scanners, as the wire contract reads them.

use std::collections::{BTreeMap, HashSet};

use bowline_contract::v1::registry as v1;
use bowline_contract::v1::registry::rpc::vulnerabilities::{GetRawVulnReport, ListVulnReports};
use bowline_contract::v1::registry::vulnerability::fix::State;
use bowline_contract::v1::registry::vulnerability::{Cvss, Fix};
use bowline_core::{Error, Micros, Reason, Result, UidRange, Uidp, intersect};
use bowline_pipeline::{Authorized, Handlers, handler};
use bowline_resources::kinds::SCAN_REPORT;
use bowline_resources::list::{self, timestamp};
use bowline_store::{ReadTx, Row, Value};

use super::scan_reports::parse::{Finding, Rating, rank};
use super::tags;

pub(crate) fn register(handlers: Handlers) -> Handlers {
    handlers.read::<ListVulnReports>(handler!(list)).read::<GetRawVulnReport>(handler!(raw))
}

/// Maximum bytes of findings for one response.
const MAX_BYTES: i64 = 100 << 20;

/// Which reports are meant, within one visible range. Empty texts and zeros mean any.
struct ReportFilter {
    range: UidRange,
    digest: String,
    scanner: i32,
    since: Micros,
}

impl ReportFilter {
    /// Reports of manifests that the repository does not have are not shown.
    const CONDITIONS: &'static str =
        "repo >= $1 AND repo < $2 AND (digest = $3 OR $3 = '') AND (scanner = $4 OR $4 = 0) AND created_at >= $5
         AND EXISTS (SELECT 1 FROM repo_manifests m WHERE m.repo = scan_reports.repo AND m.digest = scan_reports.digest)";

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
    let Some(digest) = requested_digest(tx, request, ranges.is_empty()).await? else {
        return Ok(v1::VulnReportList::default());
    };
    let filter = ranges.into_iter().map(|range| ReportFilter {
        range,
        digest: digest.clone(),
        scanner: request.scanner.as_ref().map_or(0, |scanner| scanner.name),
        since: request.created_since.map_or(i64::MIN, list::micros),
    });
    let filter: Vec<ReportFilter> = filter.collect();
    require_small(tx, &filter).await?;
    let mut items = Vec::new();
    for filter in &filter {
        items.extend(reports(tx, filter).await?);
    }
    items.sort_by_key(|(created_at, _)| std::cmp::Reverse(*created_at));
    Ok(v1::VulnReportList { items: items.into_iter().map(|(_, report)| report).collect() })
}

/// The digest to look for, empty for any; absent where the tag is at none.
async fn requested_digest(tx: &mut ReadTx, request: &v1::VulnReportFilter, is_hidden: bool) -> Result<Option<String>> {
    if !request.digest.is_empty() || request.tag.is_empty() {
        return Ok(Some(request.digest.clone()));
    }
    let Some(repo) = Uidp::parse(&request.repo_id).ok().filter(|_| !is_hidden) else { return Ok(None) };
    let tag = tags::find_by_name(tx, &repo, &request.tag).await?;
    Ok(tag.map(|tag| tag.digest).filter(|digest| !digest.is_empty()))
}

/// Rejects a request whose findings together exceed the limit.
async fn require_small(tx: &mut ReadTx, filter: &[ReportFilter]) -> Result<()> {
    let mut bytes: i64 = 0;
    for filter in filter {
        let sql = format!(
            "SELECT CAST(sum(octet_length(findings)) AS BIGINT) FROM scan_reports WHERE {}",
            ReportFilter::CONDITIONS
        );
        let sum = tx.query_opt(&sql, &filter.params(), |row| row.opt_int(0).map_err(Error::from)).await?;
        bytes = bytes.saturating_add(sum.flatten().unwrap_or(0));
    }
    if bytes <= MAX_BYTES {
        return Ok(());
    }
    Err(Error::new(
        Reason::RequestTooLarge,
        "The reports are larger than 100 MB: name a digest, a scanner, or a later created_since",
    ))
}

async fn reports(tx: &mut ReadTx, filter: &ReportFilter) -> Result<Vec<(Micros, v1::VulnReport)>> {
    let sql = format!(
        "SELECT digest, scanner, scanner_version, database_built_at, created_at, findings FROM scan_reports WHERE {}",
        ReportFilter::CONDITIONS
    );
    tx.query(&sql, &filter.params(), report).await
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

/// Maximum number of elements of one list of a vulnerability.
const MAX_ELEMENTS: usize = 1000;

/// A list in which everything stands once.
#[derive(Default)]
struct UniqueList {
    list: Vec<String>,
    known: HashSet<String>,
}

impl UniqueList {
    fn add(&mut self, items: impl IntoIterator<Item = String>) {
        for item in items {
            if !item.is_empty() && self.list.len() < MAX_ELEMENTS && self.known.insert(item.clone()) {
                self.list.push(item);
            }
        }
    }
}

/// A vulnerability while its findings are collected.
#[derive(Default)]
struct Collected {
    one: v1::Vulnerability,
    fix_state: i32,
    aliases: UniqueList,
    purls: UniqueList,
    locations: UniqueList,
    related_urls: UniqueList,
    fixed_versions: UniqueList,
}

impl Collected {
    fn of_first(finding: &mut Finding) -> Collected {
        let one = v1::Vulnerability {
            id: finding.id.clone(),
            severity: finding.severity,
            description: std::mem::take(&mut finding.description),
            ..v1::Vulnerability::default()
        };
        Collected { one, ..Collected::default() }
    }

    fn add(&mut self, finding: Finding) {
        if rank(finding.severity) > rank(self.one.severity) {
            self.one.severity = finding.severity;
        }
        if hope(finding.fix_state) > hope(self.fix_state) {
            self.fix_state = finding.fix_state;
        }
        if self.one.cvss.is_empty() {
            let rating = |rating: Rating| Cvss { score: rating.score, version: rating.version };
            self.one.cvss = finding.ratings.into_iter().map(rating).collect();
        }
        self.aliases.add(finding.aliases);
        self.purls.add([finding.purl]);
        self.locations.add([finding.location]);
        self.related_urls.add(finding.references);
        self.fixed_versions.add(finding.fixed_versions);
    }

    fn finish(self) -> v1::Vulnerability {
        v1::Vulnerability {
            aliases: self.aliases.list,
            purls: self.purls.list,
            locations: self.locations.list,
            related_urls: self.related_urls.list,
            fix: Some(Fix { state: self.fix_state, versions: self.fixed_versions.list }),
            ..self.one
        }
    }
}

/// Rank of a fix state: a vulnerability that is fixed in one package is shown as fixed, with the versions.
fn hope(fix_state: i32) -> i32 {
    match State::try_from(fix_state) {
        Ok(State::Fixed) => 3,
        Ok(State::NotFixed) => 2,
        Ok(State::WontFix) => 1,
        Ok(State::Unknown) | Err(_) => 0,
    }
}

/// One vulnerability for all packages that have it, the most severe first.
fn merged(findings: Vec<Finding>) -> Vec<v1::Vulnerability> {
    let mut by_id: BTreeMap<String, Collected> = BTreeMap::new();
    for mut finding in findings {
        let id = finding.id.clone();
        by_id.entry(id).or_insert_with(|| Collected::of_first(&mut finding)).add(finding);
    }
    let mut all: Vec<v1::Vulnerability> = by_id.into_values().map(Collected::finish).collect();
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
        let filter = ReportFilter { range, digest, scanner: request.scanner, since };
        let sql = format!(
            "SELECT digest, scanner, scanner_version, database_built_at, created_at, raw FROM scan_reports
             WHERE {} AND created_at <= $6 ORDER BY created_at DESC LIMIT 1",
            ReportFilter::CONDITIONS
        );
        let mut params = filter.params().to_vec();
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

#[cfg(test)]
mod tests {
    use super::{Finding, MAX_ELEMENTS, State, merged};

    fn finding(id: &str, purl: &str, severity: i32) -> Finding {
        let (id, purl, related) = (id.to_owned(), purl.to_owned(), format!("https://example.com/{purl}"));
        Finding { id, purl, severity, references: vec![related], ..Finding::default() }
    }

    #[test]
    fn shared_vulnerabilities_are_listed_once_and_bounded() {
        let twice = |n: usize| [finding("CVE-1", &format!("pkg:{n}"), 3), finding("CVE-1", &format!("pkg:{n}"), 4)];
        let found = merged((0..20_000).flat_map(twice).collect());
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].purls.len(), found[0].related_urls.len()), (MAX_ELEMENTS, MAX_ELEMENTS));
        assert_eq!((&*found[0].purls[0], &*found[0].purls[1]), ("pkg:0", "pkg:1"));
        assert_eq!(merged(twice(7).into()).remove(0).purls, ["pkg:7"]);
    }
    #[test]
    fn what_is_fixed_in_one_package_is_fixed() {
        let of = |state: State, versions: &[&str]| Finding {
            fix_state: state as i32,
            fixed_versions: versions.iter().map(|version| (*version).to_owned()).collect(),
            ..finding("CVE-1", "pkg:a", 3)
        };
        let (unknown, wont, fixed) = (of(State::Unknown, &[]), of(State::WontFix, &[]), of(State::Fixed, &["2"]));
        for findings in [vec![wont.clone(), fixed.clone(), unknown.clone()], vec![fixed, unknown.clone(), wont.clone()]]
        {
            let fix = merged(findings).remove(0).fix.unwrap_or_default();
            assert_eq!((fix.state(), fix.versions.as_slice()), (State::Fixed, ["2".to_owned()].as_slice()));
        }
        assert_eq!(merged(vec![unknown, wont]).remove(0).fix.unwrap_or_default().state(), State::WontFix);
    }
}
