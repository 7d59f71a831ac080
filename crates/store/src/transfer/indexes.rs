//! Indexes of a database that is being filled. They are put aside, and made of all rows at once: sorted, an index is
//! written from its first page to its last, while every single row would change a page somewhere in it.

use crate::db::{Backend, Db, Engine};
use crate::error::StoreError;
use crate::tx::{ReadTx, WriteTx};
use crate::value::Value;

/// The definitions of indexes that the filled database does not have yet.
const TABLE: &str = "CREATE TABLE IF NOT EXISTS filling_indexes (name TEXT PRIMARY KEY, definition TEXT NOT NULL)";

/// Indexes but for those of constraints, which come and go with their constraint.
const DEFINED_SQLITE: &str =
    "SELECT name, sql FROM sqlite_schema WHERE type = 'index' AND sql IS NOT NULL ORDER BY name";
const DEFINED_POSTGRES: &str = "SELECT c.relname::text, pg_get_indexdef(c.oid)
    FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
    WHERE c.relnamespace = to_regnamespace(current_schema()::text)
      AND NOT EXISTS (SELECT FROM pg_constraint WHERE conindid = c.oid)
    ORDER BY c.relname";

/// An index and the statement that makes it.
type Definition = (String, String);

impl Db {
    /// Makes the indexes that the filled database does not have, each in a transaction of its own. `progress` is called
    /// with the name of the next one. On the embedded engine a large one is sorted in files of the system's directory
    /// for temporary files.
    ///
    /// # Errors
    /// Rows contradict a unique index, there is no room, or the engine refuses.
    pub async fn build_indexes(&self, mut progress: impl FnMut(&str)) -> Result<(), StoreError> {
        for (name, definition) in self.read(|tx| Box::pin(missing(tx))).await? {
            progress(&name);
            let statements = format!("{definition}; DELETE FROM filling_indexes WHERE name = '{name}'");
            match &self.backend {
                Backend::Sqlite(sqlite) => sqlite.sort(statements).await?,
                Backend::Postgres(postgres) => {
                    let tx = postgres.begin("BEGIN").await?;
                    // An index of many rows takes as long as it takes.
                    tx.execute_batch("SET LOCAL statement_timeout = 0").await?;
                    tx.execute_batch(&statements).await?;
                    tx.finish("COMMIT").await?;
                }
            }
        }
        Ok(())
    }
}

/// Removes all indexes and keeps their definitions; those that are put aside already stay so.
pub(super) async fn put_aside(tx: &mut WriteTx) -> Result<(), StoreError> {
    tx.execute_batch(TABLE).await?;
    let defined = match tx.engine() {
        Engine::Sqlite => DEFINED_SQLITE,
        Engine::Postgres => DEFINED_POSTGRES,
    };
    for (name, definition) in tx.query(defined, &[], definition).await? {
        let sql = "INSERT INTO filling_indexes (name, definition) VALUES ($1, $2)";
        tx.execute(sql, &[Value::Text(&name), Value::Text(&definition)]).await?;
        tx.execute_batch(&format!("DROP INDEX {name}")).await?;
    }
    Ok(())
}

/// Removes the table of definitions.
///
/// # Errors
/// An index is still missing.
pub(super) async fn end(tx: &mut WriteTx) -> Result<(), StoreError> {
    if let Some((name, _)) = missing(tx).await?.first() {
        return Err(StoreError::bug(format!("the index {name} was not made")));
    }
    tx.execute_batch("DROP TABLE filling_indexes").await
}

async fn missing(tx: &mut ReadTx) -> Result<Vec<Definition>, StoreError> {
    tx.query("SELECT name, definition FROM filling_indexes ORDER BY name", &[], definition).await
}

fn definition(row: &crate::row::Row<'_>) -> Result<Definition, StoreError> {
    Ok((row.text(0)?, row.text(1)?))
}
