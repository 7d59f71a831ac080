//! Beginning an import, or going on with one.

use bowline_contract::bowline::feeds::v1 as feeds;
use bowline_core::{Error, Result, Uidp};
use bowline_pipeline::{Authorized, Changed, OPERATOR};
use bowline_resources::kinds::RECORD_IMPORT;
use bowline_store::{Value, WriteTx};
use feeds::ImportState;

use super::import_row::{self, ImportRow};
use super::sources;

pub(super) async fn begin(
    tx: &mut WriteTx,
    call: &Authorized<feeds::BeginImportRequest>,
) -> Result<Changed<feeds::RecordImport>> {
    let request = call.request();
    let source = sources::find(tx, &request.source).await?;
    let generation = source.as_ref().map_or(0, |source| source.generation);
    if request.generation.is_some_and(|compared| compared != generation) {
        let description = "the source was imported since its records were compared; compare them again";
        return Err(Error::precondition("SOURCE_CHANGED", &request.source, description));
    }
    if let Some(open) = import_row::unfinished(tx, &request.source).await? {
        return claim(tx, go_on(open, request)?).await;
    }
    if source.is_none() {
        sources::create(tx, request).await?;
    }
    let root = Uidp::parse(OPERATOR).map_err(Error::internal)?;
    let uid = call.new_child(&root);
    insert(tx, call, &uid, generation + 1).await?;
    let import = import_row::require(tx, uid.as_str()).await?.to_message();
    Ok(Changed::one(RECORD_IMPORT, &uid, None, Some(&import), import.clone()))
}

/// The import that is open, if it is the same one.
fn go_on(open: ImportRow, request: &feeds::BeginImportRequest) -> Result<ImportRow> {
    if open.state != ImportState::Open {
        let description = format!("the import {} of it is being cleared away; try again in a moment", open.uid);
        return Err(Error::precondition("IMPORT_CLEARING", &request.source, description));
    }
    let same = (&open.licence, &open.url, open.full) == (&request.licence, &request.url, request.full);
    if !same {
        let description = format!(
            "the import {} of it is open, with another licence, address or extent; commit it or give it up",
            open.uid
        );
        return Err(Error::precondition("IMPORT_OPEN", &request.source, description));
    }
    Ok(open)
}

/// Makes the import the caller's: batches of the client that began it before are refused from now on.
async fn claim(tx: &mut WriteTx, open: ImportRow) -> Result<Changed<feeds::RecordImport>> {
    let before = open.to_message();
    let sql = "UPDATE record_imports SET attempt = attempt + 1 WHERE uid = $1";
    tx.execute(sql, &[Value::from(&open.uid)]).await?;
    let after = import_row::require(tx, &open.uid).await?.to_message();
    let uid = Uidp::parse(&open.uid).map_err(Error::internal)?;
    Ok(Changed::one(RECORD_IMPORT, &uid, Some(&before), Some(&after), after.clone()))
}

async fn insert(
    tx: &mut WriteTx,
    call: &Authorized<feeds::BeginImportRequest>,
    uid: &Uidp,
    generation: i64,
) -> Result<()> {
    let request = call.request();
    let sql =
        "INSERT INTO record_imports (uid, source, state, is_full, licence, url, generation, added, changed, removed,
                                           begun_at, touched_at)
               VALUES ($1, $2, $3, $4, $5, $6, $7, 0, 0, 0, $8, $8)";
    let params = [
        Value::from(uid.as_str()),
        Value::from(&request.source),
        Value::Int(ImportState::Open as i64),
        Value::Bool(request.full),
        Value::from(&request.licence),
        Value::from(&request.url),
        Value::Int(generation),
        Value::Int(call.now()),
    ];
    tx.execute(sql, &params).await?;
    Ok(())
}
