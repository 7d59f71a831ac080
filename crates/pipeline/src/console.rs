//! Calls of the console: those that only read. Those that change something on request are in `changes`.

use std::marker::PhantomData;
use std::net::IpAddr;
use std::sync::Arc;

use bowline_contract::bowline::audit::v1::rpc::audit::{VerifyChain, WatchEntries};
use bowline_contract::bowline::people::v1::EndSessionRequest;
use bowline_contract::bowline::people::v1::rpc::sessions::EndSession;
use bowline_contract::{Auth, Contract, Method};
use bowline_core::{Error, Micros, Reason, Result};
use bowline_transcode::Tables;
use bytes::Bytes;
use prost::Message as _;

use crate::call::{Call, Transport};
use crate::dispatch::{Outcome, Pipeline};
use crate::principal::TokenFacts;
use crate::rate_limit::Surface;
use crate::settings::Settings;
use crate::streams::Stream;

/// An access token that the console keeps for a browser. It can be used for calls, and cannot be read or printed.
pub struct HeldToken(String);

impl HeldToken {
    /// Keeps a token, which is not validated by this.
    pub fn new(bearer: String) -> HeldToken {
        HeldToken(bearer)
    }

    /// Memory that the token takes.
    pub fn bytes(&self) -> usize {
        self.0.len()
    }
}

/// A call of a method that only reads, or one with a proof that a person asks for the change.
pub struct ConsoleCall<'a> {
    /// Position of the method in the table.
    pub method: usize,
    /// The request in wire format.
    pub payload: Bytes,
    pub token: &'a HeldToken,
    /// The address that calls.
    pub peer: IpAddr,
    /// Id of the request, given or made.
    pub request_id: &'a str,
}

/// What the console has of the pipeline: calls that read, and calls that change something with a proof that a person
/// asked for it. No handlers, no storage, no keys, no tokens of others.
#[derive(Clone)]
pub struct ConsolePipeline {
    pipeline: Arc<Pipeline>,
}

impl ConsolePipeline {
    /// Restricts a pipeline to what the console may do.
    pub fn new(pipeline: Arc<Pipeline>) -> ConsolePipeline {
        ConsolePipeline { pipeline }
    }

    pub fn contract(&self) -> &Contract {
        &self.pipeline.contract
    }

    /// Conversion tables of all messages.
    pub fn tables(&self) -> &Tables {
        &self.pipeline.tables
    }

    pub fn settings(&self) -> &Settings {
        &self.pipeline.settings
    }

    pub fn now(&self) -> Micros {
        self.pipeline.clock.now()
    }

    /// A keyed digest for purposes of the console. Those of other parts of the server are independent.
    pub fn mac(&self, purpose: &str, message: &[u8]) -> [u8; 32] {
        self.pipeline.vault.mac(&format!("console {purpose}"), message)
    }

    /// Counts a request without a token, by the address it came from.
    ///
    /// # Errors
    /// RESOURCE_EXHAUSTED with the time to wait.
    pub fn count_address(&self, surface: Surface, address: IpAddr) -> Result<()> {
        self.pipeline.limits.count_address(surface, Some(address))
    }

    /// Counts a request of an authenticated caller.
    ///
    /// # Errors
    /// RESOURCE_EXHAUSTED with the time to wait.
    pub fn count_principal(&self, surface: Surface, subject: &str) -> Result<()> {
        self.pipeline.limits.count_principal(surface, subject)
    }

    /// Verifies a token of the API, and returns what it says of its holder.
    ///
    /// # Errors
    /// UNAUTHENTICATED: the token is not valid.
    pub fn facts(&self, token: &HeldToken) -> Result<TokenFacts> {
        let audiences = [self.settings().api_audience.as_str()];
        let principal = self.pipeline.authenticator.authenticate(Some(&token.0), &audiences, self.now())?;
        let facts = principal.token().cloned();
        facts.ok_or_else(|| Error::new(Reason::Unauthenticated, "Unauthenticated: the token names no caller"))
    }

    /// Runs a call to its result, if its method only reads; fails with INTERNAL for another one.
    pub async fn read(&self, call: ConsoleCall<'_>) -> Outcome {
        if self.only_reads(call.method) {
            return self.dispatch(call).await;
        }
        let name = &self.contract().method(call.method).full_name;
        Outcome::failed(Error::internal(format!("the console called {name} to read, and it changes something")))
    }

