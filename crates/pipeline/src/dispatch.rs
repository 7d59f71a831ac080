use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;

use bowline_contract::{Auth, Contract, MethodInfo};
use bowline_core::{CapabilitySet, Clock, Detail, Error, Reason, Result, Uidp};
use bowline_store::{BoxFuture, Db, ReadTx, Value};
use bowline_transcode::Tables;
use bytes::Bytes;
use tokio::sync::Semaphore;

use crate::authenticate::Authenticator;
use crate::call::{Authorized, Call, Caller, Context, Open};
use crate::field_names::{json_path, last};
use crate::grants::{Grants, GrantsCache, NamedOperators, OperatorStanding};
use crate::handlers::{Answer, Handler, Handlers};
use crate::page::PageKey;
use crate::principal::Principal;
use crate::rate_limit::{RateLimits, Surface};
use crate::settings::Settings;
use crate::streams::Streams;
use crate::validate::Validated;
use crate::validators::Validator;
use crate::vault::Vault;
use crate::waiting::{COSTLY_AT_ONCE, HEAVY_AT_ONCE, PREVIEWS_AT_ONCE, Waiting};

/// Result of a call, with facts for the access log.
pub struct Outcome {
    pub result: Result<Answer>,
    /// UIDP of the caller; empty for anonymous.
    pub principal: String,
    /// The scope of the request as the log may show it; empty if it has none.
    pub scope: String,
    /// Full name of the method that the call previews; empty for other calls.
    pub previewed: String,
}

impl Outcome {
    /// A failure of which nothing else is known.
    pub fn failed(error: Error) -> Outcome {
        Outcome { result: Err(error), principal: String::new(), scope: String::new(), previewed: String::new() }
    }
}

/// The one path of every call, with everything it needs.
pub struct Pipeline {
    pub contract: Arc<Contract>,
    /// Reads fields from encoded requests.
    pub tables: Arc<Tables>,
    pub db: Db,
    pub authenticator: Arc<Authenticator>,
    /// What the operator configured.
    pub settings: Arc<Settings>,
    pub clock: Arc<dyn Clock>,
    pub page_key: Arc<PageKey>,
    /// Secrets for use by handlers.
    pub vault: Arc<Vault>,
    pub handlers: Handlers,
    pub limits: RateLimits,
    pub streams: Arc<Streams>,
    pub(crate) grants: Arc<GrantsCache>,
    /// Permits for validation that costs much.
    pub(crate) costly: Arc<Semaphore>,
    /// Permits for what transactions defer: pushes do not wait for validation.
    pub(crate) deferred: Arc<Semaphore>,
    /// Permits for heavy reads.
    pub(crate) heavy: Arc<Semaphore>,
    /// Permits for the transactions of previews.
    pub(crate) previews: Arc<Semaphore>,
    /// Costly requests and heavy reads that run or wait, by organization.
    pub(crate) waiting: Waiting,
}

impl Pipeline {
    /// Puts the parts together.
    #[expect(clippy::too_many_arguments, reason = "the one place that takes every part")]
    pub fn new(
        contract: Arc<Contract>,
        tables: Arc<Tables>,
        db: Db,
        authenticator: Arc<Authenticator>,
        settings: Arc<Settings>,
        clock: Arc<dyn Clock>,
        page_key: PageKey,
        vault: Arc<Vault>,
        handlers: Handlers,
        limits: RateLimits,
    ) -> Pipeline {
        let streams = Arc::new(Streams::new(settings.streams));
        let named = NamedOperators::of(&contract, &settings);
        let grants = GrantsCache::new(handlers.access).with_operators(named);
        Pipeline {
            contract,
            tables,
            db,
            authenticator,
            settings,
            clock,
            page_key: Arc::new(page_key),
            vault,
            grants: Arc::new(grants),
            handlers,
            limits,
            streams,
            costly: Arc::new(Semaphore::new(COSTLY_AT_ONCE)),
            deferred: Arc::new(Semaphore::new(COSTLY_AT_ONCE)),
            heavy: Arc::new(Semaphore::new(HEAVY_AT_ONCE)),
            previews: Arc::new(Semaphore::new(PREVIEWS_AT_ONCE)),
            waiting: Waiting::new(),
        }
    }

