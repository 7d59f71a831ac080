//! The registry host over HTTP: pushes, pulls, tokens, and who may do what.

#![expect(clippy::unwrap_used, reason = "a test may fail anywhere")]

#[path = "behaviour/support.rs"]
mod behaviour;
#[path = "registry/support.rs"]
mod support;

#[path = "registry/pushing.rs"]
mod pushing;