    /// Whether a method only reads: by the contract, by its handler, and with one response that holds no token. A
    /// preview, which runs the handler of a change, has a way of its own.
    pub fn only_reads(&self, method: usize) -> bool {
        let info = self.contract().method(method);
        let may_issue_tokens = matches!(info.auth, Auth::Own);
        let handlers = &self.pipeline.handlers;
        let may_write = handlers.writes(method) || handlers.previews(method);
        info.only_reads() && !info.server_streaming && !may_issue_tokens && !may_write
    }

    /// Whether an address can ask for a method that only reads. Drafts do not fit into one, and secrets must not.
    pub fn reads_by_address(&self, method: usize) -> bool {
        self.only_reads(method) && !self.contract().method(method).is_mutation()
    }

    /// Ends the session that a token belongs to, and the token with it; absent where it belongs to none. Without a
    /// proof, nothing else here changes anything.
    pub async fn end_session(&self, token: &HeldToken, peer: IpAddr, request_id: &str) -> Option<Outcome> {
        let id = match self.facts(token) {
            Ok(facts) => facts.session?,
            Err(error) => return Some(Outcome::failed(error)),
        };
        let Some(method) = self.contract().by_full_name(EndSession::FULL_NAME).map(|method| method.index) else {
            return Some(Outcome::failed(Error::internal("the contract has no Sessions.EndSession")));
        };
        let payload = EndSessionRequest { id }.encode_to_vec().into();
        Some(self.dispatch(ConsoleCall { method, payload, token, peer, request_id }).await)
    }

    pub(crate) async fn dispatch(&self, call: ConsoleCall<'_>) -> Outcome {
        match self.admit(call, None) {
            Err(error) => Outcome::failed(error),
            Ok(call) => self.pipeline.dispatch(call).await,
        }
    }

    /// The call of the token's caller, within the rate limits.
    fn admit(&self, call: ConsoleCall<'_>, resume: Option<i64>) -> Result<Call> {
        let caller = self.pipeline.admit(call.method, Some(call.token.0.clone()), Some(call.peer))?;
        Ok(Call {
            method: call.method,
            payload: call.payload,
            caller,
            request_id: call.request_id.to_owned(),
            transport: Transport::Rest,
            present: None,
            slice: None,
            resume,
        })
    }

    /// Opens a stream of a method that [`ConsoleWatch`] has.
    ///
    /// # Errors
    /// What a call is refused with, RESOURCE_EXHAUSTED for too many streams, INTERNAL for a method of another kind.
    pub async fn watch<M: ConsoleWatch>(&self, call: ConsoleCall<'_>, resume: Option<i64>) -> Result<ConsoleStream<M>> {
        let info = self.contract().method(call.method);
        if info.full_name != M::FULL_NAME || !info.server_streaming || !info.only_reads() {
            return Err(Error::internal(format!("the console called {} for a stream", info.full_name)));
        }
        let call = self.admit(call, resume)?;
        let scope = self.pipeline.shown_scope(&call, info);
        let stream = self.pipeline.open_stream(call).await?;
        Ok(ConsoleStream { stream, scope, method: PhantomData })
    }
}

/// A streaming method that the console may call.
pub trait ConsoleWatch: Method {}

impl ConsoleWatch for WatchEntries {}
impl ConsoleWatch for VerifyChain {}

/// The messages of a stream, for as long as the caller may read them.
pub struct ConsoleStream<M> {
    stream: Stream,
    /// UIDP that the call was authorized at, for the log.
    pub scope: String,
    method: PhantomData<M>,
}

impl<M: ConsoleWatch> ConsoleStream<M> {
    /// The next messages that are there together, with their numbers: at least one, and no more than one look reads.
    /// Absent at the end. Dropping the future loses nothing.
    ///
    /// # Errors
    /// Why the stream ends: the token ended, a permission was taken away, the server stops.
    pub async fn next(&mut self) -> Result<Option<Vec<(i64, M::Response)>>> {
        let Some(first) = self.stream.next().await? else { return Ok(None) };
        let all = std::iter::once(first).chain(self.stream.take_ready());
        let decoded = all.map(|(number, wire)| Ok((number, M::Response::decode(wire).map_err(Error::internal)?)));
        decoded.collect::<Result<_>>().map(Some)
    }
}
