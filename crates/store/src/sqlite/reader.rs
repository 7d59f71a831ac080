//! Reads run inline, each thread on its own read-only connection.

use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use futures_util::future::BoxFuture;

use super::{File, OpenTransaction, SqliteTx, poll_once};
use crate::error::StoreError;
use crate::tx::{Inner, ReadTx};

pub(super) struct Readers {
    file: Arc<File>,
    closed: AtomicBool,
    /// Every thread's slot, so that `close` reaches idle connections.
    slots: Mutex<Vec<Weak<Slot>>>,
}

/// One thread's idle connection to one database. Only that thread takes it, so
/// the lock is never contended but by `close`.
struct Slot {
    owner: Weak<Readers>,
    idle: Mutex<Option<SqliteTx>>,
}

thread_local! {
    static SLOTS: RefCell<Vec<Arc<Slot>>> = const { RefCell::new(Vec::new()) };
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Readers {
    pub(super) fn new(file: Arc<File>) -> Self {
        Self { file, closed: AtomicBool::new(false), slots: Mutex::new(Vec::new()) }
    }

    pub(super) fn read<T, E: From<StoreError>>(
        self: &Arc<Self>,
        f: impl for<'a> FnOnce(&'a mut ReadTx) -> BoxFuture<'a, Result<T, E>>,
    ) -> Result<T, E> {
        let _inside = OpenTransaction::begin()?;
        let slot = self.slot();
        // A panic in `f` drops the connection with the transaction; the next
        // read opens another one.
        let mut tx = ReadTx::new(Inner::Sqlite(self.begin(&slot)?));
        let outcome = poll_once(f(&mut tx));
        self.end(&slot, tx);
        outcome?
    }

    fn begin(&self, slot: &Slot) -> Result<SqliteTx, StoreError> {
        if self.closed.load(Ordering::Acquire) {
            return Err(StoreError::unavailable("the database is closed"));
        }
        let idle = lock(&slot.idle).take();
        let conn = match idle {
            Some(conn) => conn,
            None => self.file.open_reader()?,
        };
        conn.control("BEGIN")?;
        Ok(conn)
    }

    /// Ends a transaction, and keeps its connection unless something failed.
    fn end(&self, slot: &Slot, tx: ReadTx) {
        let healthy = tx.failure().is_none();
        if let Inner::Sqlite(conn) = tx.inner {
            // COMMIT of a read cannot fail in a way that matters to the caller.
            let ended = conn.control("COMMIT").is_ok() || conn.control("ROLLBACK").is_ok();
            if healthy && ended {
                self.put_back(slot, conn);
            }
        }
    }

    fn put_back(&self, slot: &Slot, conn: SqliteTx) {
        let mut idle = lock(&slot.idle);
        // Under the slot's lock, which `close` takes after it set the flag.
        if !self.closed.load(Ordering::Acquire) {
            *idle = Some(conn);
        }
    }

    /// This thread's slot for this database.
    fn slot(self: &Arc<Self>) -> Arc<Slot> {
        SLOTS.with_borrow_mut(|slots| {
            let mine = |slot: &&Arc<Slot>| std::ptr::eq(slot.owner.as_ptr(), Arc::as_ptr(self));
            if let Some(slot) = slots.iter().find(mine) {
                return Arc::clone(slot);
            }
            // Connections of databases that are gone close here.
            slots.retain(|slot| slot.owner.strong_count() > 0);
            let slot = Arc::new(Slot { owner: Arc::downgrade(self), idle: Mutex::new(None) });
            slots.push(Arc::clone(&slot));
            let mut all = lock(&self.slots);
            all.retain(|slot| slot.strong_count() > 0);
            all.push(Arc::downgrade(&slot));
            slot
        })
    }

    /// Closes the idle connections; those in use close when their read ends.
    pub(super) fn close(&self) {
        self.closed.store(true, Ordering::Release);
        for slot in lock(&self.slots).drain(..) {
            if let Some(slot) = slot.upgrade() {
                drop(lock(&slot.idle).take());
            }
        }
    }
}

impl Drop for Readers {
    fn drop(&mut self) {
        self.close();
    }
}
