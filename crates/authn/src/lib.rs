//! Tokens, keys, issuer discovery and the guarded outbound HTTP client.
//!
//! Nothing here reads storage, the environment or the clock: time comes in as unix seconds.

pub mod addresses;
pub mod aws;
pub mod capset;
pub mod claims;
pub mod crypto;
pub mod discovery;
pub mod error;
pub mod guarded;
pub mod jwks;
pub mod jwt;
pub mod keys;
pub mod matching;
pub mod package_key;
pub mod relying;
pub mod resolver;

#[cfg(test)]
mod refused_hosts;
#[cfg(test)]
mod test_server;

pub use error::TokenError;
