use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use bowline_contract::{Contract, MethodInfo};
use bowline_core::{CapabilitySet, Error, Micros, Result, UidRange, Uidp};
use bytes::Bytes;

use crate::access::Access;
use crate::grants::Grants;
use crate::principal::Principal;
use crate::settings::Settings;

/// How a call came in; changes how masks are derived, never what is allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Transport {
    Grpc,
    Rest,
}

/// Where a request outside the contract came from: its transport puts this into the request's extensions.
#[derive(Clone, Debug)]
pub struct RequestOrigin {
    /// The client's address, behind trusted proxies as well.
    pub address: IpAddr,
    /// Id of the request, given or made.
    pub request_id: Arc<str>,
}

/// Who calls: made by the pipeline alone, before a transport reads the body.
#[derive(Clone, Debug)]
pub struct Caller {
    pub(crate) principal: Principal,
    pub(crate) bearer: Option<String>,
    pub(crate) peer: Option<IpAddr>,
}

impl Caller {
    pub fn principal(&self) -> &Principal {
        &self.principal
    }

    /// The address that calls, if it is known.
    pub fn peer(&self) -> Option<IpAddr> {
        self.peer
    }
}

/// What a transport hands over: a method and an encoded request.
#[derive(Clone, Debug)]
pub struct Call {
    /// Position of the method in the table.
    pub method: usize,
    /// The request in wire format.
    pub payload: Bytes,
    /// Who calls, as [`crate::Pipeline::admit`] found.
    pub caller: Caller,
    /// Id of the request, given or made.
    pub request_id: String,
    /// How the call came in.
    pub transport: Transport,
    /// Fields of the resource that the body names, if the transport knows them: the derived update mask.
    pub present: Option<Vec<String>>,
    /// Offset and length of the wanted part of a whole list, if the transport has them.
    pub slice: Option<(usize, usize)>,
    /// Position after which an interrupted stream continues, if the transport has one.
    pub resume: Option<i64>,
}

/// What every handler may know of a call.
pub(crate) struct Context {
    pub(crate) contract: Arc<Contract>,
    pub(crate) settings: Arc<Settings>,
    pub(crate) access: &'static Access,
    pub(crate) method: usize,
    pub(crate) principal: Principal,
    pub(crate) bearer: Option<String>,
    pub(crate) peer: Option<IpAddr>,
    pub(crate) request_id: String,
    pub(crate) transport: Transport,
    pub(crate) present: Option<Vec<String>>,
    pub(crate) slice: Option<(usize, usize)>,
    pub(crate) now: Micros,
    pub(crate) seed: [u8; 32],
    pub(crate) drawn: AtomicU32,
    pub(crate) page_key: Arc<crate::page::PageKey>,
    pub(crate) vault: Arc<crate::vault::Vault>,
}

impl Context {
    pub(crate) fn info(&self) -> &MethodInfo {
        self.contract.method(self.method)
    }

    fn draw(&self) -> [u8; 32] {
        let n = self.drawn.fetch_add(1, Ordering::Relaxed);
        let mut input = [0; 36];
        input[..32].copy_from_slice(&self.seed);
        input[32..].copy_from_slice(&n.to_be_bytes());
        bowline_authn::crypto::sha256(&input)
    }
}

/// A request that passed authentication, authorization and validation. Only the pipeline makes one.
pub struct Authorized<T> {
    request: T,
    pub(crate) context: Arc<Context>,
    pub(crate) grants: Grants,
    pub(crate) scope: Option<Uidp>,
    pub(crate) needed: CapabilitySet,
    pub(crate) mask: Option<Arc<crate::mask::Mask>>,
}

impl<T> Authorized<T> {
    pub(crate) fn new(
        request: T,
        context: Arc<Context>,
        grants: Grants,
        scope: Option<Uidp>,
        needed: CapabilitySet,
    ) -> Authorized<T> {
        Authorized { request, context, grants, scope, needed, mask: None }
    }

    pub fn request(&self) -> &T {
        &self.request
    }

    /// The same permission with another view of the request: what a version adapter makes. The scope
    /// and the capabilities stay those that were checked.
    pub fn with_request<U>(&self, request: U) -> Authorized<U> {
        Authorized {
            request,
            context: self.context.clone(),
            grants: self.grants.clone(),
            scope: self.scope.clone(),
            needed: self.needed,
            mask: self.mask.clone(),
        }
    }

    /// The authorized scope. Absent for unscoped methods and where the call is about the caller itself.
    pub fn scope(&self) -> Option<&Uidp> {
        self.scope.as_ref()
    }

    /// The authorized scope of a scoped method.
    ///
    /// # Errors
    /// INTERNAL for a method that has none: a handler registered for the wrong kind of method.
    pub fn require_scope(&self) -> Result<&Uidp> {
        self.scope.as_ref().ok_or_else(|| Error::internal("a scoped handler was called without a scope"))
    }

    pub fn principal(&self) -> &Principal {
        &self.context.principal
    }

    /// The caller as events name their actors, in JSON.
    pub fn event_actor(&self) -> String {
        let act = self.principal().token().and_then(|token| token.actor.as_ref());
        crate::record::event_actor(self.principal().subject(), act)
    }

