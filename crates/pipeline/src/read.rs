//! Calls that only read, each in one snapshot.

use std::sync::Arc;
use std::time::Duration;

use bowline_core::{Error, Reason, Result};
use bytes::Bytes;

use crate::Pipeline;
use crate::dispatch::Gate;
use crate::handlers::{ReadAgainFn, ReadFn, ReadThenFn};

/// How long a heavy read may take, its turn included.
const HEAVY_TIME: Duration = Duration::from_secs(10);

impl Pipeline {
    pub(crate) async fn read(&self, gate: Arc<Gate>, handler: Arc<ReadFn>) -> Result<Bytes> {
        let validated = self.validate(&gate).await?;
        self.db
            .read(move |tx| {
                Box::pin(async move {
                    let authorized = gate.pass(tx, &validated).await?;
                    handler(tx, &authorized).await
                })
            })
            .await
    }

    /// One snapshot, read on a thread of its own: SQLite reads inline, and the threads that serve connections are few.
    pub(crate) async fn heavy_read(self: &Arc<Self>, gate: Arc<Gate>, handler: Arc<ReadFn>) -> Result<Bytes> {
        let validated = self.validate_authorized(&gate).await?;
        let (pipeline, runtime) = (self.clone(), tokio::runtime::Handle::current());
        let until = tokio::time::Instant::now() + HEAVY_TIME;
        let too_slow = |_| {
            let text = "Deadline exceeded: the server gives one such call 10 s; narrow the request, or try again later";
            Error::new(Reason::DeadlineExceeded, text)
        };
        let lease = self.waiting.heavy(&gate.context.principal)?;
        let permit = tokio::time::timeout_at(until, self.heavy.clone().acquire_owned()).await.map_err(too_slow)?;
        let permit = permit.map_err(Error::internal)?;
        let read = move || {
            // Held until the read has ended, which a caller who gives up does not end.
            let _held = (lease, permit);
            runtime.block_on(tokio::time::timeout_at(
                until,
                pipeline.read_deferring::<_, Error>(move |tx| {
                    Box::pin(async move {
                        let authorized = gate.pass(tx, &validated).await?;
                        handler(tx, &authorized).await
                    })
                }),
            ))
        };
        tokio::task::spawn_blocking(read).await.map_err(Error::internal)?.map_err(too_slow)?
    }

    /// One snapshot, and what is done after it.
    pub(crate) async fn read_and_go_on(&self, gate: Arc<Gate>, handler: Arc<ReadThenFn>) -> Result<Bytes> {
        let validated = self.validate(&gate).await?;
        let read = self.db.read(move |tx| {
            Box::pin(async move {
                let authorized = gate.pass(tx, &validated).await?;
                handler(tx, &authorized).await
            })
        });
        let rest = read.await?;
        rest.await
    }

    /// Two snapshots, and what is done between them.
    pub(crate) async fn read_twice(&self, gate: Arc<Gate>, handler: Arc<ReadAgainFn>) -> Result<Bytes> {
        let validated = self.validate(&gate).await?;
        let (first, before) = (gate.clone(), validated.clone());
        let read = self.db.read(move |tx| {
            Box::pin(async move {
                let authorized = first.pass(tx, &before).await?;
                handler(tx, &authorized).await
            })
        });
        let between = read.await?;
        let again = between.await?;
        let read = self.db.read(move |tx| {
            Box::pin(async move {
                let authorized = gate.pass(tx, &validated).await?;
                again(tx, &authorized).await
            })
        });
        read.await
    }
}