    /// Authenticates the caller of a method and applies the rate limits. Transports call it before they read
    /// a body.
    ///
    /// # Errors
    /// UNAUTHENTICATED, or RESOURCE_EXHAUSTED with the time to wait.
    pub fn admit(&self, method: usize, bearer: Option<String>, peer: Option<IpAddr>) -> Result<Caller> {
        let principal = match self.contract.method(method).auth {
            Auth::Own | Auth::Public => {
                self.limits.count_address(Surface::Api, peer)?;
                Principal::Anonymous
            }
            Auth::Capabilities { .. } => {
                let audiences = [self.settings.api_audience.as_str()];
                let principal = self.authenticator.authenticate(bearer.as_deref(), &audiences, self.clock.now())?;
                self.limits.count_principal(Surface::Api, principal.subject())?;
                principal
            }
        };
        Ok(Caller { principal, bearer, peer })
    }

    /// Runs a call to its result.
    pub fn dispatch(self: &Arc<Self>, call: Call) -> BoxFuture<'_, Outcome> {
        Box::pin(async move {
            let info = self.contract.method(call.method);
            let scope = self.shown_scope(&call, info);
            let principal = call.caller.principal.subject().to_owned();
            let previewed = self.shown_preview(&call, info);
            Outcome { result: self.run(call, info).await, principal, scope, previewed }
        })
    }

    /// The scope of the request as the log may show it.
    pub fn shown_scope(&self, call: &Call, info: &MethodInfo) -> String {
        let scope = info.scope_field.as_deref().and_then(|field| {
            let id = self.tables.message(info.input.full_name())?;
            self.tables.read_string(id, &call.payload, field).ok().flatten()
        });
        // Only ids may enter the log.
        match scope {
            None => String::new(),
            Some(scope) if Uidp::is_valid(&scope) => scope.into_owned(),
            Some(_) => "malformed".into(),
        }
    }

    async fn run(self: &Arc<Self>, call: Call, info: &MethodInfo) -> Result<Answer> {
        if let Some(Handler::Preview(handler)) = self.handlers.get(call.method).cloned() {
            return self.preview(call, handler).await.map(Answer::from);
        }
        let gate = self.gate(call);
        if let Some(Handler::Open(handler)) = self.handlers.get(gate.context.method) {
            return handler(Open::new(gate.payload.clone(), gate.context.clone())).await;
        }
        self.run_in(gate, info).await.map(Answer::from)
    }

    /// Runs the handler of a call in a transaction.
    async fn run_in(self: &Arc<Self>, gate: Gate, info: &MethodInfo) -> Result<Bytes> {
        match self.handlers.get(gate.context.method).cloned() {
            Some(Handler::OpenRead(handler)) => {
                let gate = self.validated_open(gate).await?;
                let open = Open::new(gate.payload.clone(), gate.context.clone());
                self.db.read(move |tx| Box::pin(async move { handler(tx, &open).await })).await
            }
            Some(Handler::Read(handler)) => self.read(Arc::new(gate), handler).await,
            Some(Handler::HeavyRead(handler)) => self.heavy_read(Arc::new(gate), handler).await,
            Some(Handler::HeavyReadWhen(is_heavy, handler)) => {
                let gate = Arc::new(gate);
                if is_heavy(&gate.payload) {
                    self.heavy_read(gate, handler).await
                } else {
                    self.read(gate, handler).await
                }
            }
            Some(Handler::ReadThen(handler)) => self.read_and_go_on(Arc::new(gate), handler).await,
            Some(Handler::ReadAgain(handler)) => self.read_twice(Arc::new(gate), handler).await,
            Some(Handler::Write(handler)) => self.write(Arc::new(gate), handler).await,
            Some(Handler::WriteThen(handler)) => self.write(Arc::new(gate), handler).await?.await,
            Some(Handler::Prepared(prepare)) => self.prepare_and_write(Arc::new(gate), prepare).await,
            Some(Handler::Open(_) | Handler::Watch(_) | Handler::Preview(_)) => {
                Err(Error::internal("a method of another kind was called for one answer of a transaction"))
            }
            None => Err(self.unimplemented_call(info, &Arc::new(gate)).await),
        }
    }

    /// Builds the checks of a call, with the context that its handler gets.
    pub(crate) fn gate(&self, call: Call) -> Gate {
        let now = self.clock.now();
        let payload = call.payload;
        let context = Arc::new(Context {
            contract: self.contract.clone(),
            settings: self.settings.clone(),
            access: self.handlers.access,
            method: call.method,
            principal: call.caller.principal,
            bearer: call.caller.bearer,
            peer: call.caller.peer,
            request_id: call.request_id,
            transport: call.transport,
            present: call.present,
            slice: call.slice,
            now,
            seed: bowline_authn::crypto::random_bytes(),
            drawn: AtomicU32::new(0),
            page_key: self.page_key.clone(),
            vault: self.vault.clone(),
        });
        let validate = self.handlers.validate_of(context.method).cloned();
        Gate { tables: self.tables.clone(), grants: self.grants.clone(), context, payload, validate }
    }

    /// A method without a handler still authorizes the caller before it fails.
    pub(crate) async fn unimplemented_call(&self, info: &MethodInfo, gate: &Arc<Gate>) -> Error {
        if matches!(info.auth, Auth::Capabilities { .. })
            && let Err(error) = self.authorize(gate).await
        {
            return error;
        }
        let text = format!("Unimplemented: this server does not offer {} yet", info.short_name());
        Error::new(Reason::Unimplemented, text)
    }
}

