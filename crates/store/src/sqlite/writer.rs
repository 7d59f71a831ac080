//! One thread writes, many writes to a commit.
//!
//! A group is what is queued at the moment: one transaction, a savepoint for each job, one COMMIT, and only
//! then the results. Whenever the group's transaction is lost (disk full or interrupt inside a statement, a
//! COMMIT that fails), every job of it runs again in a transaction of its own, so that only the culprit
//! fails.

mod control;
mod dry_run;
mod queued;

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Instant;

use tokio::sync::{mpsc, oneshot};

use self::control::{checkpoint, connection, control, is_lost, needs_reopen};
use self::dry_run::DryRun;
use self::queued::Queued;
use super::File;
use super::checkpointer::{Checkpointer, Due};
use super::reader::Readers;
use crate::dry_run::DryRunLimits;
use crate::error::StoreError;
use crate::job::{Flush, Job, JobKind};
use crate::load::WriterLoad;
use crate::tx::{Inner, WriteTx};

const MAX_GROUP: usize = 256;

enum Message {
    Job(Queued),
    DryRun(DryRun),
    CheckpointIfIdle(oneshot::Sender<()>),
    Close(oneshot::Sender<()>),
}

#[derive(Clone)]
pub(super) struct Writer {
    queue: mpsc::Sender<Message>,
    counts: Arc<Counts>,
    /// Writes that the thread has not come to; dry runs and background work give way to them.
    waiting: Arc<AtomicUsize>,
}

/// Totals of the thread since its start.
#[derive(Default)]
struct Counts {
    groups: AtomicU64,
    writes: AtomicU64,
}

impl Writer {
    /// Starts the thread and waits until it has opened the database.
    pub(super) async fn start(file: Arc<File>, readers: Arc<Readers>) -> Result<Self, StoreError> {
        let (queue, messages) = mpsc::channel(file.options.queue.max(1));
        let counts = Arc::new(Counts::default());
        let counted = counts.clone();
        let waiting = Arc::clone(&file.waiting);
        let (opened, open) = oneshot::channel();
        std::thread::Builder::new()
            .name("bowline-writer".into())
            .spawn(move || {
                let result = file.create().and_then(|()| file.open_writer());
                let result = result.and_then(|conn| Ok((conn, Checkpointer::start(Arc::clone(&file))?)));
                let (begun, result) = match result {
                    Ok(begun) => (Some(begun), Ok(())),
                    Err(error) => (None, Err(error)),
                };
                let _ = opened.send(result);
                if let Some((conn, checkpointer)) = begun {
                    Thread {
                        file,
                        readers,
                        checkpointer: Some(checkpointer),
                        tx: Some(WriteTx::new(Inner::Sqlite(conn))),
                        changes: 0,
                        is_checkpointed: false,
                        counts: counted,
                        dry_runs: VecDeque::new(),
                    }
                    .run(messages);
                }
            })
            .map_err(|error| {
                StoreError::unavailable(format!("cannot start the writer thread: {error}")).with_source(error)
            })?;
        open.await.unwrap_or_else(|_| Err(StoreError::bug("the writer thread panicked")))?;
        Ok(Self { queue, counts, waiting })
    }

    pub(super) fn load(&self) -> WriterLoad {
        WriterLoad {
            waiting: (self.queue.max_capacity() - self.queue.capacity()) as u64,
            groups: self.counts.groups.load(Ordering::Relaxed),
            writes: self.counts.writes.load(Ordering::Relaxed),
        }
    }

    pub(super) async fn write(&self, kind: JobKind, job: Box<dyn Job>) -> Result<(), StoreError> {
        let queued = Queued { job, kind, span: tracing::Span::current(), is_waiting: true };
        // With room reserved, nothing can come between the count and the message.
        let room = self.queue.reserve().await.map_err(|_| closed())?;
        self.waiting.fetch_add(1, Ordering::Relaxed);
        room.send(Message::Job(queued));
        Ok(())
    }

    pub(super) async fn dry_run(&self, limits: DryRunLimits, job: Box<dyn Job>) -> Result<(), StoreError> {
        let kind = JobKind { flush: Flush::AtCommit, may_use_reserve: false };
        let queued = Queued { job, kind, span: tracing::Span::current(), is_waiting: false };
        let run = DryRun { queued, limits, since: Instant::now(), slices: dry_run::SLICES };
        self.queue.send(Message::DryRun(run)).await.map_err(|_| closed())
    }

