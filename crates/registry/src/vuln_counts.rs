//! How many vulnerabilities a tag had from day to day: at the end of each day, the newest report of the image that
//! the tag was at.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use bowline_contract::v1::registry as v1;
use bowline_contract::v1::registry::rpc::vulnerabilities::{ListCumulativeVulnCountReports, ListVulnCountReports};
use bowline_contract::v1::registry::vulnerability::Severity;
use bowline_core::{Error, Micros, Reason, Result, UidRange, Uidp};
use bowline_pipeline::{Authorized, Handlers};
use bowline_resources::list::{micros, timestamp};
use bowline_store::{ReadTx, Row, Value};

use super::scan_reports::parse::rank;

pub(crate) fn register(handlers: Handlers) -> Handlers {
    handlers
        .read::<ListVulnCountReports>(|tx, call| Box::pin(count(tx, call, false)))
        .read::<ListCumulativeVulnCountReports>(|tx, call| Box::pin(count(tx, call, true)))
}

const DAY: Micros = 24 * 3600 * 1_000_000;
/// Maximum days of one call.
const MAX_DAYS: i64 = 366;
/// The usual number of days.
const USUAL_DAYS: i64 = 30;
/// Maximum number of images of one call.
const MAX_REFERENCES: usize = 50;
/// The tag that is meant where none is named.
const USUAL_TAG: &str = "latest";

/// Maximum bytes that one call may read and return.
const MAX_BYTES: i64 = 100 << 20;
/// Approximate bytes of a line of a response without its texts.
const ROW_BYTES: i64 = 24;

/// Ids by number of their severity.
pub(crate) type Ids = BTreeMap<i32, BTreeSet<String>>;

/// What is left of the bytes of a call.
struct Budget {
    left: i64,
}

impl Budget {
    fn spend(&mut self, bytes: i64) -> Result<()> {
        self.left -= bytes;
        if self.left >= 0 {
            return Ok(());
        }
        Err(Error::new(
            Reason::RequestTooLarge,
            "The counts are larger than 100 MB: name fewer references, or a later from",
        ))
    }
}

/// Counts day by day, or with `accumulates` everything seen since the first day.
async fn count(
    tx: &mut ReadTx,
    call: &Authorized<v1::VulnCountReportFilter>,
    accumulates: bool,
) -> Result<v1::VulnCountReportList> {
    let request = call.request();
    let days = days(request, call.now())?;
    let (mut items, mut budget) = (Vec::new(), Budget { left: MAX_BYTES });
    for reference in references(request)? {
        for (repo, name) in visible_repos(tx, call, &reference.repo).await? {
            let images = images_by_day(tx, (&repo, &reference.tag), &days, &mut budget).await?;
            let mut seen = Seen::default();
            for (day, image) in days.iter().zip(images) {
                let Some((ids, size_bytes)) = image else { continue };
                let shown = if accumulates {
                    seen.add(&ids);
                    &seen.ids
                } else {
                    &*ids
                };
                // Every id stands in the list of its severity and in that of all.
                budget.spend(2 * shown.values().flatten().map(|id| id.len() as i64 + ROW_BYTES).sum::<i64>())?;
                budget.spend(ROW_BYTES)?;
                let at = (name.clone(), reference.tag.clone(), *day);
                items.push(report(at, shown, size_bytes));
            }
        }
    }
    Ok(v1::VulnCountReportList { items })
}

/// The starts of the days, UTC.
fn days(request: &v1::VulnCountReportFilter, now: Micros) -> Result<Vec<Micros>> {
    let last = request.to.map_or(now, micros).min(now).div_euclid(DAY);
    let first = request.from.map_or(last - USUAL_DAYS + 1, |from| micros(from).div_euclid(DAY));
    if last - first >= MAX_DAYS {
        return Err(Error::invalid_field("from", format!("at most {MAX_DAYS} days are counted at once")));
    }
    Ok((first..=last).map(|day| day * DAY).collect())
}

