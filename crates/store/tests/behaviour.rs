//! What both engines promise alike.

#![expect(clippy::print_stdout, reason = "smoke figures for a person who asks")]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use bowline_store::{Db, Engine, ErrorKind, Migration, SchemaState, StoreError, Value};
use common::{Fixture, MIGRATIONS};

both_engines! {
    reads_its_own_writes
    a_read_sees_one_snapshot
    a_failed_job_leaves_no_trace_and_no_harm
    a_panic_is_a_bug_of_that_caller
    a_dropped_caller_does_not_stop_the_write
    constraints_by_kind
    a_failed_statement_loses_the_transaction
    parameters_are_numbered
    null_of_every_kind
    columns_are_read_by_wanted_type
    like_is_case_sensitive
    a_read_cannot_write
    wrong_statements_are_bugs
    migrations
    concurrent_migrations
    no_increment_is_lost
    many_writers
    close_is_final
}

async fn insert(db: &Db, id: impl Into<String>, n: i64) -> Result<u64, StoreError> {
    let id = id.into();
    db.write(move |tx| {
        let id = id.clone();
        Box::pin(async move {
            let sql = "INSERT INTO things (n, id) VALUES ($2, $1)";
            tx.execute(sql, &[(&id).into(), n.into()]).await
        })
    })
    .await
}

async fn ids(db: &Db) -> Vec<String> {
    db.read(|tx| Box::pin(async move { tx.query("SELECT id FROM things ORDER BY id", &[], |row| row.text(0)).await }))
        .await
        .unwrap_or_else(|error: StoreError| panic!("{error}"))
}

/// One statement in a write of its own.
async fn execute(db: &Db, sql: &'static str) -> Result<u64, StoreError> {
    db.write(move |tx| Box::pin(tx.execute(sql, &[]))).await
}

async fn kind(db: &Db, sql: &'static str) -> ErrorKind {
    execute(db, sql).await.unwrap_err().kind()
}

async fn reads_its_own_writes(_: &Fixture, db: Db) {
    let inside: Vec<String> = db
        .write(|tx| {
            Box::pin(async move {
                let sql = "INSERT INTO things (id, n) VALUES ('a', 1), ('b', 2) RETURNING id";
                let mut seen = tx.query(sql, &[], |row| row.text(0)).await?;
                let sql = "SELECT id FROM things WHERE n = $1";
                seen.extend(tx.query_opt(sql, &[2_i64.into()], |row| row.text(0)).await?);
                Ok::<_, StoreError>(seen)
            })
        })
        .await
        .unwrap();
    assert_eq!(inside, ["a", "b", "b"]);
    assert_eq!(ids(&db).await, ["a", "b"]);
    assert_eq!(execute(&db, "UPDATE things SET n = n + 1").await.unwrap(), 2);
}

async fn a_read_sees_one_snapshot(_: &Fixture, db: Db) {
    insert(&db, "a", 0).await.unwrap();
    // The read must not await the write, so another thread writes meanwhile.
    let (first, second): (i64, i64) = tokio::spawn({
        let db = db.clone();
        async move {
            let handle = tokio::runtime::Handle::current();
            db.clone()
                .read(move |tx| {
                    Box::pin(async move {
                        let sql = "SELECT count(*) FROM things";
                        let first = tx.query_opt(sql, &[], |row| row.int(0)).await?;
                        std::thread::spawn(move || {
                            handle.block_on(insert(&db, "b", 0)).unwrap();
                        })
                        .join()
                        .unwrap();
                        let second = tx.query_opt(sql, &[], |row| row.int(0)).await?;
                        Ok::<_, StoreError>((first.unwrap(), second.unwrap()))
                    })
                })
                .await
        }
    })
    .await
    .unwrap()
    .unwrap();
    assert_eq!((first, second), (1, 1));
    assert_eq!(ids(&db).await, ["a", "b"]);
}

async fn a_failed_job_leaves_no_trace_and_no_harm(_: &Fixture, db: Db) {
    #[derive(Debug)]
    struct Refused;
    impl From<StoreError> for Refused {
        fn from(_: StoreError) -> Self {
            Refused
        }
    }
    let writes = (0..60).map(|i| {
        let db = db.clone();
        tokio::spawn(async move {
            db.write(move |tx| {
                Box::pin(async move {
                    let id = format!("{i:02}");
                    let sql = "INSERT INTO things (id, n) VALUES ($1, 0)";
                    tx.execute(sql, &[(&id).into()]).await?;
                    match i % 3 {
                        0 => Ok(()),
                        1 => Err(Refused),
                        // A unique violation in the middle of a group.
                        _ => Ok(tx.execute(sql, &[(&id).into()]).await.map(drop)?),
                    }
                })
            })
            .await
            .is_ok()
        })
    });
    for (i, write) in writes.collect::<Vec<_>>().into_iter().enumerate() {
        assert_eq!(write.await.unwrap(), i % 3 == 0, "{i}");
    }
    let kept: Vec<_> = (0..60).step_by(3).map(|i| format!("{i:02}")).collect();
    assert_eq!(ids(&db).await, kept);
}

