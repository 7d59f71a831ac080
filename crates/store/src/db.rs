//! The database handle, for either engine.

use std::path::Path;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use tokio::sync::oneshot;

use crate::error::StoreError;
use crate::job::{Flush, Job, JobKind, TypedJob};
use crate::load::Load;
use crate::postgres::{BEGIN_LEASED, BEGIN_SCRATCH, BEGIN_WRITE, Postgres, PostgresOptions};
use crate::room::Room;
use crate::sqlite::{Sqlite, SqliteOptions};
use crate::tx::{ReadTx, WriteTx};

/// Which engine stores the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Engine {
    Sqlite,
    Postgres,
}

/// A database; clones share it.
#[derive(Clone)]
pub struct Db {
    pub(crate) backend: Backend,
    may_use_reserve: bool,
}

#[derive(Clone)]
pub(crate) enum Backend {
    Sqlite(Sqlite),
    Postgres(Postgres),
}

impl Db {
    fn new(backend: Backend) -> Db {
        Db { backend, may_use_reserve: false }
    }

    /// The same database for writes that remove something or are the operator's: they are not refused when the disk is
    /// full, and may use up its reserve ([`Room`]).
    pub fn from_reserve(&self) -> Db {
        Db { backend: self.backend.clone(), may_use_reserve: true }
    }

    /// The room on the disk of the embedded engine, where it was opened with one.
    pub fn room(&self) -> Option<&Arc<Room>> {
        match &self.backend {
            Backend::Sqlite(sqlite) => sqlite.room(),
            Backend::Postgres(_) => None,
        }
    }

    /// Whether writes that need more room are refused now.
    pub fn is_full(&self) -> bool {
        self.room().is_some_and(|room| room.is_full())
    }

    /// Opens or creates (mode 0600) a SQLite file. Other processes may have it
    /// open too; SQLite's own locks arbitrate.
    pub async fn open_sqlite(path: &Path, options: SqliteOptions) -> Result<Db, StoreError> {
        Ok(Db::new(Backend::Sqlite(Sqlite::open(path, options).await?)))
    }

    /// Connects to PostgreSQL. TLS is not built in: `sslmode=require` is refused.
    pub async fn open_postgres(url: &str, options: PostgresOptions) -> Result<Db, StoreError> {
        Ok(Db::new(Backend::Postgres(Postgres::open(url, &options).await?)))
    }

    /// How busy the engine is now.
    pub fn load(&self) -> Load {
        match &self.backend {
            Backend::Sqlite(sqlite) => Load::Sqlite(sqlite.load()),
            Backend::Postgres(postgres) => Load::Postgres(postgres.load()),
        }
    }

    /// Which engine stores the data.
    pub fn engine(&self) -> Engine {
        match self.backend {
            Backend::Sqlite(_) => Engine::Sqlite,
            Backend::Postgres(_) => Engine::Postgres,
        }
    }

