use bowline_core::{Result, Uidp};
use bowline_pipeline::Change;
use bowline_resources::kinds::{
    EXTERNAL_GROUP_ROLE_MAPPING, GROUP_INVITE, IDENTITY, IDENTITY_PROVIDER, ROLE_BINDING, SCIM_TOKEN, SCIM_USER,
    SESSION,
};
use bowline_store::WriteTx;

use super::{external_group_role_mappings, group_invites, role_bindings};
use crate::operators;

/// Kinds of resources that give a role by being there.
pub const GRANT_KINDS: [&str; 4] = [ROLE_BINDING, GROUP_INVITE, EXTERNAL_GROUP_ROLE_MAPPING, operators::KIND];

/// Kinds of resources that let someone in, and need a grant besides.
pub const ACCESS_KINDS: [&str; 5] = [IDENTITY, IDENTITY_PROVIDER, SCIM_TOKEN, SCIM_USER, SESSION];

/// Removes a grant of that kind; the changes, none if it is not there. For the operator, who restores a backup from before
/// its removal.
pub async fn remove_grant(tx: &mut WriteTx, kind: &str, uid: &Uidp) -> Result<Vec<Change>> {
    match kind {
        ROLE_BINDING => Ok(role_bindings::remove(tx, uid).await?.changes),
        GROUP_INVITE if group_invites::find(tx, uid).await?.is_some() => {
            Ok(group_invites::remove(tx, uid).await?.changes)
        }
        EXTERNAL_GROUP_ROLE_MAPPING => external_group_role_mappings::remove_if_there(tx, uid).await,
        operators::KIND => operators::remove_if_there(tx, uid).await,
        _ => Ok(Vec::new()),
    }
}