async fn a_panic_is_a_bug_of_that_caller(_: &Fixture, db: Db) {
    let panic = db.write(|tx| {
        Box::pin(async move {
            tx.execute("INSERT INTO things (id, n) VALUES ('p', 1)", &[]).await?;
            let engines = [Engine::Sqlite, Engine::Postgres];
            assert!(!engines.contains(&tx.engine()), "on purpose");
            Ok::<(), StoreError>(())
        })
    });
    let (panic, before, after) = tokio::join!(panic, insert(&db, "a", 1), insert(&db, "b", 1));
    assert_eq!(panic.unwrap_err().kind(), ErrorKind::Bug);
    before.unwrap();
    after.unwrap();
    assert_eq!(ids(&db).await, ["a", "b"]);
}

async fn a_dropped_caller_does_not_stop_the_write(_: &Fixture, db: Db) {
    // Polled once, which queues it on SQLite and spawns it on PostgreSQL. The
    // pause makes sure that the answer is not there yet.
    let write = db.write(|tx| {
        std::thread::sleep(Duration::from_millis(50));
        Box::pin(tx.execute("INSERT INTO things (id, n) VALUES ('a', 1)", &[]))
    });
    assert!(tokio::time::timeout(Duration::ZERO, write).await.is_err());
    for _ in 0..200 {
        if ids(&db).await == ["a"] {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("the write was lost");
}

async fn constraints_by_kind(_: &Fixture, db: Db) {
    insert(&db, "a", 1).await.unwrap();
    let twice = insert(&db, "a", 1).await.unwrap_err();
    assert_eq!(twice.kind(), ErrorKind::UniqueViolation);
    assert!(std::error::Error::source(&twice).is_some());
    for (sql, wanted) in [
        ("INSERT INTO things (id, n, parent) VALUES ('b', 1, 'x')", ErrorKind::ForeignKeyViolation),
        ("INSERT INTO things (id, n) VALUES ('b', -1)", ErrorKind::OtherConstraint),
        ("INSERT INTO things (id, n) VALUES ('b', NULL)", ErrorKind::OtherConstraint),
    ] {
        assert_eq!(kind(&db, sql).await, wanted, "{sql}");
    }
    execute(&db, "INSERT INTO things (id, n, parent) VALUES ('b', 1, 'a')").await.unwrap();
    let delete = "DELETE FROM things WHERE id = 'a'";
    assert_eq!(kind(&db, delete).await, ErrorKind::ForeignKeyViolation);
}

async fn a_failed_statement_loses_the_transaction(_: &Fixture, db: Db) {
    insert(&db, "a", 1).await.unwrap();
    let swallowed = db
        .write(|tx| {
            Box::pin(async move {
                tx.execute("INSERT INTO things (id, n) VALUES ('b', 1)", &[]).await?;
                let twice = "INSERT INTO things (id, n) VALUES ('a', 1)";
                assert!(tx.execute(twice, &[]).await.is_err());
                let next: Result<_, StoreError> = tx.query_opt("SELECT 1", &[], |row| row.int(0)).await;
                assert_eq!(next.unwrap_err().kind(), ErrorKind::Bug);
                Ok::<(), StoreError>(())
            })
        })
        .await;
    assert_eq!(swallowed.unwrap_err().kind(), ErrorKind::Bug);
    assert_eq!(ids(&db).await, ["a"]);
}

async fn parameters_are_numbered(_: &Fixture, db: Db) {
    let text: Option<String> = db
        .read(|tx| {
            Box::pin(async move {
                let sql = "SELECT CAST($2 AS TEXT) || '-$1-' || CAST($1 AS TEXT) || CAST($2 AS TEXT)";
                tx.query_opt(sql, &["one".into(), "two".into()], |row| row.text(0)).await
            })
        })
        .await
        .unwrap_or_else(|error: StoreError| panic!("{error}"));
    assert_eq!(text.unwrap(), "two-$1-onetwo");
}

async fn null_of_every_kind(_: &Fixture, db: Db) {
    db.write(|tx| {
        Box::pin(async move {
            let sql = "INSERT INTO kinds (t, i, b, y) VALUES ($1, $2, $3, $4)";
            let nulls = [None::<&str>.into(), None::<i64>.into(), true.into(), None::<&[u8]>.into()];
            tx.execute(sql, &nulls).await?;
            let full = [Some("t").into(), Some(7_i64).into(), false.into(), Value::Bytes(b"\0\xff")];
            tx.execute(sql, &full).await
        })
    })
    .await
    .unwrap();
    let rows = db
        .read(|tx| {
            Box::pin(async move {
                let sql = "SELECT t, i, b, y FROM kinds ORDER BY i NULLS LAST";
                tx.query(sql, &[], |row| {
                    let row = (row.opt_text(0)?, row.opt_int(1)?, row.bool(2)?, row.opt_bytes(3)?);
                    Ok::<_, StoreError>(row)
                })
                .await
            })
        })
        .await
        .unwrap();
    assert_eq!(rows[0], (Some("t".into()), Some(7), false, Some(b"\0\xff".to_vec())));
    assert_eq!(rows[1], (None, None, true, None));
}

async fn columns_are_read_by_wanted_type(_: &Fixture, db: Db) {
    let kinds = db
        .read(|tx| {
            Box::pin(async move {
                let sql = "SELECT 1, length('abc'), 'text', CAST(NULL AS TEXT), n FROM
                           (SELECT CAST(sum(n) AS BIGINT) AS n FROM things) AS s";
                tx.query(sql, &[], |row| {
                    assert_eq!((row.int(0)?, row.int(1)?), (1, 3));
                    assert_eq!(row.with_text(2, str::len)?, 4);
                    assert_eq!(row.opt_int(4)?, None);
                    Ok::<_, StoreError>([
                        row.int(2).unwrap_err().kind(),
                        row.text(3).unwrap_err().kind(),
                        row.text(0).unwrap_err().kind(),
                        row.text(9).unwrap_err().kind(),
                    ])
                })
                .await
            })
        })
        .await
        .unwrap();
    let corrupt = ErrorKind::Corrupt;
    assert_eq!(kinds[0], [corrupt, corrupt, corrupt, ErrorKind::Bug]);
}

async fn like_is_case_sensitive(_: &Fixture, db: Db) {
    insert(&db, "Ab", 1).await.unwrap();
    let found = execute(&db, "UPDATE things SET n = 2 WHERE id LIKE 'a%' ESCAPE '\\'").await;
    assert_eq!(found.unwrap(), 0);
    let found = db
        .read(|tx| {
            Box::pin(async move {
                let sql = "SELECT id FROM things WHERE id LIKE 'a%' ESCAPE '\\'";
                tx.query(sql, &[], |row| row.text(0)).await
            })
        })
        .await
        .unwrap_or_else(|error: StoreError| panic!("{error}"));
    assert!(found.is_empty());
}

async fn a_read_cannot_write(_: &Fixture, db: Db) {
    let outcome: Result<Vec<String>, StoreError> = db
        .read(|tx| {
            Box::pin(async move {
                let sql = "INSERT INTO things (id, n) VALUES ('a', 1) RETURNING id";
                tx.query(sql, &[], |row| row.text(0)).await
            })
        })
        .await;
    assert_eq!(outcome.unwrap_err().kind(), ErrorKind::Bug);
    assert!(ids(&db).await.is_empty());
}

async fn wrong_statements_are_bugs(_: &Fixture, db: Db) {
    for sql in ["SELEC", "SELECT x FROM nowhere", "UPDATE things SET n = $1"] {
        assert_eq!(kind(&db, sql).await, ErrorKind::Bug, "{sql}");
    }
    insert(&db, "a", 1).await.unwrap();
    insert(&db, "b", 1).await.unwrap();
    let two: Result<Option<String>, StoreError> =
        db.read(|tx| Box::pin(tx.query_opt("SELECT id FROM things", &[], |row| row.text(0)))).await;
    assert_eq!(two.unwrap_err().kind(), ErrorKind::Bug);
}

async fn migrations(fixture: &Fixture, db: Db) {
    assert_eq!(db.migrate(MIGRATIONS).await.unwrap(), 0);
    let add = Migration {
        version: 7,
        name: "more",
        sqlite: "CREATE TABLE more (id TEXT); INSERT INTO more (id) VALUES ('x');",
        postgres: "CREATE TABLE more (id TEXT); INSERT INTO more (id) VALUES ('x');",
    };
    let broken = Migration {
        version: 8,
        sqlite: "CREATE TABLE gone (id TEXT); SELECT wrong;",
        postgres: "CREATE TABLE gone (id TEXT); SELECT wrong;",
        ..add
    };
    let more = [MIGRATIONS, &[add]].concat();
    let all_or_nothing = [&more[..], &[broken]].concat();
    db.migrate(&all_or_nothing).await.unwrap_err();
    let other = fixture.open().await;
    assert_eq!(db.schema_state(MIGRATIONS).await.unwrap(), SchemaState::Current);
    assert_eq!(db.schema_state(&more).await.unwrap(), SchemaState::Older);
    assert_eq!(other.migrate(&more).await.unwrap(), 1);
    let newer = db.schema_state(MIGRATIONS).await.unwrap_err();
    assert!(newer.to_string().contains("newer than this program"), "{newer}");
    let newer = db.migrate(MIGRATIONS).await.unwrap_err();
    assert!(newer.to_string().contains("newer than this program"), "{newer}");
    let unordered = db.migrate(&[add, MIGRATIONS[0]]).await.unwrap_err();
    assert_eq!(unordered.kind(), ErrorKind::Bug);
    let unknown = db.migrate(&more[1..]).await.unwrap_err();
    assert!(unknown.to_string().contains("does not know"), "{unknown}");
    assert_eq!(execute(&db, "UPDATE more SET id = 'y'").await.unwrap(), 1);
    execute(&db, "DROP TABLE schema_migrations").await.unwrap();
    assert_eq!(db.schema_state(MIGRATIONS).await.unwrap(), SchemaState::Absent);
    other.close().await;
}

async fn concurrent_migrations(fixture: &Fixture, _: Db) {
    let more: Vec<_> = MIGRATIONS
        .iter()
        .copied()
        .chain((3..20).map(|version| Migration {
            version,
            name: "step",
            sqlite: "INSERT INTO things (id, n) SELECT 'm' || count(*), 1 FROM things",
            postgres: "INSERT INTO things (id, n) SELECT 'm' || count(*), 1 FROM things",
        }))
        .collect();
    let dbs = futures_util::future::join_all((0..4).map(|_| fixture.open())).await;
    let applied = futures_util::future::join_all(dbs.iter().map(|db| db.migrate(&more))).await;
    let applied: u32 = applied.into_iter().map(Result::unwrap).sum();
    assert_eq!(applied, 17);
    assert_eq!(ids(&dbs[0]).await.len(), 17);
    for db in dbs {
        db.close().await;
    }
}

async fn no_increment_is_lost(_: &Fixture, db: Db) {
    insert(&db, "counter", 0).await.unwrap();
    let runs = Arc::new(AtomicU32::new(0));
    let tasks = (0..16).map(|_| {
        let (db, runs) = (db.clone(), Arc::clone(&runs));
        tokio::spawn(async move {
            let mut done = 0;
            while done < 5 {
                let runs = Arc::clone(&runs);
                let outcome = db
                    .write(move |tx| {
                        runs.fetch_add(1, Ordering::Relaxed);
                        Box::pin(async move {
                            let sql = "SELECT n FROM things WHERE id = 'counter'";
                            let n = tx.query_opt(sql, &[], |row| row.int(0)).await?;
                            let sql = "UPDATE things SET n = $1 WHERE id = 'counter'";
                            tx.execute(sql, &[(n.unwrap() + 1).into()]).await
                        })
                    })
                    .await;
                match outcome {
                    Ok(changed) => done += changed,
                    // Retries are bounded; the caller gets an error, nothing is half done.
                    Err(error) => assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}"),
                }
            }
        })
    });
    for task in tasks.collect::<Vec<_>>() {
        task.await.unwrap();
    }
    let n: Option<i64> = db
        .read(|tx| Box::pin(tx.query_opt("SELECT n FROM things", &[], |row| row.int(0))))
        .await
        .unwrap_or_else(|error: StoreError| panic!("{error}"));
    assert_eq!(n, Some(80));
    println!("80 increments took {} runs", runs.load(Ordering::Relaxed));
}

async fn many_writers(_: &Fixture, db: Db) {
    let start = std::time::Instant::now();
    let tasks = (0..64).map(|task| {
        let db = db.clone();
        tokio::spawn(async move {
            for i in 0..25 {
                insert(&db, format!("{task}-{i}"), i).await.unwrap();
            }
        })
    });
    for task in tasks.collect::<Vec<_>>() {
        task.await.unwrap();
    }
    println!("1600 inserts from 64 tasks: {:?}", start.elapsed());
    assert_eq!(ids(&db).await.len(), 1600);
}

async fn close_is_final(fixture: &Fixture, db: Db) {
    insert(&db, "a", 1).await.unwrap();
    let mine = fixture.open().await;
    assert_eq!(ids(&mine).await, ["a"]);
    mine.close().await;
    mine.close().await;
    let write = insert(&mine, "b", 1).await.unwrap_err();
    assert_eq!(write.kind(), ErrorKind::Unavailable);
    let read: Result<Option<i64>, StoreError> =
        mine.read(|tx| Box::pin(tx.query_opt("SELECT 1", &[], |row| row.int(0)))).await;
    assert_eq!(read.unwrap_err().kind(), ErrorKind::Unavailable);
    assert_eq!(ids(&db).await, ["a"]);
}
