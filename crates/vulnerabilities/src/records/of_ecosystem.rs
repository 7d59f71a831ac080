//! Records about packages of an ecosystem, page by page, for anyone.

use std::collections::{BTreeMap, BTreeSet};

use bowline_contract::bowline::vulnerabilities::v1 as own;
use bowline_contract::bowline::vulnerabilities::v1::rpc::records::ListPackageRecords;
use bowline_core::{Error, Result};
use bowline_osv::PackageKey;
use bowline_pipeline::{Direction, Handlers, Open, Page, PageRequest, SortKey};
use bowline_store::{ReadTx, Row, Value};
use prost::Message as _;

use super::statements::{IN_A_LIST, among};
use super::visible::{Generations, VISIBLE};

/// Bytes of records of a page, unless its first one is longer.
const MAX_BYTES: i64 = 4 << 20;

pub(super) fn register(handlers: Handlers) -> Handlers {
    handlers.open_read::<ListPackageRecords>(|tx, call| Box::pin(list(tx, call)))
}

/// A package that a record is about.
struct AffectedRow {
    package: String,
    record: i64,
    id: String,
    is_visible: bool,
}

/// A record with what its source says about it.
struct Body {
    source: String,
    licence: String,
    record: Vec<u8>,
}

async fn list(tx: &mut ReadTx, call: &Open<own::ListPackageRecordsRequest>) -> Result<own::ListPackageRecordsResponse> {
    let request = call.request();
    let filter = own::ListPackageRecordsRequest { ecosystem: request.ecosystem.clone(), ..Default::default() };
    let page_request = PageRequest {
        page_size: request.page_size,
        page_token: request.page_token.clone(),
        filter: filter.encode_to_vec(),
        ..PageRequest::default()
    };
    let page = Page::validate(call, &page_request, &[&["name"]], (0, Direction::Ascending))?;
    let generations = Generations::read(tx).await?;
    let prefix = PackageKey::new(&request.ecosystem, "").as_str().to_owned();
    let mut rows = rows(tx, &page, &prefix, &generations).await?;
    let has_more = rows.len() > page.size;
    rows.truncate(page.size);
    let (packages, read) = packages(tx, &rows, &prefix).await?;
    let is_last = !has_more && read == rows.len();
    let last = read.checked_sub(1).and_then(|last| rows.get(last)).filter(|_| !is_last);
    let next_page_token =
        last.map(|row| page.next_token(call, Some(SortKey::Int(row.record)), row.package.clone())).unwrap_or_default();
    Ok(own::ListPackageRecordsResponse { packages, next_page_token, generation: generations.stamp() })
}

/// The rows of a page and one more, by package. Rows that are not visible are among them, so that the work for a page is
/// bounded.
async fn rows(tx: &mut ReadTx, page: &Page, prefix: &str, generations: &Generations) -> Result<Vec<AffectedRow>> {
    let (package, record) = match &page.cursor {
        Some(cursor) => match cursor.key {
            Some(SortKey::Int(record)) => (cursor.uid.as_str(), record),
            _ => return Err(Error::internal("a page token has no number of a record")),
        },
        None => (prefix, 0),
    };
    // The character after the slash, which ends the prefix.
    let end = format!("{}0", prefix.trim_end_matches('/'));
    let sql = "SELECT package, record, id, source, since, until FROM record_affects
               WHERE (package, record) > ($1, $2) AND package < $3 ORDER BY package, record LIMIT $4";
    let params = [Value::from(package), Value::Int(record), Value::from(&end), Value::Int(page.size as i64 + 1)];
    let read = |row: &Row<'_>| {
        Ok::<_, Error>(AffectedRow {
            package: row.text(0)?,
            record: row.int(1)?,
            id: row.text(2)?,
            is_visible: generations.show(row, 3)?,
        })
    };
    tx.query(sql, &params, read).await
}

