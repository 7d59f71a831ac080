//! The newest record of an id.

use std::collections::BTreeMap;

use bowline_core::{Error, Result};
use bowline_store::{ReadTx, Row, Value};

use super::statements::{IN_A_LIST, among};
use super::visible::VISIBLE;

/// The record of an id, the newest if several sources have one.
pub struct Newest {
    /// Name of the source.
    pub source: String,
    /// The record as canonical JSON.
    pub body: Vec<u8>,
}

/// The visible records of these ids.
pub async fn newest(tx: &mut ReadTx, ids: impl Iterator<Item = &str>) -> Result<BTreeMap<String, Newest>> {
    let ids: Vec<&str> = ids.collect();
    let mut found = BTreeMap::new();
    for part in ids.chunks(IN_A_LIST) {
        let (placeholders, values) = among(1, part.iter().copied().map(Value::Text));
        let sql = format!(
            "SELECT r.id, s.name, b.body FROM records r {VISIBLE} JOIN record_bodies b ON b.record = r.n
             WHERE r.id IN {placeholders} ORDER BY r.id, r.modified DESC, r.source"
        );
        let read = |row: &Row<'_>| Ok::<_, Error>((row.text(0)?, Newest { source: row.text(1)?, body: row.bytes(2)? }));
        for (id, record) in tx.query(&sql, &values, read).await? {
            found.entry(id).or_insert(record);
        }
    }
    Ok(found)
}
