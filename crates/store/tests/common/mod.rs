//! A fresh database of either engine for every test.
#![allow(dead_code, reason = "each test binary uses its part")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use bowline_store::{Db, Migration, PostgresOptions, SqliteOptions};
use std::sync::atomic::{AtomicU64, Ordering};

static NEXT: AtomicU64 = AtomicU64::new(0);

/// A database to itself, removed at the end.
pub(crate) enum Fixture {
    Sqlite(tempfile::TempDir),
    Postgres { admin: String, name: String },
}

impl Fixture {
    pub(crate) fn sqlite() -> Self {
        Self::Sqlite(tempfile::tempdir().unwrap())
    }

    /// `None` only if the skip was requested.
    pub(crate) async fn postgres() -> Option<Self> {
        let Some(admin) = env("BOWLINE_TEST_POSTGRES") else {
            assert!(
                env("BOWLINE_TEST_SKIP_POSTGRES").is_some_and(|skip| skip == "1"),
                "set BOWLINE_TEST_POSTGRES to the URL of an admin database \
                 (postgres://postgres@127.0.0.1:54329/postgres), or \
                 BOWLINE_TEST_SKIP_POSTGRES=1 to leave PostgreSQL untested"
            );
            return None;
        };
        let name = format!("bowline_test_{}_{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        run(&admin, &format!("CREATE DATABASE {name}")).await;
        Some(Self::Postgres { admin, name })
    }

    /// Another handle to the same database, as another process would have.
    pub(crate) async fn open(&self) -> Db {
        match self {
            Self::Sqlite(dir) => Db::open_sqlite(&dir.path().join("test.db"), SqliteOptions::default()).await,
            Self::Postgres { .. } => Db::open_postgres(&self.url(), PostgresOptions::default()).await,
        }
        .unwrap()
    }

    pub(crate) fn url(&self) -> String {
        match self {
            Self::Sqlite(_) => panic!("not PostgreSQL"),
            Self::Postgres { admin, name } => {
                let (server, _) = admin.rsplit_once('/').unwrap();
                format!("{server}/{name}")
            }
        }
    }

    pub(crate) async fn remove(self) {
        if let Self::Postgres { admin, name } = self {
            run(&admin, &format!("DROP DATABASE {name} WITH (FORCE)")).await;
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "tests are told where PostgreSQL is")]
fn env(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

pub(crate) async fn run(url: &str, sql: &str) {
    let (client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls).await.unwrap();
    let connection = tokio::spawn(connection);
    client.batch_execute(sql).await.unwrap();
    drop(client);
    connection.await.unwrap().unwrap();
}

pub(crate) const MIGRATIONS: &[Migration] = &[
    Migration {
        version: 1,
        name: "things",
        sqlite: "CREATE TABLE things (id TEXT PRIMARY KEY, n INTEGER NOT NULL CHECK (n >= 0),
                     parent TEXT REFERENCES things (id)) STRICT;
                 CREATE TABLE kinds (t TEXT, i INTEGER, b INTEGER, y BLOB) STRICT;",
        postgres: "CREATE TABLE things (id TEXT COLLATE \"C\" PRIMARY KEY,
                     n BIGINT NOT NULL CHECK (n >= 0), parent TEXT REFERENCES things (id));
                 CREATE TABLE kinds (t TEXT, i BIGINT, b BOOLEAN, y BYTEA);",
    },
    Migration {
        version: 2,
        name: "counters",
        sqlite: bowline_store::counters::COUNTERS_MIGRATION.0,
        postgres: bowline_store::counters::COUNTERS_MIGRATION.1,
    },
];

/// Every named `async fn(&Fixture, Db)` as a test on both engines.
#[macro_export]
macro_rules! both_engines {
    ($($name:ident)*) => {
        mod sqlite {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                let fixture = $crate::common::Fixture::sqlite();
                let db = fixture.open().await;
                db.migrate($crate::common::MIGRATIONS).await.unwrap();
                super::$name(&fixture, db.clone()).await;
                db.close().await;
                fixture.remove().await;
            })*
        }
        mod postgres {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                let Some(fixture) = $crate::common::Fixture::postgres().await else { return };
                let fixture = std::sync::Arc::new(fixture);
                let shared = std::sync::Arc::clone(&fixture);
                let outcome = tokio::spawn(async move {
                    let db = shared.open().await;
                    db.migrate($crate::common::MIGRATIONS).await.unwrap();
                    super::$name(&shared, db.clone()).await;
                    db.close().await;
                })
                .await;
                // Dropped even if the test failed.
                std::sync::Arc::into_inner(fixture).unwrap().remove().await;
                outcome.unwrap();
            })*
        }
    };
}
