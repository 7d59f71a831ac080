//! Identity and access management.

pub(crate) mod groups;
mod groups_v1;
pub(crate) mod identities;
mod identities_v1;
mod relationship;
pub(crate) mod role_bindings;
mod role_bindings_v1;
pub(crate) mod roles;
mod roles_v1;

use bowline_pipeline::Handlers;

pub use identities::human_uid;
pub use roles::seed_built_in_roles;

pub(crate) fn register(handlers: Handlers) -> Handlers {
    let handlers = groups::register(handlers);
    let handlers = groups_v1::register(handlers);
    let handlers = roles::register(handlers);
    let handlers = roles_v1::register(handlers);
    let handlers = role_bindings_v1::register(handlers);
    let handlers = identities::register(handlers);
    let handlers = identities_v1::register(handlers);
    role_bindings::register(handlers)
}
