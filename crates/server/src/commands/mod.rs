//! One file per command.

pub(crate) mod audit;
pub(crate) mod auth;
pub(crate) mod context;
pub(crate) mod contract;
pub(crate) mod credential_helper;
pub(crate) mod duration;
pub(crate) mod keys;
pub(crate) mod openapi;
pub(crate) mod operator;
pub(crate) mod registry;
pub(crate) mod serve;
pub(crate) mod session;
