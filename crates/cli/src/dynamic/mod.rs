//! Calls by name: methods, fields and values as people write them, by the descriptors of the contract.

mod lookup;
mod members;
mod response;
mod value;

pub(crate) use lookup::method;
pub(crate) use members::{require_known, set};
pub(crate) use response::{call, encoded, page_token_field, to_json};
pub(crate) use value::short_enum_name;
