//! One file per command.

pub(crate) mod advisories;
pub(crate) mod audit;
pub(crate) mod auth;
pub(crate) mod completion;
pub(crate) mod context;
pub(crate) mod contract;
pub(crate) mod credential_helper;
pub(crate) mod duration;
pub(crate) mod feeds;
mod input;
pub(crate) mod keys;
pub(crate) mod libraries;
pub(crate) mod openapi;
pub(crate) mod operator;
mod place;
pub(crate) mod registry;
pub(crate) mod serve;
pub(crate) mod session;
mod shown;
pub(crate) mod vulns;
