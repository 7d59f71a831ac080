//! The target of a transfer: an empty database that is filled with the rows of another.

use std::sync::Arc;

use super::snapshot::parameters;
use super::{Cell, TransferTable, indexes};
use crate::db::{Db, Engine};
use crate::error::{ErrorKind, StoreError};
use crate::migrate::{FILLING, Migration};
use crate::tx::WriteTx;
use crate::value::Value;

/// Parameters of one statement, fewer than either engine takes.
const PARAMETERS: usize = 30_000;
/// Rows of one statement.
const ROWS: usize = 500;

/// Whether the filling of a database begins or resumes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Filling {
    /// It has the tables, and no row.
    Begun,
    /// An interrupted transfer has left rows in it.
    Resumed,
}

impl Db {
    /// Creates the tables of an empty database, marked so that no server opens it until [`Db::end_filling`];
    /// or resumes the filling of a marked one. It has no indexes until [`Db::build_indexes`].
    ///
    /// # Errors
    /// The database has other tables or another version's, or the engine refuses.
    pub async fn begin_filling(&self, migrations: &[Migration]) -> Result<Filling, StoreError> {
        let filling = self.mark(migrations).await?;
        self.from_reserve().write(|tx| Box::pin(indexes::put_aside(tx))).await?;
        Ok(filling)
    }

    async fn mark(&self, migrations: &[Migration]) -> Result<Filling, StoreError> {
        match self.schema_state(migrations).await {
            Ok(crate::SchemaState::Absent) => {
                let marked: Vec<Migration> = migrations.iter().copied().chain([FILLING]).collect();
                self.migrate(&marked).await?;
                Ok(Filling::Begun)
            }
            Ok(_) => Err(StoreError::new(ErrorKind::OtherConstraint, "there is a database already")),
            Err(error) if error.kind() == ErrorKind::Incomplete => {
                let marked: Vec<Migration> = migrations.iter().copied().chain([FILLING]).collect();
                match self.schema_state(&marked).await? {
                    crate::SchemaState::Current => Ok(Filling::Resumed),
                    _ => Err(StoreError::new(ErrorKind::SchemaUnknown, "another version began to fill the database")),
                }
            }
            Err(error) => Err(error),
        }
    }

    /// Writes rows of a table, all or none.
    ///
    /// # Errors
    /// A row is there already, or the engine refuses.
    pub async fn insert_rows(&self, table: Arc<TransferTable>, rows: Arc<Vec<Vec<Cell>>>) -> Result<(), StoreError> {
        self.write_derived(move |tx| {
            let (table, rows) = (table.clone(), rows.clone());
            Box::pin(async move { insert(tx, &table, &rows).await })
        })
        .await
    }

    /// The key of a table's last row, after which a transfer resumes.
    pub async fn last_key(&self, table: &TransferTable) -> Result<Option<Vec<Cell>>, StoreError> {
        let (key, width) = (&table.key, table.key.len());
        let descending = key.iter().map(|column| format!("{column} DESC")).collect::<Vec<_>>().join(", ");
        let sql = format!("SELECT {} FROM {} ORDER BY {descending} LIMIT 1", key.join(", "), table.name);
        self.read(move |tx| {
            Box::pin(
                async move { tx.query_opt(&sql, &[], |row| (0..width).map(|i| Cell::read(row, i)).collect()).await },
            )
        })
        .await
    }

    /// Removes the mark of the filled database, so that servers open it; see [`end_filling`].
    pub async fn end_filling(&self) -> Result<(), StoreError> {
        self.from_reserve().write(|tx| Box::pin(end_filling(tx))).await
    }
}

/// Removes the mark of a filled database, once the transaction is committed: servers open it from then on. New rows
/// get numbers after those of the filled ones.
///
/// # Errors
/// An index was not made, or the engine refuses.
pub async fn end_filling(tx: &mut WriteTx) -> Result<(), StoreError> {
    indexes::end(tx).await?;
    if tx.engine() == Engine::Postgres {
        follow_identities(tx).await?;
    }
    let sql = "DELETE FROM schema_migrations WHERE version = $1";
    tx.execute(sql, &[Value::Int(FILLING.version)]).await?;
    Ok(())
}

async fn insert(tx: &mut WriteTx, table: &TransferTable, rows: &[Vec<Cell>]) -> Result<(), StoreError> {
    let width = table.columns.len();
    // The rows carry the numbers that PostgreSQL would assign itself.
    let overriding = if tx.engine() == Engine::Postgres { " OVERRIDING SYSTEM VALUE" } else { "" };
    for part in rows.chunks((PARAMETERS / width).clamp(1, ROWS)) {
        let lists: Vec<String> = (0..part.len()).map(|n| format!("({})", parameters(n * width + 1, width))).collect();
        let sql = format!(
            "INSERT INTO {} ({}){overriding} VALUES {}",
            table.name,
            table.columns.join(", "),
            lists.join(", ")
        );
        let values: Vec<Value<'_>> = part.iter().flatten().map(Cell::value).collect();
        tx.execute(&sql, &values).await?;
    }
    Ok(())
}

/// Sets the sequences of PostgreSQL's identity columns after their greatest value.
async fn follow_identities(tx: &mut WriteTx) -> Result<(), StoreError> {
    let sql = "SELECT table_name::text, column_name::text FROM information_schema.columns
               WHERE table_schema = current_schema() AND is_identity = 'YES'";
    let numbered = tx.query(sql, &[], |row| Ok::<_, StoreError>((row.text(0)?, row.text(1)?))).await?;
    for (table, column) in numbered {
        let sql = format!(
            "SELECT setval(pg_get_serial_sequence('{table}', '{column}'), coalesce(max({column}), 0) + 1, FALSE)
             FROM {table}"
        );
        tx.query(&sql, &[], |row| row.int(0)).await?;
    }
    Ok(())
}
