//! The running server as the operator reads it over the API.

use std::sync::Arc;

use bowline_authn::crypto::KeyEncryptionKey;
use bowline_authn::keys::{Algorithm, SigningKey};
use bowline_contract::bowline::operator::v1;
use bowline_core::{Clock, Error, Micros, Result};
use bowline_identity::people::ConfiguredProvider;
use bowline_pipeline::{Authenticator, Settings};
use bowline_services::{KeyStep, RotatedKey, ServerState};
use bowline_store::{BoxFuture, Db, Engine, MIGRATIONS, Row, WriteTx};

use crate::call_rates::CallRates;
use crate::error::StartError;
use crate::keys::{self, Rotated};
use crate::options::Options;
use crate::storage::Storage;
use crate::task_board::{TaskBoard, timestamp};
use crate::work_counts::WorkCounts;
use crate::{configuration, providers};

/// What the state is read from.
pub(crate) struct RunningServer {
    pub(crate) db: Db,
    pub(crate) replica: String,
    pub(crate) started_at: Micros,
    pub(crate) tasks: Arc<TaskBoard>,
    pub(crate) rates: Arc<CallRates>,
    pub(crate) work_counts: Arc<WorkCounts>,
    facts: StartFacts,
}

/// What a server knows of itself from its start on.
pub(crate) struct StartFacts {
    pub(crate) options: Vec<v1::ConfiguredOption>,
    /// The operator's providers of the configuration file.
    pub(crate) providers: Vec<ConfiguredProvider>,
    pub(crate) wrapping: Arc<KeyEncryptionKey>,
    pub(crate) authenticator: Arc<Authenticator>,
    pub(crate) clock: Arc<dyn Clock>,
}

impl StartFacts {
    /// From the options, and the storage that they name.
    ///
    /// # Errors
    /// A provider of the configuration file cannot work, or the key file has no usable key.
    pub(crate) fn of(
        options: &Options,
        settings: &Settings,
        storage: &Storage,
        authenticator: &Arc<Authenticator>,
        clock: &Arc<dyn Clock>,
    ) -> std::result::Result<StartFacts, StartError> {
        Ok(StartFacts {
            options: configuration::of(options, settings)?,
            providers: providers::configured(&options.operator_providers)?,
            wrapping: keys::shared(&storage.wrapping_key)?,
            authenticator: authenticator.clone(),
            clock: clock.clone(),
        })
    }
}

impl RunningServer {
    /// A server that starts now, whose counts are to come.
    pub(crate) fn new(db: Db, replica: String, facts: StartFacts) -> RunningServer {
        RunningServer {
            db,
            replica,
            started_at: facts.clock.now(),
            tasks: Arc::default(),
            rates: Arc::default(),
            work_counts: Arc::default(),
            facts,
        }
    }

    /// The requested algorithm, else that of the key that signs.
    fn algorithm(&self, requested: v1::KeyAlgorithm) -> Algorithm {
        let seconds = self.facts.clock.now().div_euclid(1_000_000);
        match requested {
            v1::KeyAlgorithm::Rs256 => Algorithm::Rs256,
            v1::KeyAlgorithm::Es256 => Algorithm::Es256,
            v1::KeyAlgorithm::Unspecified => {
                let keys = self.facts.authenticator.keys();
                keys.ring.signing_key(seconds).map(|key| key.algorithm()).unwrap_or_default()
            }
        }
    }
}

/// Stores the key, or returns the one that waits to sign.
async fn store(tx: &mut WriteTx, wrapping: &KeyEncryptionKey, key: Arc<SigningKey>, now: Micros) -> Result<RotatedKey> {
    let rotated = keys::rotate_in(tx, wrapping, key, now).await;
    let Rotated { kid, algorithm, published_at, signs_from, is_new } = rotated.map_err(|error| match error {
        StartError::Storage(error) => Error::from(error),
        StartError::Refused(error) => error,
        error => Error::internal(error),
    })?;
    let key = v1::Key {
        kid,
        algorithm: algorithm.as_str().into(),
        publish_time: Some(at_second(published_at)),
        sign_time: Some(at_second(signs_from)),
        retire_time: None,
    };
    Ok(RotatedKey { key, is_new })
}

/// Keys have their times in seconds.
fn at_second(seconds: i64) -> prost_types::Timestamp {
    prost_types::Timestamp { seconds, nanos: 0 }
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
            let key = move |row: &Row<'_>| {
                Ok::<_, Error>(v1::Key {
                    kid: row.text(0)?,
                    algorithm: row.text(1)?,
                    publish_time: Some(at_second(row.int(2)?)),
                    sign_time: Some(at_second(row.int(3)?)),
                    retire_time: row.opt_int(4)?.map(at_second),
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

    fn configuration(&self) -> v1::Configuration {
        v1::Configuration { replica: self.replica.clone(), options: self.facts.options.clone() }
    }

    fn providers(&self) -> Vec<v1::OperatorProvider> {
        let provider = |provider: &ConfiguredProvider| v1::OperatorProvider {
            id: provider.id.clone(),
            label: provider.label.clone(),
            issuer: provider.issuer.clone(),
            client_id: provider.client_id.clone(),
            scopes: provider.scopes.clone(),
            has_secret: provider.client_secret.is_some(),
            configured: true,
        };
        self.facts.providers.iter().map(provider).collect()
    }

    fn generate_key(&self, algorithm: v1::KeyAlgorithm) -> Result<KeyStep> {
        let key = Arc::new(SigningKey::generate(self.algorithm(algorithm)).map_err(Error::internal)?);
        let wrapping = self.facts.wrapping.clone();
        let step: KeyStep = Box::new(move |tx, now| {
            let (wrapping, key) = (wrapping.clone(), key.clone());
            Box::pin(async move { store(tx, &wrapping, key, now).await })
        });
        Ok(step)
    }
}
