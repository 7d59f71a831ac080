//! The seam to invitations: whom they let in where is decided by the resource `GroupInvites`.

use bowline_core::{Error, Micros, Reason, Result, Uidp};
use bowline_pipeline::{Change, Vault};
use bowline_store::WriteTx;

/// An authentic invitation code; the stored invitation decides whether it still counts.
#[derive(Clone, Debug)]
pub(super) struct Invite {
    /// The group that it invites to.
    pub(super) group: Uidp,
}

/// What accepting it gave.
pub(super) struct Redeemed {
    pub(super) group: Uidp,
    /// The new binding; absent if the person had the role there already.
    pub(super) binding: Option<Change>,
}

/// Reads a code. To be joined to `iam::group_invites::read_code`: until then no code is one of ours.
///
/// # Errors
/// INVALID_ARGUMENT, always the same.
pub(super) fn read(_vault: &Vault, _code: &str) -> Result<Invite> {
    Err(Error::new(Reason::InvalidArgument, "Invalid argument: the invitation code is not valid"))
}

/// Gives the person what the invitation promises. To be joined to `iam::group_invites::redeem`, with
/// `Redeemer { identity, verified_email }`.
#[expect(clippy::unused_async, reason = "it will ask the storage")]
pub(super) async fn redeem(
    _tx: &mut WriteTx,
    invite: &Invite,
    _identity: &Uidp,
    _verified_email: Option<&str>,
    _now: Micros,
) -> Result<Redeemed> {
    Ok(Redeemed { group: invite.group.clone(), binding: None })
}
