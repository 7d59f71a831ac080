//! Images in repositories that a plan deletes: a group with content is refused by the server, and a repository is not.

use bowline_client::{Api, ClientError};
use bowline_contract::bowline::registry::v1 as own;
use bowline_contract::bowline::registry::v1::rpc::statistics::GetUsage;

use super::kinds::REPOSITORY;
use super::plan::{Action, Plan};

/// Blocks deletions of repositories that have images: one call for each. Renaming a repository in a file is such a deletion.
///
/// # Errors
/// The server refuses, or no response comes.
pub(super) async fn block_deletions(api: &Api, plan: &mut Plan) -> Result<(), ClientError> {
    let is_deleted_repository = |kind: &str, action: Action| kind == REPOSITORY && action == Action::Delete;
    for change in plan.changes.iter_mut().filter(|change| is_deleted_repository(change.kind.name, change.action)) {
        let usage = api.call::<GetUsage>(&own::GetUsageRequest { scope: change.uid.clone() }).await?;
        if usage.tags > 0 || usage.bytes > 0 {
            let tags = if usage.tags == 1 { "1 tag".to_owned() } else { format!("{} tags", usage.tags) };
            change.blocked = Some(format!("has images ({tags}); --delete-images deletes them too"));
        }
    }
    Ok(())
}
