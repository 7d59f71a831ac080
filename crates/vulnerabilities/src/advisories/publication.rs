//! Which groups publish, and that something of what they publish changed.

use bowline_core::Result;
use bowline_store::{Value, WriteTx};

/// Notes that what a group's advisories say changed; the servers of public documents look at the number. Groups that
/// publish nothing have no row to change, so that writers of theirs do not meet there.
pub(super) async fn note(tx: &mut WriteTx, group: &str) -> Result<()> {
    let sql = "UPDATE advisory_settings SET revision = revision + 1 WHERE place = $1 AND is_public";
    tx.execute(sql, &[Value::from(group)]).await?;
    Ok(())
}
