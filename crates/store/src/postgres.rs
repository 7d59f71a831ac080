//! The server engine: a pool, explicit transactions, retries.
//!
//! What is not generic returns a boxed future: the body of an `async fn` is compiled once more in every crate that awaits
//! it, and a boxed one is compiled here. Beside a round trip, the allocation is nothing.

mod dry_run;

use std::hash::{BuildHasher, Hasher, RandomState};
use std::str::FromStr;
use std::time::Duration;

use deadpool_postgres::{Manager, ManagerConfig, Object, Pool, PoolError, RecyclingMethod};
use futures_util::future::BoxFuture;
use tokio_postgres::config::SslMode;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Config, NoTls};
use tracing::Instrument;

use crate::error::{ErrorKind, StoreError, chain};
use crate::job::Job;
use crate::load::PoolLoad;
use crate::tx::{Inner, ReadTx, WriteTx};
use crate::value::Value;

/// How the PostgreSQL pool is set up; the default fits a server.
#[derive(Clone, Debug)]
pub struct PostgresOptions {
    /// The most connections this process opens.
    pub max_connections: usize,
    /// How long a call waits for a free connection.
    pub pool_timeout: Duration,
    /// How long connecting may take.
    pub connect_timeout: Duration,
    /// How long one statement may run before the server stops it; zero: for ever.
    pub statement_timeout: Duration,
}

impl Default for PostgresOptions {
    fn default() -> Self {
        Self {
            max_connections: 16,
            pool_timeout: Duration::from_secs(5),
            connect_timeout: Duration::from_secs(5),
            statement_timeout: Duration::from_secs(30),
        }
    }
}

/// When this process or its host dies silently, the server ends its open transactions, which would hold up
/// the numbers of events and of the audit log. The URL's own options come after these and override them.
const ENDS_OF_THE_DEAD: &str = "-c idle_in_transaction_session_timeout=30s -c tcp_keepalives_idle=30 \
    -c tcp_keepalives_interval=5 -c tcp_keepalives_count=3 -c tcp_user_timeout=45s";

pub(crate) const BEGIN_READ: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";
/// Write-write conflicts fail here too, but no one's reads count.
pub(crate) const BEGIN_LEASED: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ WRITE";
pub(crate) const BEGIN_WRITE: &str = "BEGIN ISOLATION LEVEL SERIALIZABLE READ WRITE";
pub(crate) const BEGIN_SCRATCH: &str =
    "BEGIN ISOLATION LEVEL SERIALIZABLE READ WRITE; SET LOCAL synchronous_commit = off";
/// How often a write is tried in all.
const MAX_TRIES: u32 = 30;

#[derive(Clone)]
pub(crate) struct Postgres {
    pool: Pool,
}

