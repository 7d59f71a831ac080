//! Calls that change something.

use std::sync::Arc;

use bowline_core::{Error, Result};
use bytes::Bytes;

use crate::dispatch::{Gate, Pipeline};
use crate::handlers::{PrepareFn, WriteFnOf};
use crate::validate::Validated;
use crate::{record, terms};

impl Pipeline {
    /// Validates, then runs a handler and records what it changed, in one transaction.
    pub(crate) async fn write<T: Send + 'static>(&self, gate: Arc<Gate>, handler: Arc<WriteFnOf<T>>) -> Result<T> {
        let frees_storage = gate.context.info().frees_storage();
        if !frees_storage && self.db.is_full() {
            // Callers who may not write get that answer on a full disk, too.
            self.authorize(&gate).await?;
            return Err(Error::storage_full("refused before the write: little room is left on the disk"));
        }
        let validated = self.validate(&gate).await?;
        self.write_validated(gate, validated, handler).await
    }

    /// Validates and prepares the request, then runs the handler. What is validated is authorized; the transaction
    /// authorizes again, because only that decision counts.
    pub(crate) async fn prepare_and_write(&self, gate: Arc<Gate>, prepare: Arc<PrepareFn>) -> Result<Bytes> {
        let validated = self.validate_authorized(&gate).await?;
        let payload = gate.payload.clone();
        let handler = tokio::task::spawn_blocking(move || prepare(&payload)).await.map_err(Error::internal)??;
        self.write_validated(gate, validated, handler).await
    }

    async fn write_validated<T: Send + 'static>(
        &self,
        gate: Arc<Gate>,
        validated: Validated,
        handler: Arc<WriteFnOf<T>>,
    ) -> Result<T> {
        let db = if gate.context.info().frees_storage() { self.db.from_reserve() } else { self.db.clone() };
        self.write_deferring_on::<_, Error>(&db, move |tx| {
            let (gate, validated, handler) = (gate.clone(), validated.clone(), handler.clone());
            Box::pin(async move {
                let authorized = gate.pass(tx, &validated).await?;
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
}
