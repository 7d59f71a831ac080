//! Work at a front with a protocol of its own: the same decision and the same records as for calls over the API.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use bowline_contract::{Auth, Method};
use bowline_core::{Error, Micros, Reason, Result, Uidp};
use bowline_store::{ReadTx, WriteTx};

use crate::call::{Authorized, Context, Transport};
use crate::changed::Changed;
use crate::dispatch::{Pipeline, require};
use crate::grants::Grants;
use crate::principal::Principal;
use crate::{record, terms};

/// One request at such a front, by someone whom the front has authenticated.
///
/// The front authorizes by the type of a method or operation of the contract, which declares the needed
/// capabilities and the event.
#[derive(Clone)]
pub struct Visit {
    pipeline: Arc<Pipeline>,
    principal: Principal,
    peer: Option<IpAddr>,
    request_id: Arc<str>,
    now: Micros,
    seed: [u8; 32],
    drawn: Arc<AtomicU32>,
}

impl Visit {
    /// A request that arrived now.
    pub fn new(pipeline: Arc<Pipeline>, principal: Principal, peer: Option<IpAddr>, request_id: Arc<str>) -> Visit {
        let now = pipeline.clock.now();
        let seed = bowline_authn::crypto::random_bytes();
        Visit { pipeline, principal, peer, request_id, now, seed, drawn: Arc::default() }
    }

    /// The same request later on, when it has sent its body: what comes happens now, and the caller must still be known.
    ///
    /// # Errors
    /// UNAUTHENTICATED if the token has ended meanwhile.
    pub fn renewed(&self) -> Result<Visit> {
        let now = self.pipeline.clock.now();
        match self.principal.token() {
            Some(token) if now >= token.expires_at => {
                let message = "Unauthenticated: the token has expired while the request was sent; get a new one";
                Err(Error::new(Reason::TokenExpired, message))
            }
            _ => Ok(Visit { now, ..self.clone() }),
        }
    }

    pub fn principal(&self) -> &Principal {
        &self.principal
    }

    /// When the request arrived, or was renewed.
    pub fn now(&self) -> Micros {
        self.now
    }

    pub fn peer(&self) -> Option<IpAddr> {
        self.peer
    }

    /// What the caller may do where, in this snapshot.
    ///
    /// # Errors
    /// UNAUTHENTICATED if the identity or session is gone, deactivated or past its end.
    pub async fn grants(&self, tx: &mut ReadTx) -> Result<Grants> {
        self.pipeline.grants.load(tx, &self.principal, self.now).await
    }

    /// Whether the caller holds what the method or operation needs, there.
    pub fn allows<M: Method>(&self, grants: &Grants, place: &str) -> Result<bool> {
        let (_, needed) = self.facts::<M>()?;
        Ok(grants.allows(place, &needed))
    }

    /// What the method or operation needs.
    ///
    /// # Errors
    /// INTERNAL for a method without a scope.
    pub fn needed<M: Method>(&self) -> Result<bowline_core::CapabilitySet> {
        Ok(self.facts::<M>()?.1)
    }

    /// The request, once the caller is known to hold there what the method or operation needs.
    ///
    /// # Errors
    /// UNAUTHENTICATED, PERMISSION_DENIED naming what is missing, or INVALID_ARGUMENT naming the wrong fields.
    pub async fn authorize_at<M: Method>(
        &self,
        tx: &mut ReadTx,
        place: &Uidp,
        request: M::Request,
    ) -> Result<Authorized<M::Request>> {
        let (method, needed) = self.facts::<M>()?;
        let grants = self.grants(tx).await?;
        let contract = &self.pipeline.contract;
        require(contract, &grants, place.as_str(), &needed)?;
        self.validate_fields(method, &request)?;
        let context = Arc::new(self.context(method));
        Ok(Authorized::new(request, context, grants, Some(place.clone()), needed))
    }

    /// The same for what changes something: the organization must have accepted the operator's terms.
    ///
    /// # Errors
    /// Besides those, FAILED_PRECONDITION with the missing documents.
    pub async fn authorize_change_at<M: Method>(
        &self,
        tx: &mut WriteTx,
        place: &Uidp,
        request: M::Request,
    ) -> Result<Authorized<M::Request>> {
        let authorized = self.authorize_at::<M>(tx, place, request).await?;
        terms::require_terms(tx, &authorized, place).await?;
        Ok(authorized)
    }

    /// Appends what a handler changed to the audit log, and the event to the outbox.
    pub async fn record<R, T>(&self, tx: &mut WriteTx, authorized: &Authorized<R>, changed: Changed<T>) -> Result<T> {
        record::record(tx, &authorized.context, &changed.changes, changed.event.as_ref()).await?;
        Ok(changed.response)
    }

    /// Position and needed capabilities of the method, which must have a scope.
    fn facts<M: Method>(&self) -> Result<(usize, bowline_core::CapabilitySet)> {
        let found = self.pipeline.contract.by_full_name(M::FULL_NAME);
        let info = found.ok_or_else(|| Error::internal(format!("{} is not in the contract", M::FULL_NAME)))?;
        match info.auth {
            Auth::Capabilities { needed, .. } if !info.operator_only && !needed.is_empty() => Ok((info.index, needed)),
            _ => Err(Error::internal(format!("{} is not authorized at a scope", M::FULL_NAME))),
        }
    }

    fn validate_fields<R: prost::Message>(&self, method: usize, request: &R) -> Result<()> {
        let contract = &self.pipeline.contract;
        let info = contract.method(method);
        let resource = info.resource_field();
        let resource = resource.as_ref().map(prost_reflect::FieldDescriptor::name);
        let payload = request.encode_to_vec();
        let violations = contract.field_rules().validate(info.input.full_name(), &payload, resource, None);
        if violations.is_empty() {
            return Ok(());
        }
        Err(crate::validate::invalid(violations))
    }

    fn context(&self, method: usize) -> Context {
        // What is drawn for one method of a visit has nothing to do with what is drawn for another.
        let number = self.drawn.fetch_add(1, Ordering::Relaxed);
        let mut seed = self.seed.to_vec();
        seed.extend_from_slice(&number.to_be_bytes());
        Context {
            contract: self.pipeline.contract.clone(),
            settings: self.pipeline.settings.clone(),
            access: self.pipeline.handlers.access,
            method,
            principal: self.principal.clone(),
            bearer: None,
            peer: self.peer,
            request_id: self.request_id.to_string(),
            transport: Transport::Rest,
            present: None,
            slice: None,
            now: self.now,
            seed: bowline_authn::crypto::sha256(&seed),
            drawn: AtomicU32::new(0),
            page_key: self.pipeline.page_key.clone(),
            vault: self.pipeline.vault.clone(),
        }
    }
}