impl Postgres {
    pub(crate) async fn open(url: &str, options: &PostgresOptions) -> Result<Self, StoreError> {
        let mut config = Config::from_str(url).map_err(|error| {
            let message = format!("the PostgreSQL URL does not parse: {}", chain(&error));
            StoreError::bug(message).with_source(error)
        })?;
        match config.get_ssl_mode() {
            SslMode::Disable | SslMode::Prefer => {}
            _ => {
                return Err(StoreError::bug(
                    "the PostgreSQL URL demands TLS (sslmode), which this build does not \
                     support; use sslmode=disable over a unix socket or a private network",
                ));
            }
        }
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(options.connect_timeout);
        }
        if config.get_application_name().is_none() {
            config.application_name("bowline");
        }
        // The last one of a name counts: `synchronous_commit` may be off by a server's default, and an acknowledged
        // write is durable.
        let settings = format!(
            "{ENDS_OF_THE_DEAD} {} -c statement_timeout={} -c synchronous_commit=on",
            config.get_options().unwrap_or_default(),
            options.statement_timeout.as_millis()
        );
        config.options(settings);
        notice_the_dead(&mut config);
        let manager = Manager::from_config(config, NoTls, ManagerConfig { recycling_method: RecyclingMethod::Fast });
        let pool = Pool::builder(manager)
            .max_size(options.max_connections.max(1))
            .wait_timeout(Some(options.pool_timeout))
            .create_timeout(Some(options.connect_timeout))
            .runtime(deadpool_postgres::Runtime::Tokio1)
            .build()
            .map_err(|error| StoreError::bug(error.to_string()))?;
        let opened = Self { pool };
        opened.connect().await?.finish("SELECT 1").await?;
        Ok(opened)
    }

    pub(crate) fn load(&self) -> PoolLoad {
        let status = self.pool.status();
        PoolLoad {
            used: status.size.saturating_sub(status.available) as u64,
            idle: status.available as u64,
            waiting: status.waiting as u64,
        }
    }

    /// A connection that is not in a transaction yet, but guarded like one.
    pub(crate) async fn connect(&self) -> Result<PgTx, StoreError> {
        match self.pool.get().await {
            Ok(client) => Ok(PgTx { client: Some(client) }),
            Err(error) => {
                let kind = match &error {
                    // Wrong password, no such database: time may cure it, a retry does not hurt.
                    PoolError::Backend(_) | PoolError::Timeout(_) | PoolError::Closed => ErrorKind::Unavailable,
                    _ => ErrorKind::Bug,
                };
                let cause = match &error {
                    PoolError::Backend(error) => chain(error),
                    error => chain(error),
                };
                let message = format!("no PostgreSQL connection: {cause}");
                Err(StoreError::new(kind, message).with_source(error))
            }
        }
    }

    /// Pooled connections may have died unnoticed (a server restart), so a BEGIN
    /// that finds its connection closed tries another one.
    pub(crate) fn begin(&self, begin: &'static str) -> BoxFuture<'_, Result<PgTx, StoreError>> {
        Box::pin(async move {
            let mut tries = self.pool.status().max_size + 1;
            loop {
                let tx = self.connect().await?;
                match tx.execute_batch(begin).await {
                    Ok(()) => return Ok(tx),
                    Err(error) if error.kind() == ErrorKind::Unavailable && tries > 1 => tries -= 1,
                    Err(error) => return Err(error),
                }
            }
        })
    }

    pub(crate) async fn read<T: Send, E: From<StoreError> + Send>(
        &self,
        f: impl for<'a> FnOnce(&'a mut ReadTx) -> BoxFuture<'a, Result<T, E>> + Send,
    ) -> Result<T, E> {
        let mut tx = ReadTx::new(Inner::Postgres(self.begin(BEGIN_READ).await?));
        let outcome = f(&mut tx).await;
        if let Inner::Postgres(tx) = tx.inner {
            // Nothing to lose: COMMIT of an aborted transaction rolls back.
            let _ = tx.finish("COMMIT").await;
        }
        outcome
    }

    /// Runs a job and has it deliver its outcome. In a task of its own, so that a caller who gives up does not leave
    /// the outcome to chance.
    ///
    /// # Errors
    /// The job panicked, or the runtime ended: then it delivers nothing.
    pub(crate) fn write(
        &self,
        begin: &'static str,
        mut job: Box<dyn Job>,
    ) -> BoxFuture<'static, Result<(), StoreError>> {
        let this = self.clone();
        let task = async move {
            if let Err(error) = this.run(begin, job.as_mut()).await {
                job.fail(error);
            }
            job.answer();
        };
        let task = tokio::spawn(task.in_current_span());
        Box::pin(async move {
            match task.await {
                Ok(()) => Ok(()),
                Err(error) if error.is_panic() => Err(StoreError::bug("a transaction closure panicked")),
                Err(_) => Err(StoreError::unavailable("the runtime is shutting down")),
            }
        })
    }

    /// Runs a job until it meets no serialization failure. An error replaces the job's outcome.
    async fn run(&self, begin: &'static str, job: &mut dyn Job) -> Result<(), StoreError> {
        for attempt in 1..=MAX_TRIES {
            match self.attempt(begin, job).await? {
                Attempt::Done => return Ok(()),
                Attempt::Conflict => {
                    tracing::debug!(attempt, "serialization failure, trying again");
                    tokio::time::sleep(backoff(attempt)).await;
                }
            }
        }
        Err(StoreError::unavailable(format!("gave up after {MAX_TRIES} serialization failures")))
    }

    async fn attempt(&self, begin: &'static str, job: &mut dyn Job) -> Result<Attempt, StoreError> {
        let mut tx = WriteTx::new(Inner::Postgres(self.begin(begin).await?));
        let succeeded = job.run(&mut tx).await;
        let conflict = |error: &StoreError| error.kind() == ErrorKind::Serialization;
        let conflicted = tx.failure().is_some_and(conflict);
        // A transaction with a failed statement cannot commit.
        let swallowed = tx.swallowed();
        let Some(tx) = tx.into_postgres() else { return Err(StoreError::bug("the transaction is of another engine")) };
        if succeeded && swallowed.is_none() {
            return match tx.finish("COMMIT").await {
                Ok(()) => Ok(Attempt::Done),
                Err(error) if conflict(&error) => Ok(Attempt::Conflict),
                Err(error) => Err(error),
            };
        }
        // Nothing to lose: a connection that cannot roll back is closed.
        let _ = tx.finish("ROLLBACK").await;
        match swallowed {
            _ if conflicted => Ok(Attempt::Conflict),
            Some(error) if succeeded => Err(error),
            _ => Ok(Attempt::Done),
        }
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.pool.is_closed()
    }

    pub(crate) fn close(&self) {
        self.pool.close();
    }
}

