//! The business rules: one folder per domain, one file per resource, both API versions over the same operations.
//!
//! A resource's file holds its row, its SQL, its operations, and the handlers of both versions; `v2`
//! handlers are the operations themselves, `v1` handlers translate to them. To add a method, write its
//! handler next to its resource and register it in the domain's `register`.

mod auth;
mod iam;
mod kinds;
mod list;
mod oidc;
pub mod people;
mod ping;
mod references;
mod registry;

use std::collections::BTreeSet;
use std::sync::Arc;

use bowline_contract::Contract;
use bowline_pipeline::Handlers;

pub use iam::{human_uid, seed_built_in_roles};
pub use oidc::Exchange;
pub use people::People;

/// All handlers.
pub fn handlers(contract: Arc<Contract>, people: Arc<People>) -> Handlers {
    register(contract, Some(people))
}

/// The positions of the methods that have a handler.
pub fn implemented(contract: &Arc<Contract>) -> BTreeSet<usize> {
    let handlers = register(contract.clone(), None);
    contract.methods().iter().map(|method| method.index).filter(|index| handlers.implements(*index)).collect()
}

/// Without people the handlers are complete in number, and those about tokens cannot be called.
fn register(contract: Arc<Contract>, people: Option<Arc<People>>) -> Handlers {
    let handlers = Handlers::new(contract);
    let handlers = iam::register(handlers);
    let handlers = registry::register(handlers);
    let handlers = oidc::register(handlers, people.as_ref());
    let handlers = people::register(handlers, people.as_ref());
    let handlers = auth::register(handlers);
    ping::register(handlers)
}
