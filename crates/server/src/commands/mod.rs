//! One file per command.

pub(crate) mod audit;
pub(crate) mod contract;
pub(crate) mod keys;
pub(crate) mod openapi;
pub(crate) mod operator;
pub(crate) mod serve;
