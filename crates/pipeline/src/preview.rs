//! Previews: the effects of a call that is rolled back.
//!
//! The previewed call runs the code of the real one ([`crate::write`]) up to the last step: the transaction is rolled
//! back. Effects on access are read afterwards from a snapshot, which delays no write.

use std::sync::Arc;
use std::time::Duration;

use bowline_contract::{ApiVersion, Method, MethodInfo};
use bowline_core::{Detail, Error, Reason, Result};
use bowline_store::{BoxFuture, DryRunLimits, ReadTx};
use bytes::Bytes;
use prost::Message;

use crate::call::{Authorized, Call, Transport};
use crate::changed::{Change, EventBody};
use crate::dispatch::{Gate, Pipeline};
use crate::handlers::{Handler, Handlers, decode};
use crate::write::WriteStep;

/// What the transaction of a preview may use.
const LIMITS: DryRunLimits = DryRunLimits { rows: 50_000, time: Duration::from_millis(500) };
/// How long a preview waits for other previews and reads what its changes mean.
const TIME: Duration = Duration::from_secs(10);

/// The field of a preview's request that names the method.
const METHOD_FIELD: &str = "method";

/// The call that is to be previewed.
#[derive(Clone, Debug)]
pub struct PreviewTarget {
    /// Full name of the method.
    pub method: String,
    /// Full name of the request's message, behind any address.
    pub type_url: String,
    /// The method's request in wire format.
    pub request: Vec<u8>,
}

/// What a previewed call would change.
#[derive(Clone, Debug)]
pub struct Previewed {
    /// Full name of the method.
    pub method: String,
    /// The method's request in wire format.
    pub request: Bytes,
    /// The changes as they would be recorded.
    pub changes: Vec<Change>,
    /// The event with its type, and whether subscriptions get it; absent if none would be sent.
    pub event: Option<PreviewedEvent>,
}

/// An event that would be sent.
#[derive(Clone, Debug)]
pub struct PreviewedEvent {
    /// CloudEvents type of the event.
    pub event_type: String,
    /// Whether subscriptions get it.
    pub customer: bool,
    pub body: EventBody,
}

type TargetFn = dyn Fn(&Bytes) -> Result<PreviewTarget> + Send + Sync;
type ReportFn =
    dyn for<'a> Fn(&'a mut ReadTx, &'a Authorized<Bytes>, &'a Previewed) -> BoxFuture<'a, Result<Bytes>> + Send + Sync;

/// The handler of the method that previews others.
pub(crate) struct PreviewHandler {
    target: Box<TargetFn>,
    report: Box<ReportFn>,
}

impl Handlers {
    /// Registers the method that previews others: `target` reads the call out of its request, `report` makes its response
    /// of what that call would change.
    pub fn preview<M: Method>(
        mut self,
        target: impl Fn(M::Request) -> PreviewTarget + Send + Sync + 'static,
        report: impl for<'a> Fn(
            &'a mut ReadTx,
            &'a Authorized<M::Request>,
            &'a Previewed,
        ) -> BoxFuture<'a, Result<M::Response>>
        + Clone
        + Send
        + Sync
        + 'static,
    ) -> Self {
        let target = move |payload: &Bytes| Ok(target(decode::<M::Request>(payload)?));
        let report: Box<ReportFn> = Box::new(move |tx, call, previewed| {
            let report = report.clone();
            Box::pin(async move {
                let typed = call.with_request(decode::<M::Request>(call.request())?);
                Ok(report(tx, &typed, previewed).await?.encode_to_vec().into())
            })
        });
        self.put::<M>(true, Handler::Preview(Arc::new(PreviewHandler { target: Box::new(target), report })));
        self
    }
}

impl Pipeline {
    /// Takes a preview to its end.
    pub(crate) async fn preview(self: &Arc<Self>, call: Call, handler: Arc<PreviewHandler>) -> Result<Bytes> {
        let gate = Arc::new(self.gate(call.clone()));
        self.authorize(&gate).await?;
        self.validate(&gate).await?;
        let target = (handler.target)(&call.payload)?;
        let method = self.previewable(&target)?;
        let lease = self.waiting.preview(&gate.context.principal)?;
        let until = tokio::time::Instant::now() + TIME;
        let permit = tokio::time::timeout_at(until, self.previews.clone().acquire_owned()).await.map_err(too_slow)?;
        let held = (lease, permit.map_err(Error::internal)?);
        let index = method.index;
        let request = Bytes::from(target.request);
        // The transport has no JSON of the request's fields by themselves.
        let call = Call {
            method: method.index,
            payload: request.clone(),
            transport: Transport::Grpc,
            present: None,
            slice: None,
            resume: None,
            ..call
        };
        // A client that gives up frees nothing of this: the permit ends with the dry run, wherever that waits.
        let pipeline = self.clone();
        let run = tokio::spawn(async move {
            let previewed = pipeline.dry_run(call, pipeline.contract.method(index), request).await;
            drop(held.1);
            (held.0, previewed)
        });
        let (lease, previewed) = run.await.map_err(Error::internal)?;
        let previewed = previewed.map_err(|error| of_method(error, method))?;
        let permit = tokio::time::timeout_at(until, self.heavy.clone().acquire_owned()).await.map_err(too_slow)?;
        let held = (lease, permit.map_err(Error::internal)?);
        let (pipeline, runtime) = (self.clone(), tokio::runtime::Handle::current());
        // SQLite reads inline, and the threads that serve connections are few.
        let report = move || {
            let _held = held;
            runtime.block_on(tokio::time::timeout_at(until, pipeline.report(gate, handler, previewed)))
        };
        tokio::task::spawn_blocking(report).await.map_err(Error::internal)?.map_err(too_slow)?
    }

