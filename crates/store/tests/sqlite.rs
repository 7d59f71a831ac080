//! The embedded engine's own promises: what a lost group does to its neighbours.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::path::Path;
use std::sync::mpsc;
use std::time::Duration;

use bowline_store::{Db, ErrorKind, SqliteOptions, StoreError, WriteTx};
use common::MIGRATIONS;

async fn open(dir: &Path) -> Db {
    let path = dir.join("test.db");
    let db = Db::open_sqlite(&path, SqliteOptions::default()).await.unwrap();
    db.migrate(MIGRATIONS).await.unwrap();
    db
}

async fn pragma(db: &Db, sql: &'static str) {
    db.write(move |tx| Box::pin(tx.query(sql, &[], |_| Ok::<_, StoreError>(())))).await.unwrap();
}

/// Inserts `id` with `size` bytes more in the key.
async fn add(tx: &mut WriteTx, id: &str, size: usize) -> Result<(), StoreError> {
    let id = format!("{id}{}", "x".repeat(size));
    tx.execute("INSERT INTO things (id, n) VALUES ($1, 1)", &[(&id).into()]).await?;
    Ok(())
}

async fn write(db: &Db, id: &'static str, size: usize) -> Result<(), StoreError> {
    db.write(move |tx| Box::pin(add(tx, id, size))).await
}

async fn ids(db: &Db) -> Vec<String> {
    texts(db, "SELECT substr(id, 1, 1) FROM things ORDER BY id").await
}

async fn texts(db: &Db, sql: &'static str) -> Vec<String> {
    db.read(|tx| Box::pin(tx.query(sql, &[], |row| row.text(0))))
        .await
        .unwrap_or_else(|error: StoreError| panic!("{error}"))
}

