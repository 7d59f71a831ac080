//! Rows of one database in another one, between engines.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::sync::Arc;

use bowline_store::{Cell, Db, Engine, ErrorKind, Filling, MIGRATIONS, StoreError, Value, WriteTx, transfer_tables};
use common::Fixture;

async fn fixtures() -> Vec<(Fixture, Fixture)> {
    let mut pairs = vec![(Fixture::sqlite(), Fixture::sqlite())];
    if let Some(target) = Fixture::postgres().await {
        pairs.push((Fixture::sqlite(), target));
        pairs.push((Fixture::postgres().await.unwrap(), Fixture::sqlite()));
        pairs.push((Fixture::postgres().await.unwrap(), Fixture::postgres().await.unwrap()));
    }
    pairs
}

async fn write(db: &Db, sql: &'static str, values: &'static [Value<'static>]) -> Result<u64, StoreError> {
    db.write(move |tx: &mut WriteTx| Box::pin(async move { tx.execute(sql, values).await })).await
}

async fn count(db: &Db, table: &str) -> i64 {
    let sql = format!("SELECT count(*) FROM {table}");
    db.read(move |tx| Box::pin(async move { tx.query_opt(&sql, &[], |row| row.int(0)).await })).await.unwrap().unwrap()
}

const EVENT: &str =
    "INSERT INTO outbox (event_type, at, org, customer, group_uid, subject, method, actor, extensions, body_type, body)
    VALUES ($1, 1, '', TRUE, '', '', '', '', '', '', $2)";
const NUMBER: &str = "UPDATE outbox SET seq = 7 WHERE event_type = 'a'";
const DELTA: &str = "INSERT INTO count_deltas (collection, uid, delta) VALUES ('c', $1, 1)";

/// A database with rows of every type of value, and one event that PostgreSQL has not numbered.
async fn source(fixture: &Fixture) -> Db {
    let db = fixture.open().await;
    db.migrate(MIGRATIONS).await.unwrap();
    write(&db, EVENT, &[Value::Text("a"), Value::Bytes(&[0, 255])]).await.unwrap();
    write(&db, NUMBER, &[]).await.unwrap();
    write(&db, EVENT, &[Value::Text("b"), Value::Bytes(&[])]).await.unwrap();
    for uid in ["x1", "x2", "x3"] {
        let values: &'static [Value<'static>] = Box::leak(Box::new([Value::Text(uid)]));
        write(&db, DELTA, values).await.unwrap();
    }
    db
}

/// The definitions of all indexes.
async fn indexes(db: &Db) -> Vec<String> {
    let sql = match db.engine() {
        Engine::Sqlite => "SELECT sql FROM sqlite_schema WHERE type = 'index' AND sql IS NOT NULL ORDER BY name",
        Engine::Postgres => {
            "SELECT indexdef FROM pg_indexes WHERE schemaname = current_schema() ORDER BY indexname COLLATE \"C\""
        }
    };
    db.read(move |tx| Box::pin(async move { tx.query(sql, &[], |row| row.text(0)).await })).await.unwrap()
}

