//! How many documents of an upstream are stored.

use bowline_core::{Error, Micros, Result, Uidp};
use bowline_store::{Value, WriteTx};

use super::{documents, go, known_versions};
use crate::ecosystems::Language;

/// Documents of an upstream, and how many are forgotten at once where there are as many.
const DOCUMENTS: i64 = 10_000;
const FORGOTTEN: i64 = 100;
/// Lists that are forgotten at once: each is read whole, and may be long.
const LISTS_FORGOTTEN: i64 = 10;
/// Documents beside them that have the statements about a file.
const STATEMENTS: i64 = 1000;
/// Which documents of Go are forgotten first.
const GO_FIRST: &str = "CASE WHEN d.package LIKE '%@%' THEN 0 WHEN EXISTS (SELECT 1 FROM upstream_files f
  WHERE f.upstream = d.upstream AND f.package = d.package) THEN 2 ELSE 1 END,";

/// Forgets the documents that were confirmed longest ago where an upstream has as many as it may: readers choose the names. Of
/// Go, those of single versions go first, and lists of modules in use last. Which versions were seen is kept, one document after
/// the other, since they may be long.
///
/// Statements about files, which may be long, have room of their own.
pub(super) async fn make(
    tx: &mut WriteTx,
    upstream: &Uidp,
    language: Language,
    of_statements: bool,
    now: Micros,
) -> Result<()> {
    // The space is in no name of a package.
    let which = if of_statements { "package LIKE '% %'" } else { "package NOT LIKE '% %'" };
    let (most, order, forgotten) = match language {
        _ if of_statements => (STATEMENTS, "", FORGOTTEN),
        Language::Go => (DOCUMENTS, GO_FIRST, FORGOTTEN),
        _ => (DOCUMENTS, "", LISTS_FORGOTTEN),
    };
    let sql = format!(
        "SELECT count(*) FROM (SELECT 1 FROM upstream_documents WHERE upstream = $1 AND {which} LIMIT $2) AS stored"
    );
    let params = [Value::from(upstream.as_str()), Value::Int(most)];
    let count = tx.query_opt(&sql, &params, |row| row.int(0).map_err(Error::from)).await?.unwrap_or_default();
    if count < most {
        return Ok(());
    }
    let sql = format!(
        "SELECT d.package FROM upstream_documents d WHERE d.upstream = $1 AND d.{which}
         ORDER BY {order} d.fetched_at LIMIT $2"
    );
    let params = [Value::from(upstream.as_str()), Value::Int(forgotten)];
    for package in tx.query(&sql, &params, |row| row.text(0).map_err(Error::from)).await? {
        let is_list = !of_statements && (language != Language::Go || go::module_of_key(&package).is_none());
        if is_list && let Some(row) = documents::find(tx, upstream, &package).await? {
            known_versions::add(tx, upstream, (&package, row.into_document()), now).await?;
        }
        let sql = "DELETE FROM upstream_documents WHERE upstream = $1 AND package = $2";
        tx.execute(sql, &[Value::from(upstream.as_str()), Value::from(&package)]).await?;
    }
    known_versions::make_room(tx, upstream).await
}
