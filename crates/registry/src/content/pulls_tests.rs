use bowline_store::{MIGRATIONS, SqliteOptions};
use tempfile::TempDir;

use super::*;

const REPO: &str = "1ec9a659ec22a8e53d136ed89f2a0db9ebdeb963/59db1bfcf7b8e6ff";

async fn database(directory: &TempDir) -> Db {
    let path = directory.path().join("bowline.db");
    let db = Db::open_sqlite(&path, SqliteOptions::default()).await.expect("a database");
    db.migrate(MIGRATIONS).await.expect("the schema");
    db
}

fn pulls(directory: &TempDir, most_in_memory: usize, most: u64) -> Pulls {
    let spill = PullSpill::open(directory.path(), most).expect("a spill file");
    Pulls { most_in_memory, ..Pulls::new(Some(spill)) }
}

fn pull(n: i64) -> Pull {
    let interaction = Interaction { tag: format!("t{n}"), digest: "sha256:00".into(), ..Interaction::default() };
    let (actor, act) = ("0".repeat(40), r#"{"sub":"x"}"#.into());
    Pull { at: n, actor, act, repo: REPO.into(), interaction, is_recorded: true }
}

/// When the events happened, in the order of the outbox.
async fn written(db: &Db) -> Vec<i64> {
    let read = db.read(|tx| {
        Box::pin(async move {
            tx.query("SELECT at FROM outbox ORDER BY rowid", &[], |row| row.int(0).map_err(Error::from)).await
        })
    });
    read.await.expect("the outbox")
}

#[tokio::test]
async fn pulls_beyond_the_memory_are_spilled_and_written_in_order() {
    let directory = tempfile::tempdir().expect("a scratch directory");
    let (db, contract) = (database(&directory).await, Contract::load());
    let pulls = pulls(&directory, 10, 1 << 20);
    (0..500).for_each(|n| pulls.note(pull(n), false));
    let backlog = pulls.backlog();
    assert!(backlog.in_memory == 10 && backlog.spilled_bytes > 0 && backlog.dropped == 0, "{backlog:?}");
    assert!(!pulls.flush(&db, &contract).await);
    assert_eq!(written(&db).await, (0..500).collect::<Vec<i64>>());
    assert_eq!(pulls.backlog(), PullBacklog { in_memory: 0, spilled_bytes: 0, dropped: 0 });
    // Empty again, the file begins at its start, and what comes waits in memory first.
    (500..520).for_each(|n| pulls.note(pull(n), false));
    assert_eq!(pulls.backlog().in_memory, 10);
    pulls.flush(&db, &contract).await;
    assert_eq!(written(&db).await, (0..520).collect::<Vec<i64>>());
    db.close().await;
}

#[tokio::test]
async fn past_the_bound_pulls_are_dropped_and_counted_by_repository() {
    let directory = tempfile::tempdir().expect("a scratch directory");
    let (db, contract) = (database(&directory).await, Contract::load());
    let pulls = pulls(&directory, 10, 2000);
    (0..500).for_each(|n| pulls.note(pull(n), false));
    let dropped = pulls.backlog().dropped;
    assert!(dropped > 0 && pulls.backlog().spilled_bytes <= 2000);
    assert_eq!(pulls.lock().dropped, BTreeMap::from([(REPO.to_owned(), dropped)]));
    pulls.flush(&db, &contract).await;
    // The first ones are kept.
    assert_eq!(written(&db).await, (0..500 - i64::try_from(dropped).expect("few")).collect::<Vec<i64>>());
    // On a full disk the file does not grow.
    (0..11).for_each(|n| pulls.note(pull(n), true));
    assert_eq!(pulls.backlog(), PullBacklog { in_memory: 10, spilled_bytes: 0, dropped: dropped + 1 });
    // However many repositories there are, few are counted one by one.
    for n in 0..COUNTED + 5 {
        pulls.note(Pull { repo: format!("{n}"), ..pull(0) }, true);
    }
    assert_eq!(pulls.lock().dropped.len(), COUNTED + 1);
    db.close().await;
}

#[tokio::test]
async fn what_a_database_does_not_take_waits_in_order_and_over_a_restart() {
    let directory = tempfile::tempdir().expect("a scratch directory");
    let (db, contract) = (database(&directory).await, Contract::load());
    let closed = {
        let elsewhere = tempfile::tempdir().expect("a scratch directory");
        let db = database(&elsewhere).await;
        db.close().await;
        db
    };
    let first = pulls(&directory, 10, 1 << 20);
    (0..30).for_each(|n| first.note(pull(n), false));
    assert!(!first.flush(&closed, &contract).await);
    (30..40).for_each(|n| first.note(pull(n), false));
    assert_eq!(first.backlog().in_memory, 10);
    // Another server in the same directory has a file of its own.
    let beside = pulls(&directory, 0, 1 << 20);
    beside.note(pull(1000), false);
    drop(first);
    // Killed: the memory is lost, the file is not. What stopped in the middle of a record is.
    let path = directory.path().join("pulls-0.spill");
    let whole = std::fs::metadata(&path).expect("the file").len();
    std::fs::OpenOptions::new().write(true).open(&path).and_then(|file| file.set_len(whole - 3)).expect("cut");
    let second = pulls(&directory, 10, 1 << 20);
    second.flush(&db, &contract).await;
    assert_eq!(written(&db).await, (10..39).collect::<Vec<i64>>());
    second.note(pull(40), false);
    second.flush(&db, &contract).await;
    beside.flush(&db, &contract).await;
    assert_eq!(written(&db).await, (10..39).chain([40, 1000]).collect::<Vec<i64>>());
    db.close().await;
}
