//! How a call of the contract is written: the REST request that clients send, and the lines that a person pastes into a
//! shell for curl, grpcurl and `bowline api`, or into a file of Terraform.
//!
//! Everything follows from the method table and the encoded request. Nothing here sends anything.

mod rest;
mod shell;
mod terraform;
#[cfg(test)]
mod terraform_tests;

use std::fmt;

pub use rest::RestRequest;
pub use shell::{Server, ShellForms, quoted};
pub use terraform::terraform;

/// Why a call cannot be written in a form, in words for the person who wants it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inexpressible(pub String);

impl fmt::Display for Inexpressible {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for Inexpressible {}
