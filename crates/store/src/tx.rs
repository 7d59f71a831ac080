//! Transactions as the program sees them.

use std::ops::{ControlFlow, Deref, DerefMut};
use std::sync::Arc;

use crate::db::Engine;
use crate::dry_run::Budget;
use crate::error::{ErrorKind, StoreError};
use crate::postgres::PgTx;
use crate::row::Row;
use crate::sqlite::SqliteTx;
use crate::value::Value;

/// A snapshot to read from: all statements see the same state.
///
/// After a statement failed, the transaction is lost on both engines:
/// PostgreSQL aborts it, and SQLite behaves alike here.
pub struct ReadTx {
    pub(crate) inner: Inner,
    writable: bool,
    failure: Option<StoreError>,
    /// What is left to a dry run; absent for all other transactions.
    budget: Option<Arc<Budget>>,
}

pub(crate) enum Inner {
    Sqlite(SqliteTx),
    Postgres(PgTx),
}

impl ReadTx {
    pub(crate) fn new(inner: Inner) -> Self {
        Self { inner, writable: false, failure: None, budget: None }
    }

    /// Whether this is the reading side of a [`WriteTx`]: what it sees may never be committed.
    pub fn is_writable(&self) -> bool {
        self.writable
    }

    /// Which engine runs the statements.
    pub fn engine(&self) -> Engine {
        match self.inner {
            Inner::Sqlite(_) => Engine::Sqlite,
            Inner::Postgres(_) => Engine::Postgres,
        }
    }

    /// The clause that names the index of a statement, for the position after the table's name. SQLite has no
    /// statistics here and might choose another; it fails a statement that the index does not fit. Empty on
    /// PostgreSQL, which has statistics.
    pub fn index_hint(&self, index: &'static str) -> String {
        match self.engine() {
            Engine::Sqlite => format!("INDEXED BY {index}"),
            Engine::Postgres => String::new(),
        }
    }

