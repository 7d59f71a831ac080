//! Where records come from.

use bowline_contract::bowline::feeds::v1 as feeds;
use bowline_contract::bowline::feeds::v1::rpc::record_imports::ListSources;
use bowline_core::{Error, Result};
use bowline_pipeline::{Authorized, Handlers, handler};
use bowline_resources::list::timestamp;
use bowline_store::{ReadTx, Row, Value, WriteTx};

pub(super) fn register(handlers: Handlers) -> Handlers {
    handlers.read::<ListSources>(handler!(list))
}

const MAX_SOURCES: i64 = 1000;

/// A source, as it is stored.
#[derive(Clone, Debug)]
pub(super) struct SourceRow {
    pub(super) number: i64,
    pub(super) licence: String,
    pub(super) generation: i64,
}

/// The source of that name, if it was ever imported.
pub(super) async fn find(tx: &mut ReadTx, name: &str) -> Result<Option<SourceRow>> {
    let sql = "SELECT number, licence, generation FROM record_sources WHERE name = $1";
    let read = |row: &Row<'_>| -> Result<SourceRow> {
        Ok(SourceRow { number: row.int(0)?, licence: row.text(1)?, generation: row.int(2)? })
    };
    tx.query_opt(sql, &[Value::from(name)], read).await
}

/// Makes a source without records.
///
/// # Errors
/// QUOTA_EXCEEDED where there are too many.
pub(super) async fn create(tx: &mut WriteTx, request: &feeds::BeginImportRequest) -> Result<SourceRow> {
    let sql = "SELECT count(*), COALESCE(max(number), 0) FROM record_sources";
    let numbers = |row: &Row<'_>| Ok::<_, Error>((row.int(0)?, row.int(1)?));
    let (sources, last) = tx.query_opt(sql, &[], numbers).await?.unwrap_or_default();
    if sources >= MAX_SOURCES {
        return Err(Error::quota(&request.source, format!("there are {MAX_SOURCES} sources, and no more are taken")));
    }
    let sql = "INSERT INTO record_sources (name, number, licence, url, generation, records)
               VALUES ($1, $2, $3, $4, 0, 0)";
    let params =
        [Value::from(&request.source), Value::Int(last + 1), Value::from(&request.licence), Value::from(&request.url)];
    tx.execute(sql, &params).await?;
    Ok(SourceRow { number: last + 1, licence: request.licence.clone(), generation: 0 })
}

async fn list(tx: &mut ReadTx, _: &Authorized<feeds::ListSourcesRequest>) -> Result<feeds::ListSourcesResponse> {
    let sql = "SELECT s.name, s.licence, s.url, s.records, s.generation, s.imported_at, i.uid
               FROM record_sources s LEFT JOIN record_imports i ON i.source = s.name AND i.ended_at IS NULL
               ORDER BY s.name LIMIT $1";
    let read = |row: &Row<'_>| {
        Ok::<_, Error>(feeds::RecordSource {
            name: row.text(0)?,
            licence: row.text(1)?,
            url: row.text(2)?,
            records: row.int(3)?,
            generation: row.int(4)?,
            import_time: row.opt_int(5)?.and_then(timestamp),
            open_import_uid: row.opt_text(6)?.unwrap_or_default(),
        })
    };
    Ok(feeds::ListSourcesResponse { sources: tx.query(sql, &[Value::Int(MAX_SOURCES)], read).await? })
}
