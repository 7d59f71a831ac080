//! Periodic tasks: when each ran last and how, and requests to run one now.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bowline_contract::bowline::operator::v1;
use bowline_core::{Error, Micros};
use tokio::sync::Notify;

use crate::background::cause;

/// A task that the operator sees and may run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Task {
    GarbageCollection,
    Retention,
    Verification,
}

const TASKS: [(Task, &str); 3] = [
    (Task::GarbageCollection, "garbage-collection"),
    (Task::Retention, "retention"),
    (Task::Verification, "verification"),
];

/// All tasks of this process.
#[derive(Debug, Default)]
pub(crate) struct TaskBoard([TaskState; 3]);

#[derive(Debug, Default)]
struct TaskState {
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

impl TaskBoard {
    fn state(&self, task: Task) -> &TaskState {
        &self.0[task as usize]
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
        let mut last = self.last(task);
        last.is_running = false;
        last.took = now - last.began_at.unwrap_or(now);
        last.error = failure.map(cause).unwrap_or_default();
    }

    /// Runs the task of this name now; a running task runs again afterwards.
    pub(crate) fn run(&self, name: &str) {
        if let Some((task, _)) = TASKS.iter().find(|(_, known)| *known == name) {
            self.state(*task).request.notify_one();
        }
    }

    /// All tasks, as the operator reads them.
    pub(crate) fn list(&self) -> Vec<v1::Task> {
        let task = |(task, name): &(Task, &str)| {
            let last = self.last(*task).clone();
            v1::Task {
                name: (*name).into(),
                last_run_time: last.began_at.map(timestamp),
                duration: last.began_at.map(|_| duration(last.took)),
                error: last.error,
                next_run_time: last.next_at.map(timestamp),
                running: last.is_running,
            }
        };
        TASKS.iter().map(task).collect()
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
        board.run("retention");
        board.run("no task");
        assert!(board.wait(Task::Retention, None, 5).await);
        assert!(!board.wait(Task::Retention, Some(Duration::from_millis(1)), 5).await, "once");
        board.begin(Task::Retention, 1_000_000);
        assert!(board.list()[1].running);
        board.end(Task::Retention, 3_500_000, Some(&Error::internal("no room")));
        let task = board.list().remove(1);
        assert_eq!((task.name.as_str(), task.error.as_str(), task.running), ("retention", "no room", false));
        assert_eq!(task.duration, Some(prost_types::Duration { seconds: 2, nanos: 500_000_000 }));
    }
}
