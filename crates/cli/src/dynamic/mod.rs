//! Calls by name: methods, fields and values as people write them, by the descriptors of the contract.

mod lookup;
mod members;
mod response;
mod value;

pub(crate) use lookup::{end, method, operation};
pub(crate) use members::{require_known, set};
pub(crate) use response::{
    call, call_sparse, elements, encoded, list_field, page_token_field, to_json, to_sparse_json,
};
pub(crate) use value::{capability_name, parse as parse_scalar, short_enum_name};
