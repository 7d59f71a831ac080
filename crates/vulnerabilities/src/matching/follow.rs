//! Follows the commits of imports: versions of the packages whose records they touched are matched again.

use bowline_core::{Error, Result};
use bowline_store::{ReadTx, Row, Value, WriteTx};

use crate::records::{IN_A_LIST, among};

/// Ids of records that one step looks at.
const AT_ONCE: usize = 100;

/// The packages of some records that a commit touched, and how far the matches have then come.
pub(super) struct TouchedPackages {
    source: i64,
    generation: i64,
    /// The last id of the next generation that was looked at; empty at its beginning.
    after: String,
    packages: Vec<String>,
}

/// The next records of a source that is ahead of the matches.
pub(super) async fn next(tx: &mut ReadTx) -> Result<Option<TouchedPackages>> {
    let sql = "SELECT number, matched_generation, matched_after FROM record_sources
               WHERE matched_generation < generation ORDER BY number LIMIT 1";
    let read = |row: &Row<'_>| Ok::<_, Error>((row.int(0)?, row.int(1)?, row.text(2)?));
    let Some((source, generation, after)) = tx.query_opt(sql, &[], read).await? else { return Ok(None) };
    let records = touched(tx, source, generation + 1, &after).await?;
    let Some((last, _)) = records.last().cloned() else {
        let after = String::new();
        return Ok(Some(TouchedPackages { source, generation: generation + 1, after, packages: Vec::new() }));
    };
    let mut packages = Vec::new();
    for part in records.chunks(IN_A_LIST) {
        let (placeholders, values) = among(1, part.iter().map(|(_, n)| Value::Int(*n)));
        let sql = format!(
            "SELECT DISTINCT a.package FROM record_affects a WHERE a.record IN {placeholders}
               AND (EXISTS (SELECT 1 FROM package_versions v WHERE v.record_package = a.package AND v.state = 0)
                    OR EXISTS (SELECT 1 FROM package_versions v
                               WHERE v.record_source <> '' AND v.record_source = a.package AND v.state = 0))"
        );
        packages.extend(tx.query(&sql, &values, |row| row.text(0).map_err(Error::from)).await?);
    }
    Ok(Some(TouchedPackages { source, generation, after: last, packages }))
}

/// Ids and numbers of the next records that a generation added or removed; a changed one is both.
async fn touched(tx: &mut ReadTx, source: i64, generation: i64, after: &str) -> Result<Vec<(String, i64)>> {
    let params = [Value::Int(source), Value::Int(generation), Value::from(after), Value::Int(AT_ONCE as i64)];
    let read = |row: &Row<'_>| Ok::<_, Error>((row.text(0)?, row.int(1)?));
    let added = "SELECT id, n FROM records WHERE source = $1 AND since = $2 AND id > $3 ORDER BY id LIMIT $4";
    let mut records = tx.query(added, &params, read).await?;
    let removed = "SELECT id, n FROM records WHERE source = $1 AND until = $2 AND until < 2147483647 AND id > $3
                   ORDER BY id LIMIT $4";
    records.extend(tx.query(removed, &params, read).await?);
    records.sort_unstable();
    // Of ids beyond this one only a part was read.
    let last = records.chunk_by(|one, other| one.0 == other.0).nth(AT_ONCE - 1).and_then(|same| same.first()).cloned();
    if let Some((last, _)) = last {
        records.retain(|(id, _)| *id <= last);
    }
    Ok(records)
}

impl TouchedPackages {
    pub(super) async fn write(&self, tx: &mut WriteTx) -> Result<()> {
        for part in self.packages.chunks(IN_A_LIST) {
            let (placeholders, values) = among(1, part.iter().map(Value::from));
            for column in ["record_package", "record_source <> '' AND record_source"] {
                let sql =
                    format!("UPDATE package_versions SET state = 1 WHERE state = 0 AND {column} IN {placeholders}");
                tx.execute(&sql, &values).await?;
            }
        }
        let sql = "UPDATE record_sources SET matched_generation = $1, matched_after = $2 WHERE number = $3";
        let params = [Value::Int(self.generation), Value::from(&self.after), Value::Int(self.source)];
        tx.execute(sql, &params).await?;
        Ok(())
    }
}
