//! Images with a vulnerability, by the newest stored report of a scanner, as for the counts of lists, or by their components
//! and the imported records.

use std::collections::{BTreeMap, BTreeSet};

use bowline_core::{Error, Result, UidRange};
use bowline_store::{ReadTx, Row, Value};

use super::links::{InRepo, pair, with_keys};
use crate::vuln_counts::Ids;

/// Keys that one statement names.
const AT_ONCE: usize = 200;

const IS_NEWEST: &str = "NOT EXISTS (SELECT 1 FROM scan_summaries o WHERE o.repo = s.repo AND o.digest = s.digest
  AND o.created_at > s.created_at)";

/// Images of a range from one on, in order, each with whether it has the vulnerability.
pub(super) async fn examine(
    tx: &mut ReadTx,
    range: &UidRange,
    (from, most): (&InRepo, usize),
    id: &str,
) -> Result<Vec<(InRepo, bool)>> {
    let reports = format!(
        "SELECT s.repo, s.digest, s.summary FROM scan_summaries s
         WHERE (s.repo, s.digest) >= ($1, $2) AND s.repo < $3 AND {IS_NEWEST} ORDER BY s.repo, s.digest LIMIT $4"
    );
    // An image that is deleted keeps its findings until the task that matches has seen it.
    let matches = "SELECT DISTINCT f.repo, f.digest FROM image_findings f
                   JOIN repo_manifests m ON m.repo = f.repo AND m.digest = f.digest
                   WHERE f.vulnerability = $5 AND f.state = 0 AND (f.repo, f.digest) >= ($1, $2) AND f.repo < $3
                   ORDER BY f.repo, f.digest LIMIT $4";
    let first = from.0.as_str().max(range.lower.as_str());
    let digest = if first == from.0 { from.1.as_str() } else { "" };
    let limit = Value::Int(i64::try_from(most).unwrap_or(i64::MAX));
    let params = [Value::from(first), Value::from(digest), Value::from(&range.upper), limit, Value::from(id)];
    let mut found: BTreeMap<InRepo, bool> =
        tx.query(&reports, &params[..4], |row| read(row, id)).await?.into_iter().collect();
    found.extend(tx.query(matches, &params, pair).await?.into_iter().map(|image| (image, true)));
    // Both are in order and begin at the same place: what is cut off comes again.
    Ok(found.into_iter().take(most).collect())
}

/// Those of these images that have the vulnerability.
pub(super) async fn with(tx: &mut ReadTx, images: &BTreeSet<InRepo>, id: &str) -> Result<BTreeSet<InRepo>> {
    let images: Vec<InRepo> = images.iter().cloned().collect();
    let mut with = BTreeSet::new();
    for part in images.chunks(AT_ONCE) {
        let mut sql = with_keys(part);
        sql.push("SELECT s.repo, s.digest, s.summary FROM wanted w CROSS JOIN scan_summaries s ");
        sql.push("WHERE s.repo = w.repo AND s.digest = w.digest AND ").push(IS_NEWEST);
        let rows = tx.query(&sql.text, &sql.params, |row| read(row, id)).await?;
        with.extend(rows.into_iter().filter(|(_, has)| *has).map(|(image, _)| image));
        let mut sql = with_keys(part);
        sql.push("SELECT DISTINCT f.repo, f.digest FROM wanted w CROSS JOIN image_findings f ");
        sql.bind("WHERE f.repo = w.repo AND f.digest = w.digest AND f.state = 0 AND f.vulnerability = ", id);
        with.extend(tx.query(&sql.text, &sql.params, pair).await?);
    }
    Ok(with)
}

fn read(row: &Row<'_>, id: &str) -> Result<(InRepo, bool)> {
    let ids: Ids = serde_json::from_str(&row.text(2)?).map_err(Error::internal)?;
    let has = ids.values().any(|ids| ids.contains(id));
    Ok((pair(row)?, has))
}
