//! Identity and access management.

mod groups;
mod groups_v1;
mod identities;
mod role_bindings;
mod roles;

use bowline_pipeline::Handlers;

pub use identities::human_uid;
pub use roles::seed_built_in_roles;

pub(crate) fn register(handlers: Handlers) -> Handlers {
    let handlers = groups::register(handlers);
    let handlers = groups_v1::register(handlers);
    let handlers = roles::register(handlers);
    let handlers = identities::register(handlers);
    role_bindings::register(handlers)
}
