use std::sync::Arc;

use bowline_core::{CapabilitySet, Micros, Uidp};

/// The operator's fixed subject: anyone who holds the data directory, or the database and its keys.
pub const OPERATOR: &str = "0000000000000000000000000000000000000000";

/// The subject of tokens that anyone gets at the registry. No identity has it, so that it may do nothing that no one
/// may do.
pub const ANONYMOUS: &str = "ffffffffffffffffffffffffffffffffffffffff";

/// What a token was narrowed to when it was made.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Narrowing {
    /// The only capabilities left, if the token names any.
    pub capabilities: Option<CapabilitySet>,
    /// The only groups left, each with what is below; empty for all.
    pub scopes: Vec<Uidp>,
}

impl Narrowing {
    /// Whether anything is taken away.
    pub fn is_narrow(&self) -> bool {
        self.capabilities.is_some() || !self.scopes.is_empty()
    }
}

#[derive(Clone, Debug)]
pub enum Principal {
    /// No one: no token, or one that a public method does not look at.
    Anonymous,
    /// Holder of a token of this server.
    Token(Arc<TokenFacts>),
}

/// What a verified token says of its holder.
#[derive(Clone, Debug)]
pub struct TokenFacts {
    pub subject: Uidp,
    /// URL of the token's issuer.
    pub issuer: String,
    pub audiences: Vec<String>,
    /// When the token was made, in microseconds.
    pub issued_at: Micros,
    /// When the token ends, in microseconds.
    pub expires_at: Micros,
    /// E-mail address, of people.
    pub email: Option<String>,
    /// What the token was narrowed to.
    pub narrowing: Narrowing,
    /// The session that the token belongs to; the token ends with it.
    pub session: Option<String>,
    /// The organization's identity provider that the session began with.
    pub provider: Option<String>,
    /// Claims of the token that was exchanged for this one.
    pub actor: Option<serde_json::Value>,
}

impl Principal {
    /// The identity's UIDP, empty for no one.
    pub fn subject(&self) -> &str {
        self.token().map_or("", |facts| facts.subject.as_str())
    }

    /// The token's facts, absent for no one.
    pub fn token(&self) -> Option<&TokenFacts> {
        match self {
            Principal::Anonymous => None,
            Principal::Token(facts) => Some(facts),
        }
    }

    /// Whether this is the operator.
    pub fn is_operator(&self) -> bool {
        self.subject() == OPERATOR
    }
}
