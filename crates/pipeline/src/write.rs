//! Calls that change something.

use std::sync::Arc;

use bowline_core::{Error, Result};
use bowline_store::WriteTx;
use bytes::Bytes;

use crate::changed::Changed;
use crate::dispatch::{Gate, Pipeline};
use crate::handlers::{PrepareFn, WriteFnOf};
use crate::validate::Validated;
use crate::{record, terms};

/// What a call that changes something does in its transaction.
pub(crate) struct WriteStep<T = Bytes> {
    gate: Arc<Gate>,
    validated: Validated,
    handler: Arc<WriteFnOf<T>>,
}

// `derive(Clone)` would require `T: Clone`.
impl<T> Clone for WriteStep<T> {
    fn clone(&self) -> Self {
        let WriteStep { gate, validated, handler } = self;
        WriteStep { gate: gate.clone(), validated: validated.clone(), handler: handler.clone() }
    }
}

impl<T> WriteStep<T> {
    /// Authorizes, runs the handler and records what it changed.
    pub(crate) async fn run(&self, tx: &mut WriteTx) -> Result<Changed<T>> {
        let authorized = self.gate.pass(tx, &self.validated).await?;
        if let Some(scope) = &authorized.scope {
            terms::require_terms(tx, &authorized, scope).await?;
        }
        let changed = (self.handler)(tx, &authorized).await?;
        record::record(tx, &self.gate.context, &changed.changes, changed.event.as_ref()).await?;
        Ok(changed)
    }
}

impl Pipeline {
    /// Validates, then runs a handler and records what it changed, in one transaction.
    pub(crate) async fn write<T: Send + 'static>(&self, gate: Arc<Gate>, handler: Arc<WriteFnOf<T>>) -> Result<T> {
        let step = self.write_step(gate, handler).await?;
        self.commit(step).await
    }

    /// Validates and prepares the request, then runs the handler.
    pub(crate) async fn prepare_and_write(&self, gate: Arc<Gate>, prepare: Arc<PrepareFn>) -> Result<Bytes> {
        let step = self.prepared_step(gate, prepare).await?;
        self.commit(step).await
    }

    /// Validates a call before its transaction.
    pub(crate) async fn write_step<T>(&self, gate: Arc<Gate>, handler: Arc<WriteFnOf<T>>) -> Result<WriteStep<T>> {
        let frees_storage = gate.context.info().frees_storage();
        if !frees_storage && self.db.is_full() {
            // Permission errors take precedence over STORAGE_FULL.
            self.authorize(&gate).await?;
            return Err(Error::storage_full("refused before the write: little room is left on the disk"));
        }
        let validated = self.validate(&gate).await?;
        Ok(WriteStep { gate, validated, handler })
    }

    /// Validates and prepares the request. Authorizes first, so that only permitted callers cost a preparation. The
    /// transaction authorizes again, because grants may have changed.
    pub(crate) async fn prepared_step(&self, gate: Arc<Gate>, prepare: Arc<PrepareFn>) -> Result<WriteStep> {
        let validated = self.validate_authorized(&gate).await?;
        let payload = gate.payload.clone();
        let handler = tokio::task::spawn_blocking(move || prepare(&payload)).await.map_err(Error::internal)??;
        Ok(WriteStep { gate, validated, handler })
    }

    async fn commit<T: Send + 'static>(&self, step: WriteStep<T>) -> Result<T> {
        let db = if step.gate.context.info().frees_storage() { self.db.from_reserve() } else { self.db.clone() };
        self.write_deferring_on::<_, Error>(&db, move |tx| {
            let step = step.clone();
            Box::pin(async move { Ok(step.run(tx).await?.response) })
        })
        .await
    }
}
