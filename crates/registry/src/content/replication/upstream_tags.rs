//! Which tags came from an upstream, and may be moved by it, and when each was checked.

use bowline_core::{Error, Micros, Result, Uidp};
use bowline_store::{ReadTx, Row, Value, WriteTx};

/// Microseconds for which a tag counts as current after the upstream was asked.
const FRESH: Micros = 60 * 1_000_000;
/// Tags that a request to check all of them counts.
const COUNTED: i64 = 10_000;
/// The newest request to check all tags of the repository `$1`.
const GENERATION: &str = "coalesce((SELECT generation FROM upstream_generations WHERE repo = $1), 0)";

/// A tag that is written here no longer belongs to the upstream, wherever it came from.
pub(crate) async fn forget(tx: &mut WriteTx, repo: &Uidp, name: &str) -> Result<()> {
    let sql = "DELETE FROM upstream_tags WHERE repo = $1 AND tag = $2";
    tx.execute(sql, &[Value::from(repo.as_str()), Value::from(name)]).await?;
    Ok(())
}

/// Whether there is such a tag that does not come from an upstream: it was pushed, or written through the API.
pub(crate) async fn is_local_tag(tx: &mut ReadTx, repo: &Uidp, name: &str) -> Result<bool> {
    let sql = "SELECT t.uid FROM tags t LEFT JOIN upstream_tags u ON u.repo = t.parent AND u.tag = t.name
               WHERE t.parent = $1 AND t.name = $2 AND u.tag IS NULL";
    let params = [Value::from(repo.as_str()), Value::from(name)];
    Ok(tx.query_opt(sql, &params, |row| row.text(0).map_err(Error::from)).await?.is_some())
}

/// Whether a tag from an upstream is due for another request.
pub(super) async fn is_due(tx: &mut ReadTx, repo: &Uidp, tag: &str, now: Micros) -> Result<bool> {
    let sql = format!("SELECT checked_at, generation < {GENERATION} FROM upstream_tags WHERE repo = $1 AND tag = $2");
    let read = |row: &Row<'_>| Ok::<_, Error>((row.int(0)?, row.bool(1)?));
    let checked = tx.query_opt(&sql, &[Value::from(repo.as_str()), Value::from(tag)], read).await?;
    Ok(checked.is_some_and(|(at, is_outdated)| is_outdated || at + FRESH <= now))
}

/// Records that a tag is what the upstream has now.
pub(super) async fn note_tag(tx: &mut WriteTx, repo: &Uidp, tag: &str, now: Micros) -> Result<()> {
    let sql = format!(
        "INSERT INTO upstream_tags (repo, tag, checked_at, generation) VALUES ($1, $2, $3, {GENERATION})
         ON CONFLICT (repo, tag) DO UPDATE SET checked_at = excluded.checked_at, generation = excluded.generation"
    );
    tx.execute(&sql, &[Value::from(repo.as_str()), Value::from(tag), Value::Int(now)]).await?;
    Ok(())
}

/// Records a check of a tag. One that was pushed meanwhile has no row any more, and gets none.
pub(super) async fn note_check(tx: &mut WriteTx, repo: &Uidp, tag: &str, now: Micros) -> Result<()> {
    let sql =
        format!("UPDATE upstream_tags SET checked_at = $3, generation = {GENERATION} WHERE repo = $1 AND tag = $2");
    tx.execute(&sql, &[Value::from(repo.as_str()), Value::from(tag), Value::Int(now)]).await?;
    Ok(())
}

/// Makes every tag due; how many there are, up to [`COUNTED`].
pub(super) async fn check_all(tx: &mut WriteTx, repo: &Uidp) -> Result<i64> {
    let sql = "INSERT INTO upstream_generations (repo, generation) VALUES ($1, 1)
               ON CONFLICT (repo) DO UPDATE SET generation = upstream_generations.generation + 1";
    tx.execute(sql, &[Value::from(repo.as_str())]).await?;
    let sql = "SELECT count(*) FROM (SELECT tag FROM upstream_tags WHERE repo = $1 LIMIT $2) AS tags";
    let params = [Value::from(repo.as_str()), Value::Int(COUNTED)];
    Ok(tx.query_opt(sql, &params, |row| row.int(0).map_err(Error::from)).await?.unwrap_or(0))
}

/// The first replicated tag by name, if there is one.
pub(super) async fn first(tx: &mut ReadTx, repo: &Uidp) -> Result<Option<String>> {
    let sql = "SELECT tag FROM upstream_tags WHERE repo = $1 ORDER BY tag LIMIT 1";
    tx.query_opt(sql, &[Value::from(repo.as_str())], |row| row.text(0).map_err(Error::from)).await
}
