//! A decision with what led to it. Refusals and explanations both read it, so that they cannot disagree.

use bowline_core::CapabilitySet;

use super::Grants;

/// Whether needed capabilities are held, and by what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    /// What of them is not held; empty if the decision is yes.
    pub missing: CapabilitySet,
    pub cause: Cause,
}

/// What a decision rests on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The operator may do everything.
    Operator,
    /// Bindings give all that is needed.
    Held,
    /// Bindings do not give all of it.
    NotHeld,
    /// Bindings give it, and the token leaves other capabilities alone.
    NarrowedCapabilities,
    /// The token leaves other groups alone, whatever bindings give there.
    NarrowedScopes,
}

impl Grants {
    /// Decides whether the caller holds all of these at the scope, and says by what.
    pub fn decide(&self, scope: &str, needed: &CapabilitySet) -> Decision {
        let missing = needed.difference(&self.at(scope));
        let cause = if missing.is_empty() {
            let by_operator = self.direct.operator.is_some() && self.direct.everywhere.contains(needed);
            if by_operator { Cause::Operator } else { Cause::Held }
        } else if !self.reaches(scope) {
            // What the identity holds there is none of the token's business.
            Cause::NarrowedScopes
        } else if self.held_at(scope).contains(needed) {
            Cause::NarrowedCapabilities
        } else {
            Cause::NotHeld
        };
        Decision { missing, cause }
    }
}
