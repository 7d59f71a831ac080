//! Links a user to a person, where only the person's sign-in can resolve it.

use bowline_core::{Error, Result, Uidp};
use bowline_pipeline::Change;
use bowline_resources::kinds::SCIM_USER;
use bowline_store::{Value, WriteTx};

use super::refusal::ScimError;
use super::rows::{self, UserRow};

/// Stores that this user, who had no person yet, is the person; returns the change for the audit log. The
/// attributes of the directory stay.
///
/// # Errors
/// INTERNAL: there is no such user. The storage fails.
pub(crate) async fn link(tx: &mut WriteTx, uid: &str, person: &Uidp) -> Result<Change> {
    let found = rows::find(tx, uid).await.map_err(|error| match error {
        ScimError::Failed(error) => error,
        ScimError::Refused(_, detail) => Error::internal(detail),
    })?;
    let before = found.ok_or_else(|| Error::internal(format!("there is no user {uid} to link")))?;
    let sql = "UPDATE scim_users SET person = $2 WHERE uid = $1";
    tx.execute(sql, &[Value::from(uid), Value::from(person.as_str())]).await?;
    let after = UserRow { person: person.as_str().into(), ..before.clone() };
    Ok(Change { kind: SCIM_USER, uid: uid.into(), before: Some(before.snapshot()), after: Some(after.snapshot()) })
}
