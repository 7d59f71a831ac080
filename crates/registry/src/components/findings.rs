//! Images with a vulnerability: the newest stored report of a scanner decides, as for the counts of lists.

use std::collections::BTreeSet;

use bowline_core::{Error, Result, UidRange};
use bowline_store::{ReadTx, Row, Sql, Value};

use super::links::InRepo;
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
    let sql = format!(
        "SELECT s.repo, s.digest, s.summary FROM scan_summaries s
         WHERE (s.repo, s.digest) >= ($1, $2) AND s.repo < $3 AND {IS_NEWEST} ORDER BY s.repo, s.digest LIMIT $4"
    );
    let first = from.0.as_str().max(range.lower.as_str());
    let digest = if first == from.0 { from.1.as_str() } else { "" };
    let most = i64::try_from(most).unwrap_or(i64::MAX);
    let params = [Value::from(first), Value::from(digest), Value::from(&range.upper), Value::Int(most)];
    tx.query(&sql, &params, |row| read(row, id)).await
}

/// Those of these images that have the vulnerability.
pub(super) async fn with(tx: &mut ReadTx, images: &BTreeSet<InRepo>, id: &str) -> Result<BTreeSet<InRepo>> {
    let images: Vec<&InRepo> = images.iter().collect();
    let mut with = BTreeSet::new();
    for part in images.chunks(AT_ONCE) {
        let mut sql = Sql::new("WITH wanted (repo, digest) AS (VALUES ");
        for (at, (repo, digest)) in part.iter().enumerate() {
            sql.bind(if at == 0 { "(" } else { ", (" }, repo).bind(", ", digest).push(")");
        }
        sql.push(") SELECT s.repo, s.digest, s.summary FROM wanted w CROSS JOIN scan_summaries s ");
        sql.push("WHERE s.repo = w.repo AND s.digest = w.digest AND ").push(IS_NEWEST);
        let rows = tx.query(&sql.text, &sql.params, |row| read(row, id)).await?;
        with.extend(rows.into_iter().filter(|(_, has)| *has).map(|(image, _)| image));
    }
    Ok(with)
}

fn read(row: &Row<'_>, id: &str) -> Result<(InRepo, bool)> {
    let ids: Ids = serde_json::from_str(&row.text(2)?).map_err(Error::internal)?;
    let has = ids.values().any(|ids| ids.contains(id));
    Ok(((row.text(0)?, row.text(1)?), has))
}
