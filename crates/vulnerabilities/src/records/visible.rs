//! Which rows are visible: those of the generation that their source is at.

use std::collections::HashMap;

use bowline_authn::crypto::sha256;
use bowline_core::{Error, Result};
use bowline_store::{ReadTx, Row};

/// Joins a record `r` with its source `s`, and leaves what is not visible out.
pub(crate) const VISIBLE: &str =
    "JOIN record_sources s ON s.number = r.source AND r.since <= s.generation AND r.until > s.generation";

/// How far each source is, by its number: what [`VISIBLE`] compares, for statements with many rows, that would look the
/// source up for each of them.
pub(crate) struct Generations(HashMap<i64, i64>);

impl Generations {
    pub(crate) async fn read(tx: &mut ReadTx) -> Result<Generations> {
        let sql = "SELECT number, generation FROM record_sources";
        let rows = tx.query(sql, &[], |row| Ok::<_, Error>((row.int(0)?, row.int(1)?))).await?;
        Ok(Generations(rows.into_iter().collect()))
    }

    /// A number that stands for all of them: it is another one after an import, or the deletion of a source.
    pub(crate) fn stamp(&self) -> i64 {
        let mut generations: Vec<(&i64, &i64)> = self.0.iter().collect();
        generations.sort_unstable();
        let bytes: Vec<u8> =
            generations.iter().flat_map(|(source, at)| [source.to_be_bytes(), at.to_be_bytes()]).flatten().collect();
        let digest = sha256(&bytes);
        i64::from_be_bytes(std::array::from_fn(|at| digest[at]))
    }

    /// Whether a row is visible whose `source`, `since` and `until` are in the columns from `first` on.
    pub(crate) fn show(&self, row: &Row<'_>, first: usize) -> Result<bool> {
        let (source, since, until) = (row.int(first)?, row.int(first + 1)?, row.int(first + 2)?);
        Ok(self.0.get(&source).is_some_and(|generation| since <= *generation && until > *generation))
    }
}
