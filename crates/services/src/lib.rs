//! The business rules: one folder per domain, one file per resource, both API versions over the same operations.
//!
//! A resource's file holds its row, its SQL, its operations, and the handlers of both versions; `v2`
//! handlers are the operations themselves, `v1` handlers translate to them. To add a method, write its
//! handler next to its resource and register it in the domain's `register`.

mod advisory;
mod audit;
mod auth;
mod events;
mod iam;
mod kinds;
pub mod libraries;
mod list;
mod mail;
mod oidc;
mod patterns;
pub mod people;
mod ping;
pub mod records;
mod references;
mod registry;
pub mod scim;
pub mod sealed;
mod vulnerabilities;

use std::collections::BTreeSet;
use std::sync::Arc;

use bowline_contract::Contract;
use bowline_pipeline::Handlers;

pub use advisory::Published;
pub use iam::{ROLE_COLUMNS, RoleColumn, human_uid, seed_built_in_roles};
pub use oidc::{Exchange, IdentityRevision};
pub use people::People;
pub use registry::attached::BlobBytes;
use registry::attached::{Documents, NoBlobs};
pub use scim::ScimUsers;
pub use vulnerabilities::ids::is_prefix as is_advisory_prefix;

/// Accepting an invitation: what a sign-in does with its code, in the transaction that signs the person in.
pub mod invites {
    pub use crate::iam::group_invites::{InviteCode, Redeemed, Redeemer, read_code, redeem};
}

/// What the registry host does, for whoever serves its protocol.
pub mod content {
    pub use crate::registry::content::*;
}

/// All handlers.
pub fn handlers(
    contract: Arc<Contract>,
    people: Arc<People>,
    blobs: Arc<dyn BlobBytes>,
    published: &Arc<Published>,
) -> Handlers {
    register(contract, Some(people), &blobs, published)
}

/// The positions of the methods that have a handler.
pub fn implemented(contract: &Arc<Contract>) -> BTreeSet<usize> {
    let blobs: Arc<dyn BlobBytes> = Arc::new(NoBlobs);
    let handlers = register(contract.clone(), None, &blobs, &Arc::default());
    contract.methods().iter().map(|method| method.index).filter(|index| handlers.implements(*index)).collect()
}

/// Without people the handlers are complete in number, and those about tokens cannot be called.
fn register(
    contract: Arc<Contract>,
    people: Option<Arc<People>>,
    blobs: &Arc<dyn BlobBytes>,
    published: &Arc<Published>,
) -> Handlers {
    let handlers = Handlers::new(contract);
    let handlers = iam::register(handlers);
    let documents = Documents::new(blobs.clone());
    let handlers = registry::register(handlers, &documents);
    let handlers = vulnerabilities::register(handlers);
    let handlers = advisory::register(handlers, published, &documents);
    let handlers = events::register(handlers);
    let handlers = libraries::register(handlers);
    let handlers = oidc::register(handlers, people.as_ref());
    let handlers = people::register(handlers, people.as_ref());
    let handlers = auth::register(handlers);
    let handlers = audit::register(handlers);
    let handlers = records::register(handlers);
    ping::register(handlers)
}
