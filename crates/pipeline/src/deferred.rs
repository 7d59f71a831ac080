//! Work that a transaction turns out to need and must not do itself, such as matching patterns of callers: on SQLite
//! every other writer would wait for it.
//!
//! The attempt ends with [`defer`]'s error, the work runs on a thread of its own and caches its result, and
//! the transaction runs again and uses it.

use std::error::Error as StdError;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use bowline_core::Error;
use bowline_store::{BoxFuture, Db, DryRunLimits, ReadTx, StoreError, WriteTx};

use crate::Pipeline;

/// Maximum number of attempts of one transaction. Each but the last found something new that it needs.
const ATTEMPTS: usize = 32;

/// Tells deferred work that no one waits for it any more.
#[derive(Clone, Debug, Default)]
pub struct Cancelled(Arc<AtomicBool>);

impl Cancelled {
    /// Whether the work should end: work that takes long looks now and then.
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Sets the flag when the caller's future ends, however it does.
struct CancelOnDrop(Cancelled);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.0.store(true, Ordering::Relaxed);
    }
}

type Work = Box<dyn FnOnce(&Cancelled) + Send>;

/// The source of an error that ends an attempt.
struct Deferred(Mutex<Option<Work>>);

impl fmt::Debug for Deferred {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Deferred")
    }
}

impl fmt::Display for Deferred {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("work that was to be done outside of the transaction")
    }
}

impl StdError for Deferred {}

/// Ends an attempt of a transaction that needs this work first. The transaction must run by [`Pipeline::write_deferring`]
/// or [`Pipeline::read_deferring`]; what runs otherwise fails as unavailable.
pub fn defer(work: impl FnOnce(&Cancelled) + Send + 'static) -> Error {
    Error::unavailable(Deferred(Mutex::new(Some(Box::new(work)))))
}

/// The work that an error carries.
pub trait MayDefer {
    /// The error of the pipeline inside, if it is one.
    fn pipeline_error(&self) -> Option<&Error>;
}

impl MayDefer for Error {
    fn pipeline_error(&self) -> Option<&Error> {
        Some(self)
    }
}

fn work_of(error: &impl MayDefer) -> Option<Work> {
    let deferred = error.pipeline_error()?.source()?.downcast_ref::<Deferred>()?;
    deferred.0.lock().unwrap_or_else(PoisonError::into_inner).take()
}

impl Pipeline {
    /// Like [`bowline_store::Db::write`], with what the attempts defer done between them.
    ///
    /// # Errors
    /// Those of `f`, and of the storage.
    pub async fn write_deferring<T, E>(
        &self,
        f: impl for<'a> FnMut(&'a mut WriteTx) -> BoxFuture<'a, Result<T, E>> + Clone + Send + 'static,
    ) -> Result<T, E>
    where
        T: Send + 'static,
        E: MayDefer + From<StoreError> + From<Error> + Send + 'static,
    {
        self.write_deferring_on(&self.db, f).await
    }

    /// The same through another handle of the database, such as the one for writes that work on a full disk.
    ///
    /// # Errors
    /// Those of `f`, and of the storage.
    pub async fn write_deferring_on<T, E>(
        &self,
        db: &Db,
        f: impl for<'a> FnMut(&'a mut WriteTx) -> BoxFuture<'a, Result<T, E>> + Clone + Send + 'static,
    ) -> Result<T, E>
    where
        T: Send + 'static,
        E: MayDefer + From<StoreError> + From<Error> + Send + 'static,
    {
        let mut attempt = 0;
        loop {
            attempt += 1;
            let failed = match db.write(f.clone()).await {
                Err(error) => error,
                done => return done,
            };
            match work_of(&failed).filter(|_| attempt < ATTEMPTS) {
                Some(work) => self.do_deferred(work).await?,
                None => return Err(failed),
            }
        }
    }

    /// The same for [`bowline_store::Db::dry_run`].
    ///
    /// # Errors
    /// Those of `f`, and of the storage.
    pub(crate) async fn dry_run_deferring<T>(
        &self,
        limits: DryRunLimits,
        f: impl for<'a> FnMut(&'a mut WriteTx) -> BoxFuture<'a, Result<T, Error>> + Clone + Send + 'static,
    ) -> Result<T, Error>
    where
        T: Send + 'static,
    {
        let mut attempt = 0;
        loop {
            attempt += 1;
            let failed = match self.db.dry_run(limits, f.clone()).await {
                Err(error) => error,
                done => return done,
            };
            match work_of(&failed).filter(|_| attempt < ATTEMPTS) {
                Some(work) => self.do_deferred(work).await?,
                None => return Err(failed),
            }
        }
    }

    /// The same for [`bowline_store::Db::read`].
    ///
    /// # Errors
    /// Those of `f`, and of the storage.
    pub async fn read_deferring<T, E>(
        &self,
        f: impl for<'a> FnOnce(&'a mut ReadTx) -> BoxFuture<'a, Result<T, E>> + Clone + Send,
    ) -> Result<T, E>
    where
        T: Send,
        E: MayDefer + From<StoreError> + From<Error> + Send,
    {
        let mut attempt = 0;
        loop {
            attempt += 1;
            let failed = match self.db.read(f.clone()).await {
                Err(error) => error,
                done => return done,
            };
            match work_of(&failed).filter(|_| attempt < ATTEMPTS) {
                Some(work) => self.do_deferred(work).await?,
                None => return Err(failed),
            }
        }
    }

    async fn do_deferred(&self, work: Work) -> Result<(), Error> {
        let permit = self.deferred.clone().acquire_owned().await.map_err(Error::internal)?;
        let guard = CancelOnDrop(Cancelled::default());
        let cancelled = guard.0.clone();
        let done = tokio::task::spawn_blocking(move || {
            work(&cancelled);
            drop(permit);
        })
        .await;
        drop(guard);
        done.map_err(Error::internal)
    }
}
