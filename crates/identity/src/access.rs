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

/// Whether binding `b` counts for nothing: it is at or below a group whose directory has deactivated the person. The group
/// is what a provider's UIDP has before its last segment, which is a slash and 16 characters.
macro_rules! binding_suspended {
    () => {
        "EXISTS (
    SELECT 1 FROM scim_users u
    WHERE u.person = b.identity AND u.org = b.org AND NOT u.active
      AND substr(b.parent || '/', 1, length(u.provider) - 16) = substr(u.provider, 1, length(u.provider) - 16))"
    };
}

/// Whether mapping `m` counts for nothing in session `s`: it is at or below a group whose directory has deactivated the
/// person, or the session's own directory has.
macro_rules! mapping_suspended {
    () => {
        "EXISTS (
    SELECT 1 FROM scim_users u
    WHERE u.person = s.identity AND u.org = m.org AND NOT u.active
      AND (u.provider = s.provider
        OR substr(m.scope || '/', 1, length(u.provider) - 16) = substr(u.provider, 1, length(u.provider) - 16)))"
    };
}

const BINDINGS: &str = concat!(
    "
SELECT i.expires_at, i.deactivated, b.parent, r.capabilities, o.role, i.issuer,
  o.role IS NOT NULL AND EXISTS (SELECT 1 FROM operator_providers p WHERE p.issuer = i.issuer)
FROM identities i
LEFT JOIN operators o ON o.identity = i.uid
LEFT JOIN role_bindings b ON b.identity = i.uid AND NOT ",
    binding_suspended!(),
    "
LEFT JOIN roles r ON r.uid = b.role
WHERE i.uid = $1"
);

/// What membership in the provider's groups gives while a session lasts.
const SESSION: &str = concat!(
    "
SELECT s.expires_at, m.scope, r.capabilities
FROM sessions s
LEFT JOIN session_groups g ON g.session = s.id
LEFT JOIN external_group_role_mappings m ON m.parent = s.provider AND m.external_group = g.external_group AND NOT ",
    mapping_suspended!(),
    "
LEFT JOIN roles r ON r.uid = m.role
WHERE s.id = $1 AND s.identity = $2"
);

/// The bindings that [`ACCESS`] reads, one by one and with those that count for nothing, for explanations: a condition on
/// `b` follows.
pub(crate) const EXPLAINED_BINDINGS: &str = concat!(
    "
SELECT b.uid, b.parent, g.name, b.role, r.name, r.capabilities, ",
    binding_suspended!(),
    "
FROM role_bindings b
LEFT JOIN groups g ON g.uid = b.parent
LEFT JOIN roles r ON r.uid = b.role
WHERE b.identity = $1 AND "
);

/// The same of what a session adds: the session is the first parameter, its identity the second.
pub(crate) const EXPLAINED_SESSION: &str = concat!(
    "
SELECT '', m.scope, o.name, m.role, r.name, r.capabilities, ",
    mapping_suspended!(),
    "
FROM sessions s
JOIN session_groups g ON g.session = s.id
JOIN external_group_role_mappings m ON m.parent = s.provider AND m.external_group = g.external_group
LEFT JOIN groups o ON o.uid = m.scope
LEFT JOIN roles r ON r.uid = m.role
WHERE s.id = $1 AND s.identity = $2
ORDER BY m.scope, m.uid LIMIT 200"
);

/// Who has one of some roles at one of some groups and can use it: conditions on `b` follow. The first parameter is the
/// time.
pub(crate) const HOLDERS: &str = concat!(
    "
SELECT b.identity, i.name, i.email, b.parent, b.role
FROM role_bindings b
JOIN identities i ON i.uid = b.identity
WHERE NOT i.deactivated AND (i.expires_at IS NULL OR i.expires_at > $1) AND NOT ",
    binding_suspended!(),
    " AND "
);

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
