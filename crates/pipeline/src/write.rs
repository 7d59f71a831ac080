//! Calls that change something.

use std::sync::Arc;

use bowline_core::{Error, Result};
use bytes::Bytes;

use crate::dispatch::{Gate, Pipeline};
use crate::handlers::{PrepareFn, WriteFn};
use crate::{record, terms};

impl Pipeline {
    /// Runs a handler, and records what it changed, in one transaction.
    pub(crate) async fn write(&self, gate: Arc<Gate>, handler: Arc<WriteFn>) -> Result<Bytes> {
        let frees_storage = gate.context.info().frees_storage();
        if !frees_storage && self.db.is_full() {
            // Callers who may not write get that answer on a full disk, too.
            self.db.read(move |tx| Box::pin(async move { gate.pass(tx).await.map(|_| ()) })).await?;
            return Err(Error::storage_full("refused before the write: little room is left on the disk"));
        }
        let db = if frees_storage { self.db.from_reserve() } else { self.db.clone() };
        db.write(move |tx| {
            let (gate, handler) = (gate.clone(), handler.clone());
            Box::pin(async move {
                let authorized = gate.pass(tx).await?;
                if let Some(place) = &authorized.scope {
                    terms::require_terms(tx, &authorized, place).await?;
                }
                let changed = handler(tx, &authorized).await?;
                record::record(tx, &gate.context, &changed.changes, changed.event.as_ref()).await?;
                Ok(changed.response)
            })
        })
        .await
    }

    /// Prepares the request, then runs the handler. The caller is judged before, because who may not call shall cost
    /// nothing, and again in the transaction, because only that judgement counts.
    pub(crate) async fn prepare_and_write(&self, gate: Arc<Gate>, prepare: Arc<PrepareFn>) -> Result<Bytes> {
        let judging = gate.clone();
        self.db.read(move |tx| Box::pin(async move { judging.pass(tx).await.map(|_| ()) })).await?;
        let payload = gate.payload.clone();
        let handler = tokio::task::spawn_blocking(move || prepare(&payload)).await.map_err(Error::internal)??;
        self.write(gate, handler).await
    }
}
