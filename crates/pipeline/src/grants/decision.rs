//! A decision with what led to it. Refusals and explanations both read it, so that they cannot disagree.

use bowline_core::CapabilitySet;

use super::Grants;

/// Whether the required capabilities are held, and on which basis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    /// The missing ones; empty if the call is allowed.
    pub missing: CapabilitySet,
    pub cause: Cause,
}

/// The basis of a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The operator may do everything.
    Operator,
    /// Bindings give all that is needed.
    Held,
    /// Bindings do not give all of it.
    NotHeld,
    /// Bindings grant it, but the token is narrowed to other capabilities.
    NarrowedCapabilities,
    /// The token is narrowed to other groups, whatever bindings grant there.
    NarrowedScopes,
}

impl Grants {
    /// Decides whether the caller holds all of these at the scope, with the basis of the decision.
    pub fn decide(&self, scope: &str, needed: &CapabilitySet) -> Decision {
        let missing = needed.difference(&self.at(scope));
        let cause = if missing.is_empty() {
            let by_operator = self.direct.operator.is_some() && self.direct.everywhere.contains(needed);
            if by_operator { Cause::Operator } else { Cause::Held }
        } else if !self.reaches(scope) {
            // A narrowed token must not reveal what the identity holds there.
            Cause::NarrowedScopes
        } else if self.held_at(scope).contains(needed) {
            Cause::NarrowedCapabilities
        } else {
            Cause::NotHeld
        };
        Decision { missing, cause }
    }
}
