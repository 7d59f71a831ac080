//! The embedded engine: inline readers and one writer thread.

mod checkpointer;
mod reader;
mod sorter;
mod writer;

use std::collections::HashMap;
use std::fs::OpenOptions;
use std::ops::ControlFlow;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use futures_util::future::BoxFuture;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use self::checkpointer::Logged;
use crate::dry_run::DryRunLimits;
use crate::error::StoreError;
use crate::job::{Job, JobKind};
use crate::load::WriterLoad;
use crate::placeholders::rewrite_placeholders;
use crate::room::Room;
use crate::row::{Engines, Row};
use crate::tx::ReadTx;
use crate::value::Value;

/// How the embedded engine is set up; the default fits a server.
#[derive(Clone, Debug)]
pub struct SqliteOptions {
    /// How much of the file each reader maps into memory, in bytes: pages that it has read there stay the system's, and
    /// are given back when others need the room.
    pub mmap_size: u64,
    /// How long a statement waits for another process's lock.
    pub busy_timeout: Duration,
    /// How many writes may wait; further callers wait to be queued.
    pub queue: usize,
    /// How many prepared statements each connection keeps.
    pub statement_cache: usize,
    /// The room on the disk; without it, nothing is refused before the disk is full to the last byte.
    pub room: Option<Arc<Room>>,
}

impl Default for SqliteOptions {
    fn default() -> Self {
        Self {
            mmap_size: 1 << 30,
            busy_timeout: Duration::from_secs(5),
            queue: 1024,
            statement_cache: 1024,
            room: None,
        }
    }
}

/// How much of the file the writer maps: it has a cache of its own.
const WRITER_MMAP: u64 = 256 << 20;

/// Bytes of a page.
const PAGE: u64 = 4096;
/// Bytes of the write-ahead log at which the writer itself checkpoints it, and which stay allocated when it begins again.
const LOG: u64 = 64 << 20;

#[derive(Clone)]
pub(crate) struct Sqlite {
    file: Arc<File>,
    readers: Arc<reader::Readers>,
    writer: writer::Writer,
}

impl Sqlite {
    pub(crate) async fn open(path: &Path, options: SqliteOptions) -> Result<Self, StoreError> {
        let file = Arc::new(File { path: path.to_owned(), options, logged: Arc::default(), waiting: Arc::default() });
        let readers = Arc::new(reader::Readers::new(Arc::clone(&file)));
        let writer = writer::Writer::start(Arc::clone(&file), Arc::clone(&readers)).await?;
        Ok(Self { file, readers, writer })
    }

    pub(crate) fn room(&self) -> Option<&Arc<Room>> {
        self.file.options.room.as_ref()
    }

    pub(crate) fn read<T, E: From<StoreError>>(
        &self,
        f: impl for<'a> FnOnce(&'a mut ReadTx) -> BoxFuture<'a, Result<T, E>>,
    ) -> Result<T, E> {
        self.readers.read(f)
    }

    /// Queues a job, which delivers its outcome when it has run.
    pub(crate) async fn write(&self, kind: JobKind, job: Box<dyn Job>) -> Result<(), StoreError> {
        if !kind.may_use_reserve && self.room().is_some_and(|room| room.is_full()) {
            return Err(StoreError::full("little room is left on the disk"));
        }
        self.writer.write(kind, job).await
    }

    /// Queues a job that is rolled back, which delivers its outcome when it has run.
    pub(crate) async fn dry_run(&self, limits: DryRunLimits, job: Box<dyn Job>) -> Result<(), StoreError> {
        self.writer.dry_run(limits, job).await
    }

    /// A connection of its own inside a transaction that only reads.
    pub(crate) fn snapshot(&self) -> Result<SqliteTx, StoreError> {
        let conn = self.file.open_reader()?;
        conn.control("BEGIN")?;
        Ok(conn)
    }

    pub(crate) fn load(&self) -> WriterLoad {
        self.writer.load()
    }

    pub(crate) async fn checkpoint_if_idle(&self) {
        self.writer.checkpoint_if_idle().await;
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.writer.is_closed()
    }

    pub(crate) async fn close(&self) {
        self.writer.close().await;
    }
}

/// Where the database is and how to open it.
struct File {
    path: PathBuf,
    options: SqliteOptions,
    logged: Arc<Logged>,
    /// Writes that have been queued and not begun.
    waiting: Arc<AtomicUsize>,
}

