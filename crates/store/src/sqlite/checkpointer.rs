//! Copies the write-ahead log into the database beside the writer, whom a checkpoint of a long log would hold up for a
//! tenth of a second and more.
//!
//! Beside the writer the log grows while it is copied, and only a log that is copied whole begins at its start again. So once
//! it is long, passes follow one another until little is left; the writer copies that between two groups, and its next
//! group begins at the start.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use rusqlite::Connection;

use super::{File, PAGE};
use crate::error::StoreError;

/// The part of what is copied at once that the writer copies itself.
const LITTLE: u64 = 4;
/// Passes at most: where a reader or the writer's pace keeps much from being copied, it is tried again later.
const PASSES: usize = 8;
/// Pages that are copied at once, if the log may have as many: a commit waits for the disk to flush them as well, which
/// takes 40 to 80 ms for 32 MiB; and each time costs two flushes.
const AT_ONCE: u64 = (1 << 20) / PAGE;

/// The length of the log in pages, which the writer's connection counts at each commit.
#[derive(Debug, Default)]
pub(super) struct Logged(AtomicU64);

impl Logged {
    fn pages(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Has a connection count what it commits.
    pub(super) fn count(self: &Arc<Self>, conn: &mut Connection) -> Result<(), StoreError> {
        let logged = Arc::clone(self);
        let hook = move |_: &mut rusqlite::hooks::Wal, pages: std::ffi::c_int| {
            logged.0.store(u64::try_from(pages).unwrap_or_default(), Ordering::Relaxed);
            Ok(())
        };
        Ok(conn.wal_hook(Some(hook))?)
    }
}

/// How far a checkpoint came, in pages.
pub(super) struct Copied {
    pub(super) logged: u64,
    pub(super) copied: u64,
}

/// Copies as much of the log as readers let it; `None` while another connection does so.
pub(super) fn checkpoint(conn: &Connection) -> Result<Option<Copied>, StoreError> {
    let read = |row: &rusqlite::Row<'_>| Ok((row.get::<_, i64>(1)?, row.get::<_, i64>(2)?));
    let (logged, copied) = conn.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], read)?;
    // Both are -1 then.
    let pages = |count: i64| u64::try_from(count).ok();
    Ok(pages(logged).zip(pages(copied)).map(|(logged, copied)| Copied { logged, copied }))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Idle,
    AtWork,
    /// Little is left, which is the writer's.
    Done,
}

/// What the writer is to do about its log.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Due {
    Nothing,
    /// Copy what is left of it.
    Checkpoint,
}

/// The thread that copies, as the writer sees it.
pub(super) struct Checkpointer {
    logged: Arc<Logged>,
    state: Arc<Mutex<State>>,
    work: Option<SyncSender<()>>,
    thread: Option<JoinHandle<()>>,
    /// Pages from which on the log is copied.
    limit: u64,
    /// Pages from which on the writer copies it.
    most: u64,
    /// The length at which it is copied next.
    start_at: u64,
    last: u64,
}

impl Checkpointer {
    /// Starts the thread.
    ///
    /// # Errors
    /// If the system has no thread for it.
    pub(super) fn start(file: Arc<File>) -> Result<Checkpointer, StoreError> {
        let (work, works) = sync_channel(1);
        let state = Arc::new(Mutex::new(State::Idle));
        let (limit, most) = (file.limit(), file.most());
        let (logged, shared) = (Arc::clone(&file.logged), Arc::clone(&state));
        let thread = std::thread::Builder::new()
            .name("bowline-checkpoint".into())
            .spawn(move || run(&file, &shared, &works))
            .map_err(|error| {
                StoreError::unavailable(format!("cannot start the checkpoint thread: {error}")).with_source(error)
            })?;
        Ok(Checkpointer {
            logged,
            state,
            work: Some(work),
            thread: Some(thread),
            limit,
            most,
            start_at: limit,
            last: 0,
        })
    }

    /// Called after each group.
    pub(super) fn follow(&mut self) -> Due {
        let pages = self.logged.pages();
        if pages < self.last {
            self.start_at = self.limit;
        }
        self.last = pages;
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if *state == State::Done {
            *state = State::Idle;
            if pages >= self.most / 2 {
                return Due::Checkpoint;
            }
        }
        if pages < self.start_at {
            return Due::Nothing;
        }
        self.start_at = pages + self.limit;
        // Whatever the thread does, and even if it has ended, the log does not grow without end.
        if pages >= self.most {
            return Due::Checkpoint;
        }
        if *state == State::Idle && self.work.as_ref().is_some_and(|work| work.try_send(()).is_ok()) {
            *state = State::AtWork;
        }
        Due::Nothing
    }
}

