//! Calls that read, and have more to do than the database can.

use std::sync::Arc;

use bowline_core::Result;
use bytes::Bytes;

use crate::Pipeline;
use crate::dispatch::Gate;
use crate::handlers::{ReadAgainFn, ReadThenFn};

impl Pipeline {
    /// One snapshot, and what is done after it.
    pub(crate) async fn read_and_go_on(&self, gate: Gate, handler: Arc<ReadThenFn>) -> Result<Bytes> {
        let read = self.db.read(move |tx| {
            Box::pin(async move {
                let authorized = gate.pass(tx).await?;
                handler(tx, &authorized).await
            })
        });
        let rest = read.await?;
        rest.await
    }

    /// Two snapshots, and what is done between them.
    pub(crate) async fn read_twice(&self, gate: Arc<Gate>, handler: Arc<ReadAgainFn>) -> Result<Bytes> {
        let first = gate.clone();
        let read = self.db.read(move |tx| {
            Box::pin(async move {
                let authorized = first.pass(tx).await?;
                handler(tx, &authorized).await
            })
        });
        let between = read.await?;
        let again = between.await?;
        let read = self.db.read(move |tx| {
            Box::pin(async move {
                let authorized = gate.pass(tx).await?;
                again(tx, &authorized).await
            })
        });
        read.await
    }
}
