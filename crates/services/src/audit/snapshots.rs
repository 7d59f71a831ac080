//! Entries as callers see them, with and without the snapshots.

use bowline_contract::bowline::audit::v1::{Entry, Image};
use bowline_core::{Error, Result, hex};
use bowline_pipeline::Authorized;
use bowline_resources::list::timestamp;
use bowline_store::{ReadTx, Value};

use super::scan::Row;

/// Bytes of snapshots that one response carries at most; the entry that goes past it is still whole.
const MAX_SNAPSHOT_BYTES: usize = 2 << 20;

/// The row as an entry without snapshots.
pub(super) fn entry<T>(call: &Authorized<T>, row: &Row) -> Entry {
    let snapshot = |side: &Option<(String, Vec<u8>)>| {
        side.as_ref().map(|(name, hash)| Image { r#type: name.clone(), hash: hex(hash), content: None })
    };
    let global = call.reads_server();
    Entry {
        sequence: row.org_seq,
        global_sequence: if global { row.seq } else { 0 },
        organization: row.org.clone(),
        time: timestamp(row.at),
        actor: row.actor.clone(),
        method: row.method.clone(),
        request_id: row.request_id.clone(),
        kind: row.kind.clone(),
        resource: row.resource.clone(),
        before: snapshot(&row.before),
        after: snapshot(&row.after),
        hash: hex(&row.org_hash),
        global_hash: if global { hex(&row.hash) } else { String::new() },
    }
}

/// The rows as entries with snapshots, as many as one response can carry.
pub(super) async fn entries<T>(tx: &mut ReadTx, call: &Authorized<T>, rows: &[Row]) -> Result<Vec<Entry>> {
    let mut entries = Vec::with_capacity(rows.len());
    let mut bytes = 0;
    for row in rows {
        let (entry, size) = with_snapshots(tx, call, row).await?;
        entries.push(entry);
        bytes += size;
        if bytes > MAX_SNAPSHOT_BYTES {
            break;
        }
    }
    Ok(entries)
}

async fn with_snapshots<T>(tx: &mut ReadTx, call: &Authorized<T>, row: &Row) -> Result<(Entry, usize)> {
    let mut entry = entry(call, row);
    if row.before.is_none() && row.after.is_none() {
        return Ok((entry, 0));
    }
    let sql = "SELECT before_image, after_image FROM audit WHERE seq IS NOT NULL AND seq = $1";
    let read = |row: &bowline_store::Row<'_>| Ok::<_, Error>((row.opt_bytes(0)?, row.opt_bytes(1)?));
    let (before, after) = tx.query_opt(sql, &[Value::Int(row.seq)], read).await?.unwrap_or_default();
    let size = before.as_ref().map_or(0, Vec::len) + after.as_ref().map_or(0, Vec::len);
    for (snapshot, bytes) in [(&mut entry.before, before), (&mut entry.after, after)] {
        let (Some(snapshot), Some(value)) = (snapshot, bytes) else { continue };
        // A message of a newer release cannot be written as JSON here.
        if call.contract().pool().get_message_by_name(&snapshot.r#type).is_some() {
            let type_url = format!("type.googleapis.com/{}", snapshot.r#type);
            snapshot.content = Some(prost_types::Any { type_url, value });
        }
    }
    Ok((entry, size))
}