/// The checks between a call and its handler.
pub(crate) struct Gate {
    tables: Arc<Tables>,
    grants: Arc<GrantsCache>,
    pub(crate) context: Arc<Context>,
    pub(crate) payload: Bytes,
    pub(crate) validate: Option<Validator>,
}

impl Gate {
    /// Authorizes in the snapshot that the handler works in. Whatever depends on the request alone was
    /// validated before.
    pub(crate) async fn pass(&self, tx: &mut ReadTx, validated: &Validated) -> Result<Authorized<Bytes>> {
        let mut authorized = self.authorize(tx).await?;
        authorized.mask.clone_from(&validated.mask);
        Ok(authorized)
    }

    pub(crate) async fn authorize(&self, tx: &mut ReadTx) -> Result<Authorized<Bytes>> {
        let context = &self.context;
        let info = context.info();
        let grants = self.grants.load(tx, &context.principal, context.now).await?;
        require_operator(info, &grants)?;
        self.validate_own_subject(info)?;
        let Auth::Capabilities { needed, unscoped } = info.auth else {
            return Err(Error::internal("a method without a permission came to the gate"));
        };
        let scope = match info.scope_field.as_deref() {
            _ if unscoped => None,
            Some(field) => {
                let place = self.scope(tx, info, field, &grants).await?;
                let is_own = info.own_identity_allowed && place.as_str() == context.principal.subject();
                if !is_own && !self.is_about_caller(info)? {
                    require(&context.contract, &grants, place.as_str(), &needed)?;
                }
                Some(place)
            }
            // The call is about the caller itself.
            None if needed.is_empty() => None,
            // A defect of the contract must not open a method.
            None => {
                return Err(Error::internal("a scoped method needs capabilities and has no scope field"));
            }
        };
        Ok(Authorized::new(self.payload.clone(), context.clone(), grants, scope, needed))
    }

