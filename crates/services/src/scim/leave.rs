//! What ends with a person's place in the directory.

use bowline_core::Uidp;
use bowline_pipeline::Change;
use bowline_store::{Value, WriteTx};

use super::refusal::Result;
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

/// Takes a person out of the group that has the directory: sessions, and role bindings there and below. What lies above
/// it is nothing that this directory decides.
pub(super) async fn leave(tx: &mut WriteTx, provider: &Uidp, person: &str) -> Result<Vec<Change>> {
    if person.is_empty() {
        return Ok(Vec::new());
    }
    end_sessions(tx, provider, person).await?;
    Ok(role_bindings::delete_of_identity_in(tx, person, provider.parent_str()).await?)
}
