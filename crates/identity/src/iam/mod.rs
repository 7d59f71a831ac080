//! Identity and access management.

mod access;
mod access_requests;
mod access_v1;
mod account_associations;
mod account_associations_v1;
mod capability_changes;
mod explain;
mod external_group_role_mappings;
mod external_group_role_mappings_v1;
pub(crate) mod group_invites;
mod group_invites_v1;
pub mod groups;
mod groups_v1;
pub(crate) mod identities;
mod identities_v1;
pub(crate) mod identity_providers;
mod identity_providers_v1;
mod metadata;
pub(crate) mod owners;
pub(crate) mod relationship;
mod removed_grants;
pub(crate) mod role_bindings;
mod role_bindings_v1;
pub(crate) mod roles;
mod roles_v1;
pub(crate) mod scim_tokens;
mod scim_tokens_v1;
mod static_identities;
mod terms;
mod terms_v1;

use std::sync::Arc;

use bowline_core::{Result, Uidp};
use bowline_pipeline::{Change, Handlers};
use bowline_resources::groups::GroupContents;
use bowline_store::WriteTx;

use crate::tables::TABLES;

pub use capability_changes::{CapabilityDifference, CapabilityDifferences, capability_differences};
pub use identities::human_uid;
pub use removed_grants::{ACCESS_KINDS, GRANT_KINDS, remove_grant};
pub use roles::{ROLE_COLUMNS, RoleColumn, seed_built_in_roles};

pub(crate) fn register(handlers: Handlers, domains: &Arc<[GroupContents]>) -> Handlers {
    let handlers = groups::register(handlers, domains);
    let handlers = groups_v1::register(handlers, domains);
    let handlers = roles::register(handlers);
    let handlers = roles_v1::register(handlers);
    let handlers = role_bindings_v1::register(handlers);
    let handlers = identities::register(handlers);
    let handlers = identities_v1::register(handlers);
    let handlers = static_identities::register(handlers);
    let handlers = group_invites::register(handlers);
    let handlers = group_invites_v1::register(handlers);
    let handlers = account_associations::register(handlers);
    let handlers = account_associations_v1::register(handlers);
    let handlers = terms::register(handlers);
    let handlers = terms_v1::register(handlers);
    let handlers = metadata::register(handlers);
    let handlers = access::register(handlers);
    let handlers = access_v1::register(handlers);
    let handlers = access_requests::register(handlers);
    let handlers = explain::register(handlers);
    let handlers = identity_providers::register(handlers);
    let handlers = identity_providers_v1::register(handlers);
    let handlers = scim_tokens::register(handlers);
    let handlers = scim_tokens_v1::register(handlers);
    let handlers = external_group_role_mappings::register(handlers);
    let handlers = external_group_role_mappings_v1::register(handlers);
    role_bindings::register(handlers)
}

/// What IAM holds of groups.
pub const GROUP_CONTENTS: GroupContents =
    GroupContents { tables: TABLES, delete: Some(|tx, group| Box::pin(delete_of_group(tx, group))) };

async fn delete_of_group(tx: &mut WriteTx, group: &Uidp) -> Result<Vec<Change>> {
    let mut changes = role_bindings::delete_of_group(tx, group).await?;
    changes.extend(group_invites::delete_of_group(tx, group).await?);
    changes.extend(account_associations::delete_of_group(tx, group).await?);
    changes.extend(terms::delete_of_group(tx, group).await?);
    Ok(changes)
}