    pub(super) async fn checkpoint_if_idle(&self) {
        let (done, wait) = oneshot::channel();
        // A writer that is gone made a checkpoint at its end.
        if self.queue.send(Message::CheckpointIfIdle(done)).await.is_ok() {
            let _ = wait.await;
        }
    }

    /// Whether the thread has ended.
    pub(super) fn is_closed(&self) -> bool {
        self.queue.is_closed()
    }

    pub(super) async fn close(&self) {
        let (done, wait) = oneshot::channel();
        if self.queue.send(Message::Close(done)).await.is_ok() {
            let _ = wait.await;
        }
    }
}

fn closed() -> StoreError {
    StoreError::unavailable("the database is closed")
}

/// The group's transaction is gone and none of its jobs took effect.
enum Lost {
    /// The engine is fine; run the jobs one by one.
    Retry,
    /// The disk failed at COMMIT. What is in the log now is unknown, so nothing
    /// more is written through this connection.
    DiskFailed(StoreError),
}

struct Thread {
    file: Arc<File>,
    readers: Arc<Readers>,
    /// `None` once the database is being closed.
    checkpointer: Option<Checkpointer>,
    /// `None` after an error that a fresh connection may cure.
    tx: Option<WriteTx>,
    /// Rows that the connection had changed at its last checkpoint.
    changes: u64,
    /// Whether all of them are in the database itself.
    is_checkpointed: bool,
    counts: Arc<Counts>,
    dry_runs: VecDeque<DryRun>,
}

impl Thread {
    fn run(mut self, mut messages: mpsc::Receiver<Message>) {
        let (mut closing, mut asking) = (Vec::new(), Vec::new());
        while let Some(first) = self.next(&mut messages) {
            let mut group = Vec::new();
            let mut next = Some(first);
            while let Some(message) = next {
                match message {
                    Message::Job(job) => group.push(job),
                    Message::DryRun(run) => self.dry_runs.push_back(run),
                    Message::CheckpointIfIdle(done) => asking.push(done),
                    Message::Close(done) => {
                        // No more comes in; what is queued is still done.
                        messages.close();
                        closing.push(done);
                    }
                }
                next = (group.len() < MAX_GROUP).then(|| messages.try_recv().ok()).flatten();
            }
            self.run_with_room(&mut group);
            if !group.is_empty() {
                self.counts.groups.fetch_add(1, Ordering::Relaxed);
                self.counts.writes.fetch_add(group.len() as u64, Ordering::Relaxed);
            }
            for queued in &mut group {
                // One that the disk kept from running has not begun.
                queued.begin(&self.file.waiting);
                queued.job.answer();
            }
            self.keep_log_short();
            if !asking.is_empty() {
                self.checkpoint_if_idle();
                for done in asking.drain(..) {
                    let _ = done.send(());
                }
            }
        }
        self.readers.close();
        self.checkpointer = None;
        if let Some(conn) = self.tx.as_ref().and_then(connection) {
            // Another process may read; then the log simply stays.
            let _ = conn.conn.execute_batch("PRAGMA wal_checkpoint(TRUNCATE);");
        }
        self.tx = None;
        for done in closing {
            let _ = done.send(());
        }
    }

    /// The next message. Until one comes, dry runs have their turn; one that has waited for long enough has it between two
    /// groups of writes.
    fn next(&mut self, messages: &mut mpsc::Receiver<Message>) -> Option<Message> {
        while let Some(run) = self.dry_runs.pop_front() {
            if !run.is_due() && !messages.is_empty() {
                self.dry_runs.push_front(run);
                break;
            }
            let again = self.dry_run(run);
            self.dry_runs.extend(again);
            if !messages.is_empty() {
                break;
            }
        }
        messages.blocking_recv()
    }

    /// A checkpoint holds the writer up, so it comes when nothing has changed between two requests for it.
    fn checkpoint_if_idle(&mut self) {
        let Some(conn) = self.tx.as_ref().and_then(connection) else { return };
        // Background work that finds nothing to do commits all the time.
        let changes = conn.conn.total_changes();
        if changes != self.changes {
            (self.changes, self.is_checkpointed) = (changes, false);
        } else if !self.is_checkpointed {
            self.is_checkpointed = checkpoint(&conn.conn);
        }
    }

    fn keep_log_short(&mut self) {
        let due = self.checkpointer.as_mut().map_or(Due::Nothing, Checkpointer::follow);
        if let Some(conn) = self.tx.as_ref().and_then(connection).filter(|_| due == Due::Checkpoint) {
            checkpoint(&conn.conn);
        }
    }

