//! What becomes of advisories when their group goes: those in use keep it, those that are marked as deleted go with it.

use bowline_core::{Result, UidRange, Uidp};
use bowline_pipeline::Change;
use bowline_resources::groups::GroupContents;
use bowline_resources::list::{self, Listed};
use bowline_store::{Value, WriteTx};

use super::rows::{self, ALL, AdvisoryRow, DELETED, LOADED_AT_ONCE};
use crate::tables::TABLES;

/// What this domain holds of groups.
pub const GROUP_CONTENTS: GroupContents =
    GroupContents { tables: TABLES, delete: Some(|tx, group| Box::pin(delete_of_group(tx, group))) };

/// Deletes the advisories of a group that are marked as deleted: it has no others.
async fn delete_of_group(tx: &mut WriteTx, group: &Uidp) -> Result<Vec<Change>> {
    let below = UidRange::below(group.as_str());
    loop {
        let sql = format!("SELECT {} FROM advisories WHERE parent = $1 ORDER BY uid LIMIT $2", ALL.columns);
        let params = [Value::from(group.as_str()), Value::Int(LOADED_AT_ONCE as i64)];
        let gone: Vec<AdvisoryRow> = tx.query(&sql, &params, AdvisoryRow::read).await?;
        if gone.is_empty() {
            break;
        }
        for row in gone {
            rows::delete_aliases(tx, &row).await?;
            tx.execute("DELETE FROM advisories WHERE uid = $1", &[Value::from(row.uid.as_str())]).await?;
            list::count(tx, &ALL, &row.uid, -1).await?;
            list::count(tx, &DELETED, &row.uid, -1).await?;
        }
    }
    for table in ["advisory_events", "advisory_words", "advisory_event_origins"] {
        let sql = format!("DELETE FROM {table} WHERE advisory >= $1 AND advisory < $2");
        tx.execute(&sql, &[Value::from(&below.lower), Value::from(&below.upper)]).await?;
    }
    Ok(Vec::new())
}
