//! Statements that sort a whole table, such as those that make an index.

use std::time::Duration;

use rusqlite::{Connection, OpenFlags};

use super::{Sqlite, WRITER_MMAP};
use crate::error::StoreError;

/// Bytes that are sorted without temporary files.
const SORTED_IN_MEMORY: u64 = 256 << 20;
/// How often the room on the disk is looked at meanwhile.
const LOOK_EVERY: Duration = Duration::from_millis(100);

impl Sqlite {
    /// Runs statements in one transaction, on a connection of its own: what does not fit into its memory goes to temporary
    /// files. They end, and change nothing, when little room is left on the disk.
    ///
    /// # Errors
    /// There is little room, or the engine refuses.
    pub(crate) async fn sort(&self, statements: String) -> Result<(), StoreError> {
        let conn = self.open_sorter()?;
        let interrupt = conn.get_interrupt_handle();
        let mut task = tokio::task::spawn_blocking(move || run(&conn, &statements));
        loop {
            if self.is_full() {
                interrupt.interrupt();
            }
            match tokio::time::timeout(LOOK_EVERY, &mut task).await {
                Ok(Ok(Err(_))) if self.is_full() => return Err(full()),
                Ok(outcome) => {
                    return outcome.unwrap_or_else(|_| Err(StoreError::bug("statements that sort panicked")));
                }
                Err(_) => {}
            }
        }
    }

    fn open_sorter(&self) -> Result<Connection, StoreError> {
        let conn = self.file.open(OpenFlags::SQLITE_OPEN_READ_WRITE, WRITER_MMAP)?.conn;
        conn.execute_batch(&format!(
            "PRAGMA synchronous = NORMAL;
             PRAGMA temp_store = FILE;
             PRAGMA cache_size = -{};",
            SORTED_IN_MEMORY >> 10
        ))?;
        Ok(conn)
    }

    fn is_full(&self) -> bool {
        self.room().is_some_and(|room| {
            room.look();
            room.is_full()
        })
    }
}

fn full() -> StoreError {
    StoreError::full("little room is left on the disk")
}

/// An open transaction ends with the connection.
fn run(conn: &Connection, statements: &str) -> Result<(), StoreError> {
    conn.execute_batch(&format!("BEGIN IMMEDIATE; {statements}; COMMIT"))
        .map_err(|error| StoreError::from(error).in_statement(statements))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::super::SqliteOptions;
    use super::*;
    use crate::error::ErrorKind;
    use crate::room::{DiskProbe, Room, Space};

    const TABLE: &str = "CREATE TABLE numbers (n INTEGER NOT NULL) STRICT";
    const WITHOUT_END: &str =
        "INSERT INTO numbers WITH RECURSIVE up (n) AS (SELECT 1 UNION ALL SELECT 1 FROM up) SELECT sum(n) FROM up";

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn statements_end_when_the_disk_has_little_room() {
        let directory = tempfile::tempdir().unwrap();
        let looks = Arc::new(AtomicU64::new(0));
        let counted = looks.clone();
        // There is room until the second statement runs, which has no end of its own.
        let probe = DiskProbe::new(move |_| {
            let free = if counted.fetch_add(1, Ordering::Relaxed) < 6 { 1 << 30 } else { 0 };
            Ok(Space { total: 1 << 30, free })
        });
        let room = Arc::new(Room::new(directory.path(), 1 << 20, probe));
        let options = SqliteOptions { room: Some(room), ..SqliteOptions::default() };
        let path = directory.path().join("test.db");
        let sqlite = Sqlite::open(&path, options).await.unwrap();
        sqlite.sort(TABLE.into()).await.unwrap();
        let refused = sqlite.sort(WITHOUT_END.into()).await.unwrap_err();
        assert_eq!((refused.kind(), refused.message()), (ErrorKind::Full, "little room is left on the disk"));
        assert!(looks.load(Ordering::Relaxed) > 6);
        sqlite.close().await;
    }
}