    /// On a full disk the log must not grow: what was written goes into the database at once.
    fn run_with_room(&mut self, group: &mut [Queued]) {
        let room = self.file.options.room.clone();
        if let Some(room) = room.as_ref().filter(|_| group.iter().any(|queued| queued.kind.may_use_reserve)) {
            room.make_way();
        }
        self.run_group(group);
        if let Some(conn) = self.tx.as_ref().and_then(connection).filter(|_| room.is_some_and(|room| room.is_full())) {
            checkpoint(&conn.conn);
        }
    }

    fn run_group(&mut self, group: &mut [Queued]) {
        if let [_, _, ..] = group {
            match self.together(group) {
                Ok(()) => return,
                Err(Lost::Retry) => {
                    tracing::warn!(jobs = group.len(), "write group lost, running one by one");
                }
                Err(Lost::DiskFailed(error)) => {
                    tracing::error!(%error, jobs = group.len(), "write group lost");
                    for queued in group {
                        queued.job.fail(error.replicate());
                    }
                    return;
                }
            }
        }
        for queued in group {
            if let Err(error) = self.alone(queued) {
                tracing::warn!(%error, "write failed");
                queued.job.fail(error);
            }
        }
    }

    /// All jobs in one transaction.
    fn together(&mut self, group: &mut [Queued]) -> Result<(), Lost> {
        let is_scratch = group.iter().all(|queued| queued.kind.flush == Flush::Later);
        let flush = if is_scratch { Flush::Later } else { Flush::AtCommit };
        let mut tx = self.begin(flush).map_err(Lost::DiskFailed)?;
        for queued in group {
            queued.begin(&self.file.waiting);
            let kept = control(&tx, "SAVEPOINT job").is_ok() && {
                let keep = queued.run(&mut tx);
                // Asked first: a lost transaction took the savepoint with it.
                !is_lost(&tx)
                    && (keep || control(&tx, "ROLLBACK TO job").is_ok())
                    && control(&tx, "RELEASE job").is_ok()
            };
            if !kept {
                self.put_back(tx, None);
                return Err(Lost::Retry);
            }
        }
        match control(&tx, "COMMIT") {
            Ok(()) => {
                self.keep(tx);
                Ok(())
            }
            Err(error) => {
                let retry = !needs_reopen(&error);
                self.put_back(tx, Some(&error));
                Err(if retry { Lost::Retry } else { Lost::DiskFailed(error) })
            }
        }
    }

    /// One job in a transaction of its own. An error replaces the job's outcome.
    fn alone(&mut self, queued: &mut Queued) -> Result<(), StoreError> {
        queued.begin(&self.file.waiting);
        let mut tx = self.begin(queued.kind.flush)?;
        if !queued.run(&mut tx) {
            let cause = tx.failure().map(StoreError::replicate);
            self.put_back(tx, cause.as_ref());
            return Ok(());
        }
        if is_lost(&tx) {
            self.put_back(tx, None);
            return Err(StoreError::bug("the closure ended its own transaction"));
        }
        match control(&tx, "COMMIT") {
            Ok(()) => {
                self.keep(tx);
                Ok(())
            }
            Err(error) => {
                self.put_back(tx, Some(&error));
                Err(error)
            }
        }
    }

    fn begin(&mut self, flush: Flush) -> Result<WriteTx, StoreError> {
        let tx = match self.tx.take() {
            Some(tx) => tx,
            None => WriteTx::new(Inner::Sqlite(self.file.open_writer()?)),
        };
        // It cannot be said within a transaction.
        let flush_mode = match flush {
            Flush::AtCommit => Ok(()),
            Flush::Later => control(&tx, "PRAGMA synchronous = NORMAL"),
        };
        match flush_mode.and_then(|()| control(&tx, "BEGIN IMMEDIATE")) {
            Ok(()) => Ok(tx),
            Err(error) => {
                self.put_back(tx, Some(&error));
                Err(error)
            }
        }
    }

    /// Rolls back and keeps the connection, unless it may be the trouble.
    fn put_back(&mut self, tx: WriteTx, cause: Option<&StoreError>) {
        let rolled_back = is_lost(&tx) || control(&tx, "ROLLBACK").is_ok();
        if rolled_back && !cause.is_some_and(needs_reopen) {
            self.keep(tx);
        }
    }

    /// Keeps the connection, which flushes again at every commit; else the next one is a fresh one.
    fn keep(&mut self, tx: WriteTx) {
        if control(&tx, "PRAGMA synchronous = FULL").is_ok() {
            self.tx = Some(tx);
        }
    }
}
