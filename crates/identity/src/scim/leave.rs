//! What ends when a person leaves the directory.

use bowline_contract::Contract;
use bowline_core::{Micros, Uidp};
use bowline_pipeline::Change;
use bowline_store::{ReadTx, Value, WriteTx};

use super::refusal::{Refusal, Result, ScimError};
use crate::iam::owners::{self, Lockout};
use crate::iam::role_bindings;

/// Ends the sessions that a person began through the provider, with all that hangs on them.
pub(super) async fn end_sessions(tx: &mut WriteTx, provider: &Uidp, person: &str) -> Result<()> {
    if person.is_empty() {
        return Ok(());
    }
    let params = [Value::from(person), Value::from(provider.as_str())];
    let of_person = "IN (SELECT id FROM sessions WHERE identity = $1 AND provider = $2)";
    tx.execute(&format!("DELETE FROM session_groups WHERE session {of_person}"), &params).await?;
    tx.execute(&format!("DELETE FROM refresh_tokens WHERE session {of_person}"), &params).await?;
    tx.execute("DELETE FROM sessions WHERE identity = $1 AND provider = $2", &params).await?;
    Ok(())
}

/// Refuses to lock out the last owner of the directory's group that is not its own: authorized at each operation, since
/// owners come and go after the switch.
///
/// # Errors
/// [`Refusal::LastOwner`] saying what to do first.
pub(super) async fn require_other_owner(
    tx: &mut ReadTx,
    contract: &Contract,
    provider: &Uidp,
    person: &str,
    lockout: Lockout,
    now: Micros,
) -> Result<()> {
    if person.is_empty() || owners::may_be_locked_out(tx, contract, provider, person, lockout, now).await? {
        return Ok(());
    }
    Err(ScimError::refuse(
        Refusal::LastOwner,
        "the person is the last owner of the group that this directory did not make one; give the role owner there to \
         another identity, or delete the person's role binding, through the API first",
    ))
}

/// Takes a person out of the group that has the directory: sessions, and role bindings there and below. What lies above
/// it is nothing that this directory decides.
pub(super) async fn leave(tx: &mut WriteTx, provider: &Uidp, person: &str) -> Result<Vec<Change>> {
    if person.is_empty() {
        return Ok(Vec::new());
    }
    end_sessions(tx, provider, person).await?;
    Ok(role_bindings::delete_of_identity_in(tx, person, provider.parent_str()).await?)
}
