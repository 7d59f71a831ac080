//! Options that have a few values.

use bowline_authn::keys::Algorithm;
use clap::ValueEnum;
use serde::{Deserialize, Serialize};

/// Who may create organizations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Organizations {
    /// Only the operator.
    Operator,
    /// Any signed-in caller, who becomes the owner.
    Anyone,
}

/// Signature algorithm of the server's tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum TokenAlgorithm {
    /// RSA: what OpenID Connect requires, and verifiers without configuration expect.
    Rs256,
    /// ECDSA on P-256: smaller and quicker to sign.
    Es256,
}

impl From<TokenAlgorithm> for Algorithm {
    fn from(algorithm: TokenAlgorithm) -> Algorithm {
        match algorithm {
            TokenAlgorithm::Rs256 => Algorithm::Rs256,
            TokenAlgorithm::Es256 => Algorithm::Es256,
        }
    }
}

/// How log lines look.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object per line.
    Json,
}
