//! One request for a page: who asks, and the calls that the page makes.

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bowline_calls::{Server, ShellForms, terraform};
use bowline_contract::Method;
use bowline_contract::bowline::people::v1::rpc::sessions::EndSession;
use bowline_contract::bowline::preview::v1::{PreviewRequest, PreviewResponse};
use bowline_core::{Code, Detail, Error, Reason, Result};
use bowline_fronts::{AccessLine, write_failure};
use bowline_pipeline::{ConsoleCall, Outcome, RequestOrigin, Unlocked};
use bytes::Bytes;
use futures_util::FutureExt as _;
use prost::Message as _;
use prost_reflect::{DynamicMessage, FieldDescriptor, MessageDescriptor};

use crate::app::App;
use crate::hidden;
use crate::permits::Held;
use crate::query::Query;
use crate::sessions::{Key, Session};

/// Maximum calls of one page.
const MAX_CALLS: usize = 12;
/// The name that calls of any method are counted by: names there are few and fixed.
const ANY: &str = "console.call";
/// Rows of a page of a list.
pub(crate) const ROWS: i32 = 50;

/// Maximum bytes of the responses that a page can be had as data of.
const MAX_DATA: usize = 8 << 20;

/// A call that the page made.
struct Recorded {
    method: usize,
    payload: Bytes,
    /// Kept where the page was asked for as data.
    outcome: Option<std::result::Result<Bytes, String>>,
    /// Whether the request holds a secret, which no line may have.
    has_secret: bool,
}

/// A call that a page made, for the page as data.
pub(crate) struct Called {
    pub(crate) method: usize,
    /// The response in wire format, or the message of the error.
    pub(crate) outcome: std::result::Result<Bytes, String>,
    /// Name of the field with the list that the method returns, if it returns one.
    pub(crate) list: Option<String>,
}

/// What a call returned that may be refused while the page is shown.
pub(crate) struct Answer<T> {
    /// Full name of the method.
    pub(crate) method: &'static str,
    pub(crate) result: Result<T>,
}

/// A request for a page, by a signed-in caller.
pub(crate) struct Visit {
    pub(crate) app: Arc<App>,
    pub(crate) session: Arc<Session>,
    pub(crate) key: Key,
    pub(crate) path: &'static str,
    pub(crate) query: Query,
    /// Whether a page of another site led here: what costs much is then done only after a click.
    pub(crate) is_led_here: bool,
    /// Name of the group that the page is about, where the caller may list it.
    pub(crate) scope_name: Option<String>,
    /// Whether a call of the page looked for that name.
    pub(crate) is_scope_resolved: bool,
    /// Permits of the page, from its turn on.
    pub(crate) held: Held,
    origin: RequestOrigin,
    calls: Vec<Recorded>,
    /// When the page must be done.
    pub(crate) deadline: Instant,
}

/// A call of the page as it is shown.
pub(crate) struct Shown {
    pub(crate) method: String,
    /// Absent for a request that no shell line can hold.
    pub(crate) forms: Option<ShellForms>,
    /// Where Terraform's provider has a resource for it.
    pub(crate) terraform: Option<String>,
    /// Whether that is because it holds a secret.
    pub(crate) has_secret: bool,
}

/// What a call of the table is.
enum Kind {
    Read,
    Preview,
    Change(Unlocked),
}

impl Visit {
    pub(crate) fn new(
        app: Arc<App>,
        (key, session): (Key, Arc<Session>),
        path: &'static str,
        query: Query,
        origin: RequestOrigin,
    ) -> Visit {
        let deadline = Instant::now() + app.page_time;
        let is_led_here = false;
        Visit {
            app,
            session,
            key,
            path,
            query,
            is_led_here,
            scope_name: None,
            is_scope_resolved: false,
            held: None,
            origin,
            calls: Vec::new(),
            deadline,
        }
    }

