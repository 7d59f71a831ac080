//! Writes that are answered before the disk has them.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use bowline_store::{Db, Engine, StoreError};
use common::Fixture;

both_engines! {
    only_scratch_is_flushed_later
    scratch_is_there_and_fails_like_any_write
}

/// What the engine says of the transaction that asks: whether a commit waits for the disk.
async fn flushes(db: &Db, is_scratch: bool) -> String {
    let sql = match db.engine() {
        Engine::Sqlite => "SELECT CASE synchronous WHEN 2 THEN 'on' ELSE 'off' END FROM pragma_synchronous",
        Engine::Postgres => "SELECT current_setting('synchronous_commit')",
    };
    let told = if is_scratch {
        db.write_scratch(move |tx| Box::pin(tx.query_opt(sql, &[], |row| row.text(0)))).await
    } else {
        db.write(move |tx| Box::pin(tx.query_opt(sql, &[], |row| row.text(0)))).await
    };
    told.unwrap_or_else(|error: StoreError| panic!("{error}")).unwrap()
}

async fn only_scratch_is_flushed_later(_: &Fixture, db: Db) {
    for _ in 0..3 {
        assert_eq!(flushes(&db, false).await, "on");
        assert_eq!(flushes(&db, true).await, "off");
    }
    // In one group with a write that must be durable, scratch is so too.
    let (durable, _) = tokio::join!(flushes(&db, false), flushes(&db, true));
    assert_eq!(durable, "on");
    assert_eq!(flushes(&db, false).await, "on");
}

async fn scratch_is_there_and_fails_like_any_write(_: &Fixture, db: Db) {
    let insert = "INSERT INTO things (n, id) VALUES (1, 'a')";
    db.write_scratch(move |tx| Box::pin(tx.execute(insert, &[])))
        .await
        .unwrap_or_else(|error: StoreError| panic!("{error}"));
    let again = db.write_scratch(move |tx| Box::pin(tx.execute(insert, &[]))).await;
    assert_eq!(again.unwrap_err().kind(), bowline_store::ErrorKind::UniqueViolation);
    assert_eq!(flushes(&db, false).await, "on", "after a failure as well");
    let count = db.read(|tx| Box::pin(tx.query_opt("SELECT count(*) FROM things", &[], |row| row.int(0)))).await;
    assert_eq!(count.unwrap_or_else(|error: StoreError| panic!("{error}")), Some(1));
}
