//! Packages of language ecosystems: the catalogue, what organizations may use of it, and what their policies refuse.

mod artifacts;
mod block_events;
mod block_statistics;
mod cargo_policies;
mod catalog;
mod decisions;
mod ecosystems;
mod entitlements;
mod exceptions;
mod freezes;
mod hosted;
pub mod hosting;
mod in_force;
mod malware;
pub mod names;
mod neutral;
mod npm;
mod policies;
mod policy;
mod policy_ages;
mod policy_bindings;
mod policy_expectations;
mod policy_vulnerabilities;
mod purges;
mod resolutions;
mod search;
mod tables;
mod versions;
mod vulnerabilities;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bowline_core::{Error, Result, Uidp};
use bowline_pipeline::{Authorized, Change, Handlers};
use bowline_resources::groups::GroupContents;
use bowline_store::WriteTx;

pub use block_events::{BlockedDownload, record as record_blocked_download};
pub use block_statistics::prune as prune_block_statistics;
pub use ecosystems::Language;
pub use malware::follow_records;
pub use policies::{Mode, in_force as policy_in_force};
pub use policy::{age, decide};
pub use resolutions::{Choice, record as record_choice};
pub use tables::TABLES;

pub fn register(handlers: Handlers) -> Handlers {
    let handlers = artifacts::register(handlers);
    let handlers = npm::register(handlers);
    let handlers = catalog::register(handlers);
    let handlers = malware::register(handlers);
    let handlers = entitlements::register(handlers);
    let handlers = policies::register(handlers);
    let handlers = policy_expectations::register(handlers);
    let handlers = policy_vulnerabilities::register(handlers);
    let handlers = policy_ages::register(handlers);
    let handlers = policy_bindings::register(handlers);
    let handlers = cargo_policies::register(handlers);
    let handlers = decisions::register(handlers);
    let handlers = exceptions::register(handlers);
    let handlers = freezes::register(handlers);
    let handlers = block_events::register(handlers);
    let handlers = block_statistics::register(handlers);
    let handlers = resolutions::register(handlers);
    let handlers = purges::register(handlers);
    let handlers = hosting::register(handlers);
    neutral::register(handlers)
}

/// Whether the caller may look at the catalogue, which belongs to no organization: callers who hold the capability anywhere may.
fn may_look<T>(call: &Authorized<T>) -> bool {
    !call.visible().is_empty()
}

/// The organization that a request is about.
async fn require_organization<T>(tx: &mut bowline_store::ReadTx, call: &Authorized<T>) -> Result<Uidp> {
    let scope = call.require_scope()?;
    if !scope.is_root() {
        return Err(Error::invalid_field(
            "parentId",
            "must be an organization: libraries are used by whole organizations",
        ));
    }
    bowline_resources::references::require_group(tx, scope).await?;
    Ok(scope.clone())
}

/// A UIDP as the database has it.
fn stored_uid(uid: &str) -> Result<Uidp> {
    Uidp::parse(uid).map_err(|_| Error::internal(format!("the database holds the damaged uid {uid}")))
}

/// A page size of the fields that are wider than they need to be.
fn page_size(given: i64) -> Result<i32> {
    i32::try_from(given).map_err(|_| Error::invalid_field("pageSize", "must not be negative, nor above 2147483647"))
}

/// Bytes in hex as base64; nothing if they are none.
fn base64_of_hex(hex: &str) -> Option<String> {
    let digits: Option<Vec<u8>> = hex.chars().map(|c| c.to_digit(16).map(|digit| digit as u8)).collect();
    let bytes: Vec<u8> = digits?.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect();
    (!bytes.is_empty()).then(|| STANDARD.encode(bytes))
}

/// What this domain holds of groups: nothing keeps one.
pub const GROUP_CONTENTS: GroupContents =
    GroupContents { tables: TABLES, delete: Some(|tx, group| Box::pin(delete_of_group(tx, group))) };

/// Deletes the policies, bindings, entitlements and block events of an organization.
async fn delete_of_group(tx: &mut WriteTx, group: &Uidp) -> Result<Vec<Change>> {
    hosting::delete_of_group(tx, group).await?;
    if !group.is_root() {
        return Ok(Vec::new());
    }
    let mut changes = policy_bindings::delete_of_group(tx, group).await?;
    changes.extend(policies::delete_of_group(tx, group).await?);
    changes.extend(entitlements::delete_of_group(tx, group).await?);
    block_events::delete_of_group(tx, group).await?;
    Ok(changes)
}