    /// Calls a method that only reads, as the signed-in caller.
    ///
    /// # Errors
    /// What the API would return to the same caller; INTERNAL for a method that changes something.
    pub(crate) async fn call<M: Method>(&mut self, request: M::Request) -> Result<M::Response> {
        let method = self.app.api.contract().by_full_name(M::FULL_NAME);
        let method = method.ok_or_else(|| Error::internal(format!("the contract has no {}", M::FULL_NAME)))?.index;
        let payload = request.encode_to_vec().into();
        let answer = self.send(M::FULL_NAME, method, payload, Some(false), Kind::Read).await?;
        let decoded = M::Response::decode(answer).map_err(Error::internal);
        decoded.inspect_err(|error| write_failure(M::FULL_NAME, &self.id_of_call(), error))
    }

    /// Calls a method for a part of the page.
    ///
    /// # Errors
    /// UNAUTHENTICATED: the session is over, and so is the page. Other errors are in the answer.
    pub(crate) async fn answer<M: Method>(&mut self, request: M::Request) -> Result<Answer<M::Response>> {
        match self.call::<M>(request).await {
            Err(error) if error.code() == Code::Unauthenticated => Err(error),
            result => Ok(Answer { method: M::FULL_NAME, result }),
        }
    }

    /// Calls a method of the table that only reads.
    ///
    /// # Errors
    /// As for [`Visit::call`].
    pub(crate) async fn read(&mut self, method: usize, payload: Bytes) -> Result<Bytes> {
        self.send(ANY, method, payload, None, Kind::Read).await
    }

    /// Previews a call of a method, with what it does rolled back.
    ///
    /// # Errors
    /// What the call would return, or why there is no preview of it.
    pub(crate) async fn preview(&mut self, method: usize, payload: Bytes) -> Result<PreviewResponse> {
        let info = self.app.api.contract().method(method);
        let has_secret = self.has_secret(&info.input, &payload);
        let type_url = format!("type.googleapis.com/{}", info.input.full_name());
        let request = Some(prost_types::Any { type_url, value: payload.to_vec() });
        let request = PreviewRequest { method: info.full_name.clone(), request };
        let preview = self.app.api.preview_method()?;
        let response = self.send(ANY, preview, request.encode_to_vec().into(), Some(has_secret), Kind::Preview).await?;
        PreviewResponse::decode(response).map_err(Error::internal)
    }

    /// Calls a method that may change something, for a form.
    ///
    /// # Errors
    /// What the API would return to the same caller; FAILED_PRECONDITION where changes are locked.
    pub(crate) async fn change(&mut self, method: usize, payload: Bytes, unlocked: Unlocked) -> Result<Bytes> {
        self.send(ANY, method, payload, None, Kind::Change(unlocked)).await
    }

    /// Runs a call under the name that it is counted by.
    async fn send(
        &mut self,
        counted: &'static str,
        method: usize,
        payload: Bytes,
        has_secret: Option<bool>,
        kind: Kind,
    ) -> Result<Bytes> {
        let app = self.app.clone();
        let info = app.api.contract().method(method);
        let has_secret = has_secret.unwrap_or_else(|| self.has_secret(&info.input, &payload));
        let request_id = self.record(method, payload, has_secret)?;
        let call = self.last_call(&request_id)?;
        let outcome = async {
            match kind {
                Kind::Read => app.api.read(call).await,
                Kind::Preview => app.api.preview(call).await,
                Kind::Change(unlocked) => app.api.change(call, unlocked).await,
            }
        };
        let outcome = self.run((counted, &info.full_name), &request_id, outcome).await;
        let outcome = outcome.inspect_err(|error| write_failure(&info.full_name, &request_id, error));
        if self.query.get("format").is_some() {
            self.keep(&outcome)?;
        }
        outcome
    }

    /// Remembers a call that the page makes, and returns the id of its request.
    ///
    /// # Errors
    /// INTERNAL: the page makes too many.
    pub(crate) fn record(&mut self, method: usize, payload: Bytes, has_secret: bool) -> Result<String> {
        if self.calls.len() >= MAX_CALLS {
            return Err(Error::internal("a page made too many calls"));
        }
        self.calls.push(Recorded { method, payload, outcome: None, has_secret });
        Ok(self.id_of_call())
    }