    /// Where the contract says that the caller itself is the resource, the request must name the caller.
    fn validate_own_subject(&self, info: &MethodInfo) -> Result<()> {
        let Some(field) = info.own_subject_field.as_deref() else {
            return Ok(());
        };
        let value = self.read(info, field)?;
        if !Uidp::is_valid(&value) {
            return Err(Error::invalid_field(field, bowline_core::UidpError.to_string()));
        }
        if value == self.context.principal.subject() {
            return Ok(());
        }
        Err(Error::permission_denied(format!("Permission denied: {field} must be the caller's own identity")))
    }

    /// Whether the request is about the caller's own access, which takes no capability.
    fn is_about_caller(&self, info: &MethodInfo) -> Result<bool> {
        let Some(field) = info.own_access_field.as_deref() else { return Ok(false) };
        let value = self.read(info, field)?;
        Ok(value.is_empty() || value == self.context.principal.subject())
    }

    /// The scope that is authorized. Its syntax is checked before the permission: a malformed id is no
    /// secret.
    async fn scope(&self, tx: &mut ReadTx, info: &MethodInfo, field: &str, grants: &Grants) -> Result<Uidp> {
        let value = self.read(info, field)?;
        if let Ok(uidp) = Uidp::parse(&value) {
            return Ok(uidp);
        }
        let shown = json_path(info, field);
        if value.is_empty() {
            return Err(Error::invalid_field(&shown, format!("{} is required", last(&shown))));
        }
        if let Some(uidp) = self.organization_by_name(tx, info, &value, grants).await? {
            return Ok(uidp);
        }
        Err(Error::invalid_field(&shown, format!("{} {}", last(&shown), bowline_core::UidpError)))
    }

    /// A parent may be the name of a verified organization that the caller may list.
    async fn organization_by_name(
        &self,
        tx: &mut ReadTx,
        info: &MethodInfo,
        name: &str,
        grants: &Grants,
    ) -> Result<Option<Uidp>> {
        if !info.scope_takes_names() || name.contains(['/', '\0']) {
            return Ok(None);
        }
        let access = self.context.access;
        let sql = access.organization_by_name;
        let found = tx.query_opt(sql, &[Value::from(name)], |row| row.text(0).map_err(Error::from)).await?;
        let shows = self.context.contract.capabilities().by_number(access.shows_organizations as i32);
        let listed = shows.map_or(CapabilitySet::ALL, |facts| CapabilitySet::of_bit(facts.bit));
        Ok(found.filter(|uid| grants.allows(uid, &listed)).and_then(|uid| Uidp::parse(&uid).ok()))
    }

    fn read(&self, info: &MethodInfo, field: &str) -> Result<String> {
        let id = self.tables.message(info.input.full_name());
        let id = id.ok_or_else(|| Error::internal("the request's message has no table"))?;
        match self.tables.read_string(id, &self.payload, field) {
            Ok(value) => Ok(value.map(std::borrow::Cow::into_owned).unwrap_or_default()),
            Err(error) => Err(Error::invalid_field(error.field, error.message)),
        }
    }
}

/// Rejects callers other than the operator if only the operator may call the method.
pub(crate) fn require_operator(info: &MethodInfo, grants: &Grants) -> Result<()> {
    if !info.operator_only {
        return Ok(());
    }
    match grants.operator() {
        None => Err(Error::permission_denied("Permission denied: only the operator may call this method")),
        Some(OperatorStanding::Viewer) if !info.only_reads() => Err(Error::permission_denied(
            "Permission denied: operator.viewer only reads; this method needs operator.admin",
        )),
        Some(_) => Ok(()),
    }
}

/// Requires these capabilities at a scope; the error names those that are missing.
pub(crate) fn require(contract: &Contract, grants: &Grants, place: &str, needed: &CapabilitySet) -> Result<()> {
    let missing = grants.decide(place, needed).missing;
    if missing.is_empty() {
        return Ok(());
    }
    let names = contract.capabilities().names(&missing).join(", ");
    let metadata = BTreeMap::from([("capability", names.clone()), ("scope", place.to_owned())]);
    Err(Error::permission_denied(format!("Permission denied: the caller lacks {names} at {place}"))
        .with(Detail::Metadata(metadata)))
}
