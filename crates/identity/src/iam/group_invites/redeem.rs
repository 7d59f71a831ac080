//! Accepts an invitation to a group.

use bowline_authn::crypto::sha256;
use bowline_core::{Error, Micros, Result, Uidp};
use bowline_pipeline::Change;
use bowline_resources::list::Listed;
use bowline_store::{ReadTx, Value, WriteTx};

use super::{InviteCode, InviteRow, TABLE};
use crate::access::load_grants;
use crate::iam::role_bindings::{self, BindingRow};
use crate::iam::roles;

/// Who accepts an invitation.
#[derive(Clone, Copy, Debug)]
pub struct Redeemer<'a> {
    /// The person, who exists or is stored in the same transaction.
    pub identity: &'a Uidp,
    /// Their address, if one is known that counts: verified by an operator provider or by the inviting
    /// organization's own.
    pub verified_email: Option<&'a str>,
}

/// What accepting an invitation gave.
#[derive(Debug)]
pub struct Redeemed {
    pub group: Uidp,
    /// UIDP of the role.
    pub role: String,
    /// The new binding, for the audit log; absent if the person had the role there already.
    pub binding: Option<Change>,
}

/// Gives a person what an invitation promises.
///
/// # Errors
/// FAILED_PRECONDITION if the invitation is gone, over, used by another, or not backed any more by who made it;
/// PERMISSION_DENIED if it is for another address. Nothing is changed then.
pub async fn redeem(tx: &mut WriteTx, code: &InviteCode, who: &Redeemer<'_>, now: Micros) -> Result<Redeemed> {
    let invite = by_key(tx, code).await?.ok_or_else(|| gone(code))?;
    if let Some(used_at) = invite.used_at.filter(|_| invite.single_use) {
        return redeemed_before(tx, code, invite, who, used_at).await;
    }
    validate(&invite, who, now)?;
    authorize_inviter(tx, &invite, now).await?;
    if invite.single_use {
        spend(tx, &invite, now).await?;
    }
    let binding = BindingRow {
        uid: binding_uid(&code.group, &invite, who.identity, now),
        identity: who.identity.as_str().into(),
        role: invite.role.clone(),
        created_at: now,
    };
    let binding = role_bindings::give(tx, &binding).await?;
    Ok(Redeemed { group: code.group.clone(), role: invite.role, binding })
}

/// A used invitation is no obstacle to anyone who used it: their first sign-in with it may have failed after that.
async fn redeemed_before(
    tx: &mut ReadTx,
    code: &InviteCode,
    invite: InviteRow,
    who: &Redeemer<'_>,
    used_at: Micros,
) -> Result<Redeemed> {
    let uid = binding_uid(&code.group, &invite, who.identity, used_at);
    match role_bindings::find(tx, &uid).await? {
        Some(_) => Ok(Redeemed { group: code.group.clone(), role: invite.role, binding: None }),
        None => Err(used(&invite)),
    }
}

async fn by_key(tx: &mut ReadTx, code: &InviteCode) -> Result<Option<InviteRow>> {
    let sql = format!("SELECT {} FROM group_invites WHERE key_id = $1 AND parent = $2", TABLE.columns);
    let params = [Value::from(&code.key_id), Value::from(code.group.as_str())];
    tx.query_opt(&sql, &params, InviteRow::read).await
}

fn gone(code: &InviteCode) -> Error {
    Error::precondition("INVITE_GONE", code.group.as_str(), "the invitation does not exist any more")
}

fn refusal(kind: &'static str, invite: &InviteRow, what: &str) -> Error {
    Error::precondition(kind, invite.uid.as_str(), format!("{what}; ask for a new invitation"))
}

/// Whether the invitation is still open, and open to this person.
fn validate(invite: &InviteRow, who: &Redeemer<'_>, now: Micros) -> Result<()> {
    if now >= invite.expires_at {
        return Err(refusal("INVITE_EXPIRED", invite, "the invitation has expired"));
    }
    // ASCII letters alone: other letters can fall together in lower case, and stand for different mailboxes.
    let is_theirs = |email: &str| email.eq_ignore_ascii_case(&invite.email);
    if invite.email.is_empty() || who.verified_email.is_some_and(is_theirs) {
        return Ok(());
    }
    Err(Error::permission_denied(
        "Permission denied: the invitation is for one e-mail address; sign in with a provider that has verified that address as yours",
    ))
}

fn used(invite: &InviteRow) -> Error {
    refusal("INVITE_USED", invite, "the invitation has been used")
}

/// Whether the invitation gives no more than it promised, and no more than its inviter could bind today with the token
/// that made it.
async fn authorize_inviter(tx: &mut ReadTx, invite: &InviteRow, now: Micros) -> Result<()> {
    let unbacked = |what: &str| refusal("INVITE_NOT_BACKED", invite, what);
    let role = roles::find(tx, &invite.role).await?;
    let role =
        role.ok_or_else(|| refusal("INVITE_ROLE_GONE", invite, "the invitation's role does not exist any more"))?;
    let Some(promised) = invite.promised else {
        return Err(unbacked("the invitation was made by an earlier version, which did not store what it promises"));
    };
    if !promised.contains(&role.capabilities) {
        return Err(unbacked("the invitation's role gives more today than when the invitation was made"));
    }
    let grants = load_grants(tx, &invite.inviter, None).await?.filter(|grants| !grants.has_ended(now));
    let grants = grants.map(|grants| grants.narrowed_to(invite.narrowing.clone()));
    if grants.is_some_and(|grants| grants.allows(invite.group(), &role.capabilities)) {
        return Ok(());
    }
    Err(unbacked("the inviter of the invitation may not give its role any more"))
}

async fn spend(tx: &mut WriteTx, invite: &InviteRow, now: Micros) -> Result<()> {
    let sql = "UPDATE group_invites SET used_at = $2 WHERE uid = $1 AND used_at IS NULL";
    let spent = tx.execute(sql, &[Value::from(invite.uid.as_str()), Value::Int(now)]).await?;
    if spent == 1 { Ok(()) } else { Err(used(invite)) }
}

/// A UIDP that every attempt of the transaction makes alike; the invitation's own was drawn at random.
fn binding_uid(group: &Uidp, invite: &InviteRow, identity: &Uidp, now: Micros) -> Uidp {
    let digest = sha256(format!("bowline accepted invite\n{}\n{identity}\n{now}", invite.uid).as_bytes());
    group.child_from(std::array::from_fn(|i| digest[i]))
}