    /// Full name of the method that a call previews, as the log may show it: one of the contract's.
    pub(crate) fn shown_preview(&self, call: &Call, info: &MethodInfo) -> String {
        let Some(Handler::Preview(_)) = self.handlers.get(call.method) else { return String::new() };
        let id = self.tables.message(info.input.full_name());
        let named = id.and_then(|id| self.tables.read_string(id, &call.payload, METHOD_FIELD).ok().flatten());
        let known = named.and_then(|name| self.contract.by_full_name(&name));
        known.map(|method| method.full_name.clone()).unwrap_or_default()
    }

    /// The method of a preview.
    fn previewable(&self, target: &PreviewTarget) -> Result<&MethodInfo> {
        let named =
            self.contract.by_full_name(&target.method).filter(|method| method.index < self.contract.methods().len());
        let Some(method) = named else {
            return Err(Error::invalid_field("method", "method must be the full name of a method of this server"));
        };
        if !method.previewable {
            let text = format!(
                "Unimplemented: {} cannot be previewed: it only reads, calls other servers, or returns a secret",
                method.short_name()
            );
            return Err(Error::new(Reason::Unimplemented, text));
        }
        let type_name = target.type_url.rsplit('/').next().unwrap_or_default();
        if type_name != method.input.full_name() {
            let text = format!("request must be a message of the type {}", method.input.full_name());
            return Err(Error::invalid_field("request", text));
        }
        if method.max_request_bytes.is_some_and(|limit| target.request.len() as u64 > limit) {
            let text = format!("Request too large: {} takes smaller requests", method.short_name());
            return Err(Error::new(Reason::RequestTooLarge, text));
        }
        Ok(method)
    }

    /// Runs the call in a transaction that is rolled back.
    async fn dry_run(self: &Arc<Self>, call: Call, method: &MethodInfo, request: Bytes) -> Result<Previewed> {
        let gate = Arc::new(self.gate(call));
        let step = match self.handlers.get(method.index).cloned() {
            Some(Handler::Write(handler)) => self.write_step(gate, handler).await?,
            Some(Handler::Prepared(prepare)) => self.prepared_step(gate, prepare).await?,
            Some(_) => return Err(Error::internal("a previewable method only reads")),
            None => return Err(self.unimplemented_call(method, &gate).await),
        };
        let changed = self
            .dry_run_deferring(LIMITS, move |tx| {
                let step: WriteStep = step.clone();
                Box::pin(async move { step.run(tx).await })
            })
            .await?;
        let rule = method.event.as_ref();
        let event = changed.event.zip(rule).map(|(body, rule)| PreviewedEvent {
            event_type: rule.event_type.clone(),
            customer: rule.customer,
            body,
        });
        Ok(Previewed { method: method.full_name.clone(), request, changes: changed.changes, event })
    }

    /// Reads what the changes mean, in a snapshot in which the caller is authorized again.
    async fn report(
        self: Arc<Self>,
        gate: Arc<Gate>,
        handler: Arc<PreviewHandler>,
        previewed: Previewed,
    ) -> Result<Bytes> {
        let previewed = Arc::new(previewed);
        self.read_deferring::<_, Error>(move |tx| {
            let (gate, handler, previewed) = (gate.clone(), handler.clone(), previewed.clone());
            Box::pin(async move {
                let authorized = gate.authorize(tx).await?;
                (handler.report)(tx, &authorized, &previewed).await
            })
        })
        .await
    }
}

fn too_slow(_: tokio::time::error::Elapsed) -> Error {
    let text = "Deadline exceeded: the server gives a preview 10 s; preview a smaller call, or try again later";
    Error::new(Reason::DeadlineExceeded, text)
}

/// Presents the error as the previewed method does.
fn of_method(error: Error, method: &MethodInfo) -> Error {
    let is_v1 = method.version == ApiVersion::V1;
    error.with(Detail::PreviewOf { domain: method.domain.clone(), is_v1 })
}
