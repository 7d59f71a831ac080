//! Storage: one small interface over SQLite (embedded) and PostgreSQL.
//!
//! A program opens a [`Db`], migrates it, then reads in a [`ReadTx`] and changes
//! things in a [`WriteTx`]:
//!
//! ```no_run
//! # use bowline_store::{Db, SqliteOptions, StoreError, Value};
//! # async fn example() -> Result<(), StoreError> {
//! let db = Db::open_sqlite("bowline.db".as_ref(), SqliteOptions::default()).await?;
//! let uid = String::from("a1");
//! let name = db
//!     .read(move |tx| {
//!         Box::pin(async move {
//!             let sql = "SELECT name FROM repos WHERE uid = $1";
//!             tx.query_opt(sql, &[Value::from(&uid)], |row| row.text(0)).await
//!         })
//!     })
//!     .await?;
//! # let _: Option<String> = name;
//! # Ok(()) }
//! ```
//!
//! Rules that keep both engines alike:
//!
//! - **One statement text.** Write `$1`, `$2`; SQLite gets `?1`, `?2`
//!   ([`rewrite_placeholders`]). Give PostgreSQL types where it cannot infer them
//!   (`CAST($1 AS TEXT) IS NULL`), cast sums (`CAST(sum(n) AS BIGINT)`), say
//!   `NULLS LAST`, `ESCAPE '\'`, and never `= 1` for a boolean.
//! - **A closure awaits nothing but its transaction.** On SQLite it is polled
//!   once; pending is [`ErrorKind::Bug`]. No nested `read` or `write` inside it.
//! - **A write closure may run more than once**: after a serialization failure
//!   on PostgreSQL, after another write of the same group commit failed on SQLite.
//!   Draw ids and times outside it, and have no side effects beyond the transaction.
//! - **A failed statement loses the transaction.** Later statements fail too, so
//!   avoid the failure (`ON CONFLICT DO NOTHING`) where a conflict is expected.
//! - **No deferred constraints**: on SQLite they fail the commit, not the statement.
//! - **No U+0000 in texts**: PostgreSQL refuses it. Validate before.
//!
//! A write that returned `Ok` is durable. One that returned
//! [`ErrorKind::Unavailable`] is not, except that its
//! outcome is unknown if the connection or disk was lost during COMMIT.

pub mod activity;
pub mod counters;
mod db;
mod dry_run;
mod error;
mod job;
mod load;
mod migrate;
mod placeholders;
mod postgres;
mod presentation;
mod room;
mod row;
mod schema;
mod sql;
mod sqlite;
pub mod tables;
mod transfer;
mod tx;
mod value;

pub use db::{Db, Engine};
pub use dry_run::DryRunLimits;
pub use error::{ErrorKind, StoreError};
pub use futures_util::future::BoxFuture;
pub use load::{Load, PoolLoad, WriterLoad};
pub use migrate::{Migration, SchemaState};
pub use placeholders::rewrite_placeholders;
pub use postgres::PostgresOptions;
pub use room::{DiskProbe, Room, Space};
pub use row::Row;
pub use schema::MIGRATIONS;
pub use sql::{Sql, like, placeholders};
pub use sqlite::SqliteOptions;
pub use transfer::{Cell, Filling, Snapshot, TransferTable, end_filling, transfer_tables};
pub use tx::{ReadTx, WriteTx};
pub use value::Value;
