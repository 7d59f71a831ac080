//! Takes the snapshots of one resource out of the audit log. Their hashes stay, so that the chains still hold.

use bowline_core::{Error, Micros, Result};
use bowline_store::{Value, WriteTx};

use super::number::numbered_to;
use crate::changed::Change;
use crate::record::{Actor, record_audit};

/// What was taken out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Erased {
    /// Rows that lost their snapshots.
    pub rows: u64,
    /// Rows whose snapshots must stay until they are numbered.
    pub waiting: i64,
}

const ERASE: &str = "
UPDATE audit SET before_image = NULL, after_image = NULL
WHERE resource = $1 AND seq IS NOT NULL AND (before_image IS NOT NULL OR after_image IS NOT NULL)";

const WAITING: &str = "
SELECT count(*) FROM audit
WHERE seq IS NULL AND id > $2 AND resource = $1 AND (before_image IS NOT NULL OR after_image IS NOT NULL)";

/// Erases all numbered snapshots of the resource, and records that.
pub async fn erase_snapshots(tx: &mut WriteTx, resource: &str, actor: &Actor<'_>, now: Micros) -> Result<Erased> {
    let rows = tx.execute(ERASE, &[Value::from(resource)]).await?;
    let params = [Value::from(resource), Value::Int(numbered_to(tx).await?)];
    let waiting = tx.query_opt(WAITING, &params, |row| row.int(0).map_err(Error::from)).await?;
    if rows > 0 {
        let change = Change { kind: "bowline.dev/AuditImages", uid: resource.into(), before: None, after: None };
        record_audit(tx, now, actor, &change).await?;
    }
    Ok(Erased { rows, waiting: waiting.unwrap_or(0) })
}

#[cfg(test)]
mod tests {
    use bowline_store::{Db, MIGRATIONS, SqliteOptions};

    use super::*;

    #[tokio::test]
    async fn nothing_reads_the_whole_log_while_others_wait_to_write() {
        let directory = tempfile::tempdir().unwrap();
        let db = Db::open_sqlite(&directory.path().join("test.db"), SqliteOptions::default()).await.unwrap();
        db.migrate(MIGRATIONS).await.unwrap();
        for sql in [ERASE, WAITING] {
            let plan = db.read(move |tx| {
                Box::pin(async move {
                    let explained = format!("EXPLAIN QUERY PLAN {sql}");
                    let params = [Value::from("a"), Value::Int(0)];
                    let params = if sql.contains("$2") { &params[..] } else { &params[..1] };
                    tx.query(&explained, params, |row| row.text(3).map_err(Error::from)).await
                })
            });
            let plan = plan.await.unwrap().join("; ");
            assert!(plan.contains("SEARCH audit") && !plan.contains("SCAN"), "{sql}: {plan}");
        }
    }
}
