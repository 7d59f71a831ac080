//! The stored token of a provider. Without a row nothing was ever done about provisioning, which is as good as an
//! empty row of revision 0.

use bowline_authn::crypto::sha256;
use bowline_contract::v2::iam::identity_provider::scim::CredentialState;
use bowline_core::{Error, Micros, Result, Uidp, hex};
use bowline_store::{ReadTx, Value, WriteTx};

/// The token of a provider, as it is stored.
#[derive(Clone, Debug, Default)]
pub(super) struct TokenRow {
    /// SHA-256 of the token; absent while there is none.
    pub(super) hash: Option<Vec<u8>>,
    /// Absent for a token that never ends.
    pub(super) expires_at: Option<Micros>,
    /// SHA-256 of the token before.
    pub(super) previous_hash: Option<Vec<u8>>,
    pub(super) previous_expires_at: Option<Micros>,
    pub(super) revoked_at: Option<Micros>,
    pub(super) revision: i64,
}

impl TokenRow {
    pub(super) async fn load(tx: &mut ReadTx, provider: &Uidp) -> Result<TokenRow> {
        let sql = "SELECT hash, expires_at, previous_hash, previous_expires_at, revoked_at, revision
                   FROM scim_tokens WHERE provider = $1";
        let read = |row: &bowline_store::Row<'_>| {
            Ok::<_, Error>(TokenRow {
                hash: row.opt_bytes(0)?,
                expires_at: row.opt_int(1)?,
                previous_hash: row.opt_bytes(2)?,
                previous_expires_at: row.opt_int(3)?,
                revoked_at: row.opt_int(4)?,
                revision: row.int(5)?,
            })
        };
        Ok(tx.query_opt(sql, &[Value::from(provider.as_str())], read).await?.unwrap_or_default())
    }

    pub(super) async fn save(&self, tx: &mut WriteTx, provider: &Uidp) -> Result<()> {
        let sql = "INSERT INTO scim_tokens (provider, hash, expires_at, previous_hash, previous_expires_at, revoked_at, revision)
                   VALUES ($1, $2, $3, $4, $5, $6, $7)
                   ON CONFLICT (provider) DO UPDATE SET hash = excluded.hash, expires_at = excluded.expires_at,
                     previous_hash = excluded.previous_hash, previous_expires_at = excluded.previous_expires_at,
                     revoked_at = excluded.revoked_at, revision = excluded.revision";
        let params = [
            Value::from(provider.as_str()),
            Value::from(self.hash.as_deref()),
            Value::from(self.expires_at),
            Value::from(self.previous_hash.as_deref()),
            Value::from(self.previous_expires_at),
            Value::from(self.revoked_at),
            Value::from(self.revision),
        ];
        tx.execute(sql, &params).await?;
        Ok(())
    }

    /// A row without a token of its own, in which this one's lives on for the overlap or until it ends anyway.
    pub(super) fn replaced(&self, now: Micros, overlap: Micros) -> TokenRow {
        let end = self.expires_at.map_or(now + overlap, |end| end.min(now + overlap));
        let lasts = end > now;
        TokenRow {
            previous_hash: self.hash.clone().filter(|_| lasts),
            previous_expires_at: Some(end).filter(|_| lasts),
            ..TokenRow::default()
        }
    }

    /// Until when the token before works, while it does.
    pub(super) fn previous_end(&self, now: Micros) -> Option<Micros> {
        self.previous_expires_at.filter(|end| now < *end)
    }

    pub(super) fn state(&self, now: Micros) -> CredentialState {
        match self.hash {
            None if self.revoked_at.is_some() => CredentialState::Revoked,
            None => CredentialState::NotIssued,
            Some(_) if self.expires_at.is_some_and(|end| end <= now) => CredentialState::Expired,
            Some(_) if self.previous_end(now).is_some() => CredentialState::Rotating,
            Some(_) => CredentialState::Live,
        }
    }

    /// Says which revision someone has seen; no one has anything to read in it.
    pub(super) fn etag(&self, provider: &Uidp) -> String {
        hex(&sha256(format!("scim {provider} {}", self.revision).as_bytes())[..8])
    }
}
