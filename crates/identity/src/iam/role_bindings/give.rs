//! Bindings that come to be without a caller who binds: what an accepted invitation gives.

use bowline_core::Result;
use bowline_pipeline::{Change, ResourceSnapshot};
use bowline_resources::kinds::ROLE_BINDING;
use bowline_store::WriteTx;

use super::{BindingRow, insert};
use crate::access::iam_changed;

/// Binds a role that was checked before; nothing if the identity has it at the group already.
pub(crate) async fn give(tx: &mut WriteTx, row: &BindingRow) -> Result<Option<Change>> {
    if !insert(tx, row).await? {
        return Ok(None);
    }
    iam_changed(tx).await?;
    let after = Some(ResourceSnapshot::of(&row.to_v2()));
    Ok(Some(Change { kind: ROLE_BINDING, uid: row.uid.as_str().into(), before: None, after }))
}
