//! All handlers of the API together, the audit log and subscriptions, and what spans the domains.
//!
//! A new domain is a crate; [`handlers`] registers it here, and `GROUP_CONTENTS` names what it holds of groups.

mod audit;
mod events;
mod names;
mod operator;
mod ping;
mod preview;
pub mod sealed;
mod search;
mod tables;

use std::collections::BTreeSet;
use std::sync::Arc;

use bowline_contract::Contract;
use bowline_core::{Micros, Result};
use bowline_delivery::DirectSender;
use bowline_identity::People;
use bowline_pipeline::Handlers;
use bowline_registry::attached::{BlobBytes, Documents, NoBlobs};
use bowline_registry::content::UpstreamChecks;
use bowline_resources::groups::GroupContents;
use bowline_store::WriteTx;
use bowline_vulnerabilities::Published;

pub use operator::{KeyStep, RotatedKey, ServerState};
pub use tables::TABLES;

/// What the domains hold of groups. A refusal to delete a group names the first that holds something.
const GROUP_CONTENTS: [GroupContents; 5] = [
    bowline_identity::GROUP_CONTENTS,
    bowline_registry::GROUP_CONTENTS,
    bowline_vulnerabilities::GROUP_CONTENTS,
    bowline_libraries::GROUP_CONTENTS,
    events::GROUP_CONTENTS,
];

/// What handlers reach other servers through.
pub struct Outbound {
    /// Sends test deliveries to the sinks of subscriptions.
    pub sender: Arc<DirectSender>,
    /// Checks upstreams of repositories on request.
    pub checks: Arc<UpstreamChecks>,
}

pub fn handlers(
    contract: Arc<Contract>,
    people: Arc<People>,
    blobs: Arc<dyn BlobBytes>,
    published: &Arc<Published>,
    outbound: &Outbound,
    state: Arc<dyn ServerState>,
) -> Handlers {
    let handlers = register(contract, Some(people), &blobs, published, Some(outbound));
    operator::register(handlers, Some(state))
}

/// The positions of the methods that have a handler.
pub fn implemented(contract: &Arc<Contract>) -> BTreeSet<usize> {
    let blobs: Arc<dyn BlobBytes> = Arc::new(NoBlobs);
    let handlers = register(contract.clone(), None, &blobs, &Arc::default(), None);
    let handlers = operator::register(handlers, None);
    contract.methods().iter().map(|method| method.index).filter(|index| handlers.implements(*index)).collect()
}

fn register(
    contract: Arc<Contract>,
    people: Option<Arc<People>>,
    blobs: &Arc<dyn BlobBytes>,
    published: &Arc<Published>,
    outbound: Option<&Outbound>,
) -> Handlers {
    let domains: Arc<[GroupContents]> = Arc::new(GROUP_CONTENTS);
    let documents = Documents::new(blobs.clone());
    let handlers = Handlers::new(contract, bowline_identity::ACCESS);
    let handlers = bowline_identity::register(handlers, &domains, people.as_ref());
    let handlers = bowline_registry::register(handlers, &documents, outbound.map(|outbound| &outbound.checks));
    let handlers = bowline_vulnerabilities::register(handlers, published, &documents);
    let handlers = bowline_libraries::register(handlers);
    let handlers = events::register(handlers, outbound.map(|outbound| &outbound.sender));
    let handlers = audit::register(handlers);
    let handlers = names::register(handlers);
    let handlers = search::register(handlers);
    let handlers = preview::register(handlers);
    ping::register(handlers)
}

/// One step of what follows imports of records: the block list takes malware over, and what is not visible any more is
/// cleared away. True if there is more to do at once.
///
/// # Errors
/// The storage fails.
pub async fn follow_imports(tx: &mut WriteTx, now: Micros) -> Result<bool> {
    Ok(bowline_libraries::follow_records(tx).await? || bowline_vulnerabilities::records::sweep(tx, now).await?)
}
