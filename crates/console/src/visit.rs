//! One request for a page: who asks, and the calls that the page makes.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bowline_calls::{Server, ShellForms};
use bowline_contract::Method;
use bowline_core::{Detail, Error, Reason, Result};
use bowline_fronts::{AccessLine, write_failure};
use bowline_pipeline::{Call, Outcome, RequestOrigin, Transport};
use bytes::Bytes;
use futures_util::FutureExt as _;
use prost::Message as _;

use crate::app::App;
use crate::query::Query;
use crate::sessions::{Key, Session};

/// Maximum calls of one page.
const MAX_CALLS: usize = 12;
/// Longest time for one call.
const CALL_TIME: Duration = Duration::from_secs(20);
/// Rows of a page of a list.
pub(crate) const ROWS: i32 = 50;

/// A call that the page made.
struct Recorded {
    method: usize,
    payload: Bytes,
}

/// A request for a page, by a signed-in caller.
pub(crate) struct Visit {
    pub(crate) app: Arc<App>,
    pub(crate) session: Arc<Session>,
    pub(crate) key: Key,
    pub(crate) path: &'static str,
    pub(crate) query: Query,
    /// Name of the group that the page is about, where the caller may list it.
    pub(crate) scope_name: Option<String>,
    origin: RequestOrigin,
    calls: Vec<Recorded>,
}

/// A call of the page as it is shown.
pub(crate) struct Shown {
    pub(crate) method: String,
    /// Absent for a request that no shell line can hold.
    pub(crate) forms: Option<ShellForms>,
}

impl Visit {
    pub(crate) fn new(
        app: Arc<App>,
        (key, session): (Key, Arc<Session>),
        path: &'static str,
        query: Query,
        origin: RequestOrigin,
    ) -> Visit {
        Visit { app, session, key, path, query, scope_name: None, origin, calls: Vec::new() }
    }

    /// Calls a method that only reads, as the signed-in caller.
    ///
    /// # Errors
    /// What the API would return to the same caller; INTERNAL for a method that changes something.
    pub(crate) async fn call<M: Method>(&mut self, request: M::Request) -> Result<M::Response> {
        let method = self.app.pipeline.contract.by_full_name(M::FULL_NAME);
        let method = method.ok_or_else(|| Error::internal(format!("the contract has no {}", M::FULL_NAME)))?;
        if !method.only_reads() {
            return Err(Error::internal(format!("a page called {}, which does not only read", M::FULL_NAME)));
        }
        if self.calls.len() >= MAX_CALLS {
            return Err(Error::internal("a page made too many calls"));
        }
        let (index, payload) = (method.index, Bytes::from(request.encode_to_vec()));
        self.calls.push(Recorded { method: index, payload: payload.clone() });
        self.dispatch::<M>(index, payload).await
    }

    /// Ends the session that the caller's token belongs to, at the server. Nothing else here changes anything.
    pub(crate) async fn end_session(&mut self, id: String) -> Result<()> {
        use bowline_contract::bowline::people::v1::EndSessionRequest;
        use bowline_contract::bowline::people::v1::rpc::sessions::EndSession;
        let method = self.app.pipeline.contract.by_full_name(EndSession::FULL_NAME).map(|method| method.index);
        let method = method.ok_or_else(|| Error::internal("the contract has no Sessions.EndSession"))?;
        let payload = EndSessionRequest { id }.encode_to_vec().into();
        self.dispatch::<EndSession>(method, payload).await
    }

    async fn dispatch<M: Method>(&self, method: usize, payload: Bytes) -> Result<M::Response> {
        let started = Instant::now();
        let request_id = format!("{}.{}", self.origin.request_id, self.calls.len());
        let outcome = match self.call_of(method, payload, &request_id) {
            Ok(call) => {
                let run = AssertUnwindSafe(self.app.pipeline.dispatch(call)).catch_unwind();
                match tokio::time::timeout(CALL_TIME, run).await {
                    Ok(Ok(outcome)) => outcome,
                    Ok(Err(_)) => Outcome::failed(Error::internal("the handler panicked")),
                    Err(_) => Outcome::failed(too_long()),
                }
            }
            Err(error) => Outcome::failed(error),
        };
        let code = outcome.result.as_ref().err().map(Error::code);
        (self.app.count)(M::FULL_NAME, code, started.elapsed());
        AccessLine {
            transport: "console",
            method: M::FULL_NAME,
            path: "",
            previewed: "",
            principal: &outcome.principal,
            scope: &outcome.scope,
            status: None,
            code,
            elapsed: started.elapsed(),
            request_id: &request_id,
        }
        .write();
        let answer = outcome.result.inspect_err(|error| write_failure(M::FULL_NAME, &request_id, error))?;
        M::Response::decode(answer.payload).map_err(Error::internal)
    }

    fn call_of(&self, method: usize, payload: Bytes, request_id: &str) -> Result<Call> {
        let token = Some(self.session.token.clone());
        Ok(Call {
            method,
            payload,
            caller: self.app.pipeline.admit(method, token, Some(self.origin.address))?,
            request_id: request_id.to_owned(),
            transport: Transport::Rest,
            present: None,
            slice: None,
            resume: None,
        })
    }

    /// A message inside an answer as JSON; absent for a type that the contract does not have.
    pub(crate) fn json(&self, type_url: &str, wire: &[u8]) -> Option<serde_json::Value> {
        let tables = &self.app.pipeline.tables;
        let id = tables.message(type_url.rsplit('/').next().unwrap_or(type_url))?;
        let options = bowline_transcode::JsonOptions { proto_names: true, emit_defaults: false };
        let mut json = Vec::new();
        tables.to_json(id, wire, &options, &mut json).ok()?;
        serde_json::from_slice(&json).ok()
    }

    pub(crate) fn request_id(&self) -> &str {
        &self.origin.request_id
    }

    /// UIDP of the group that the page is about; empty for everything that is visible.
    pub(crate) fn scope(&self) -> String {
        self.query.text("in")
    }

    /// Full name of the method that was called last.
    pub(crate) fn last_method(&self) -> Option<&str> {
        self.calls.last().map(|call| self.app.pipeline.contract.method(call.method).full_name.as_str())
    }

    /// The calls that the page made so far.
    pub(crate) fn shown_calls(&self) -> Vec<Shown> {
        let pipeline = &self.app.pipeline;
        let server = Server { base_url: &pipeline.settings.base_url };
        let shown = |call: &Recorded| {
            let method = pipeline.contract.method(call.method);
            let forms = ShellForms::new(server, &pipeline.tables, method, &call.payload).ok();
            Shown { method: method.full_name.clone(), forms }
        };
        self.calls.iter().map(shown).collect()
    }
}

fn too_long() -> Error {
    let text = format!("Deadline exceeded: the call took longer than {} s", CALL_TIME.as_secs());
    Error::new(Reason::DeadlineExceeded, text).with(Detail::RetryAfter(Duration::from_secs(1)))
}
