//! SBOMs whose components are not indexed, and why.

use std::collections::BTreeSet;

use bowline_contract::bowline::registry::v1 as own;
use bowline_core::{Error, Result, UidRange};
use bowline_pipeline::{Authorized, Direction, Page, PageRequest, SortKey};
use bowline_store::{ReadTx, Row, Value};
use prost::Message as _;

use super::{links, within};

/// Maximum number that is counted.
const MAX_COUNTED: i64 = 1000;

/// SBOMs of a range from a place on that are not indexed and that a manifest of their repository names.
fn statement(tx: &ReadTx, columns: &str) -> String {
    let hint = tx.index_hint("repo_sboms_unindexed");
    format!(
        "SELECT {columns} FROM repo_sboms s {hint}
         WHERE s.repo >= $1 AND s.repo < $2 AND (s.repo, s.sbom) > ($1, $3) AND s.state <> 0
           AND EXISTS (SELECT 1 FROM manifest_references f JOIN repo_manifests m ON m.digest = f.manifest
                       AND m.repo = s.repo WHERE f.digest = s.digest AND f.kind = 2)
         ORDER BY s.repo, s.sbom LIMIT $4"
    )
}

/// How many there are in the ranges, up to a bound.
pub async fn count(tx: &mut ReadTx, ranges: &[UidRange]) -> Result<i32> {
    let mut count = 0;
    for UidRange { lower, upper } in ranges {
        let sql = format!("SELECT count(*) FROM ({}) unindexed", statement(tx, "s.repo"));
        let nothing: &[u8] = &[];
        let left = Value::Int(MAX_COUNTED - count);
        let params = [Value::from(lower), Value::from(upper), Value::from(nothing), left];
        let found = tx.query_opt(&sql, &params, |row| row.int(0).map_err(Error::from)).await?;
        count += found.unwrap_or_default();
    }
    Ok(i32::try_from(count).unwrap_or(i32::MAX))
}

/// How many components of indexed SBOMs in the ranges no record can be compared with, up to a bound: each in each SBOM.
///
/// # Errors
/// Those of the database.
pub async fn uncompared_components(tx: &mut ReadTx, ranges: &[UidRange]) -> Result<i32> {
    let mut count = 0;
    for UidRange { lower, upper } in ranges {
        let hint = tx.index_hint("repo_sboms_uncompared");
        let sql = format!(
            "SELECT CAST(coalesce(sum(uncompared), 0) AS BIGINT) FROM
               (SELECT s.uncompared FROM repo_sboms s {hint} WHERE s.repo >= $1 AND s.repo < $2 AND s.uncompared <> 0
                  AND EXISTS (SELECT 1 FROM manifest_references f JOIN repo_manifests m ON m.digest = f.manifest
                              AND m.repo = s.repo WHERE f.digest = s.digest AND f.kind = 2)
                ORDER BY s.repo, s.sbom LIMIT $3) counted"
        );
        let params = [Value::from(lower), Value::from(upper), Value::Int(MAX_COUNTED)];
        let found = tx.query_opt(&sql, &params, |row| row.int(0).map_err(Error::from)).await?;
        count = MAX_COUNTED.min(count + found.unwrap_or_default());
    }
    Ok(i32::try_from(count).unwrap_or(i32::MAX))
}

/// An SBOM of a repository, by the number that orders it.
struct SbomRow {
    id: Vec<u8>,
    shown: own::UnindexedSbom,
}

pub(super) async fn list(
    tx: &mut ReadTx,
    call: &Authorized<own::ListUnindexedSbomsRequest>,
) -> Result<own::ListUnindexedSbomsResponse> {
    let request = call.request();
    let filter = own::ListUnindexedSbomsRequest { page_size: 0, page_token: String::new(), ..request.clone() };
    let page = PageRequest {
        page_size: request.page_size,
        page_token: request.page_token.clone(),
        filter: filter.encode_to_vec(),
        ..PageRequest::default()
    };
    let page = Page::validate(call, &page, &[&["repo"]], (0, Direction::Ascending))?;
    let mut rows = rows(tx, &within(call.visible(), &request.scope), &page).await?;
    let has_more = rows.len() > page.size;
    rows.truncate(page.size);
    let next = rows.last().filter(|_| has_more).map(|last| {
        let id = serde_json::json!(last.id).to_string();
        page.next_token(call, Some(SortKey::Text(last.shown.repo_uid.clone())), id)
    });
    let repos: BTreeSet<&str> = rows.iter().map(|row| row.shown.repo_uid.as_str()).collect();
    let names = links::repo_names(tx, &repos).await?;
    let named = |row: SbomRow| {
        let repo_name = names.get(&row.shown.repo_uid).cloned().unwrap_or_default();
        own::UnindexedSbom { repo_name, ..row.shown }
    };
    let sboms = rows.into_iter().map(named).collect();
    Ok(own::ListUnindexedSbomsResponse { sboms, next_page_token: next.unwrap_or_default() })
}

/// The rows of the page, and one more if there are more.
async fn rows(tx: &mut ReadTx, ranges: &[UidRange], page: &Page) -> Result<Vec<SbomRow>> {
    let (mut from, mut after) = (String::new(), Vec::new());
    if let Some(cursor) = &page.cursor
        && let Some(SortKey::Text(repo)) = &cursor.key
    {
        from.clone_from(repo);
        after = serde_json::from_str(&cursor.uid).map_err(Error::internal)?;
    }
    let mut rows: Vec<SbomRow> = Vec::new();
    for UidRange { lower, upper } in ranges.iter().filter(|range| range.upper > from) {
        let sql = statement(tx, "s.repo, s.digest, s.state, s.sbom");
        let (first, after): (&str, &[u8]) = if from >= *lower { (&from, &after) } else { (lower, &[]) };
        let left = Value::Int((page.size + 1 - rows.len()) as i64);
        let params = [Value::from(first), Value::from(upper), Value::from(after), left];
        rows.extend(tx.query(&sql, &params, sbom_row).await?);
    }
    Ok(rows)
}

fn sbom_row(row: &Row<'_>) -> Result<SbomRow> {
    let shown = own::UnindexedSbom {
        repo_uid: row.text(0)?,
        repo_name: String::new(),
        digest: row.text(1)?,
        reason: i32::try_from(row.int(2)?).unwrap_or_default(),
    };
    Ok(SbomRow { id: row.bytes(3)?, shown })
}
