//! What a method, or a list of capabilities, needs of a caller.

use bowline_contract::bowline::iam::v1::ExplainAccessRequest;
use bowline_contract::{Auth, Contract};
use bowline_core::{CapabilitySet, Error, Result};

/// What is needed for what the request names.
pub(super) struct Requirement {
    needed: CapabilitySet,
    /// Only the operator may call.
    pub(super) operator_only: bool,
    /// Whether the method only reads, which is all that an operator with `operator.viewer` may do.
    pub(super) only_reads: bool,
    /// Nothing is needed where the scope is the identity itself.
    own_identity_allowed: bool,
}

impl Requirement {
    /// Reads the request.
    ///
    /// # Errors
    /// INVALID_ARGUMENT: neither a method nor capabilities, both, or one that does not exist.
    pub(super) fn of(contract: &Contract, request: &ExplainAccessRequest) -> Result<Requirement> {
        match (request.method.is_empty(), request.capabilities.is_empty()) {
            (false, true) => Requirement::of_method(contract, &request.method),
            (true, false) => Requirement::of_capabilities(contract, &request.capabilities),
            (true, true) => Err(Error::invalid_field("method", "method or capabilities is required")),
            (false, false) => Err(Error::invalid_field("capabilities", "cannot be given together with method")),
        }
    }

    fn of_method(contract: &Contract, name: &str) -> Result<Requirement> {
        let unknown = "must be the full name of a method, such as chainguard.platform.iam.v2.GroupsService.CreateGroup";
        let method = contract.by_full_name(name).ok_or_else(|| Error::invalid_field("method", unknown))?;
        let needed = match method.auth {
            Auth::Capabilities { needed, .. } => needed,
            Auth::Own | Auth::Public => CapabilitySet::EMPTY,
        };
        let (operator_only, own_identity_allowed) = (method.operator_only, method.own_identity_allowed);
        Ok(Requirement { needed, operator_only, only_reads: method.only_reads(), own_identity_allowed })
    }

    fn of_capabilities(contract: &Contract, names: &[String]) -> Result<Requirement> {
        let mut needed = CapabilitySet::EMPTY;
        for (i, name) in names.iter().enumerate() {
            let facts = contract.capabilities().by_name(name).ok_or_else(|| {
                Error::invalid_field(format!("capabilities[{i}]"), format!("unknown capability \"{name}\""))
            })?;
            needed.insert(facts.bit);
        }
        Ok(Requirement { needed, operator_only: false, only_reads: false, own_identity_allowed: false })
    }

    /// What the identity needs at the scope.
    pub(super) fn capabilities(&self, scope: &str, identity: &str) -> CapabilitySet {
        if self.own_identity_allowed && scope == identity { CapabilitySet::EMPTY } else { self.needed }
    }
}
