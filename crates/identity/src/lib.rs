//! Who callers are and what they may do: identity and access management, the token exchange, sign-in and sessions, and
//! what directories provision.
//!
//! A resource's file in `iam` holds its row, its SQL, its operations, and the handlers of v2; the handlers of v1
//! translate to the same operations. To add a method, write its handler next to its resource and register it in the
//! module's `register`.

mod access;
mod auth;
mod iam;
mod mail;
mod oidc;
mod operators;
pub mod people;
pub mod scim;
mod tables;

use std::sync::Arc;

use bowline_pipeline::Handlers;
use bowline_resources::groups::GroupContents;

pub use access::{ACCESS, iam_changed, load_grants};
pub use iam::{
    ACCESS_KINDS, CapabilityDifference, CapabilityDifferences, GRANT_KINDS, GROUP_CONTENTS, ROLE_COLUMNS, RoleColumn,
    capability_differences, groups, human_uid, remove_grant, seed_built_in_roles,
};
pub use oidc::{
    Credential, CredentialExchange, Exchange, IdentityRevision, Issued, PublishingToken, Upload, is_publishing_token,
};
pub use operators::stored_providers;
pub use people::People;
pub use scim::ScimUsers;
pub use tables::TABLES;

/// Accepting an invitation: what a sign-in does with its code, in the transaction that signs the person in.
pub mod invites {
    pub use crate::iam::group_invites::{InviteCode, Redeemed, Redeemer, read_code, redeem};
}

/// Registers the handlers. Without `people` they are complete in number, and those about tokens cannot be called.
/// `domains` is what all domains hold of groups.
pub fn register(handlers: Handlers, domains: &Arc<[GroupContents]>, people: Option<&Arc<People>>) -> Handlers {
    let handlers = iam::register(handlers, domains);
    let handlers = oidc::register(handlers, people);
    let handlers = people::register(handlers, people);
    let handlers = operators::register(handlers);
    auth::register(handlers)
}
