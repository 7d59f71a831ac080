//! The server engine's own promises.

mod common;

use std::time::Duration;

use bowline_store::{Db, ErrorKind, PostgresOptions, StoreError};
use common::Fixture;

#[tokio::test]
async fn tls_that_is_demanded_is_refused_in_words() {
    let url = "postgres://x@127.0.0.1:1/x?sslmode=require";
    let error = Db::open_postgres(url, PostgresOptions::default()).await;
    assert!(error.err().unwrap().to_string().contains("TLS"));
    let url = "postgres://x@127.0.0.1:1/x";
    let error = Db::open_postgres(url, PostgresOptions::default()).await;
    assert_eq!(error.err().unwrap().kind(), ErrorKind::Unavailable);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_never_comes_back_half_way() {
    let Some(fixture) = Fixture::postgres().await else {
        return;
    };
    let options =
        PostgresOptions { max_connections: 1, pool_timeout: Duration::from_millis(300), ..PostgresOptions::default() };
    let db = Db::open_postgres(&fixture.url(), options).await.unwrap();
    let level = || {
        db.read(|tx| {
            let sql = "SELECT current_setting('transaction_isolation')";
            Box::pin(tx.query_opt(sql, &[], |row| row.text(0)))
        })
    };
    let read = db.read(|_| Box::pin(std::future::pending::<Result<(), StoreError>>()));
    let dropped = tokio::time::timeout(Duration::from_millis(50), read).await;
    assert!(dropped.is_err());
    for _ in 0..3 {
        let level: Result<_, StoreError> = level().await;
        assert_eq!(level.unwrap().unwrap(), "repeatable read");
    }
    // While the only connection is busy, others wait for so long and no longer.
    let busy = db.read(|_| {
        Box::pin(async {
            tokio::time::sleep(Duration::from_millis(900)).await;
            Ok::<_, StoreError>(())
        })
    });
    let late = async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        level().await
    };
    let (busy, late) = tokio::join!(busy, late);
    busy.unwrap();
    let late: Result<_, StoreError> = late;
    assert_eq!(late.unwrap_err().kind(), ErrorKind::Unavailable);
    // The server ends the connection: one call may fail, the next one works.
    let killed: Result<Option<bool>, StoreError> = db
        .read(|tx| {
            let sql = "SELECT pg_terminate_backend(pg_backend_pid())";
            Box::pin(tx.query_opt(sql, &[], |row| row.bool(0)))
        })
        .await;
    assert_eq!(killed.unwrap_err().kind(), ErrorKind::Unavailable);
    let level: Result<_, StoreError> = level().await;
    assert_eq!(level.unwrap().unwrap(), "repeatable read");
    db.close().await;
    fixture.remove().await;
}
