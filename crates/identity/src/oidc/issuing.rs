//! What every issuance of a token does, wherever the proof comes from: look at the identity once more, write the
//! audit row, and put the claims together.

use bowline_authn::claims::{AccessClaims, MAX_ACCESS_LIFETIME};
use bowline_core::{Error, Micros, Result, Uidp};
use bowline_pipeline::{Actor, Change, Grants, Narrowing, OPERATOR, Open, record_audit};
use bowline_resources::kinds::IDENTITY;
use bowline_store::WriteTx;

use super::candidates::Basis;
use super::cap_claim::cap_claim;
use super::{narrowing, refusals};
use crate::access::load_grants;
use crate::iam::identities::{self, IdentityRow};

/// What a presented token, or a session, proved.
#[derive(Clone)]
pub(crate) struct Proof {
    pub(crate) subject: Uidp,
    /// What the identity trusted when the proof was made; absent for tokens and sessions of this server.
    pub(crate) basis: Option<Basis>,
    /// Claims that the new token copies. `exp` is the latest end.
    pub(crate) draft: AccessClaims,
    pub(crate) narrowing: Narrowing,
}

/// Which request it is for.
#[derive(Clone)]
pub(crate) struct Cause {
    pub(crate) now: Micros,
    pub(crate) request_id: String,
    pub(crate) method: String,
    /// Id of the new token, drawn at random.
    pub(crate) id: [u8; 16],
}

impl Cause {
    pub(crate) fn of<T>(call: &Open<T>) -> Cause {
        Cause {
            now: call.now(),
            request_id: call.request_id().into(),
            method: call.method().full_name.clone(),
            id: first_half(call.draw()),
        }
    }
}

/// Half of what was drawn.
pub(crate) fn first_half(drawn: [u8; 32]) -> [u8; 16] {
    std::array::from_fn(|i| drawn[i])
}

/// What an issuance writes, for every attempt of its transaction.
pub(crate) struct Issuance {
    subject: Uidp,
    basis: Option<Basis>,
    session: Option<String>,
    pub(crate) cause: Cause,
}

impl Issuance {
    pub(crate) fn of(proof: &Proof, cause: Cause) -> Issuance {
        Issuance { subject: proof.subject.clone(), basis: proof.basis.clone(), session: proof.draft.sid.clone(), cause }
    }
}

/// The identity as the issuing transaction sees it.
pub(crate) struct Standing {
    pub(crate) grants: Grants,
    pub(crate) last_seen_at: Option<Micros>,
}

/// Looks at the identity once more, and writes the audit row of the issuance.
pub(crate) async fn record(tx: &mut WriteTx, issuance: &Issuance) -> Result<Standing> {
    let uid = issuance.subject.as_str();
    let standing = standing(tx, issuance).await?;
    let actor = Actor { subject: uid, request_id: &issuance.cause.request_id, method: &issuance.cause.method };
    let change = Change { kind: IDENTITY, uid: uid.into(), before: None, after: None };
    record_audit(tx, issuance.cause.now, &actor, &change).await?;
    Ok(standing)
}

async fn standing(tx: &mut WriteTx, issuance: &Issuance) -> Result<Standing> {
    let (uid, now) = (&issuance.subject, issuance.cause.now);
    let gone = || {
        if issuance.basis.is_some() { refusals::mismatch("deleted meanwhile") } else { refusals::own_subject() }
    };
    let row = match uid.as_str() {
        // The operator is no one in the store.
        OPERATOR if issuance.basis.is_none() => None,
        _ => Some(identities::find(tx, uid.as_str()).await?.ok_or_else(gone)?),
    };
    if let Some(row) = &row {
        match &issuance.basis {
            None => require_active(row, now).map_err(|_| refusals::own_subject())?,
            Some(basis) if *basis != Basis::of(row)? => return Err(refusals::changed()),
            Some(_) => require_active(row, now)?,
        }
    }
    let grants = load_grants(tx, uid.as_str(), issuance.session.as_deref()).await?.ok_or_else(gone)?;
    // The identity's own end was checked above; what is left is the session's.
    if grants.ends_at().is_some_and(|end| seconds(end) <= seconds(now)) {
        return Err(gone());
    }
    Ok(Standing { grants, last_seen_at: row.and_then(|row| row.last_seen_at) })
}

/// Refuses an identity that no longer acts.
pub(crate) fn require_active(row: &IdentityRow, now: Micros) -> Result<()> {
    if row.deactivated {
        return Err(refusals::inactive("is deactivated"));
    }
    // A token counts whole seconds: one that could not last a single one is not worth minting.
    if row.expires_at.is_some_and(|end| seconds(end) <= seconds(now)) {
        return Err(refusals::inactive("has expired"));
    }
    Ok(())
}

/// The claims of the token.
pub(crate) fn claims(
    issuer: &str,
    proof: Proof,
    audiences: Vec<String>,
    standing: &Standing,
    now: Micros,
    id: [u8; 16],
) -> AccessClaims {
    AccessClaims {
        iss: issuer.into(),
        sub: proof.subject.as_str().into(),
        aud: audiences,
        exp: ends(now, proof.draft.exp, standing.grants.ends_at()),
        iat: seconds(now),
        jti: bowline_core::hex(&id),
        cap: cap_claim(&standing.grants.direct(usize::MAX), &proof.narrowing),
        narrow: narrowing::to_claim(&proof.narrowing),
        ..proof.draft
    }
}

/// When the new token ends: within the hour, not after the presented token of this server, not after the identity and the
/// session.
fn ends(now: Micros, not_after: i64, others: Option<Micros>) -> i64 {
    let within_the_hour = seconds(now).saturating_add(MAX_ACCESS_LIFETIME);
    within_the_hour.min(not_after).min(others.map_or(i64::MAX, seconds))
}

pub(crate) fn seconds(micros: Micros) -> i64 {
    micros.div_euclid(1_000_000)
}

/// INTERNAL: the ring holds no key that signs.
pub(crate) fn no_key() -> Error {
    Error::internal("there is no signing key")
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Micros = 1_000_000;

    #[test]
    fn a_token_ends_with_whatever_ends_first() {
        let now = 1_000 * SECOND + 999_999;
        assert_eq!(ends(now, i64::MAX, None), 4_600);
        assert_eq!(ends(now, 1_200, None), 1_200);
        assert_eq!(ends(now, i64::MAX, Some(1_300 * SECOND + 5)), 1_300);
        assert_eq!(ends(now, 1_200, Some(1_300 * SECOND)), 1_200);
    }
}
