//! What a source has and what an import has staged, as ids with digests: what an importing client compares with.

use bowline_contract::bowline::feeds::v1 as feeds;
use bowline_contract::bowline::feeds::v1::rpc::record_imports::{ListRecords, ListStaged};
use bowline_core::{Error, Result};
use bowline_pipeline::{Authorized, Handlers, handler};
use bowline_store::{ReadTx, Row, Value};

use super::{import_row, sources};

pub(super) fn register(handlers: Handlers) -> Handlers {
    handlers.read::<ListRecords>(handler!(records)).read::<ListStaged>(handler!(staged))
}

/// Maximum number of records of a page: 64 bytes each.
const MAX_PAGE_SIZE: usize = 5000;

fn limit(page_size: i32) -> Result<usize> {
    match usize::try_from(page_size) {
        Ok(0) => Ok(MAX_PAGE_SIZE),
        Ok(size) => Ok(size.min(MAX_PAGE_SIZE)),
        Err(_) => Err(Error::invalid_field("pageSize", "must not be negative")),
    }
}

async fn records(tx: &mut ReadTx, call: &Authorized<feeds::ListRecordsRequest>) -> Result<feeds::ListRecordsResponse> {
    let request = call.request();
    let size = limit(request.page_size)?;
    let Some(source) = sources::find(tx, &request.source).await? else {
        return Ok(feeds::ListRecordsResponse::default());
    };
    let sql = "SELECT id, digest FROM records
               WHERE source = $1 AND id > $2 AND since <= $3 AND until > $3 ORDER BY id LIMIT $4";
    let params = [
        Value::Int(source.number),
        Value::from(&request.after_id),
        Value::Int(source.generation),
        Value::Int(size as i64 + 1),
    ];
    let mut records = tx.query(sql, &params, read).await?;
    let more = records.len() > size;
    records.truncate(size);
    Ok(feeds::ListRecordsResponse { records, more, generation: source.generation, licence: source.licence })
}

async fn staged(tx: &mut ReadTx, call: &Authorized<feeds::ListStagedRequest>) -> Result<feeds::ListStagedResponse> {
    let request = call.request();
    let import = import_row::require_open(tx, &request.uid, None).await?;
    let size = limit(request.page_size)?;
    let params = [
        Value::Int(import.source_number),
        Value::Int(import.generation),
        Value::from(&request.after_id),
        Value::Int(size as i64 + 1),
    ];
    let sql = "SELECT id, digest FROM records WHERE source = $1 AND since = $2 AND id > $3 ORDER BY id LIMIT $4";
    let mut records = tx.query(sql, &params, read).await?;
    // A row that ends and has no successor is removed.
    let sql = format!(
        "SELECT r.id FROM records r {}
         WHERE r.source = $1 AND r.until = $2 AND r.until < 2147483647 AND r.id > $3
           AND NOT EXISTS (SELECT 1 FROM records n WHERE n.id = r.id AND n.source = $1 AND n.since = $2)
         ORDER BY r.id LIMIT $4",
        tx.index_hint("records_by_until")
    );
    let removed = |row: &Row<'_>| -> Result<_> { Ok(feeds::RecordDigest { id: row.text(0)?, digest: Vec::new() }) };
    records.extend(tx.query(&sql, &params, removed).await?);
    records.sort_by(|one, other| one.id.cmp(&other.id));
    let more = records.len() > size;
    records.truncate(size);
    Ok(feeds::ListStagedResponse { records, more })
}

fn read(row: &Row<'_>) -> Result<feeds::RecordDigest> {
    Ok(feeds::RecordDigest { id: row.text(0)?, digest: row.bytes(1)? })
}
