//! Callers, and what the server must make of them.

use std::collections::BTreeSet;

use bowline_testkit::Actor;

/// Someone who calls, and what the oracle knows of them.
pub(crate) struct Caller {
    pub(crate) actor: Actor,
    pub(crate) standing: Standing,
    /// The only capabilities that the token leaves.
    pub(crate) only: Option<BTreeSet<String>>,
    /// The only group that the token leaves.
    pub(crate) inside: Option<String>,
}

/// What the server must make of a caller.
#[derive(Clone)]
pub(crate) enum Standing {
    /// No good token.
    Anonymous,
    /// May everything.
    Operator,
    /// A person who may everything by the role `operator.admin`, without a binding.
    Admin,
    /// A person who holds these everywhere by the role `operator.viewer`.
    OperatorViewer(BTreeSet<String>),
    /// May what these roles say, at these groups and below.
    Bound(Vec<(String, BTreeSet<String>)>),
    /// The same for a person whose session began with a provider of an organization's, which limits it.
    OfProvider(Vec<(String, BTreeSet<String>)>),
}

impl Standing {
    /// The groups with a binding, each with what it gives.
    pub(crate) fn bindings(&self) -> &[(String, BTreeSet<String>)] {
        match self {
            Standing::Bound(bound) | Standing::OfProvider(bound) => bound,
            Standing::Anonymous | Standing::Operator | Standing::Admin | Standing::OperatorViewer(_) => &[],
        }
    }

    /// Whether the server lets no call through.
    pub(crate) fn is_nobody(&self) -> bool {
        matches!(self, Standing::Anonymous)
    }

    /// Whether the role of an operator allows a method of operators.
    pub(crate) fn operates(&self, only_reads: bool) -> bool {
        match self {
            Standing::Operator | Standing::Admin => true,
            Standing::OperatorViewer(_) => only_reads,
            Standing::Anonymous | Standing::Bound(_) | Standing::OfProvider(_) => false,
        }
    }
}
