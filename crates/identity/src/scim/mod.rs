//! Provisioning of people by an organization's directory (SCIM 2.0, RFC 7643 and 7644): users only.
//!
//! A directory is an identity provider with SCIM switched on; its token is its only credential. A person whom it
//! deactivates or deletes stops acting in the same transaction. People are matched by `externalId`, which is
//! the subject (or object id) that their tokens carry, and never by e-mail.

mod access;
mod attributes;
mod filter;
mod leave;
mod link;
mod listing;
mod patch;
mod path;
mod refusal;
mod rows;
mod users;

pub use access::{Directory, Presented};
pub use attributes::{CORE_SCHEMA, ENTERPRISE_SCHEMA};
pub(crate) use link::link;
pub use refusal::{Refusal, ScimError};
pub use users::{Changing, Listing, MAX_COUNT, Query, ScimUsers, User};
