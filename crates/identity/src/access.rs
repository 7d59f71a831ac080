//! What the gate reads to authorize: statements over the tables of this crate.

use bowline_contract::chainguard::capabilities::Capability;
use bowline_core::Result;
use bowline_pipeline::{Access, Grants};
use bowline_store::{Engine, ReadTx, WriteTx};

/// The statements of the gate.
pub const ACCESS: &Access = &Access {
    revision: REVISION,
    bindings: BINDINGS,
    session: SESSION,
    organization_by_name: "SELECT uid FROM groups WHERE name = $1 AND parent = '' AND verified",
    shows_organizations: Capability::CapIamGroupsList,
    accepted_terms: "SELECT document FROM terms_acceptances WHERE parent = $1",
};

const REVISION: &str = "SELECT n FROM revisions WHERE name = 'iam'";

/// Bindings at and below a group whose directory has deactivated the person count for nothing. The group is what a
/// provider's UIDP has before its last segment, which is a slash and 16 characters.
const BINDINGS: &str = "
SELECT i.expires_at, i.deactivated, b.parent, r.capabilities, o.role, i.issuer,
  o.role IS NOT NULL AND EXISTS (SELECT 1 FROM operator_providers p WHERE p.issuer = i.issuer)
FROM identities i
LEFT JOIN operators o ON o.identity = i.uid
LEFT JOIN role_bindings b ON b.identity = i.uid
  AND NOT EXISTS (
    SELECT 1 FROM scim_users u
    WHERE u.person = b.identity AND u.org = b.org AND NOT u.active
      AND substr(b.parent || '/', 1, length(u.provider) - 16) = substr(u.provider, 1, length(u.provider) - 16))
LEFT JOIN roles r ON r.uid = b.role
WHERE i.uid = $1";

/// What membership in the provider's groups gives while a session lasts: at and below a group whose directory has
/// deactivated the person, nothing.
const SESSION: &str = "
SELECT s.expires_at, m.scope, r.capabilities
FROM sessions s
LEFT JOIN session_groups g ON g.session = s.id
LEFT JOIN external_group_role_mappings m ON m.parent = s.provider AND m.external_group = g.external_group
  AND NOT EXISTS (
    SELECT 1 FROM scim_users u
    WHERE u.person = s.identity AND u.org = m.org AND NOT u.active
      AND (u.provider = s.provider
        OR substr(m.scope || '/', 1, length(u.provider) - 16) = substr(u.provider, 1, length(u.provider) - 16)))
LEFT JOIN roles r ON r.uid = m.role
WHERE s.id = $1 AND s.identity = $2";

/// The grants of an identity as the store has them, without a token's narrowing; absent if it or the session is gone
/// or deactivated.
pub async fn load_grants(tx: &mut ReadTx, subject: &str, session: Option<&str>) -> Result<Option<Grants>> {
    ACCESS.load_grants(tx, subject, session).await
}

/// Says that a permission changed: every write to bindings, roles, identities, mappings, sessions or provisioned
/// people calls it.
pub async fn iam_changed(tx: &mut WriteTx) -> Result<()> {
    // PostgreSQL reads the bindings at every call; a shared row would make writers collide there.
    if tx.engine() == Engine::Sqlite {
        tx.execute("UPDATE revisions SET n = n + 1 WHERE name = 'iam'", &[]).await?;
    }
    Ok(())
}
