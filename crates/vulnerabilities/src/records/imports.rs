//! The methods of imports: get, list, commit, abort.

use bowline_contract::bowline::feeds::v1 as feeds;
use bowline_contract::bowline::feeds::v1::rpc::record_imports as methods;
use bowline_core::{Error, Result, Uidp};
use bowline_pipeline::{Authorized, Changed, Direction, Handlers, Page, PageRequest, SortKey, handler};
use bowline_resources::kinds::RECORD_IMPORT;
use bowline_store::{ReadTx, Value, WriteTx};
use feeds::ImportState;

use super::import_row::{self, ImportRow};
use super::{begin, sweep};

pub(super) fn register(handlers: Handlers) -> Handlers {
    handlers
        .write::<methods::BeginImport>(handler!(begin::begin))
        .read::<methods::GetImport>(handler!(get))
        .read::<methods::ListImports>(handler!(list))
        .write::<methods::CommitImport>(handler!(commit))
        .write::<methods::AbortImport>(handler!(abort))
}

async fn get(tx: &mut ReadTx, call: &Authorized<feeds::GetImportRequest>) -> Result<feeds::RecordImport> {
    Ok(import_row::require(tx, &call.request().uid).await?.to_message())
}

async fn list(tx: &mut ReadTx, call: &Authorized<feeds::ListImportsRequest>) -> Result<feeds::ListImportsResponse> {
    let request = call.request();
    let paging = PageRequest {
        page_size: request.page_size,
        page_token: request.page_token.clone(),
        filter: request.source.clone().into(),
        ..PageRequest::default()
    };
    let page = Page::validate(call, &paging, &[&["begin_time"]], (0, Direction::Descending))?;
    let after = page.cursor.as_ref().and_then(|cursor| match cursor.key {
        Some(SortKey::Int(at)) => Some((at, cursor.uid.as_str())),
        _ => None,
    });
    let mut rows = import_row::newest(tx, &request.source, after, page.size + 1).await?;
    let mut next_page_token = String::new();
    if rows.len() > page.size {
        rows.truncate(page.size);
        if let Some(last) = rows.last() {
            next_page_token = page.next_token(call, Some(SortKey::Int(last.begun_at)), last.uid.clone());
        }
    }
    Ok(feeds::ListImportsResponse { imports: rows.iter().map(ImportRow::to_message).collect(), next_page_token })
}

/// Makes what was staged visible: one row of the source changes, however much was staged.
async fn commit(
    tx: &mut WriteTx,
    call: &Authorized<feeds::CommitImportRequest>,
) -> Result<Changed<feeds::RecordImport>> {
    let import = import_row::require_open(tx, &call.request().uid, call.request().attempt).await?;
    let before = import.to_message();
    let counts = import.counts;
    // An import that brings nothing new makes no generation: nothing that was read before has changed.
    let generation = if counts.is_nothing() { import.generation - 1 } else { import.generation };
    let sql =
        "UPDATE record_sources SET generation = $1, records = records + $2, licence = $3, url = $4, imported_at = $5
               WHERE name = $6";
    let params = [
        Value::Int(generation),
        Value::Int(counts.added - counts.removed),
        Value::from(&import.licence),
        Value::from(&import.url),
        Value::Int(call.now()),
        Value::from(&import.source),
    ];
    tx.execute(sql, &params).await?;
    end(tx, &import, ImportState::Committed, Some(call.now())).await?;
    let after = import_row::require(tx, &import.uid).await?.to_message();
    let uid = Uidp::parse(&import.uid).map_err(Error::internal)?;
    let changed = Changed::one(RECORD_IMPORT, &uid, Some(&before), Some(&after), after.clone());
    Ok(if counts.is_nothing() { changed } else { changed.with_event(&uid, &after) })
}

/// Aborts an import, and deletes a part of its staged rows.
async fn abort(tx: &mut WriteTx, call: &Authorized<feeds::AbortImportRequest>) -> Result<Changed<feeds::RecordImport>> {
    let import = import_row::require(tx, &call.request().uid).await?;
    let before = import.to_message();
    match import.state {
        ImportState::Aborted => return Ok(Changed::nothing(before)),
        ImportState::Open => end(tx, &import, ImportState::Aborting, None).await?,
        ImportState::Aborting => {}
        ImportState::Committed | ImportState::Unspecified => {
            let description = "the import was committed; import the source again to change it";
            return Err(Error::precondition("IMPORT_ENDED", &import.uid, description));
        }
    }
    sweep::clear(tx, &import, call.now()).await?;
    let after = import_row::require(tx, &import.uid).await?.to_message();
    if import.state != ImportState::Open {
        return Ok(Changed::nothing(after));
    }
    let uid = Uidp::parse(&import.uid).map_err(Error::internal)?;
    Ok(Changed::one(RECORD_IMPORT, &uid, Some(&before), Some(&after), after.clone()))
}

/// Sets the state of an import.
pub(super) async fn end(tx: &mut WriteTx, import: &ImportRow, state: ImportState, at: Option<i64>) -> Result<()> {
    let sql = "UPDATE record_imports SET state = $1, ended_at = $2 WHERE uid = $3";
    let params = [Value::Int(state as i64), Value::OptInt(at), Value::from(&import.uid)];
    tx.execute(sql, &params).await?;
    Ok(())
}
