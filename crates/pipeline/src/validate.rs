//! Validation of requests: what the request alone decides, outside of every transaction.

use std::sync::Arc;

use bowline_contract::{Auth, MethodInfo, Violations};
use bowline_core::{Error, FieldViolation, MAX_VIOLATIONS, Reason, Result};
use tokio::sync::OwnedSemaphorePermit;

use crate::call::{Caller, Transport};
use crate::dispatch::{Gate, Pipeline, require_operator};
use crate::mask::{self, Mask};
use crate::quota::Lease;

/// Largest request, in bytes, that is validated on the thread that serves the connection.
const SMALL: usize = 4096;

/// What validation made of a request: handlers run only with one.
#[derive(Clone)]
pub(crate) struct Validated {
    pub(crate) mask: Option<Arc<Mask>>,
}

impl Pipeline {
    /// Validates a request before its transaction begins, so that no other caller waits for it.
    ///
    /// A caller without the permission gets PERMISSION_DENIED, whatever the fields hold, and causes no costly work.
    pub(crate) async fn validate(&self, gate: &Arc<Gate>) -> Result<Validated> {
        let is_costly = gate.validate.as_ref().is_some_and(|validate| validate.is_costly);
        if gate.payload.len() <= SMALL && !is_costly {
            return match gate.validate() {
                Ok(validated) => Ok(validated),
                Err(error) => {
                    self.authorize(gate).await?;
                    Err(error)
                }
            };
        }
        self.validate_authorized(gate).await
    }

    /// The same for calls whose work before the transaction costs much, however small the request is: the caller is
    /// authorized first in any case.
    pub(crate) async fn validate_authorized(&self, gate: &Arc<Gate>) -> Result<Validated> {
        self.authorize(gate).await?;
        let is_costly = gate.validate.as_ref().is_some_and(|validate| validate.is_costly);
        let held = if is_costly { Some(self.costly_permit(gate).await?) } else { None };
        let gate = gate.clone();
        // The permit is held until the work has ended, which a caller who gives up does not end.
        let validate = move || {
            let validated = gate.validate();
            drop(held);
            validated
        };
        tokio::task::spawn_blocking(validate).await.map_err(Error::internal)?
    }

    /// Validates a call that anyone may make.
    pub(crate) async fn validated_open(&self, gate: Gate) -> Result<Gate> {
        if gate.payload.len() <= SMALL {
            return gate.validate().map(|_| gate);
        }
        let validate = move || gate.validate().map(|_| gate);
        tokio::task::spawn_blocking(validate).await.map_err(Error::internal)?
    }

    async fn costly_permit(&self, gate: &Gate) -> Result<(Lease<String>, OwnedSemaphorePermit)> {
        let lease = self.waiting.costly(&gate.context.principal)?;
        let permit = self.costly.clone().acquire_owned().await.map_err(Error::internal)?;
        Ok((lease, permit))
    }

    /// Authorizes in a snapshot of its own. It counts for refusals alone: the transaction authorizes again.
    pub(crate) async fn authorize(&self, gate: &Arc<Gate>) -> Result<()> {
        let gate = gate.clone();
        self.db.read(move |tx| Box::pin(async move { gate.authorize(tx).await.map(|_| ()) })).await
    }
}

impl Pipeline {
    /// Refuses a caller who holds the method's capabilities nowhere. Transports ask before they read a large body; the
    /// scope that the request names is authorized when it is there.
    ///
    /// # Errors
    /// PERMISSION_DENIED, naming the capabilities.
    pub async fn authorize_anywhere(&self, method: usize, caller: &Caller) -> Result<()> {
        let info = self.contract.method(method);
        let Auth::Capabilities { needed, .. } = &info.auth else { return Ok(()) };
        let (cache, principal, now) = (self.grants.clone(), caller.principal.clone(), self.clock.now());
        let load = self.db.read(move |tx| Box::pin(async move { cache.load(tx, &principal, now).await }));
        let grants = load.await?;
        require_operator(info, &grants)?;
        let names_caller = info.own_subject_field.is_some() || info.own_access_field.is_some();
        let is_of_caller = info.own_identity_allowed || names_caller || needed.is_empty();
        if is_of_caller || !grants.visible(needed).is_empty() {
            return Ok(());
        }
        let names = self.contract.capabilities().names(needed).join(", ");
        Err(Error::permission_denied(format!("Permission denied: the caller lacks {names}")))
    }
}

impl Gate {
    /// Validates the update mask, if the method has one, then the fields by the contract's rules, and last by the
    /// method's own rule, which sees only requests within the limits of the former.
    pub(crate) fn validate(&self) -> Result<Validated> {
        let info = self.context.info();
        let resource = mask::resource_of(info);
        let mask = match (&resource, info.input.get_field_by_name("update_mask")) {
            (Some((field, message)), Some(mask_field)) => Some(self.mask(info, field, message, mask_field.number())?),
            _ => None,
        };
        let validated = mask.as_ref().filter(|mask| !mask.is_whole()).map(Mask::paths);
        let mut violations = self.context.contract.field_rules().validate(
            info.input.full_name(),
            &self.payload,
            resource.as_ref().map(|(field, _)| field.as_str()),
            validated,
        );
        let over_limit = violations.over_limit;
        let mut more = std::mem::take(&mut violations.more);
        let mut violations = listed(violations);
        if let Some(validate) = self.validate.as_ref().filter(|_| !over_limit) {
            for further in (validate.validate)(&self.payload) {
                if violations.len() >= MAX_VIOLATIONS {
                    more += 1;
                } else if violations.iter().all(|known| known.field != further.field) {
                    violations.push(further);
                }
            }
        }
        if violations.is_empty() {
            return Ok(Validated { mask: mask.map(Arc::new) });
        }
        Err(Error::invalid_and_more(violations, more))
    }

    fn mask(
        &self,
        info: &MethodInfo,
        field: &str,
        message: &prost_reflect::MessageDescriptor,
        number: u32,
    ) -> Result<Mask> {
        let decoded =
            prost_reflect::DynamicMessage::decode(info.input.clone(), self.payload.clone()).map_err(|error| {
                Error::new(Reason::InvalidArgument, format!("Invalid argument: the request does not decode: {error}"))
            })?;
        if decoded.has_field_by_number(number) {
            let value = decoded.get_field_by_number(number);
            let paths = value.as_ref().and_then(|value| value.as_message()).and_then(|mask| {
                let paths = mask.get_field_by_name("paths")?;
                Some(paths.as_list()?.iter().filter_map(|path| path.as_str().map(String::from)).collect::<Vec<_>>())
            });
            let paths = paths.unwrap_or_default();
            if !paths.is_empty() {
                return mask::validate_explicit(message, paths);
            }
        }
        if let (Transport::Rest, Some(present)) = (self.context.transport, &self.context.present) {
            return Ok(mask::derive(message, present.iter().cloned()));
        }
        let resource = decoded.get_field_by_name(field);
        let wire = resource.as_ref().and_then(|value| value.as_message()).map(prost::Message::encode_to_vec);
        Ok(mask::derive(message, mask::populated(message, &wire.unwrap_or_default())))
    }
}

/// The error for violations of field rules.
pub(crate) fn invalid(violations: Violations) -> Error {
    let more = violations.more;
    Error::invalid_and_more(listed(violations), more)
}

fn listed(violations: Violations) -> Vec<FieldViolation> {
    let list = violations.list.into_iter();
    list.map(|v| FieldViolation { field: v.field, description: v.description }).collect()
}
