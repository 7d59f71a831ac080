use futures_util::future::BoxFuture;

use super::{Cell, TransferTable};
use crate::db::{Backend, Db, Engine};
use crate::error::StoreError;
use crate::postgres::BEGIN_READ;
use crate::tx::{Inner, ReadTx};
use crate::value::Value;

/// The table whose key PostgreSQL gives only after the commit, and the order in which it will.
const NUMBERED_LATER: (&str, &str, &str) = ("outbox", "seq", "txid, id");

/// A database as it was at one moment, on a connection of its own, until this is dropped.
pub struct Snapshot {
    tx: ReadTx,
}

impl Db {
    /// Begins a snapshot. What changes meanwhile piles up in the database until it is dropped.
    pub async fn snapshot(&self) -> Result<Snapshot, StoreError> {
        let inner = match &self.backend {
            Backend::Sqlite(sqlite) => Inner::Sqlite(sqlite.snapshot()?),
            Backend::Postgres(postgres) => {
                let tx = postgres.begin(BEGIN_READ).await?;
                tx.execute_batch("SET LOCAL idle_in_transaction_session_timeout = 0").await?;
                Inner::Postgres(tx)
            }
        };
        let mut snapshot = Snapshot { tx: ReadTx::new(inner) };
        // A snapshot is taken by the first statement that reads.
        snapshot.tx.query("SELECT count(*) FROM facts", &[], |row| row.int(0)).await?;
        Ok(snapshot)
    }
}

impl Snapshot {
    /// The rows after the key `after`, in the order of keys, `limit` at most; none at the end.
    ///
    /// # Errors
    /// The engine refuses, or a row holds what none may.
    pub fn page<'a>(
        &'a mut self,
        table: &'a TransferTable,
        after: Option<&'a [Cell]>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<Vec<Cell>>, StoreError>> {
        Box::pin(async move {
            let is_numbered_later = table.name == NUMBERED_LATER.0 && self.tx.engine() == Engine::Postgres;
            let known = if is_numbered_later { " AND seq IS NOT NULL" } else { "" };
            let columns = table.columns.join(", ");
            let key = table.key.join(", ");
            let place = if after.is_some() {
                format!("({key}) > ({})", parameters(1, table.key.len()))
            } else {
                "1 = 1".into()
            };
            let sql = format!("SELECT {columns} FROM {} WHERE {place}{known} ORDER BY {key} LIMIT {limit}", table.name);
            let values: Vec<Value<'_>> = after.unwrap_or_default().iter().map(Cell::value).collect();
            let mut rows = self.read(table, &sql, &values).await?;
            if is_numbered_later && rows.len() < limit {
                let last = rows.last().map(|row| table.key_of(row)).or_else(|| after.map(<[Cell]>::to_vec));
                let missing = limit - rows.len();
                rows.extend(self.unnumbered(table, last.as_deref(), missing).await?);
            }
            Ok(rows)
        })
    }

    /// How many rows a table has.
    pub async fn count(&mut self, table: &TransferTable) -> Result<u64, StoreError> {
        let sql = format!("SELECT count(*) FROM {}", table.name);
        let count = self.tx.query_opt(&sql, &[], |row| row.int(0)).await?;
        Ok(count.unwrap_or(0).unsigned_abs())
    }

    async fn read(
        &mut self,
        table: &TransferTable,
        sql: &str,
        values: &[Value<'_>],
    ) -> Result<Vec<Vec<Cell>>, StoreError> {
        let width = table.columns.len();
        self.tx.query(sql, values, |row| (0..width).map(|i| Cell::read(row, i)).collect()).await
    }

    /// Rows that wait for their number, with the numbers that they would get if nothing else happened.
    async fn unnumbered(
        &mut self,
        table: &TransferTable,
        after: Option<&[Cell]>,
        limit: usize,
    ) -> Result<Vec<Vec<Cell>>, StoreError> {
        let (name, column, order) = NUMBERED_LATER;
        let sql = format!("SELECT coalesce(max({column}), 0) FROM {name}");
        let newest = self.tx.query_opt(&sql, &[], |row| row.int(0)).await?.unwrap_or(0);
        let reached = match after {
            Some([Cell::Int(reached)]) => (*reached).max(newest),
            _ => newest,
        };
        let columns = table.columns.join(", ");
        let sql =
            format!("SELECT {columns} FROM {name} WHERE {column} IS NULL ORDER BY {order} LIMIT {limit} OFFSET $1");
        let mut rows = self.read(table, &sql, &[Value::Int(reached - newest)]).await?;
        let at = table.columns.iter().position(|known| known == column);
        let at = at.ok_or_else(|| StoreError::bug(format!("{name} has no column {column}")))?;
        for (row, number) in rows.iter_mut().zip(reached + 1..) {
            row[at] = Cell::Int(number);
        }
        Ok(rows)
    }
}

/// `$first, ...`, so many.
pub(super) fn parameters(first: usize, count: usize) -> String {
    (first..first + count).map(|n| format!("${n}")).collect::<Vec<_>>().join(", ")
}