/// The same from this side, for a server that is gone; where the URL does not say it otherwise.
fn notice_the_dead(config: &mut Config) {
    let untouched = Config::new();
    if config.get_keepalives_idle() == untouched.get_keepalives_idle() {
        config.keepalives_idle(Duration::from_secs(30));
    }
    if config.get_keepalives_interval().is_none() {
        config.keepalives_interval(Duration::from_secs(5));
    }
    if config.get_keepalives_retries().is_none() {
        config.keepalives_retries(3);
    }
    if config.get_tcp_user_timeout().is_none() {
        config.tcp_user_timeout(Duration::from_secs(45));
    }
}

enum Attempt {
    Done,
    Conflict,
}

/// Full jitter under a doubling bound of 2 ms to 256 ms.
fn backoff(attempt: u32) -> Duration {
    let bound = 1000_u64 << attempt.min(8);
    // The only randomness in the standard library: a hasher's keys.
    let random = RandomState::new().build_hasher().finish();
    Duration::from_micros(random % bound)
}

/// A connection inside a transaction. Unless `finish` returned it, dropping it
/// closes the connection, so that it never goes back to the pool half way.
pub(crate) struct PgTx {
    client: Option<Object>,
}

impl PgTx {
    fn client(&self) -> Result<&Object, StoreError> {
        self.client.as_ref().ok_or_else(|| StoreError::bug("the transaction has ended"))
    }

    pub(crate) fn query<'a>(
        &'a self,
        sql: &'a str,
        params: &'a [Value<'a>],
    ) -> BoxFuture<'a, Result<Vec<tokio_postgres::Row>, StoreError>> {
        Box::pin(async move {
            let client = self.client()?;
            let statement = client.prepare_cached(sql).await?;
            Ok(client.query(&statement, &borrowed(params)).await?)
        })
    }

    pub(crate) fn execute<'a>(
        &'a self,
        sql: &'a str,
        params: &'a [Value<'a>],
    ) -> BoxFuture<'a, Result<u64, StoreError>> {
        Box::pin(async move {
            let client = self.client()?;
            let statement = client.prepare_cached(sql).await?;
            Ok(client.execute(&statement, &borrowed(params)).await?)
        })
    }

    pub(crate) fn execute_batch<'a>(&'a self, sql: &'a str) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move { Ok(self.client()?.batch_execute(sql).await?) })
    }

    /// Runs the last statement and gives the connection back if that went well.
    pub(crate) fn finish(mut self, sql: &'static str) -> BoxFuture<'static, Result<(), StoreError>> {
        Box::pin(async move {
            let outcome = self.execute_batch(sql).await;
            let reusable = match &outcome {
                Ok(()) => true,
                // The server answered, and a COMMIT it refused has rolled back.
                Err(error) => matches!(
                    error.kind(),
                    ErrorKind::Serialization
                        | ErrorKind::UniqueViolation
                        | ErrorKind::ForeignKeyViolation
                        | ErrorKind::OtherConstraint
                ),
            };
            if reusable {
                drop(self.client.take());
            }
            outcome
        })
    }
}

impl Drop for PgTx {
    fn drop(&mut self) {
        if let Some(client) = self.client.take() {
            drop(Object::take(client));
        }
    }
}

fn borrowed<'p>(params: &'p [Value<'_>]) -> Vec<&'p (dyn ToSql + Sync)> {
    params.iter().map(|param| param as _).collect()
}