    /// What the caller may do where.
    pub fn grants(&self) -> &Grants {
        &self.grants
    }

    /// Whether the operator calls.
    pub fn is_operator(&self) -> bool {
        self.grants.is_operator()
    }

    /// Whether an operator calls who reads the whole server: any of them.
    pub fn reads_server(&self) -> bool {
        self.grants.operator().is_some()
    }

    /// The parts of the hierarchy where the caller holds what the method needs; what an unscoped list may show.
    pub fn visible(&self) -> Vec<UidRange> {
        self.grants.visible(&self.needed)
    }

    /// The capabilities that the method needs.
    pub fn needed(&self) -> &CapabilitySet {
        &self.needed
    }

    /// Requires these capabilities at the scope; the error names those that are missing.
    ///
    /// # Errors
    /// PERMISSION_DENIED.
    pub fn require_all(&self, scope: &str, needed: &CapabilitySet) -> Result<()> {
        crate::dispatch::require(&self.context.contract, &self.grants, scope, needed)
    }

    /// Whether the caller holds the named capability at the scope. Unknown names are held by no one.
    pub fn holds(&self, scope: &str, capability: bowline_contract::chainguard::capabilities::Capability) -> bool {
        let facts = self.context.contract.capabilities().by_number(capability as i32);
        facts.is_some_and(|facts| self.grants.allows(scope, &CapabilitySet::of_bit(facts.bit)))
    }

    /// The time of the call: the same for every attempt of its transaction.
    pub fn now(&self) -> Micros {
        self.context.now
    }

    /// A UIDP for a new child of `parent`.
    pub fn new_child(&self, parent: &Uidp) -> Uidp {
        let drawn = self.context.draw();
        parent.child_from(std::array::from_fn(|i| drawn[i]))
    }

    /// A UIDP for a new root.
    pub fn new_root(&self) -> Uidp {
        let drawn = self.context.draw();
        Uidp::root_from(std::array::from_fn(|i| drawn[i]))
    }

    /// Random bytes of this call; each draw gives others, in a repeated attempt, too.
    pub fn draw(&self) -> [u8; 32] {
        self.context.draw()
    }

    pub fn contract(&self) -> &Contract {
        &self.context.contract
    }

    /// What the operator configured.
    pub fn settings(&self) -> &Settings {
        &self.context.settings
    }

    /// The server's secrets, for use.
    pub fn vault(&self) -> &crate::vault::Vault {
        &self.context.vault
    }

    /// Id of the request.
    pub fn request_id(&self) -> &str {
        &self.context.request_id
    }

    pub fn method(&self) -> &MethodInfo {
        self.context.info()
    }

    /// The wanted part of a whole list of v1: offset and length.
    pub fn slice(&self) -> Option<(usize, usize)> {
        self.context.slice
    }

    /// Which fields an update changes. Methods of v1 replace the whole resource.
    pub fn mask(&self) -> crate::mask::Mask {
        self.mask.as_deref().cloned().unwrap_or_else(crate::mask::Mask::whole)
    }
}

/// A call whose response has pages.
pub trait Paged {
    /// What page tokens of the call are made with and bound to.
    fn paging(&self) -> Paging<'_>;
}

/// What page tokens are made with, and the method, the caller and the time that they are bound to.
pub struct Paging<'a> {
    pub(crate) context: &'a Context,
}

impl<T> Paged for Authorized<T> {
    fn paging(&self) -> Paging<'_> {
        Paging { context: &self.context }
    }
}

impl<T> Paged for Open<T> {
    fn paging(&self) -> Paging<'_> {
        Paging { context: &self.context }
    }
}

/// A request to a method that needs no permission of this server: a public one, or one that authenticates by itself.
pub struct Open<T> {
    request: T,
    context: Arc<Context>,
}

impl<T> Open<T> {
    pub(crate) fn new(request: T, context: Arc<Context>) -> Open<T> {
        Open { request, context }
    }

    pub(crate) fn with<U>(self, request: U) -> Open<U> {
        Open { request, context: self.context }
    }

    pub(crate) fn same<U>(&self, request: U) -> Open<U> {
        Open { request, context: self.context.clone() }
    }

    pub fn request(&self) -> &T {
        &self.request
    }

    /// The presented bearer token, unverified.
    pub fn bearer(&self) -> Option<&str> {
        self.context.bearer.as_deref()
    }

    pub fn peer(&self) -> Option<IpAddr> {
        self.context.peer
    }

    /// The time of the call.
    pub fn now(&self) -> Micros {
        self.context.now
    }

    /// Random bytes, drawn for this call.
    pub fn draw(&self) -> [u8; 32] {
        self.context.draw()
    }

    /// Id of the request.
    pub fn request_id(&self) -> &str {
        &self.context.request_id
    }

    /// What the operator configured.
    pub fn settings(&self) -> &Settings {
        &self.context.settings
    }

    /// The server's secrets, for use.
    pub fn vault(&self) -> &crate::vault::Vault {
        &self.context.vault
    }

    pub fn contract(&self) -> &Contract {
        &self.context.contract
    }

    pub fn method(&self) -> &MethodInfo {
        self.context.info()
    }
}
