//! Dry runs: they see their own writes, leave nothing behind, keep to their budget and hold up no write.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

use bowline_store::{Db, DryRunLimits, Engine, ErrorKind, Load, StoreError, Value};
use common::Fixture;

both_engines! {
    a_dry_run_sees_its_writes_and_leaves_nothing
    an_error_of_a_dry_run_is_its_outcome
    a_dry_run_of_too_many_rows_is_over_budget
    a_dry_run_that_takes_too_long_is_over_budget
    writes_beside_a_long_dry_run_do_not_wait_for_it
    a_dry_run_has_more_than_one_slice_beside_writes
    one_dry_run_runs_between_two_groups_of_writes
}

const LIMITS: DryRunLimits = DryRunLimits { rows: 1000, time: Duration::from_millis(400) };

/// Counts to a number that no test waits for.
const FOREVER: &str = "WITH RECURSIVE up(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM up WHERE n < 2000000000)
                       SELECT count(*) FROM up";

async fn insert(db: &Db, id: &'static str) -> Result<u64, StoreError> {
    let sql = "INSERT INTO things (id, n) VALUES ($1, 1)";
    db.write(move |tx| Box::pin(async move { tx.execute(sql, &[Value::from(id)]).await })).await
}

async fn count(db: &Db) -> i64 {
    let read =
        db.read(|tx| Box::pin(async move { tx.query_opt("SELECT count(*) FROM things", &[], |row| row.int(0)).await }));
    read.await.unwrap_or_else(|error: StoreError| panic!("{error}")).unwrap()
}

async fn a_dry_run_sees_its_writes_and_leaves_nothing(_: &Fixture, db: Db) {
    insert(&db, "a").await.unwrap();
    for _ in 0..3 {
        let seen = db.dry_run(LIMITS, |tx| {
            Box::pin(async move {
                tx.execute("INSERT INTO things (id, n) VALUES ('b', 2)", &[]).await?;
                tx.execute("UPDATE things SET n = n + 1", &[]).await?;
                tx.query("SELECT n FROM things ORDER BY id", &[], |row| row.int(0)).await
            })
        });
        assert_eq!(seen.await.unwrap_or_else(|error: StoreError| panic!("{error}")), [2, 3]);
        assert_eq!(count(&db).await, 1);
    }
    insert(&db, "b").await.unwrap();
    assert_eq!(count(&db).await, 2);
}

async fn an_error_of_a_dry_run_is_its_outcome(_: &Fixture, db: Db) {
    insert(&db, "a").await.unwrap();
    let refused = db.dry_run(LIMITS, |tx| {
        Box::pin(async move { tx.execute("INSERT INTO things (id, n) VALUES ('a', 2)", &[]).await })
    });
    assert_eq!(refused.await.unwrap_err().kind(), ErrorKind::UniqueViolation);
    let swallowed = db.dry_run(LIMITS, |tx| {
        Box::pin(async move {
            let _ = tx.execute("INSERT INTO things (id, n) VALUES ('a', 2)", &[]).await;
            Ok::<_, StoreError>(1)
        })
    });
    assert!(swallowed.await.is_err() || db.engine() == Engine::Postgres);
    insert(&db, "b").await.unwrap();
}

async fn a_dry_run_of_too_many_rows_is_over_budget(_: &Fixture, db: Db) {
    // A busy machine takes its time for so many statements.
    let limits = DryRunLimits { time: Duration::from_secs(60), ..LIMITS };
    let run = |rows: i64| {
        let sql = "INSERT INTO things (id, n) VALUES ($1, 1)";
        db.dry_run(limits, move |tx| {
            Box::pin(async move {
                for n in 0..rows {
                    tx.execute(sql, &[Value::from(&format!("{n}"))]).await?;
                }
                Ok::<_, StoreError>(())
            })
        })
    };
    run(1000).await.unwrap();
    let error = run(1001).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OverBudget, "{error}");
    assert!(error.message().contains("1001"), "{error}");
    assert_eq!(count(&db).await, 0);
}

async fn a_dry_run_that_takes_too_long_is_over_budget(_: &Fixture, db: Db) {
    let began = Instant::now();
    let run = db.dry_run(LIMITS, |tx| {
        Box::pin(async move {
            tx.execute("INSERT INTO things (id, n) VALUES ('a', 2)", &[]).await?;
            tx.query_opt(FOREVER, &[], |row| row.int(0)).await
        })
    });
    let error: StoreError = run.await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OverBudget, "{error}");
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    insert(&db, "a").await.unwrap();
}