fn references(request: &v1::VulnCountReportFilter) -> Result<Vec<v1::RepoTagReference>> {
    let mut references = request.references.clone();
    if references.is_empty() {
        references.push(v1::RepoTagReference { repo: request.repo.clone(), tag: request.tag.clone() });
    }
    if references.len() > MAX_REFERENCES {
        return Err(Error::invalid_field("references", format!("at most {MAX_REFERENCES} elements")));
    }
    let mut known = HashSet::new();
    for reference in &mut references {
        if reference.repo.is_empty() {
            return Err(Error::invalid_field("repo", "repo is required"));
        }
        if reference.tag.is_empty() {
            USUAL_TAG.clone_into(&mut reference.tag);
        }
    }
    references.retain(|reference| known.insert((reference.repo.clone(), reference.tag.clone())));
    Ok(references)
}

/// The repositories of this name or UIDP that the caller may see, with their names.
pub async fn visible_repos<T>(tx: &mut ReadTx, call: &Authorized<T>, repo: &str) -> Result<Vec<(Uidp, String)>> {
    let sql = "SELECT uid, name FROM repos WHERE uid >= $1 AND uid < $2 AND name = $3
               AND org IN (SELECT uid FROM groups WHERE parent = '' AND (uid = $4 OR $4 = ''))
               UNION SELECT uid, name FROM repos WHERE uid >= $1 AND uid < $2 AND uid = $3 ORDER BY uid";
    let mut repos = Vec::new();
    for range in call.visible() {
        let UidRange { lower, upper } = &range;
        let organization = lower.get(..bowline_core::ROOT_LENGTH).unwrap_or_default();
        let params = [Value::from(lower), Value::from(upper), Value::from(repo), Value::from(organization)];
        let read = |row: &Row<'_>| Ok::<_, Error>((row.text(0)?, row.text(1)?));
        for (uid, name) in tx.query(sql, &params, read).await? {
            let damaged = |_| Error::internal(format!("repos holds the damaged uid {uid}"));
            repos.push((Uidp::parse(&uid).map_err(damaged)?, name));
        }
    }
    Ok(repos)
}

/// For the end of each day: what the newest report of the tag's image says, and the size of the image.
async fn images_by_day(
    tx: &mut ReadTx,
    (repo, tag): (&Uidp, &str),
    days: &[Micros],
    budget: &mut Budget,
) -> Result<Vec<Option<(Arc<Ids>, i64)>>> {
    let end = days.last().map_or(0, |day| day + DAY);
    let sql = "SELECT at, digest FROM tag_history WHERE repo = $1 AND name = $2 AND at < $3 ORDER BY at, id";
    let params = [Value::from(repo.as_str()), Value::from(tag), Value::Int(end)];
    let moves: Vec<(Micros, String)> =
        tx.query(sql, &params, |row| Ok::<_, Error>((row.int(0)?, row.text(1)?))).await?;
    let mut reports: BTreeMap<String, Vec<(Micros, Arc<Ids>, i64)>> = BTreeMap::new();
    let mut by_day = Vec::new();
    for day in days {
        let before_end = |at: Micros| at < day + DAY;
        let digest = moves.iter().rev().find(|(at, _)| before_end(*at)).map(|(_, digest)| digest.as_str());
        let Some(digest) = digest.filter(|digest| !digest.is_empty()) else {
            by_day.push(None);
            continue;
        };
        if !reports.contains_key(digest) {
            let known = reports_of(tx, (repo, digest), end, budget).await?;
            reports.insert(digest.to_owned(), known);
        }
        let newest = reports.get(digest).and_then(|all| all.iter().rev().find(|(at, ..)| before_end(*at)));
        by_day.push(newest.map(|(_, ids, size)| (ids.clone(), *size)));
    }
    Ok(by_day)
}

/// The reports of an image, the oldest first.
async fn reports_of(
    tx: &mut ReadTx,
    (repo, digest): (&Uidp, &str),
    end: Micros,
    budget: &mut Budget,
) -> Result<Vec<(Micros, Arc<Ids>, i64)>> {
    let params = [Value::from(repo.as_str()), Value::from(digest), Value::Int(end)];
    let sql = "SELECT CAST(sum(octet_length(summary)) AS BIGINT) FROM scan_summaries
               WHERE repo = $1 AND digest = $2 AND created_at < $3";
    let bytes = tx.query_opt(sql, &params, |row| row.opt_int(0).map_err(Error::from)).await?;
    budget.spend(bytes.flatten().unwrap_or(0))?;
    let sql = "SELECT s.created_at, s.summary, m.total_size FROM scan_summaries s
               JOIN manifests m ON m.digest = s.digest
               WHERE s.repo = $1 AND s.digest = $2 AND s.created_at < $3 ORDER BY s.created_at";
    let read = |row: &Row<'_>| {
        let ids: Ids = serde_json::from_str(&row.text(1)?).map_err(Error::internal)?;
        Ok::<_, Error>((row.int(0)?, Arc::new(ids), row.int(2)?))
    };
    tx.query(sql, &params, read).await
}