    /// The last recorded call, as the signed-in caller.
    ///
    /// # Errors
    /// INTERNAL: no call was recorded.
    pub(crate) fn last_call<'c>(&'c self, request_id: &'c str) -> Result<ConsoleCall<'c>> {
        let last = self.calls.last().ok_or_else(|| Error::internal("a page made no call"))?;
        let (token, peer) = (&self.session.token, self.origin.address);
        Ok(ConsoleCall { method: last.method, payload: last.payload.clone(), token, peer, request_id })
    }

    /// Whether a request has a value in a field that holds a secret. A message in a message counts.
    pub(crate) fn has_secret(&self, message: &MessageDescriptor, wire: &[u8]) -> bool {
        let contract = self.app.api.contract();
        // A request that does not decode is refused, and its bytes are not for a line.
        DynamicMessage::decode(message.clone(), wire).map_or(true, |message| hidden::has_secret(contract, &message))
    }

    /// Keeps the outcome of the last call for the page as data.
    fn keep(&mut self, outcome: &Result<Bytes>) -> Result<()> {
        let kept = self.calls.iter().filter_map(|call| call.outcome.as_ref()?.as_ref().ok()).map(Bytes::len);
        let bytes = kept.sum::<usize>() + outcome.as_ref().map_or(0, Bytes::len);
        if bytes > MAX_DATA {
            let text =
                format!("This page has more than {} MiB of data: read it with the calls of the page.", MAX_DATA >> 20);
            return Err(Error::new(Reason::FailedPrecondition, text));
        }
        if let Some(call) = self.calls.last_mut() {
            call.outcome = Some(outcome.as_ref().cloned().map_err(|error| error.message().to_owned()));
        }
        Ok(())
    }

    /// Ends the session that the caller's token belongs to, at the server.
    ///
    /// # Errors
    /// The token stays valid until its end.
    pub(crate) async fn end_session(&self) -> Result<()> {
        let facts = self.app.api.facts(&self.session.token);
        if facts.is_ok_and(|facts| facts.session.is_none()) {
            return Ok(());
        }
        let request_id = self.id_of_call();
        let ending = self.app.api.end_session(&self.session.token, self.origin.address, &request_id);
        let ending = async { ending.await.unwrap_or_else(|| Outcome::failed(no_session())) };
        let names = (EndSession::FULL_NAME, EndSession::FULL_NAME);
        let ended = self.run(names, &request_id, ending).await;
        match ended.inspect_err(|error| write_failure(EndSession::FULL_NAME, &request_id, error)) {
            // It has ended already, or the token never belonged to one.
            Err(error) if !matches!(error.code(), Code::NotFound | Code::Unauthenticated) => Err(error),
            _ => Ok(()),
        }
    }

    /// Waits for something for as long as the page may take.
    ///
    /// # Errors
    /// DEADLINE_EXCEEDED.
    pub(crate) async fn in_time<T, E>(&self, ready: impl Future<Output = std::result::Result<T, E>>) -> Result<T>
    where
        E: std::error::Error + Send + Sync + 'static,
    {
        match tokio::time::timeout_at(self.deadline.into(), ready).await {
            Ok(ready) => ready.map_err(Error::internal),
            Err(_) => Err(too_long(self.app.page_time)),
        }
    }

    fn id_of_call(&self) -> String {
        format!("{}.{}", self.origin.request_id, self.calls.len())
    }

