//! Identity and access management.

mod external_group_role_mappings;
mod external_group_role_mappings_v1;
pub(crate) mod groups;
mod groups_v1;
pub(crate) mod identities;
mod identities_v1;
pub(crate) mod identity_providers;
mod identity_providers_v1;
mod relationship;
mod role_bindings;
mod role_bindings_v1;
mod roles;
mod roles_v1;
pub(crate) mod scim_tokens;
mod scim_tokens_v1;

use bowline_pipeline::Handlers;

pub use identities::human_uid;
pub use identity_providers::ProviderRow;
pub use roles::seed_built_in_roles;
pub use scim_tokens::verify_scim_token;

pub(crate) fn register(handlers: Handlers) -> Handlers {
    let handlers = groups::register(handlers);
    let handlers = groups_v1::register(handlers);
    let handlers = roles::register(handlers);
    let handlers = roles_v1::register(handlers);
    let handlers = role_bindings_v1::register(handlers);
    let handlers = identities::register(handlers);
    let handlers = identities_v1::register(handlers);
    let handlers = identity_providers::register(handlers);
    let handlers = identity_providers_v1::register(handlers);
    let handlers = scim_tokens::register(handlers);
    let handlers = scim_tokens_v1::register(handlers);
    let handlers = external_group_role_mappings::register(handlers);
    let handlers = external_group_role_mappings_v1::register(handlers);
    role_bindings::register(handlers)
}