impl File {
    /// Creates the file private to its owner; SQLite gives its `-wal` and `-shm`
    /// files the same mode.
    fn create(&self) -> Result<(), StoreError> {
        OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&self.path)
            .map(drop)
            .map_err(|error| {
                let message = format!("cannot open {}: {error}", self.path.display());
                StoreError::unavailable(message).with_source(error)
            })
    }

    /// Never creates the file: if it vanishes under a running server, an empty database instead would be the
    /// worst outcome.
    fn open_writer(&self) -> Result<SqliteTx, StoreError> {
        let mut tx = self.open(OpenFlags::SQLITE_OPEN_READ_WRITE, WRITER_MMAP.min(self.options.mmap_size))?;
        // Statistics of small tables make SQLite scan them when they have become large. Without statistics it goes by
        // the indexes that statements are written for.
        //
        // The checkpointer copies the log.
        tx.conn.execute_batch(&format!(
            "PRAGMA journal_mode = WAL;
             PRAGMA synchronous = FULL;
             PRAGMA foreign_keys = ON;
             PRAGMA temp_store = MEMORY;
             PRAGMA cache_size = -65536;
             PRAGMA journal_size_limit = {};
             DROP TABLE IF EXISTS sqlite_stat1;
             DROP TABLE IF EXISTS sqlite_stat4;",
            self.longest_log()
        ))?;
        self.logged.count(&mut tx.conn)?;
        let mode: String = tx.conn.query_row("PRAGMA journal_mode", [], |row| row.get(0))?;
        if mode != "wal" {
            return Err(StoreError::unavailable(format!(
                "{} cannot use a write-ahead log (journal mode {mode})",
                self.path.display()
            )));
        }
        Ok(tx)
    }

    /// The reserve has room for one log.
    fn longest_log(&self) -> u64 {
        self.options.room.as_ref().map_or(LOG, |room| room.whole().clamp(1 << 20, LOG))
    }

    /// A connection that copies the log, and nothing else.
    fn open_checkpointer(&self) -> Result<Connection, StoreError> {
        let conn = self.open(OpenFlags::SQLITE_OPEN_READ_WRITE, 0)?.conn;
        conn.execute_batch("PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 0;")?;
        Ok(conn)
    }

    fn open_reader(&self) -> Result<SqliteTx, StoreError> {
        self.open(OpenFlags::SQLITE_OPEN_READ_ONLY, self.options.mmap_size)
    }

    fn open(&self, mode: OpenFlags, mmap_size: u64) -> Result<SqliteTx, StoreError> {
        let conn = Connection::open_with_flags(&self.path, mode | OpenFlags::SQLITE_OPEN_NO_MUTEX)
            .map_err(|error| StoreError::from(error).in_statement(&self.path.display().to_string()))?;
        conn.busy_timeout(self.options.busy_timeout)?;
        conn.set_prepared_statement_cache_capacity(self.options.statement_cache);
        // Plans do not depend on parameters: otherwise every new value of a LIMIT compiles its statement again.
        conn.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
        // LIKE is case-sensitive on PostgreSQL.
        conn.execute_batch(&format!("PRAGMA case_sensitive_like = ON; PRAGMA mmap_size = {mmap_size};"))?;
        Ok(SqliteTx { conn, rewritten: HashMap::new(), waiting: Arc::clone(&self.waiting) })
    }
}

/// A connection inside a transaction.
pub(crate) struct SqliteTx {
    conn: Connection,
    /// Statement texts with `?n`, so that the rewrite is paid once a connection.
    rewritten: HashMap<Box<str>, Box<str>>,
    waiting: Arc<AtomicUsize>,
}

/// Statement texts are static but for the length of `IN` lists; beyond this
/// many something builds texts from values.
const MAX_REWRITTEN: usize = 8192;

impl SqliteTx {
    /// Whether writes wait for this one.
    pub(crate) fn others_wait(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) > 0
    }

    fn text<'s>(rewritten: &'s mut HashMap<Box<str>, Box<str>>, sql: &'s str) -> &'s str {
        if !sql.contains('$') {
            return sql;
        }
        if !rewritten.contains_key(sql) {
            if rewritten.len() >= MAX_REWRITTEN {
                rewritten.clear();
            }
            rewritten.insert(sql.into(), rewrite_placeholders(sql).into());
        }
        &rewritten[sql]
    }

    /// Runs a statement, and `each` for every row until it breaks off.
    pub(crate) fn for_each(
        &mut self,
        sql: &str,
        params: &[Value<'_>],
        each: &mut dyn FnMut(&Row<'_>) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        let text = Self::text(&mut self.rewritten, sql);
        let mut statement = self.conn.prepare_cached(text)?;
        let mut rows = statement.query(rusqlite::params_from_iter(params))?;
        while let Some(row) = rows.next()? {
            if each(&Row(Engines::Sqlite(row))).is_break() {
                break;
            }
        }
        Ok(())
    }

    pub(crate) fn execute(&mut self, sql: &str, params: &[Value<'_>]) -> Result<u64, StoreError> {
        let text = Self::text(&mut self.rewritten, sql);
        let mut statement = self.conn.prepare_cached(text)?;
        let changed = statement.execute(rusqlite::params_from_iter(params))?;
        Ok(changed as u64)
    }

    pub(crate) fn execute_batch(&mut self, sql: &str) -> Result<(), StoreError> {
        Ok(self.conn.execute_batch(sql)?)
    }

    /// A statement that begins or ends a transaction or savepoint.
    fn control(&self, sql: &'static str) -> Result<(), StoreError> {
        self.conn.prepare_cached(sql)?.execute([])?;
        Ok(())
    }
}

thread_local! {
    /// Set while this thread runs a closure: a nested transaction would read
    /// another snapshot or wait for itself.
    static IS_OPEN: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

/// Marks the thread as running a closure, until dropped (also by a panic).
struct OpenTransaction;

impl OpenTransaction {
    fn begin() -> Result<Self, StoreError> {
        if IS_OPEN.replace(true) {
            return Err(StoreError::bug("a transaction inside a transaction"));
        }
        Ok(OpenTransaction)
    }
}

impl Drop for OpenTransaction {
    fn drop(&mut self) {
        IS_OPEN.set(false);
    }
}

/// Polls a closure's future exactly once. Statements on SQLite never wait, so
/// pending means that the closure awaits something else.
fn poll_once<T>(mut future: BoxFuture<'_, T>) -> Result<T, StoreError> {
    match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(outcome) => Ok(outcome),
        Poll::Pending => Err(StoreError::bug("a transaction closure awaited something other than its transaction")),
    }
}