    /// Runs a call within the time of the page, counts it by its first name and writes its line with the second.
    async fn run(
        &self,
        (counted, method): (&'static str, &str),
        request_id: &str,
        call: impl Future<Output = Outcome> + Send,
    ) -> Result<Bytes> {
        let started = Instant::now();
        let run = AssertUnwindSafe(call).catch_unwind();
        let outcome = match tokio::time::timeout_at(self.deadline.into(), run).await {
            Ok(Ok(outcome)) => outcome,
            Ok(Err(_)) => Outcome::failed(Error::internal("the handler panicked")),
            Err(_) => Outcome::failed(too_long(self.app.page_time)),
        };
        let code = outcome.result.as_ref().err().map(Error::code);
        (self.app.count)(counted, code, started.elapsed());
        AccessLine {
            transport: "console",
            method,
            path: "",
            previewed: &outcome.previewed,
            principal: &outcome.principal,
            scope: &outcome.scope,
            status: None,
            code,
            elapsed: started.elapsed(),
            request_id,
        }
        .write();
        outcome.result.map(|answer| answer.payload)
    }

    /// A message inside an answer as JSON, addresses with their host; absent for a type that the contract does not have.
    pub(crate) fn json(&self, type_url: &str, wire: &[u8]) -> Option<serde_json::Value> {
        let (tables, contract) = (self.app.api.tables(), self.app.api.contract());
        let name = type_url.rsplit('/').next().unwrap_or(type_url);
        let options = bowline_transcode::JsonOptions { proto_names: true, emit_defaults: false };
        let mut json = Vec::new();
        tables.to_json(tables.message(name)?, wire, &options, &mut json).ok()?;
        let message = DynamicMessage::decode(contract.pool().get_message_by_name(name)?, wire).ok()?;
        Some(hidden::replaced(serde_json::from_slice(&json).ok()?, &hidden::of(contract, &message)))
    }

    pub(crate) fn request_id(&self) -> &str {
        &self.origin.request_id
    }

    /// UIDP of the group that the page is about; empty for everything that is visible.
    pub(crate) fn scope(&self) -> String {
        self.query.text("in")
    }

    pub(crate) fn has_called(&self) -> bool {
        !self.calls.is_empty()
    }

    /// Full name of the method that was called last.
    pub(crate) fn last_method(&self) -> Option<&str> {
        self.calls.last().map(|call| self.app.api.contract().method(call.method).full_name.as_str())
    }

    /// The calls, where the page was asked for as data.
    pub(crate) fn called(&self) -> Vec<Called> {
        let is_list = |field: &FieldDescriptor| field.is_list() && field.kind().as_message().is_some();
        let called = self.calls.iter().filter_map(|call| {
            let outcome = call.outcome.clone()?;
            let list = self.app.api.contract().method(call.method).output.fields().find(is_list);
            Some(Called { method: call.method, outcome, list: list.map(|field| field.name().to_owned()) })
        });
        called.collect()
    }

    /// The calls that the page made so far.
    pub(crate) fn shown_calls(&self) -> Vec<Shown> {
        self.calls.iter().map(|call| self.forms(call.method, &call.payload, call.has_secret)).collect()
    }

    /// A request that was not sent as it is shown.
    pub(crate) fn lines(&self, method: usize, request: &[u8]) -> Shown {
        let input = &self.app.api.contract().method(method).input;
        self.forms(method, request, self.has_secret(input, request))
    }

    /// A request as it is shown.
    fn forms(&self, method: usize, request: &[u8], has_secret: bool) -> Shown {
        let api = &self.app.api;
        let server = Server { base_url: &api.settings().base_url };
        let method = api.contract().method(method);
        let forms = if has_secret { None } else { ShellForms::new(server, api.tables(), method, request).ok() };
        let terraform = if has_secret { None } else { terraform(api.contract(), api.tables(), method, request) };
        Shown { method: method.full_name.clone(), forms, terraform, has_secret }
    }
}

pub(crate) fn too_long(time: Duration) -> Error {
    let text = format!("Deadline exceeded: the page took longer than {} s", time.as_secs());
    Error::new(Reason::DeadlineExceeded, text).with(Detail::RetryAfter(Duration::from_secs(1)))
}

fn no_session() -> Error {
    Error::new(Reason::NotFound, "Not found: the token belongs to no session")
}