impl Drop for Checkpointer {
    fn drop(&mut self) {
        self.work = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl File {
    /// Pages of the log that are copied at once; it may grow meanwhile.
    fn limit(&self) -> u64 {
        AT_ONCE.min(self.most() / 4)
    }

    /// Pages of the longest log.
    fn most(&self) -> u64 {
        self.longest_log() / PAGE
    }
}

fn run(file: &File, state: &Mutex<State>, works: &Receiver<()>) {
    // Opened when it is needed, and kept.
    let mut conn = None;
    while works.recv().is_ok() {
        let copied = match conn.take().map_or_else(|| file.open_checkpointer(), Ok) {
            Ok(opened) => passes(conn.insert(opened), file),
            Err(error) => Err(error),
        };
        let is_little_left = copied.unwrap_or_else(|error| {
            tracing::warn!(%error, "the log of the database was not checkpointed; tried again");
            conn = None;
            false
        });
        *state.lock().unwrap_or_else(PoisonError::into_inner) = if is_little_left { State::Done } else { State::Idle };
    }
}

/// Copies until little is left; true if so. A log that grows faster than it is copied is the writer's, who then waits.
fn passes(conn: &Connection, file: &File) -> Result<bool, StoreError> {
    for _ in 0..PASSES {
        if file.logged.pages() >= file.most() {
            break;
        }
        let Some(Copied { copied, .. }) = checkpoint(conn)? else { return Ok(false) };
        // Less than was copied: the log has begun at its start again.
        if file.logged.pages().saturating_sub(copied) <= file.limit() / LITTLE {
            return Ok(true);
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::room::{DiskProbe, Room};
    use crate::sqlite::SqliteOptions;

    fn write(conn: &Connection, times: usize) {
        for _ in 0..times {
            conn.execute("INSERT INTO t VALUES (randomblob(40960))", []).unwrap();
        }
    }

    fn state(checkpointer: &Checkpointer) -> State {
        *checkpointer.state.lock().unwrap()
    }

    fn settle(checkpointer: &Checkpointer) -> State {
        for _ in 0..1000 {
            if state(checkpointer) != State::AtWork {
                break;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        state(checkpointer)
    }

    #[test]
    fn a_long_log_is_copied_beside_the_writer_and_begins_again() {
        let directory = tempfile::tempdir().unwrap();
        let room = Some(Arc::new(Room::new(directory.path(), 16 << 20, DiskProbe::default())));
        let options = SqliteOptions { room, ..SqliteOptions::default() };
        let file =
            File { path: directory.path().join("test.db"), options, logged: Arc::default(), waiting: Arc::default() };
        let file = Arc::new(file);
        file.create().unwrap();
        let conn = file.open_writer().unwrap().conn;
        conn.execute_batch("CREATE TABLE t (bytes BLOB) STRICT").unwrap();
        let mut checkpointer = Checkpointer::start(Arc::clone(&file)).unwrap();
        let limit = file.limit();
        write(&conn, 2);
        assert_eq!((checkpointer.follow(), state(&checkpointer) == State::Idle), (Due::Nothing, true), "a short log");

        // While a reader needs the log, what it has not seen stays there.
        let reader = file.open_reader().unwrap().conn;
        reader.execute_batch("BEGIN; SELECT count(*) FROM t;").unwrap();
        write(&conn, 90);
        assert!(file.logged.pages() > limit);
        assert_eq!(checkpointer.follow(), Due::Nothing);
        assert!(settle(&checkpointer) == State::Idle, "little of it can be copied");
        assert_eq!(checkpointer.follow(), Due::Nothing, "it is tried again once it is longer");
        assert!(state(&checkpointer) == State::Idle);
        reader.execute_batch("COMMIT").unwrap();

        write(&conn, 90);
        reader.execute_batch("BEGIN; SELECT count(*) FROM t;").unwrap();
        assert_eq!(checkpointer.follow(), Due::Nothing);
        assert!(settle(&checkpointer) == State::Done);
        write(&conn, 1);
        reader.execute_batch("COMMIT").unwrap();
        assert!(file.logged.pages() > file.most() / 2);
        assert_eq!(checkpointer.follow(), Due::Checkpoint, "the rest is the writer's");
        let copied = checkpoint(&conn).unwrap().unwrap();
        assert_eq!(copied.logged, copied.copied);
        write(&conn, 1);
        assert!(file.logged.pages() < 20, "it has begun again");
        assert_eq!(checkpointer.follow(), Due::Nothing);
        assert_eq!(checkpointer.start_at, limit);

        // One that has grown all the same is the writer's, also if the thread is never done.
        *checkpointer.state.lock().unwrap() = State::AtWork;
        write(&conn, (file.most() / 10) as usize + 1);
        assert_eq!(checkpointer.follow(), Due::Checkpoint);
        assert_eq!(checkpointer.follow(), Due::Nothing, "not after every group");
    }
}