/// Holds the writer until the returned sender is dropped, so that what is
/// written meanwhile becomes one group.
async fn hold(db: &Db) -> mpsc::Sender<()> {
    let (release, held) = mpsc::channel::<()>();
    let (started, start) = mpsc::channel();
    let held = std::sync::Mutex::new(held);
    let db = db.clone();
    tokio::spawn(async move {
        db.write(move |_| {
            let _ = started.send(());
            let _ = held.lock().unwrap().recv();
            Box::pin(async { Ok::<_, StoreError>(()) })
        })
        .await
    });
    tokio::task::spawn_blocking(move || start.recv().unwrap()).await.unwrap();
    release
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_fails_the_culprit_and_spares_its_neighbours() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(dir.path()).await;
    pragma(&db, "PRAGMA max_page_count = 60").await;
    let release = hold(&db).await;
    let group = async {
        tokio::join!(
            write(&db, "a", 0),
            write(&db, "b", 0),
            write(&db, "c", 1 << 20),
            write(&db, "d", 0),
            write(&db, "a", 0),
        )
    };
    let (group, ()) = tokio::join!(group, async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        drop(release);
    });
    group.0.unwrap();
    group.1.unwrap();
    assert_eq!(group.2.unwrap_err().kind(), ErrorKind::Full);
    group.3.unwrap();
    assert_eq!(group.4.unwrap_err().kind(), ErrorKind::UniqueViolation);
    assert_eq!(ids(&db).await, ["a", "b", "d"]);
    // The cause goes away, and writing works again without a restart.
    pragma(&db, "PRAGMA max_page_count = 100000").await;
    write(&db, "c", 1 << 20).await.unwrap();
    assert_eq!(ids(&db).await, ["a", "b", "c", "d"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_that_fails_fails_its_cause_only() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(dir.path()).await;
    pragma(&db, "CREATE TABLE late (id TEXT REFERENCES things (id) DEFERRABLE INITIALLY DEFERRED)").await;
    let release = hold(&db).await;
    let late = db.write(|tx| Box::pin(tx.execute("INSERT INTO late (id) VALUES ('nowhere')", &[])));
    let group = async { tokio::join!(write(&db, "a", 0), late, write(&db, "b", 0)) };
    let (group, ()) = tokio::join!(group, async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        drop(release);
    });
    group.0.unwrap();
    assert_eq!(group.1.unwrap_err().kind(), ErrorKind::ForeignKeyViolation);
    group.2.unwrap();
    assert_eq!(ids(&db).await, ["a", "b"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_read_only_database_recovers_by_itself() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(dir.path()).await;
    // What a file that was read-only when it was opened answers.
    pragma(&db, "PRAGMA query_only = ON").await;
    let refused = write(&db, "a", 0).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Unavailable, "{refused}");
    write(&db, "a", 0).await.unwrap();
    assert_eq!(ids(&db).await, ["a"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pending_or_nested_transaction_is_a_bug() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(dir.path()).await;
    let read = db
        .read(|_| {
            Box::pin(async {
                tokio::task::yield_now().await;
                Ok::<_, StoreError>(())
            })
        })
        .await;
    assert_eq!(read.unwrap_err().kind(), ErrorKind::Bug);
    let inner = db.clone();
    let nested = db
        .write(move |_| {
            let inner = inner.clone();
            Box::pin(async move { inner.read(|tx| Box::pin(tx.query("SELECT 1", &[], |row| row.int(0)))).await })
        })
        .await;
    let nested: Result<Vec<i64>, StoreError> = nested;
    assert_eq!(nested.unwrap_err().kind(), ErrorKind::Bug);
    // A panicking read takes its connection along and hurts no one after it.
    let panicking = tokio::spawn({
        let db = db.clone();
        async move { db.read(|_| -> bowline_store::BoxFuture<'_, Result<(), StoreError>> { panic!("on purpose") }).await }
    });
    assert!(panicking.await.is_err());
    write(&db, "a", 0).await.unwrap();
    assert_eq!(ids(&db).await, ["a"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn two_processes_share_the_file() {
    let dir = tempfile::tempdir().unwrap();
    let (one, two) = (open(dir.path()).await, open(dir.path()).await);
    let names = ["a", "b", "c", "d", "e", "f", "g", "h"];
    let writes = names.iter().enumerate().map(|(i, name)| {
        let db = if i % 2 == 0 { &one } else { &two };
        write(db, name, 0)
    });
    for outcome in futures_util::future::join_all(writes).await {
        outcome.unwrap();
    }
    two.close().await;
    assert_eq!(ids(&one).await, names);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_file_is_private_and_checkpointed_on_close() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().unwrap();
    let db = open(dir.path()).await;
    write(&db, "a", 0).await.unwrap();
    assert_eq!(ids(&db).await, ["a"]);
    for name in ["test.db", "test.db-wal", "test.db-shm"] {
        let mode = std::fs::metadata(dir.path().join(name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
    db.close().await;
    assert!(!dir.path().join("test.db-wal").exists());
    let missing = Db::open_sqlite(Path::new("/nowhere/x.db"), SqliteOptions::default()).await;
    let missing = missing.err().unwrap();
    assert_eq!(missing.kind(), ErrorKind::Unavailable);
    assert!(missing.to_string().contains("/nowhere/x.db"), "{missing}");
}

/// By hand: `mount -t tmpfs -o size=2m none DIR`, then BOWLINE_TEST_SMALL_DISK=DIR.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a small file system"]
async fn a_disk_that_is_really_full() {
    #[expect(clippy::disallowed_methods, reason = "the tester names the directory")]
    let dir = std::env::var("BOWLINE_TEST_SMALL_DISK").unwrap();
    let dir = Path::new(&dir);
    let db = open(dir).await;
    write(&db, "a", 0).await.unwrap();
    std::fs::write(dir.join("ballast"), vec![0; 8 << 20]).unwrap_err();
    let release = hold(&db).await;
    let group = async { tokio::join!(write(&db, "b", 400_000), write(&db, "c", 400_000)) };
    let (group, ()) = tokio::join!(group, async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        drop(release);
    });
    assert_eq!(group.0.unwrap_err().kind(), ErrorKind::Full);
    assert_eq!(group.1.unwrap_err().kind(), ErrorKind::Full);
    assert_eq!(ids(&db).await, ["a"]);
    std::fs::remove_file(dir.join("ballast")).unwrap();
    write(&db, "b", 400_000).await.unwrap();
    assert_eq!(ids(&db).await, ["a", "b"]);
}

#[tokio::test]
async fn the_log_of_an_idle_server_is_checkpointed() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(dir.path()).await;
    let is_there = |id: &str| {
        let bytes = std::fs::read(dir.path().join("test.db")).unwrap();
        bytes.windows(id.len()).any(|window| window == id.as_bytes())
    };
    write(&db, "first", 0).await.unwrap();
    // Something was written since the last look: more may come.
    db.checkpoint_if_idle().await;
    assert!(!is_there("first"));
    write(&db, "second", 0).await.unwrap();
    db.checkpoint_if_idle().await;
    assert!(!is_there("first") && !is_there("second"));
    pragma(&db, "SELECT 1").await;
    db.checkpoint_if_idle().await;
    assert!(is_there("first") && is_there("second"), "a transaction without a change is none");
    assert_eq!(ids(&db).await, ["f", "s"]);
    write(&db, "third", 0).await.unwrap();
    db.close().await;
    db.checkpoint_if_idle().await;
    assert!(is_there("third"));
}

async fn tables_of_statistics(db: &Db) -> Vec<String> {
    texts(db, "SELECT name FROM sqlite_master WHERE name LIKE 'sqlite_stat%' ORDER BY name").await
}

#[tokio::test(flavor = "multi_thread")]
async fn statements_are_planned_without_what_was_counted_before() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(dir.path()).await;
    write(&db, "a", 0).await.unwrap();
    pragma(&db, "SELECT n FROM things WHERE id > 'A' AND n > 0").await;
    db.close().await;
    // Looked at without opening it as a server does.
    let file = rusqlite::Connection::open(dir.path().join("test.db")).unwrap();
    let sql = "SELECT count(*) FROM sqlite_master WHERE name LIKE 'sqlite_stat%'";
    assert_eq!(file.query_row(sql, [], |row| row.get::<_, i64>(0)), Ok(0), "closing counts nothing");
    drop(file);

    let db = open(dir.path()).await;
    pragma(&db, "ANALYZE").await;
    assert!(!tables_of_statistics(&db).await.is_empty());
    db.close().await;

    let db = open(dir.path()).await;
    assert!(tables_of_statistics(&db).await.is_empty(), "opening forgets what somebody counted");
    assert_eq!(ids(&db).await, ["a"]);
}

/// A write that tells whether others waited for it.
async fn asking(db: &Db) -> bool {
    db.write(|tx| Box::pin(async move { Ok::<_, StoreError>(tx.others_wait()) })).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_write_knows_whether_others_wait_for_it() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(dir.path()).await;
    assert!(!asking(&db).await);
    let release = hold(&db).await;
    let three = async { tokio::join!(asking(&db), write(&db, "a", 0), asking(&db)) };
    let (three, ()) = tokio::join!(three, async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        drop(release);
    });
    assert_eq!((three.0, three.2), (true, false), "the first and the last of a group");
    // One that fails waits no longer.
    let release = hold(&db).await;
    let group = async { tokio::join!(write(&db, "a", 0), asking(&db)) };
    let (group, ()) = tokio::join!(group, async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        drop(release);
    });
    assert_eq!(group.0.unwrap_err().kind(), ErrorKind::UniqueViolation);
    assert!(!group.1);
    assert!(!asking(&db).await);
}