/// The packages of visible rows with their records, as many as a response may have, and how many rows that were.
async fn packages(tx: &mut ReadTx, rows: &[AffectedRow], prefix: &str) -> Result<(Vec<own::AffectedPackage>, usize)> {
    let newest = newest(tx, rows.iter().filter(|row| row.is_visible).map(|row| row.id.as_str()).collect()).await?;
    let is_shown = |row: &&AffectedRow| row.is_visible && newest.get(&row.id) == Some(&row.record);
    let lengths = lengths(tx, rows.iter().filter(is_shown).map(|row| row.record).collect()).await?;
    let mut bytes = 0;
    let fits = |row: &&AffectedRow| {
        let length = if is_shown(row) { lengths.get(&row.record).copied().unwrap_or_default() } else { 0 };
        let is_first = bytes == 0;
        bytes += length;
        is_first || bytes <= MAX_BYTES
    };
    let read = rows.iter().take_while(fits).count();
    let shown: Vec<&AffectedRow> = rows[..read].iter().filter(is_shown).collect();
    let bodies = bodies(tx, &shown).await?;
    let package = |row: &&AffectedRow| {
        let body = bodies.get(&row.record).ok_or_else(|| Error::internal("a record has no body"))?;
        let name = row.package.strip_prefix(prefix).ok_or_else(|| Error::internal("a package of another ecosystem"))?;
        Ok(own::AffectedPackage {
            name: name.into(),
            source: body.source.clone(),
            licence: body.licence.clone(),
            record: body.record.clone(),
        })
    };
    Ok((shown.iter().map(package).collect::<Result<_>>()?, read))
}

/// Bytes of records, by number.
async fn lengths(tx: &mut ReadTx, records: BTreeSet<i64>) -> Result<BTreeMap<i64, i64>> {
    let records: Vec<i64> = records.into_iter().collect();
    let mut lengths = BTreeMap::new();
    for part in records.chunks(IN_A_LIST) {
        let (placeholders, values) = among(1, part.iter().copied().map(Value::Int));
        let sql =
            format!("SELECT record, CAST(length(body) AS BIGINT) FROM record_bodies WHERE record IN {placeholders}");
        lengths.extend(tx.query(&sql, &values, |row| Ok::<_, Error>((row.int(0)?, row.int(1)?))).await?);
    }
    Ok(lengths)
}

/// The number of the newest record of each id.
async fn newest(tx: &mut ReadTx, ids: BTreeSet<&str>) -> Result<BTreeMap<String, i64>> {
    let ids: Vec<&str> = ids.into_iter().collect();
    let mut newest = BTreeMap::new();
    for part in ids.chunks(IN_A_LIST) {
        let (placeholders, values) = among(1, part.iter().copied().map(Value::Text));
        let sql = format!(
            "SELECT r.id, r.n FROM records r {VISIBLE} WHERE r.id IN {placeholders} ORDER BY r.id, r.modified DESC, r.source"
        );
        for (id, n) in tx.query(&sql, &values, |row| Ok::<_, Error>((row.text(0)?, row.int(1)?))).await? {
            newest.entry(id).or_insert(n);
        }
    }
    Ok(newest)
}

async fn bodies(tx: &mut ReadTx, rows: &[&AffectedRow]) -> Result<BTreeMap<i64, Body>> {
    if rows.is_empty() {
        return Ok(BTreeMap::new());
    }
    let (placeholders, values) = among(1, rows.iter().map(|row| Value::Int(row.record)));
    let sql = format!(
        "SELECT r.n, s.name, s.licence, b.body FROM records r {VISIBLE} JOIN record_bodies b ON b.record = r.n
         WHERE r.n IN {placeholders}"
    );
    let read = |row: &Row<'_>| {
        let body = Body { source: row.text(1)?, licence: row.text(2)?, record: row.bytes(3)? };
        Ok::<_, Error>((row.int(0)?, body))
    };
    Ok(tx.query(&sql, &values, read).await?.into_iter().collect())
}