    /// Runs `f` on one snapshot. On SQLite it runs inline on the calling thread
    /// and is polled once, so every statement in it must be bounded.
    pub async fn read<T: Send, E: From<StoreError> + Send>(
        &self,
        f: impl for<'a> FnOnce(&'a mut ReadTx) -> BoxFuture<'a, Result<T, E>> + Send,
    ) -> Result<T, E> {
        match &self.backend {
            Backend::Sqlite(sqlite) => sqlite.read(f),
            Backend::Postgres(postgres) => postgres.read(f).await,
        }
    }

    /// Runs `f` in a transaction and returns once that is durable. `f` may run more than once, and runs to
    /// its end even if this future is dropped.
    pub fn write<T: Send + 'static, E: From<StoreError> + Send + 'static>(
        &self,
        f: impl for<'a> FnMut(&'a mut WriteTx) -> BoxFuture<'a, Result<T, E>> + Send + 'static,
    ) -> impl Future<Output = Result<T, E>> + Send {
        self.run(Flush::AtCommit, BEGIN_WRITE, f)
    }

    /// Like [`Db::write`], but returns before the rows are on disk: for rows whose loss with the machine is
    /// harmless, since their users begin again. A killed process loses none, and the next [`Db::write`] makes
    /// them durable.
    pub fn write_scratch<T: Send + 'static, E: From<StoreError> + Send + 'static>(
        &self,
        f: impl for<'a> FnMut(&'a mut WriteTx) -> BoxFuture<'a, Result<T, E>> + Send + 'static,
    ) -> impl Future<Output = Result<T, E>> + Send {
        self.run(Flush::Later, BEGIN_SCRATCH, f)
    }

    /// Like [`Db::write`], on one snapshot but not serializable: for work that holds a lease and touches rows
    /// that no one else changes, so that it makes no caller's transaction try again.
    pub fn write_leased<T: Send + 'static, E: From<StoreError> + Send + 'static>(
        &self,
        f: impl for<'a> FnMut(&'a mut WriteTx) -> BoxFuture<'a, Result<T, E>> + Send + 'static,
    ) -> impl Future<Output = Result<T, E>> + Send {
        self.run(Flush::AtCommit, BEGIN_LEASED, f)
    }

    /// Like [`Db::write_leased`], for rows that follow from durable ones and come out the same if they have
    /// to be written again. On the embedded engine at least it returns before they are on disk, like
    /// [`Db::write_scratch`].
    pub fn write_derived<T: Send + 'static, E: From<StoreError> + Send + 'static>(
        &self,
        f: impl for<'a> FnMut(&'a mut WriteTx) -> BoxFuture<'a, Result<T, E>> + Send + 'static,
    ) -> impl Future<Output = Result<T, E>> + Send {
        self.run(Flush::Later, BEGIN_LEASED, f)
    }

    async fn run<T: Send + 'static, E: From<StoreError> + Send + 'static>(
        &self,
        flush: Flush,
        begin: &'static str,
        f: impl for<'a> FnMut(&'a mut WriteTx) -> BoxFuture<'a, Result<T, E>> + Send + 'static,
    ) -> Result<T, E> {
        let (reply, outcome) = oneshot::channel();
        self.enqueue(flush, begin, Box::new(TypedJob::new(f, reply))).await?;
        outcome.await.map_err(|_| StoreError::unavailable("the database is closed"))?
    }

    fn enqueue(&self, flush: Flush, begin: &'static str, job: Box<dyn Job>) -> BoxFuture<'_, Result<(), StoreError>> {
        match &self.backend {
            Backend::Sqlite(sqlite) => {
                let kind = JobKind { flush, may_use_reserve: self.may_use_reserve };
                Box::pin(sqlite.write(kind, job))
            }
            Backend::Postgres(postgres) => postgres.write(begin, job),
        }
    }

    /// Checkpoints the embedded engine's log if nothing has changed since the last call: called every second or so, it
    /// keeps the readers of an idle server from looking into a long log for every page. PostgreSQL does so by itself.
    pub async fn checkpoint_if_idle(&self) {
        match &self.backend {
            Backend::Sqlite(sqlite) => sqlite.checkpoint_if_idle().await,
            Backend::Postgres(_) => {}
        }
    }

    /// Whether no write can succeed any more, since [`Db::close`] was called or the embedded engine's writer has ended.
    pub fn is_closed(&self) -> bool {
        match &self.backend {
            Backend::Sqlite(sqlite) => sqlite.is_closed(),
            Backend::Postgres(postgres) => postgres.is_closed(),
        }
    }

    /// Finishes the queued writes, checkpoints and disconnects. Later calls on
    /// any clone fail as unavailable.
    pub async fn close(&self) {
        match &self.backend {
            Backend::Sqlite(sqlite) => sqlite.close().await,
            Backend::Postgres(postgres) => postgres.close(),
        }
    }
}
