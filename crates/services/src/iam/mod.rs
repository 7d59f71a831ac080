//! Identity and access management.

mod access;
mod access_v1;
mod account_associations;
mod account_associations_v1;
mod external_group_role_mappings;
mod external_group_role_mappings_v1;
pub(crate) mod group_invites;
mod group_invites_v1;
pub(crate) mod groups;
mod groups_v1;
pub(crate) mod identities;
mod identities_v1;
pub(crate) mod identity_providers;
mod identity_providers_v1;
mod metadata;
pub(crate) mod owners;
mod relationship;
pub(crate) mod role_bindings;
mod role_bindings_v1;
pub(crate) mod roles;
mod roles_v1;
pub(crate) mod scim_tokens;
mod scim_tokens_v1;
mod static_identities;
mod terms;
mod terms_v1;

use bowline_pipeline::Handlers;

pub use identities::human_uid;
pub use roles::{ROLE_COLUMNS, RoleColumn, seed_built_in_roles};

pub(crate) fn register(handlers: Handlers) -> Handlers {
    let handlers = groups::register(handlers);
    let handlers = groups_v1::register(handlers);
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
    let handlers = identity_providers::register(handlers);
    let handlers = identity_providers_v1::register(handlers);
    let handlers = scim_tokens::register(handlers);
    let handlers = scim_tokens_v1::register(handlers);
    let handlers = external_group_role_mappings::register(handlers);
    let handlers = external_group_role_mappings_v1::register(handlers);
    role_bindings::register(handlers)
}
