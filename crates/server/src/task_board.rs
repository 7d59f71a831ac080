//! Periodic tasks: when each ran last and how, and requests to run one now.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bowline_contract::bowline::operator::v1;
use bowline_core::{Clock, Error, Micros};
use tokio::sync::Notify;

use crate::background::cause;

/// A task that the operator sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Task {
    AuditNumbers,
    AuditPruning,
    Backup,
    BlobTotals,
    Counters,
    EndedSessions,
    GarbageCollection,
    Mail,
    Matching,
    PublicDocuments,
    RecordSweep,
    Retention,
    SbomIndex,
    SigningKeys,
    Uploads,
    BlobVerification,
}

const COUNT: usize = 16;

/// All tasks by name, and whether the operator may run each: not those that run several times a second, and not those whose
/// turns replicas share.
const TASKS: [(Task, &str, bool); COUNT] = [
    (Task::AuditNumbers, "audit-numbers", false),
    (Task::AuditPruning, "audit-pruning", true),
    (Task::Backup, "backup", false),
    (Task::BlobTotals, "blob-totals", true),
    (Task::Counters, "counters", false),
    (Task::EndedSessions, "ended-sessions", true),
    (Task::GarbageCollection, "garbage-collection", true),
    (Task::Mail, "mail", true),
    (Task::Matching, "matching", true),
    (Task::PublicDocuments, "public-documents", false),
    (Task::RecordSweep, "record-sweep", true),
    (Task::Retention, "retention", true),
    (Task::SbomIndex, "sbom-index", true),
    (Task::SigningKeys, "signing-keys", true),
    (Task::Uploads, "uploads", true),
    (Task::BlobVerification, "verification", true),
];

/// All tasks of this process.
#[derive(Debug, Default)]
pub(crate) struct TaskBoard([TaskState; COUNT]);

#[derive(Debug, Default)]
struct TaskState {
    /// Whether this server has the task at all.
    is_started: AtomicBool,
    request: Notify,
    last: Mutex<LastRun>,
}

#[derive(Clone, Debug, Default)]
struct LastRun {
    began_at: Option<Micros>,
    took: Micros,
    error: String,
    next_at: Option<Micros>,
    is_running: bool,
}

/// The board of one task, for the loop that runs it.
#[derive(Clone)]
pub(crate) struct TaskReport {
    board: Arc<TaskBoard>,
    task: Task,
    clock: Arc<dyn Clock>,
}

impl TaskReport {
    /// The task of a server that has it from now on.
    pub(crate) fn new(board: &Arc<TaskBoard>, task: Task, clock: &Arc<dyn Clock>) -> TaskReport {
        board.start(task);
        TaskReport { board: board.clone(), task, clock: clock.clone() }
    }

    pub(crate) fn begin(&self) {
        self.board.begin(self.task, self.clock.now());
    }

    /// Records the result of a run.
    pub(crate) fn end(&self, failure: Option<&Error>) {
        self.board.end(self.task, self.clock.now(), failure);
    }

    /// The same with the failure as text.
    pub(crate) fn end_with(&self, failure: Option<String>) {
        self.board.end_with(self.task, self.clock.now(), failure.unwrap_or_default());
    }

    /// Waits for so long, or until the operator wants the task to run.
    pub(crate) async fn wait(&self, time: Duration) {
        self.board.wait(self.task, Some(time), self.clock.now()).await;
    }
}

impl TaskBoard {
    fn state(&self, task: Task) -> &TaskState {
        &self.0[task as usize]
    }

    /// Shows a task that this server has.
    pub(crate) fn start(&self, task: Task) {
        self.state(task).is_started.store(true, Ordering::Relaxed);
    }

    /// Waits for so long, or until the operator wants the task to run: then true.
    pub(crate) async fn wait(&self, task: Task, time: Option<Duration>, now: Micros) -> bool {
        let micros = time.and_then(|time| Micros::try_from(time.as_micros()).ok());
        self.last(task).next_at = micros.map(|micros| now.saturating_add(micros));
        let request = self.state(task).request.notified();
        let Some(time) = time else {
            request.await;
            return true;
        };
        tokio::time::timeout(time, request).await.is_ok()
    }

    pub(crate) fn begin(&self, task: Task, now: Micros) {
        let mut last = self.last(task);
        last.began_at = Some(now);
        last.is_running = true;
    }

    /// Records the result of a run.
    pub(crate) fn end(&self, task: Task, now: Micros, failure: Option<&Error>) {
        self.end_with(task, now, failure.map(cause).unwrap_or_default());
    }

    fn end_with(&self, task: Task, now: Micros, error: String) {
        let mut last = self.last(task);
        last.is_running = false;
        last.took = now - last.began_at.unwrap_or(now);
        last.error = error;
    }

    /// Runs the task of this name now; a running task runs again afterwards.
    pub(crate) fn run(&self, name: &str) {
        if let Some((task, _, true)) = TASKS.iter().find(|(_, known, _)| *known == name) {
            self.state(*task).request.notify_one();
        }
    }

    /// The tasks of this server, as the operator reads them.
    pub(crate) fn list(&self) -> Vec<v1::Task> {
        let started = TASKS.iter().filter(|(task, ..)| self.state(*task).is_started.load(Ordering::Relaxed));
        let task = |(task, name, is_runnable): &(Task, &str, bool)| {
            let last = self.last(*task).clone();
            v1::Task {
                name: (*name).into(),
                last_run_time: last.began_at.map(timestamp),
                duration: last.began_at.map(|_| duration(last.took)),
                error: last.error,
                next_run_time: last.next_at.map(timestamp),
                running: last.is_running,
                runnable: *is_runnable,
            }
        };
        started.map(task).collect()
    }

    fn last(&self, task: Task) -> MutexGuard<'_, LastRun> {
        self.state(task).last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A time as the API has it.
pub(crate) fn timestamp(micros: Micros) -> prost_types::Timestamp {
    let (seconds, rest) = (micros.div_euclid(1_000_000), micros.rem_euclid(1_000_000));
    prost_types::Timestamp { seconds, nanos: rest as i32 * 1000 }
}

fn duration(micros: Micros) -> prost_types::Duration {
    prost_types::Duration { seconds: micros / 1_000_000, nanos: (micros % 1_000_000) as i32 * 1000 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_request_ends_the_wait_and_runs_are_recorded() {
        let board = TaskBoard::default();
        assert!(board.list().is_empty(), "a server shows the tasks that it has");
        board.start(Task::Retention);
        board.run("retention");
        board.run("no task");
        assert!(board.wait(Task::Retention, None, 5).await);
        assert!(!board.wait(Task::Retention, Some(Duration::from_millis(1)), 5).await, "once");
        board.begin(Task::Retention, 1_000_000);
        assert!(board.list()[0].running);
        board.end(Task::Retention, 3_500_000, Some(&Error::internal("no room")));
        let task = board.list().remove(0);
        assert_eq!((task.name.as_str(), task.error.as_str(), task.running), ("retention", "no room", false));
        assert_eq!(task.duration, Some(prost_types::Duration { seconds: 2, nanos: 500_000_000 }));
    }

    #[tokio::test]
    async fn tasks_have_their_own_places_and_some_run_by_themselves_alone() {
        let names: Vec<&str> = TASKS.iter().map(|(_, name, _)| *name).collect();
        assert!(
            names.is_sorted() && TASKS.iter().enumerate().all(|(at, (task, ..))| *task as usize == at),
            "{names:?}"
        );
        let board = TaskBoard::default();
        board.run("backup");
        assert!(!board.wait(Task::Backup, Some(Duration::from_millis(1)), 0).await);
    }
}