/// When the newest report of each of these images was stored, and what it counts.
pub(crate) async fn newest(
    tx: &mut ReadTx,
    repo: &Uidp,
    digests: &[String],
) -> Result<BTreeMap<String, (Micros, Ids)>> {
    let positions: Vec<String> = (2..digests.len() + 2).map(|n| format!("${n}")).collect();
    let sql = format!(
        "SELECT s.digest, s.created_at, s.summary FROM scan_summaries s
         WHERE s.repo = $1 AND s.digest IN ({}) AND s.created_at =
           (SELECT max(o.created_at) FROM scan_summaries o WHERE o.repo = $1 AND o.digest = s.digest)",
        positions.join(", ")
    );
    let mut params = vec![Value::from(repo.as_str())];
    params.extend(digests.iter().map(Value::from));
    let read = |row: &Row<'_>| {
        let ids: Ids = serde_json::from_str(&row.text(2)?).map_err(Error::internal)?;
        Ok::<_, Error>((row.text(0)?, (row.int(1)?, ids)))
    };
    Ok(tx.query(&sql, &params, read).await?.into_iter().collect())
}

/// Everything seen so far, each id under the highest severity that it had.
#[derive(Default)]
struct Seen {
    ids: Ids,
    severities: HashMap<String, i32>,
}

impl Seen {
    fn add(&mut self, ids: &Ids) {
        for (severity, id) in ids.iter().flat_map(|(severity, ids)| ids.iter().map(move |id| (*severity, id))) {
            let known = self.severities.get(id).copied();
            if known.is_some_and(|known| rank(known) >= rank(severity)) {
                continue;
            }
            if let Some(former) = known.and_then(|known| self.ids.get_mut(&known)) {
                former.remove(id);
            }
            self.severities.insert(id.clone(), severity);
            self.ids.entry(severity).or_default().insert(id.clone());
        }
        self.ids.retain(|_, ids| !ids.is_empty());
    }
}

fn report((repo, tag, day): (String, String, Micros), ids: &Ids, size_bytes: i64) -> v1::VulnCountReport {
    let of =
        |severity: Severity| -> Vec<String> { ids.get(&(severity as i32)).into_iter().flatten().cloned().collect() };
    let counts = ids.iter().map(|(severity, ids)| v1::VulnCount { severity: *severity, count: ids.len() as i32 });
    let all: BTreeSet<&String> = ids.values().flatten().collect();
    v1::VulnCountReport {
        repo,
        tag,
        date: timestamp(day),
        vuln_counts: counts.collect(),
        size_bytes,
        cve_ids: all.into_iter().cloned().collect(),
        low_cve_ids: of(Severity::Low),
        med_cve_ids: of(Severity::Medium),
        high_cve_ids: of(Severity::High),
        crit_cve_ids: of(Severity::Critical),
        negligible_cve_ids: of(Severity::Negligible),
        unknown_cve_ids: of(Severity::Unknown),
    }
}

#[cfg(test)]
mod tests {
    use super::{Ids, Seen, Severity};

    #[test]
    fn an_id_whose_severity_changed_counts_once() {
        let ids = |severity: Severity, ids: &[&str]| {
            Ids::from([(severity as i32, ids.iter().map(|id| (*id).into()).collect())])
        };
        let mut seen = Seen::default();
        for day in
            [ids(Severity::Low, &["a", "b"]), ids(Severity::High, &["a"]), ids(Severity::Negligible, &["a", "b"])]
        {
            seen.add(&day);
        }
        let mut expected = ids(Severity::Low, &["b"]);
        expected.extend(ids(Severity::High, &["a"]));
        assert_eq!(seen.ids, expected);
        seen.add(&ids(Severity::Critical, &["a", "b"]));
        assert_eq!(seen.ids, ids(Severity::Critical, &["a", "b"]));
    }
}
