//! Which tags came from an upstream, and may be moved by it.

use bowline_core::{Error, Result, Uidp};
use bowline_store::{ReadTx, Value, WriteTx};

/// A tag that is written here no longer belongs to the upstream, wherever it came from.
pub(crate) async fn forget(tx: &mut WriteTx, repo: &Uidp, name: &str) -> Result<()> {
    let sql = "DELETE FROM upstream_tags WHERE repo = $1 AND tag = $2";
    tx.execute(sql, &[Value::from(repo.as_str()), Value::from(name)]).await?;
    Ok(())
}

/// Whether there is such a tag that no upstream has a say in: it was pushed, or written through the API.
pub(crate) async fn is_ours(tx: &mut ReadTx, repo: &Uidp, name: &str) -> Result<bool> {
    let sql = "SELECT t.uid FROM tags t LEFT JOIN upstream_tags u ON u.repo = t.parent AND u.tag = t.name
               WHERE t.parent = $1 AND t.name = $2 AND u.tag IS NULL";
    let params = [Value::from(repo.as_str()), Value::from(name)];
    Ok(tx.query_opt(sql, &params, |row| row.text(0).map_err(Error::from)).await?.is_some())
}