    /// Runs a statement and maps every row. Bound it with `LIMIT`: on SQLite it
    /// runs inline, and on PostgreSQL all rows are fetched.
    pub async fn query<T: Send, E: From<StoreError>>(
        &mut self,
        sql: &str,
        params: &[Value<'_>],
        mut map: impl FnMut(&Row<'_>) -> Result<T, E> + Send,
    ) -> Result<Vec<T>, E> {
        self.usable()?;
        self.require_time()?;
        let mut rows = Vec::new();
        let outcome = match &mut self.inner {
            Inner::Sqlite(tx) => {
                let mut refused = None;
                let outcome = tx.for_each(sql, params, &mut |row| match map(row) {
                    Ok(value) => {
                        rows.push(value);
                        ControlFlow::Continue(())
                    }
                    Err(error) => {
                        refused = Some(error);
                        ControlFlow::Break(())
                    }
                });
                match (outcome, refused) {
                    (Ok(()), None) => Ok(rows),
                    (Ok(()), Some(error)) => Err(error),
                    (Err(error), _) => Err(self.fail(error, sql).into()),
                }
            }
            Inner::Postgres(tx) => match tx.query(sql, params).await {
                Ok(found) => found.iter().map(|row| map(&Row(crate::row::Engines::Postgres(row)))).collect(),
                Err(error) => Err(self.fail(error, sql).into()),
            },
        };
        if let Ok(rows) = &outcome {
            self.spend(rows.len() as u64)?;
        }
        outcome
    }

    /// Runs a statement that yields at most one row; a second row is a bug.
    pub async fn query_opt<T: Send, E: From<StoreError>>(
        &mut self,
        sql: &str,
        params: &[Value<'_>],
        map: impl FnMut(&Row<'_>) -> Result<T, E> + Send,
    ) -> Result<Option<T>, E> {
        let mut rows = self.query(sql, params, map).await?;
        if rows.len() > 1 {
            let message = format!("{} rows where one was wanted", rows.len());
            return Err(StoreError::bug(message).in_statement(sql).into());
        }
        Ok(rows.pop())
    }

    fn usable(&self) -> Result<(), StoreError> {
        match &self.failure {
            None => Ok(()),
            Some(earlier) => Err(StoreError::bug(format!("a statement failed earlier in this transaction: {earlier}"))),
        }
    }

    fn require_time(&mut self) -> Result<(), StoreError> {
        let checked = self.budget.as_ref().map_or(Ok(()), |budget| budget.require_time());
        checked.inspect_err(|error| self.failure = Some(error.replicate()))
    }

    fn spend(&mut self, rows: u64) -> Result<(), StoreError> {
        let spent = self.budget.as_ref().map_or(Ok(()), |budget| budget.spend(rows));
        spent.inspect_err(|error| self.failure = Some(error.replicate()))
    }

    /// Records an engine error, which decides about retries, whatever error the closure returns.
    fn fail(&mut self, error: StoreError, sql: &str) -> StoreError {
        let mut error = error.in_statement(sql);
        if !self.writable && error.is_read_only() {
            error = error.with_kind(ErrorKind::Bug);
        }
        self.failure = Some(error.replicate());
        error
    }

    pub(crate) fn failure(&self) -> Option<&StoreError> {
        self.failure.as_ref()
    }
}

/// A transaction that may change things. It reads like a [`ReadTx`], and reads
/// see its own writes.
pub struct WriteTx {
    read: ReadTx,
}

impl WriteTx {
    pub(crate) fn new(inner: Inner) -> Self {
        Self { read: ReadTx { inner, writable: true, failure: None, budget: None } }
    }

    /// Runs a statement and returns how many rows it changed.
    pub async fn execute(&mut self, sql: &str, params: &[Value<'_>]) -> Result<u64, StoreError> {
        self.usable()?;
        self.require_time()?;
        let outcome = match &mut self.read.inner {
            Inner::Sqlite(tx) => tx.execute(sql, params),
            Inner::Postgres(tx) => tx.execute(sql, params).await,
        };
        let changed = outcome.map_err(|error| self.fail(error, sql))?;
        self.spend(changed)?;
        Ok(changed)
    }

    /// Whether other writes wait for this one, so that background work should end here and go on in a next transaction.
    /// Never on PostgreSQL, where they do not.
    pub fn others_wait(&self) -> bool {
        match &self.read.inner {
            Inner::Sqlite(tx) => tx.others_wait(),
            Inner::Postgres(_) => false,
        }
    }

    /// Runs several statements without parameters (a migration's text).
    pub(crate) async fn execute_batch(&mut self, sql: &str) -> Result<(), StoreError> {
        self.usable()?;
        let outcome = match &mut self.read.inner {
            Inner::Sqlite(tx) => tx.execute_batch(sql),
            Inner::Postgres(tx) => tx.execute_batch(sql).await,
        };
        outcome.map_err(|error| self.fail(error, sql))
    }

    /// The error with which a job must end although it returned `Ok`.
    pub(crate) fn swallowed(&self) -> Option<StoreError> {
        self.usable().err()
    }

    /// Bounds what follows, until it is called without a budget.
    pub(crate) fn limit(&mut self, budget: Option<Arc<Budget>>) {
        self.read.budget = budget;
    }

    pub(crate) fn into_postgres(self) -> Option<PgTx> {
        match self.read.inner {
            Inner::Postgres(tx) => Some(tx),
            Inner::Sqlite(_) => None,
        }
    }

    /// Clears the last job's failure; the writer thread reuses the transaction.
    pub(crate) fn reset(&mut self) {
        self.read.failure = None;
    }
}

impl Deref for WriteTx {
    type Target = ReadTx;

    fn deref(&self) -> &ReadTx {
        &self.read
    }
}

impl DerefMut for WriteTx {
    fn deref_mut(&mut self) -> &mut ReadTx {
        &mut self.read
    }
}
