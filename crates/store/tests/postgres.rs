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

#[tokio::test(flavor = "multi_thread")]
async fn an_abandoned_transaction_ends() {
    let Some(fixture) = Fixture::postgres().await else {
        return;
    };
    let open = async |url: String| Db::open_postgres(&url, PostgresOptions::default()).await.unwrap();
    let setting = async |db: &Db, name: &'static str| -> String {
        let read = db.read(move |tx| {
            let sql = "SELECT current_setting($1)";
            Box::pin(async move { tx.query_opt(sql, &[name.into()], |row| row.text(0)).await })
        });
        let setting: Result<_, StoreError> = read.await;
        setting.unwrap().unwrap()
    };
    let db = open(fixture.url()).await;
    for (name, value) in [
        ("idle_in_transaction_session_timeout", "30s"),
        ("statement_timeout", "30s"),
        ("tcp_keepalives_idle", "30"),
        ("tcp_keepalives_interval", "5"),
        ("tcp_keepalives_count", "3"),
        ("tcp_user_timeout", "45000"),
        ("synchronous_commit", "on"),
    ] {
        assert_eq!(setting(&db, name).await, value, "{name}");
    }
    db.close().await;
    // Who runs the server may want it otherwise, but not less durable.
    let options = "-c%20idle_in_transaction_session_timeout%3D200ms%20-c%20synchronous_commit%3Doff";
    let db = open(format!("{}?options={options}", fixture.url())).await;
    assert_eq!(setting(&db, "synchronous_commit").await, "on");
    let slept: Result<Option<i64>, StoreError> = db
        .read(|tx| {
            Box::pin(async move {
                tx.query_opt("SELECT CAST(1 AS BIGINT)", &[], |row| row.int(0)).await?;
                tokio::time::sleep(Duration::from_secs(1)).await;
                tx.query_opt("SELECT CAST(1 AS BIGINT)", &[], |row| row.int(0)).await
            })
        })
        .await;
    assert_eq!(slept.unwrap_err().kind(), ErrorKind::Unavailable);
    db.close().await;
    fixture.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_without_resources_is_named() {
    use bowline_core::Reason;
    let Some(fixture) = Fixture::postgres().await else {
        return;
    };
    let db = Db::open_postgres(&fixture.url(), PostgresOptions::default()).await.unwrap();
    let cases = [
        ("53100", ErrorKind::Full, Reason::StorageFull, "disk"),
        ("53200", ErrorKind::Unavailable, Reason::Unavailable, "memory"),
        ("53300", ErrorKind::Unavailable, Reason::Unavailable, "connections"),
        ("57P03", ErrorKind::Unavailable, Reason::Unavailable, "does not answer"),
    ];
    for (code, kind, reason, cause) in cases {
        let sql = format!("DO $$ BEGIN RAISE EXCEPTION 'as if' USING ERRCODE = '{code}'; END $$");
        let failed: Result<(), StoreError> = db
            .write(move |tx| {
                let sql = sql.clone();
                Box::pin(async move { tx.execute(&sql, &[]).await.map(|_| ()) })
            })
            .await;
        let failed = failed.unwrap_err();
        assert_eq!((failed.kind(), failed.sqlstate()), (kind, Some(code)), "{failed}");
        let shown = bowline_core::Error::from(failed);
        assert_eq!(shown.reason(), reason);
        assert!(shown.message().contains(cause), "{shown}");
    }
    db.close().await;
}
