//! How many bytes of blobs lie below a group: each blob once, however many repositories there have it.
//!
//! They are maintained counts, so that a quota costs no scan: the sum of a scope is that of everything
//! recorded at and below it. A blob counts at its repository; where a sibling has the blob too, the group
//! that contains both subtracts it again. Of all repositories with the blob, one next to it in the order of
//! UIDPs shares the most with it.

use std::collections::BTreeMap;

use bowline_core::{Error, Result, UidRange, Uidp};
use bowline_store::counters::{self, Scope};
use bowline_store::{ReadTx, Row, Value, WriteTx};

const COLLECTION: &str = "blob_bytes";

/// Bytes of the different blobs of all repositories at and below `place`.
pub(super) async fn total(tx: &mut ReadTx, place: &str) -> Result<i64> {
    Ok(counters::total(tx, COLLECTION, &Scope::Subtree(place)).await?)
}

/// The same of many repositories; one that is not in the map has none.
pub(super) async fn totals(tx: &mut ReadTx, repos: &[&str]) -> Result<BTreeMap<String, i64>> {
    Ok(counters::totals(tx, COLLECTION, repos).await?)
}

/// Whether a repository at or below `place` has the blob.
pub(super) async fn contains(tx: &mut ReadTx, place: &str, digest: &str) -> Result<bool> {
    let UidRange { lower, upper } = UidRange::subtree(place);
    let sql = "SELECT digest FROM repo_blobs WHERE digest = $1 AND repo >= $2 AND repo < $3 LIMIT 1";
    let params = [Value::from(digest), Value::from(&lower), Value::from(&upper)];
    Ok(tx.query_opt(sql, &params, |row| row.text(0).map_err(Error::from)).await?.is_some())
}

/// Bytes of the open uploads at and below `place`, but for one upload.
pub(super) async fn of_open_uploads(tx: &mut ReadTx, place: &str, but: &str) -> Result<i64> {
    let UidRange { lower, upper } = UidRange::subtree(place);
    let sql = "SELECT CAST(coalesce(sum(bytes), 0) AS BIGINT) FROM uploads WHERE repo >= $1 AND repo < $2 AND id <> $3";
    let params = [Value::from(&lower), Value::from(&upper), Value::from(but)];
    Ok(tx.query_opt(sql, &params, |row| row.int(0).map_err(Error::from)).await?.unwrap_or_default())
}

/// Counts a blob that was just linked.
pub(super) async fn count_blob(tx: &mut WriteTx, repo: &Uidp, digest: &str) -> Result<()> {
    record(tx, repo, "AND l.digest = $2", &[Value::from(repo.as_str()), Value::from(digest)], 1).await
}

/// Takes off a blob whose link is about to go.
pub(super) async fn discount_blob(tx: &mut WriteTx, repo: &Uidp, digest: &str) -> Result<()> {
    record(tx, repo, "AND l.digest = $2", &[Value::from(repo.as_str()), Value::from(digest)], -1).await
}

/// Takes off all blobs of a repository that is about to go.
pub(super) async fn discount_repo(tx: &mut WriteTx, repo: &Uidp) -> Result<()> {
    record(tx, repo, "", &[Value::from(repo.as_str())], -1).await
}

async fn record(tx: &mut WriteTx, repo: &Uidp, which: &str, params: &[Value<'_>], sign: i64) -> Result<()> {
    let sql = format!(
        "SELECT b.size,
                (SELECT max(o.repo) FROM repo_blobs o WHERE o.digest = l.digest AND o.repo < l.repo),
                (SELECT min(o.repo) FROM repo_blobs o WHERE o.digest = l.digest AND o.repo > l.repo)
         FROM repo_blobs l JOIN blobs b ON b.digest = l.digest WHERE l.repo = $1 {which}"
    );
    let read = |row: &Row<'_>| Ok::<_, Error>((row.int(0)?, [row.opt_text(1)?, row.opt_text(2)?]));
    let mut sums: BTreeMap<&str, i64> = BTreeMap::new();
    for (size, beside) in tx.query(&sql, params, read).await? {
        *sums.entry(repo.as_str()).or_default() += size;
        if let Some(place) = shared(repo, &beside) {
            *sums.entry(place).or_default() -= size;
        }
    }
    for (place, sum) in sums.into_iter().filter(|(_, sum)| *sum != 0) {
        counters::record(tx, COLLECTION, place, sum * sign).await?;
    }
    Ok(())
}

/// The deepest group above the repository that one of the others is in.
fn shared<'a>(repo: &'a Uidp, others: &[Option<String>]) -> Option<&'a str> {
    repo.self_and_ancestors().skip(1).find(|group| {
        let is_inside = |other: &String| other.strip_prefix(*group).is_some_and(|rest| rest.starts_with('/'));
        others.iter().flatten().any(is_inside)
    })
}
