//! The commands that work on what a server has stored, or run one: a file each. Those that call a server over the network
//! are the crate `cli`'s.

pub mod audit;
pub mod backup;
pub mod contract;
mod greeting;
pub mod keys;
pub mod migrate;
pub mod openapi;
pub mod operator;
mod progress;
pub mod restore;
pub mod self_check;
pub mod serve;
pub mod stored;

use crate::error::StartError;

/// Writes data to stdout.
fn print(text: &str) -> Result<(), StartError> {
    Ok(bowline_terminal::print(text)?)
}
