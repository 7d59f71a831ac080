//! Which versions were seen of packages whose documents were forgotten for want of room.

use bowline_contract::bowline::libraries::v1::UpstreamDocument;
use bowline_core::{Error, Micros, Result, Uidp};
use bowline_store::{ReadTx, Value, WriteTx};
use prost::Message as _;

use super::first_seen;
use crate::ecosystems::Language;

/// Packages of an upstream of which that is kept, and how many of them are dropped at once where there are as many.
const PACKAGES: i64 = 20_000;
const DROPPED: i64 = 100;
/// Packages of which that is kept when an upstream has another account, and bytes of their lists: all of that is one transaction.
const MOVED: i64 = 1000;
const MOVED_BYTES: i64 = 32 << 20;
/// Bytes below which a list has no version.
const EMPTY: i64 = 16;

/// Versions of a package that are kept, the youngest: others are new when they are read again.
const VERSIONS: usize = 5000;

/// Keeps what was seen of a package whose document is forgotten: up to 5,000 versions, the youngest ones.
pub(super) async fn add(
    tx: &mut WriteTx,
    upstream: &Uidp,
    (package, document): (&str, UpstreamDocument),
    now: Micros,
) -> Result<()> {
    let sql = "INSERT INTO upstream_known_versions (upstream, package, forgotten_at, document) VALUES ($1, $2, $3, $4)
               ON CONFLICT (upstream, package) DO UPDATE SET forgotten_at = excluded.forgotten_at,
                 document = excluded.document";
    let document = first_seen::all_gone(document, VERSIONS).encode_to_vec();
    let params = [Value::from(upstream.as_str()), Value::from(package), Value::Int(now), Value::from(&document)];
    tx.execute(sql, &params).await?;
    Ok(())
}

/// Notes that an upstream has no list of a package, unless more is known of it: versions that come later are new.
pub(super) async fn add_empty(tx: &mut WriteTx, upstream: &Uidp, package: &str, now: Micros) -> Result<()> {
    let sql = "INSERT INTO upstream_known_versions (upstream, package, forgotten_at, document) VALUES ($1, $2, $3, $4)
               ON CONFLICT (upstream, package) DO NOTHING";
    let document = UpstreamDocument { known_since_micros: now, ..UpstreamDocument::default() }.encode_to_vec();
    let params = [Value::from(upstream.as_str()), Value::from(package), Value::Int(now), Value::from(&document)];
    if tx.execute(sql, &params).await? > 0 {
        make_room(tx, upstream).await?;
    }
    Ok(())
}

/// Keeps what was seen of packages of an upstream, whose documents are dropped, as it is: of the 1,000 that were confirmed last, as
/// far as their lists have 32 MiB together.
pub(super) async fn add_latest(tx: &mut WriteTx, upstream: &Uidp, language: Language, now: Micros) -> Result<()> {
    // Statements about files have a space in their names, and single versions of Go this sign: neither is a list.
    let no_version = if language == Language::Go { "AND package NOT LIKE '%@%'" } else { "" };
    let sql = format!(
        "INSERT INTO upstream_known_versions (upstream, package, forgotten_at, document)
         SELECT d.upstream, d.package, CAST($2 AS BIGINT), d.document
         FROM upstream_documents d
         JOIN (SELECT package, sum(bytes) OVER (ORDER BY fetched_at DESC, package) AS bytes
               FROM (SELECT package, fetched_at, length(document) AS bytes FROM upstream_documents
                     WHERE upstream = $1 AND package NOT LIKE '% %' {no_version}
                     ORDER BY fetched_at DESC, package LIMIT $3) AS latest) AS moved ON moved.package = d.package
         WHERE d.upstream = $1 AND moved.bytes <= $4
         ON CONFLICT (upstream, package) DO UPDATE SET forgotten_at = excluded.forgotten_at,
           document = excluded.document"
    );
    let params = [Value::from(upstream.as_str()), Value::Int(now), Value::Int(MOVED), Value::Int(MOVED_BYTES)];
    tx.execute(&sql, &params).await?;
    make_room(tx, upstream).await
}

/// Drops what was forgotten longest ago where that is kept of as many packages as may be, of packages without any list first:
/// readers choose their names.
pub(super) async fn make_room(tx: &mut WriteTx, upstream: &Uidp) -> Result<()> {
    // So many more come at once.
    let most = PACKAGES + MOVED;
    let sql = "SELECT count(*) FROM (SELECT 1 FROM upstream_known_versions WHERE upstream = $1 LIMIT $2) AS known";
    let params = [Value::from(upstream.as_str()), Value::Int(most)];
    let count = tx.query_opt(sql, &params, |row| row.int(0).map_err(Error::from)).await?.unwrap_or_default();
    if count < PACKAGES {
        return Ok(());
    }
    let sql = "DELETE FROM upstream_known_versions WHERE upstream = $1 AND package IN
                 (SELECT package FROM upstream_known_versions WHERE upstream = $1
                  ORDER BY CASE WHEN length(document) < $3 THEN 0 ELSE 1 END, forgotten_at LIMIT $2)";
    let dropped = count - PACKAGES + DROPPED;
    tx.execute(sql, &[Value::from(upstream.as_str()), Value::Int(dropped), Value::Int(EMPTY)]).await?;
    Ok(())
}

/// What was seen of a package whose document was forgotten.
pub(super) async fn find(tx: &mut ReadTx, upstream: &Uidp, package: &str) -> Result<Option<UpstreamDocument>> {
    let sql = "SELECT document FROM upstream_known_versions WHERE upstream = $1 AND package = $2";
    let params = [Value::from(upstream.as_str()), Value::from(package)];
    let bytes = tx.query_opt(sql, &params, |row| row.bytes(0).map_err(Error::from)).await?;
    bytes.map(|bytes| UpstreamDocument::decode(bytes.as_slice()).map_err(Error::internal)).transpose()
}

/// The same for a document that is stored again, which has it from then on.
pub(super) async fn take(tx: &mut WriteTx, upstream: &Uidp, package: &str) -> Result<Option<UpstreamDocument>> {
    let known = find(tx, upstream, package).await?;
    if known.is_some() {
        let sql = "DELETE FROM upstream_known_versions WHERE upstream = $1 AND package = $2";
        tx.execute(sql, &[Value::from(upstream.as_str()), Value::from(package)]).await?;
    }
    Ok(known)
}
