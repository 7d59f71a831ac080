//! How results are shown: the names of resources, of what they are in, and their digests.

use std::collections::BTreeMap;

use bowline_contract::bowline::search::v1::SearchHit;
use bowline_core::{Error, Result};
use bowline_pipeline::Authorized;
use bowline_store::{ReadTx, Row, Value};

use super::kinds::Kind;

/// The resources of these UIDPs that have names, in the given order; what is gone is left out.
pub(super) async fn of_uids<T>(
    tx: &mut ReadTx,
    call: &Authorized<T>,
    kind: Kind,
    uids: &[String],
) -> Result<Vec<SearchHit>> {
    let Some((table, digest)) = kind.table().filter(|_| !uids.is_empty()) else { return Ok(Vec::new()) };
    let sql = format!("SELECT uid, parent, name, {digest} FROM {table} WHERE uid IN ({})", positions(uids.len()));
    let params: Vec<Value<'_>> = uids.iter().map(Value::from).collect();
    let read = |row: &Row<'_>| {
        let (uid, parent, name, digest) = (row.text(0)?, row.text(1)?, row.text(2)?, row.text(3)?);
        Ok::<_, Error>((uid.clone(), SearchHit { uid, parent, name, digest, ..SearchHit::default() }))
    };
    let mut rows: BTreeMap<String, SearchHit> = tx.query(&sql, &params, read).await?.into_iter().collect();
    let mut hits: Vec<SearchHit> = uids.iter().filter_map(|uid| rows.remove(uid)).collect();
    name_parents(tx, call, kind.parent(), &mut hits).await?;
    Ok(hits)
}

/// An image of each of these repositories.
pub(super) async fn of_images<T>(
    tx: &mut ReadTx,
    call: &Authorized<T>,
    repos: &[String],
    digest: &str,
) -> Result<Vec<SearchHit>> {
    let hit = |repo: &String| SearchHit { uid: repo.clone(), digest: digest.into(), ..SearchHit::default() };
    let mut hits: Vec<SearchHit> = repos.iter().map(hit).collect();
    let names = names(tx, call, Kind::Repo, repos.iter().map(String::as_str).collect()).await?;
    for hit in &mut hits {
        hit.name = names.get(&hit.uid).cloned().unwrap_or_default();
        hit.parent = hit.uid.rsplit_once('/').map(|(parent, _)| parent.to_owned()).unwrap_or_default();
    }
    name_parents(tx, call, Kind::Group, &mut hits).await?;
    Ok(hits)
}

/// Adds the names of what the results are in, as far as the caller may list that.
pub(super) async fn name_parents<T>(
    tx: &mut ReadTx,
    call: &Authorized<T>,
    kind: Kind,
    hits: &mut [SearchHit],
) -> Result<()> {
    let names = names(tx, call, kind, hits.iter().map(|hit| hit.parent.as_str()).collect()).await?;
    for hit in hits {
        hit.parent_name = names.get(&hit.parent).cloned().unwrap_or_default();
    }
    Ok(())
}

/// The names of those resources that the caller may list.
async fn names<T>(
    tx: &mut ReadTx,
    call: &Authorized<T>,
    kind: Kind,
    mut uids: Vec<&str>,
) -> Result<BTreeMap<String, String>> {
    uids.sort_unstable();
    uids.dedup();
    uids.retain(|uid| !uid.is_empty() && kind.is_visible(call, uid));
    let Some((table, _)) = kind.table().filter(|_| !uids.is_empty()) else { return Ok(BTreeMap::new()) };
    let sql = format!("SELECT uid, name FROM {table} WHERE uid IN ({})", positions(uids.len()));
    let params: Vec<Value<'_>> = uids.iter().map(|uid| Value::from(*uid)).collect();
    let read = |row: &Row<'_>| Ok::<_, Error>((row.text(0)?, row.text(1)?));
    Ok(tx.query(&sql, &params, read).await?.into_iter().collect())
}

/// `$1, $2, …` for so many values.
fn positions(count: usize) -> String {
    (1..=count).map(|n| format!("${n}")).collect::<Vec<_>>().join(", ")
}
