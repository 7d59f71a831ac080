//! Calls of the console: those that only read. Those that change something on request are in `changes`.

use std::net::IpAddr;
use std::sync::Arc;

use bowline_contract::bowline::people::v1::EndSessionRequest;
use bowline_contract::bowline::people::v1::rpc::sessions::EndSession;
use bowline_contract::{Auth, Contract, Method as _};
use bowline_core::{Error, Micros, Reason, Result};
use bowline_transcode::Tables;
use bytes::Bytes;
use prost::Message as _;

use crate::call::{Call, Transport};
use crate::dispatch::{Outcome, Pipeline};
use crate::principal::TokenFacts;
use crate::rate_limit::Surface;
use crate::settings::Settings;

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

    /// Whether a method only reads: by its route, or by what the contract says of it; by its handler; and with one
    /// response that holds no token.
    pub fn only_reads(&self, method: usize) -> bool {
        let info = self.contract().method(method);
        let may_issue_tokens = matches!(info.auth, Auth::Own);
        // Some requests are too large for an address, or hold what no address may.
        let is_read =
            info.only_reads() || (info.event.is_none() && info.tool.as_ref().is_some_and(|hints| hints.read_only));
        is_read && !info.server_streaming && !may_issue_tokens && !self.pipeline.handlers.writes(method)
    }

    /// Whether a method that only reads is called by an address: it is reached by GET, so that no one else's link sends
    /// a secret or a request to another host.
    pub fn reads_by_address(&self, method: usize) -> bool {
        self.only_reads(method) && self.contract().method(method).only_reads()
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
        let bearer = Some(call.token.0.clone());
        match self.pipeline.admit(call.method, bearer, Some(call.peer)) {
            Err(error) => Outcome::failed(error),
            Ok(caller) => {
                let call = Call {
                    method: call.method,
                    payload: call.payload,
                    caller,
                    request_id: call.request_id.to_owned(),
                    transport: Transport::Rest,
                    present: None,
                    slice: None,
                    resume: None,
                };
                self.pipeline.dispatch(call).await
            }
        }
    }
}
