//! Findings by day: which images the tags of a scope named at the end of each day, and what their newest reports counted.

mod days;
mod report_ids;

use std::collections::BTreeMap;

use bowline_core::{Error, Micros, Result, UidRange, Uidp};
use bowline_store::{ReadTx, Row, Sql, Value};

pub use self::days::{DayCounts, FixedFinding, HistorySummary, OpenFinding};
use self::report_ids::{IdNumbers, ReportIds};
use crate::vuln_counts::Ids;

/// Reports of a scope that are counted.
const MAX_REPORTS: usize = 50_000;
/// Bytes of the ids of these reports.
const MAX_BYTES: usize = 64 << 20;
/// Moves of tags that are read.
const MAX_MOVES: usize = 200_000;
/// Reports that one statement reads.
const REPORTS_AT_ONCE: usize = 1000;
/// Repositories that one statement names.
const REPOS_AT_ONCE: usize = 100;

/// What a report counts.
#[derive(Clone, Debug)]
pub(crate) struct ReportCounts {
    /// When it was stored.
    at: Micros,
    ids: ReportIds,
}

/// The images of a repository by the position of their digest, and where each tag was when.
#[derive(Clone, Debug, Default)]
struct RepoHistory {
    /// The reports of each image, the oldest first; none for images without one.
    images: Vec<Vec<ReportCounts>>,
    /// The moves of each tag, the earliest first; none for a removal.
    tags: Vec<Vec<(Micros, Option<usize>)>>,
}

/// The findings of a scope from day to day.
#[derive(Clone, Debug)]
pub struct FindingHistory {
    repos: Vec<RepoHistory>,
    /// Whether the scope has more than was read.
    pub is_incomplete: bool,
}

impl FindingHistory {
    /// Repositories that have a report, of those that were read.
    pub fn repos(&self) -> usize {
        self.repos.len()
    }

    /// When the newest report was stored.
    pub fn newest_report(&self) -> Option<Micros> {
        self.repos.iter().flat_map(|repo| &repo.images).flatten().map(|report| report.at).max()
    }
}

type Reports = BTreeMap<String, BTreeMap<String, Vec<ReportCounts>>>;

/// Reads the reports that were stored before a time, and the moves of tags.
///
/// # Errors
/// Those of the database.
pub async fn load(tx: &mut ReadTx, scope: &Uidp, end: Micros) -> Result<FindingHistory> {
    let (mut reports, mut is_incomplete) = reports(tx, scope, end).await?;
    let mut repos: Vec<RepoHistory> = Vec::new();
    let mut left = MAX_MOVES;
    let names: Vec<String> = reports.keys().cloned().collect();
    for names in names.chunks(REPOS_AT_ONCE) {
        let mut moves = moves(tx, names, end, left + 1).await?;
        let cut = (moves.len() > left).then(|| moves.pop().map(|last| last.repo)).flatten();
        left -= moves.len().min(left);
        let mut by_repo: BTreeMap<String, Vec<TagMove>> = BTreeMap::new();
        for one in moves {
            by_repo.entry(one.repo.clone()).or_default().push(one);
        }
        for name in names {
            if cut.as_ref().is_some_and(|cut| name >= cut) {
                is_incomplete = true;
                break;
            }
            let images = reports.remove(name).unwrap_or_default();
            repos.push(RepoHistory::new(images, by_repo.remove(name).unwrap_or_default()));
        }
        if cut.is_some() {
            break;
        }
    }
    Ok(FindingHistory { repos, is_incomplete })
}

/// The reports by repository and image, and whether there are more repositories than were read.
async fn reports(tx: &mut ReadTx, scope: &Uidp, end: Micros) -> Result<(Reports, bool)> {
    let UidRange { lower, upper } = UidRange::of(scope);
    let mut after = (lower, String::new(), 0, 0);
    let (mut reports, mut count, mut bytes) = (Reports::new(), 0, 0);
    let mut numbers = IdNumbers::default();
    loop {
        let sql = "SELECT repo, digest, created_at, scanner, summary FROM scan_summaries
                   WHERE (repo, digest, created_at, scanner) > ($1, $2, $3, $4) AND repo < $5 AND created_at < $6
                   ORDER BY repo, digest, created_at, scanner LIMIT $7";
        let params = [
            Value::from(&after.0),
            Value::from(&after.1),
            Value::Int(after.2),
            Value::Int(after.3),
            Value::from(&upper),
            Value::Int(end),
            Value::Int(REPORTS_AT_ONCE as i64),
        ];
        // Row by row: only the numbers of the ids stay.
        let read = |row: &Row<'_>| {
            let summary = row.text(4)?;
            (count, bytes) = (count + 1, bytes + summary.len());
            let fits = count <= MAX_REPORTS && bytes <= MAX_BYTES;
            let ids: Option<Ids> = fits.then(|| serde_json::from_str(&summary)).transpose().map_err(Error::internal)?;
            let ids = ids.map(|ids| ReportIds::new(&ids, &mut numbers));
            Ok::<_, Error>(((row.text(0)?, row.text(1)?, row.int(2)?, row.int(3)?), ids))
        };
        let rows = tx.query(sql, &params, read).await?;
        let is_last = rows.len() < REPORTS_AT_ONCE;
        for (key, ids) in rows {
            let repo = key.0.clone();
            let Some(ids) = ids else {
                reports.remove(&repo);
                return Ok((reports, true));
            };
            let report = ReportCounts { at: key.2, ids };
            reports.entry(repo).or_default().entry(key.1.clone()).or_default().push(report);
            after = key;
        }
        if is_last {
            return Ok((reports, false));
        }
    }
}

/// A move of a tag; the digest is empty if it was removed.
struct TagMove {
    repo: String,
    tag: String,
    at: Micros,
    digest: String,
}

/// The moves of the tags of these repositories, by repository, tag and time.
async fn moves(tx: &mut ReadTx, repos: &[String], end: Micros, most: usize) -> Result<Vec<TagMove>> {
    let mut sql = Sql::new("SELECT repo, name, at, digest FROM tag_history");
    sql.bind(" WHERE at < ", Value::Int(end)).bind_list(" AND repo IN ", repos.iter().map(Value::from));
    sql.bind(" ORDER BY repo, name, at, id LIMIT ", Value::Int(most as i64));
    let read = |row: &Row<'_>| {
        Ok::<_, Error>(TagMove { repo: row.text(0)?, tag: row.text(1)?, at: row.int(2)?, digest: row.text(3)? })
    };
    tx.query(&sql.text, &sql.params, read).await
}

impl RepoHistory {
    fn new(reports: BTreeMap<String, Vec<ReportCounts>>, moves: Vec<TagMove>) -> RepoHistory {
        let mut positions: BTreeMap<String, usize> = BTreeMap::new();
        let mut repo = RepoHistory::default();
        for (digest, reports) in reports {
            positions.insert(digest, repo.images.len());
            repo.images.push(reports);
        }
        let mut tags: BTreeMap<String, Vec<(Micros, Option<usize>)>> = BTreeMap::new();
        for TagMove { tag, at, digest, .. } in moves {
            let image = (!digest.is_empty()).then(|| {
                *positions.entry(digest).or_insert_with(|| {
                    repo.images.push(Vec::new());
                    repo.images.len() - 1
                })
            });
            tags.entry(tag).or_default().push((at, image));
        }
        repo.tags = tags.into_values().collect();
        repo
    }
}
