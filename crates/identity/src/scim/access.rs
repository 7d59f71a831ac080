//! Who calls: a provider with SCIM switched on, and its token.

use bowline_authn::crypto::{constant_time_eq, sha256};
use bowline_core::{Error, Micros, Uidp};
use bowline_store::{ReadTx, Row, Value};

use super::refusal::{Refusal, Result, ScimError};
use crate::iam::human_uid;

/// What a directory shows: the provider in its path, and the hash of its token.
#[derive(Clone, Debug)]
pub struct Presented {
    provider: String,
    hash: [u8; 32],
}

impl Presented {
    /// `provider` is the provider's UIDP with a `.` for each `/`, as it stands in the path.
    pub fn new(provider: &str, token: &str) -> Presented {
        Presented { provider: provider.replace('.', "/"), hash: sha256(token.as_bytes()) }
    }
}

/// A provider whose directory may write.
#[derive(Clone, Debug)]
pub struct Directory {
    /// UIDP of the provider.
    pub provider: Uidp,
    issuer: String,
    /// Whether people are matched by the claim `oid` in place of `sub`.
    by_object_id: bool,
}

impl Directory {
    /// UIDP of the person with this external id; `''` if only their sign-in can resolve it.
    pub(super) fn person(&self, external_id: &str) -> String {
        if self.by_object_id { String::new() } else { human_uid(&self.issuer, external_id).as_str().into() }
    }
}

/// Stored number of the correlation by the claim `oid`.
const BY_OBJECT_ID: i64 = 2;

struct Credential {
    issuer: String,
    correlation: i64,
    hash: Option<Vec<u8>>,
    expires_at: Option<Micros>,
    previous_hash: Option<Vec<u8>>,
    previous_expires_at: Option<Micros>,
}

impl Credential {
    fn read(row: &Row<'_>) -> Result<Credential> {
        Ok(Credential {
            issuer: row.text(0)?,
            correlation: row.int(1)?,
            hash: row.opt_bytes(2)?,
            expires_at: row.opt_int(3)?,
            previous_hash: row.opt_bytes(4)?,
            previous_expires_at: row.opt_int(5)?,
        })
    }

    fn accepts(&self, presented: &[u8; 32], now: Micros) -> bool {
        let is = |stored: &Option<Vec<u8>>| stored.as_deref().is_some_and(|hash| constant_time_eq(hash, presented));
        let is_current = is(&self.hash) && self.expires_at.is_none_or(|end| now < end);
        // A revoked credential takes the one before along.
        let is_previous =
            self.hash.is_some() && is(&self.previous_hash) && self.previous_expires_at.is_some_and(|end| now < end);
        is_current || is_previous
    }
}

/// Lets a directory in, as this snapshot sees it.
pub(super) async fn admit(tx: &mut ReadTx, presented: &Presented, now: Micros) -> Result<Directory> {
    let refused = || ScimError::refuse(Refusal::Unauthorized, "the token is not valid for this provider");
    if !Uidp::is_valid(&presented.provider) {
        return Err(refused());
    }
    let sql = "SELECT p.issuer, p.correlation_rule, t.hash, t.expires_at, t.previous_hash, t.previous_expires_at
               FROM identity_providers p JOIN scim_tokens t ON t.provider = p.uid
               WHERE p.uid = $1 AND p.scim_enabled";
    let credential = tx.query_opt(sql, &[Value::from(&presented.provider)], Credential::read).await?;
    let credential = credential.filter(|credential| credential.accepts(&presented.hash, now)).ok_or_else(refused)?;
    Ok(Directory {
        provider: Uidp::parse(&presented.provider).map_err(|error| Error::internal(error.to_string()))?,
        issuer: credential.issuer,
        by_object_id: credential.correlation == BY_OBJECT_ID,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn credential() -> Credential {
        Credential {
            issuer: String::new(),
            correlation: 0,
            hash: Some(vec![1; 32]),
            expires_at: Some(100),
            previous_hash: Some(vec![2; 32]),
            previous_expires_at: Some(50),
        }
    }

    #[test]
    fn each_token_ends_with_its_own_time() {
        let credential = credential();
        assert!(credential.accepts(&[1; 32], 99) && !credential.accepts(&[1; 32], 100));
        assert!(credential.accepts(&[2; 32], 49) && !credential.accepts(&[2; 32], 50));
        assert!(!credential.accepts(&[3; 32], 0));
        let lasting = Credential { expires_at: None, ..self::credential() };
        assert!(lasting.accepts(&[1; 32], i64::MAX));
    }

    #[test]
    fn a_revocation_takes_both_tokens() {
        let revoked = Credential { hash: None, ..credential() };
        assert!(!revoked.accepts(&[1; 32], 0) && !revoked.accepts(&[2; 32], 0));
        let endless = Credential { previous_expires_at: None, ..credential() };
        assert!(!endless.accepts(&[2; 32], 0));
    }
}
