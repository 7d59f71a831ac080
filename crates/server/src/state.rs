//! The running server as the operator reads it over the API.

use std::sync::Arc;

use bowline_contract::bowline::operator::v1;
use bowline_core::{Error, Micros, Result};
use bowline_services::ServerState;
use bowline_store::{BoxFuture, Db, Engine, MIGRATIONS, Row};

use crate::call_rates::CallRates;
use crate::task_board::{TaskBoard, timestamp};
use crate::work_counts::WorkCounts;

/// What the state is read from.
pub(crate) struct RunningServer {
    pub(crate) db: Db,
    pub(crate) replica: String,
    pub(crate) started_at: Micros,
    pub(crate) tasks: Arc<TaskBoard>,
    pub(crate) rates: Arc<CallRates>,
    pub(crate) work_counts: Arc<WorkCounts>,
}

impl RunningServer {
    /// A server that starts now, whose counts are to come.
    pub(crate) fn new(db: Db, replica: String, started_at: Micros) -> RunningServer {
        RunningServer {
            db,
            replica,
            started_at,
            tasks: Arc::default(),
            rates: Arc::default(),
            work_counts: Arc::default(),
        }
    }
}

impl ServerState for RunningServer {
    fn health(&self) -> v1::Health {
        let engine = match self.db.engine() {
            Engine::Sqlite => "sqlite",
            Engine::Postgres => "postgres",
        };
        v1::Health {
            version: env!("CARGO_PKG_VERSION").into(),
            engine: engine.into(),
            schema_version: MIGRATIONS.last().map_or(0, |last| last.version as i32),
            replica: self.replica.clone(),
            start_time: Some(timestamp(self.started_at)),
            storage_full: self.db.is_full(),
        }
    }

    fn storage(&self) -> BoxFuture<'_, Result<v1::Storage>> {
        Box::pin(async move {
            let sql = match self.db.engine() {
                Engine::Sqlite => "SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()",
                Engine::Postgres => "SELECT pg_database_size(current_database())",
            };
            let read = self.db.read(move |tx| {
                Box::pin(async move { tx.query_opt(sql, &[], |row| row.int(0).map_err(Error::from)).await })
            });
            let database_bytes = read.await?.unwrap_or(0);
            let blobs = self.work_counts.lock().blobs;
            let bytes = |bytes: u64| i64::try_from(bytes).unwrap_or(i64::MAX);
            let room = self.db.room();
            Ok(v1::Storage {
                database_bytes,
                blobs: blobs.map_or(0, |blobs| blobs.count),
                blob_bytes: blobs.map_or(0, |blobs| blobs.bytes),
                blob_count_time: blobs.map(|blobs| timestamp(blobs.counted_at)),
                free_bytes: room.map_or(0, |room| bytes(room.free())),
                reserve_bytes: room.map_or(0, |room| bytes(room.held())),
            })
        })
    }

    fn keys(&self) -> BoxFuture<'_, Result<Vec<v1::Key>>> {
        Box::pin(async move {
            let sql = "SELECT kid, algorithm, published_at, signs_from, retired_at FROM signing_keys
                       ORDER BY published_at DESC, kid";
            // Keys have their times in seconds.
            let time = |seconds: i64| Some(prost_types::Timestamp { seconds, nanos: 0 });
            let key = move |row: &Row<'_>| {
                Ok::<_, Error>(v1::Key {
                    kid: row.text(0)?,
                    algorithm: row.text(1)?,
                    publish_time: time(row.int(2)?),
                    sign_time: time(row.int(3)?),
                    retire_time: row.opt_int(4)?.and_then(time),
                })
            };
            self.db.read(move |tx| Box::pin(async move { tx.query(sql, &[], key).await })).await
        })
    }

    fn tasks(&self) -> Vec<v1::Task> {
        self.tasks.list()
    }

    fn run(&self, task: &str) {
        self.tasks.run(task);
    }

    fn metrics(&self) -> v1::Metrics {
        self.rates.metrics()
    }
}
