//! The commands that call a server over the network: a folder per domain, a file per command.
//!
//! A new command is a struct with clap's attributes, a `run`, and a variant in its domain's enum; what it needs of a
//! server it takes from a session, and writes through `bowline_terminal`.

#![expect(rustdoc::invalid_html_tags, reason = "help of options is plain text")]

pub mod advisories;
pub mod api;
pub mod auth;
pub mod complete;
pub mod configure;
pub mod context;
pub mod credential_helper;
pub mod credential_provider;
mod dynamic;
mod error;
pub mod feeds;
mod helpers;
mod input;
pub mod keyring;
pub mod libraries;
pub mod mcp;
pub mod organization;
mod pages;
pub mod registry;
mod resolve;
pub mod resources;
pub mod schema;
pub mod search;
mod session;
pub mod vulns;

pub use error::CliError;

/// Writes data to stdout.
fn print(text: &str) -> Result<(), CliError> {
    Ok(bowline_terminal::print(text)?)
}