async fn writes_beside_a_long_dry_run_do_not_wait_for_it(_: &Fixture, db: Db) {
    let beside = db.clone();
    let limits = DryRunLimits { time: Duration::from_secs(3), ..LIMITS };
    let run = tokio::spawn(async move {
        let run = beside.dry_run(limits, |tx| {
            Box::pin(async move {
                tx.execute("INSERT INTO things (id, n) VALUES ('dry', 2)", &[]).await?;
                tx.query_opt(FOREVER, &[], |row| row.int(0)).await
            })
        });
        run.await.unwrap_err() as StoreError
    });
    tokio::time::sleep(Duration::from_millis(200)).await;
    let began = Instant::now();
    for id in ["a", "b", "c", "d", "e"] {
        insert(&db, id).await.unwrap();
    }
    assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
    let error = run.await.unwrap();
    let kinds = [ErrorKind::GaveWay, ErrorKind::OverBudget];
    assert!(kinds.contains(&error.kind()), "{error}");
    assert_eq!(count(&db).await, 5);
}

/// The server itself writes several times a second, so one slice of the writer is too few.
async fn a_dry_run_has_more_than_one_slice_beside_writes(_: &Fixture, db: Db) {
    if db.engine() == Engine::Postgres {
        return;
    }
    let (beside, is_over) = (db.clone(), Arc::new(AtomicBool::new(false)));
    let ends = is_over.clone();
    let writes = tokio::spawn(async move {
        for n in 0.. {
            if ends.load(Ordering::SeqCst) {
                return n;
            }
            let write =
                beside.write(|tx| Box::pin(async move { tx.execute("UPDATE things SET n = n + 1", &[]).await }));
            write.await.map_err(|error: StoreError| error).unwrap();
        }
        0
    });
    let (began, limits) = (Instant::now(), DryRunLimits { time: Duration::from_secs(3), ..LIMITS });
    let run = db.dry_run(limits, move |tx| {
        // The first slice ends after 40 ms at the latest.
        let takes_too_long = began.elapsed() < Duration::from_millis(45);
        Box::pin(async move {
            if takes_too_long {
                tx.query_opt(FOREVER, &[], |row| row.int(0)).await?;
            }
            Ok(())
        })
    });
    let outcome: Result<(), StoreError> = run.await;
    is_over.store(true, Ordering::SeqCst);
    assert!(writes.await.unwrap() > 0);
    outcome.unwrap();
}

/// Messages that wait for the writer of the embedded engine.
fn waiting(db: &Db) -> u64 {
    match db.load() {
        Load::Sqlite(load) => load.waiting,
        Load::Postgres(_) => 0,
    }
}

async fn until(what: &str, is_so: impl Fn() -> bool) {
    for _ in 0..1000 {
        if is_so() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("{what}: not within 10 s");
}

/// Holds the writer until the sender of the channel sends or goes.
async fn hold_writer(db: &Db) -> mpsc::Sender<()> {
    let (release, gate) = mpsc::channel::<()>();
    let (gate, is_held) = (Arc::new(Mutex::new(gate)), Arc::new(AtomicBool::new(false)));
    let (held, db) = (is_held.clone(), db.clone());
    tokio::spawn(async move {
        let write = db.write(move |_| {
            held.store(true, Ordering::SeqCst);
            let _ = gate.lock().unwrap().recv();
            Box::pin(async { Ok::<_, StoreError>(()) })
        });
        write.await.unwrap();
    });
    until("the writer is held", || is_held.load(Ordering::SeqCst)).await;
    release
}

/// Dry runs that have waited for long enough must not all have their slice while a write waits.
async fn one_dry_run_runs_between_two_groups_of_writes(_: &Fixture, db: Db) {
    if db.engine() == Engine::Postgres {
        return;
    }
    let release = hold_writer(&db).await;
    let (begun, seen) = (Arc::new(AtomicUsize::new(0)), Arc::new(Mutex::new(Vec::new())));
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..8 {
        let (db, begun) = (db.clone(), begun.clone());
        tasks.spawn(async move {
            let run = db.dry_run(LIMITS, move |_| {
                begun.fetch_add(1, Ordering::SeqCst);
                Box::pin(async { Ok::<_, StoreError>(()) })
            });
            run.await.unwrap();
        });
    }
    until("the dry runs wait", || waiting(&db) == 8).await;
    for _ in 0..600 {
        let (db, begun, seen) = (db.clone(), begun.clone(), seen.clone());
        tasks.spawn(async move {
            let write = db.write(move |_| {
                seen.lock().unwrap().push(begun.load(Ordering::SeqCst));
                Box::pin(async { Ok::<_, StoreError>(()) })
            });
            write.await.unwrap();
        });
    }
    until("the writes wait", || waiting(&db) == 608).await;
    // Longer than a dry run gives way to writes.
    tokio::time::sleep(Duration::from_millis(50)).await;
    release.send(()).unwrap();
    while let Some(joined) = tasks.join_next().await {
        joined.unwrap();
    }
    let seen = seen.lock().unwrap().clone();
    assert_eq!((seen.len(), begun.load(Ordering::SeqCst)), (600, 8));
    // A group has 256 writes.
    assert_eq!([seen[0], seen[255], seen[256], seen[511], seen[512]], [0, 0, 1, 1, 2], "{seen:?}");
}