async fn copy(source: &Db, target: &Db) -> Vec<(String, Vec<Vec<Cell>>)> {
    let mut snapshot = source.snapshot().await.unwrap();
    let mut all = Vec::new();
    for table in transfer_tables().unwrap() {
        let table = Arc::new(table);
        let (mut after, mut rows) = (target.last_key(&table).await.unwrap(), Vec::new());
        loop {
            // One row at a time, so that the order of pages counts.
            let page = snapshot.page(&table, after.as_deref(), 1).await.unwrap();
            let Some(last) = page.last() else { break };
            after = Some(table.key_of(last));
            rows.extend(page.clone());
            target.insert_rows(table.clone(), Arc::new(page)).await.unwrap();
        }
        all.push((table.name.clone(), rows));
    }
    all
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_row_arrives_and_new_ones_follow_it() {
    for (from, to) in fixtures().await {
        let (source, target) = (source(&from).await, to.open().await);
        assert_eq!(target.begin_filling(MIGRATIONS).await.unwrap(), Filling::Begun);
        for table in transfer_tables().unwrap() {
            assert_eq!(count(&target, &table.name).await, 0, "{}: a migration's rows are gone", table.name);
        }
        let copied = copy(&source, &target).await;
        let again = copy(&source, &target).await;
        assert!(again.iter().all(|(_, rows)| rows.is_empty()), "a second run finds nothing to copy");
        let events = copied.iter().find(|(name, _)| name == "outbox").map(|(_, rows)| rows).unwrap();
        assert_eq!(events.len(), 2);
        assert!(events[0].contains(&Cell::Int(7)) && events[0].contains(&Cell::Bytes(vec![0, 255])), "{events:?}");
        assert!(events[1].contains(&Cell::Int(8)), "an event without a number gets the next: {events:?}");

        let unfinished = target.end_filling().await.unwrap_err();
        assert!(unfinished.message().contains("was not made"), "{unfinished}");
        // An interrupted run has made some of the indexes, and removes them when it resumes.
        assert_ne!(indexes(&target).await, indexes(&source).await);
        target.build_indexes(|_| ()).await.unwrap();
        assert_eq!(target.begin_filling(MIGRATIONS).await.unwrap(), Filling::Resumed);
        let mut made = Vec::new();
        target.build_indexes(|name| made.push(name.to_owned())).await.unwrap();
        assert!(made.contains(&"repos_name".to_owned()), "{made:?}");
        target.end_filling().await.unwrap();
        if source.engine() == target.engine() {
            assert_eq!(indexes(&target).await, indexes(&source).await);
        }
        assert!(source.migrate(MIGRATIONS).await.unwrap() == 0 && target.migrate(MIGRATIONS).await.unwrap() == 0);
        // The engine numbers these, after those that came.
        write(&target, DELTA, &[Value::Text("x4")]).await.unwrap();
        assert_eq!(count(&target, "count_deltas").await, 4);
        write(&target, EVENT, &[Value::Text("c"), Value::Bytes(&[])]).await.unwrap();
        assert_eq!(count(&target, "revisions").await, count(&source, "revisions").await);
        drop((source, target));
        from.remove().await;
        to.remove().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_that_is_being_filled_opens_for_nothing_else() {
    for (_, to) in fixtures().await {
        let target = to.open().await;
        target.begin_filling(MIGRATIONS).await.unwrap();
        assert_eq!(target.schema_state(MIGRATIONS).await.unwrap_err().kind(), ErrorKind::Incomplete);
        assert_eq!(target.migrate(MIGRATIONS).await.unwrap_err().kind(), ErrorKind::Incomplete);
        assert_eq!(target.begin_filling(MIGRATIONS).await.unwrap(), Filling::Resumed);
        let fewer = &MIGRATIONS[..MIGRATIONS.len() - 1];
        assert_eq!(target.begin_filling(fewer).await.unwrap_err().kind(), ErrorKind::SchemaUnknown);
        target.build_indexes(|_| ()).await.unwrap();
        target.end_filling().await.unwrap();
        assert_eq!(target.begin_filling(MIGRATIONS).await.unwrap_err().kind(), ErrorKind::OtherConstraint);
        drop(target);
        to.remove().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_snapshot_stays_as_it_was() {
    for (from, _) in fixtures().await {
        let source = source(&from).await;
        let mut snapshot = source.snapshot().await.unwrap();
        write(&source, DELTA, &[Value::Text("x4")]).await.unwrap();
        let table = transfer_tables().unwrap().into_iter().find(|table| table.name == "count_deltas").unwrap();
        assert_eq!(snapshot.page(&table, None, 100).await.unwrap().len(), 3);
        assert_eq!(snapshot.count(&table).await.unwrap(), 3);
        drop((snapshot, source));
        from.remove().await;
    }
}
