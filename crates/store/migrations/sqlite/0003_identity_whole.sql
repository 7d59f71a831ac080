-- Identity providers of organizations.
CREATE TABLE identity_providers (
  uid TEXT NOT NULL PRIMARY KEY,
  parent TEXT NOT NULL,
  org TEXT NOT NULL,
  name TEXT NOT NULL,
  description TEXT NOT NULL,
  -- Role that a person gets at the parent when they come for the first time.
  default_role TEXT NOT NULL,
  issuer TEXT NOT NULL,
  client_id TEXT NOT NULL,
  -- Sealed; empty for a public client.
  client_secret BLOB NOT NULL,
  -- JSON array.
  additional_scopes TEXT NOT NULL,
  groups_claim TEXT NOT NULL,
  correlation_rule INTEGER NOT NULL,
  pkce_enabled INTEGER NOT NULL CHECK (pkce_enabled IN (0, 1)),
  scim_enabled INTEGER NOT NULL CHECK (scim_enabled IN (0, 1)),
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX identity_providers_by_parent ON identity_providers (parent, uid);
CREATE INDEX identity_providers_by_name ON identity_providers (org, name, uid);
CREATE INDEX identity_providers_by_created ON identity_providers (org, created_at, uid);
CREATE INDEX identity_providers_by_issuer ON identity_providers (issuer, uid);
CREATE INDEX identity_providers_by_role ON identity_providers (default_role, uid);

-- The SCIM credential of a provider. No row: none was ever issued; no hash: it was revoked.
CREATE TABLE scim_tokens (
  provider TEXT NOT NULL PRIMARY KEY,
  -- SHA-256 of the token.
  hash BLOB,
  -- Absent for one that never expires.
  expires_at INTEGER,
  -- The one before, which works until it expires.
  previous_hash BLOB,
  previous_expires_at INTEGER,
  revoked_at INTEGER,
  -- Grows with every change: the etag.
  revision INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- People that an organization's directory provisions. `uid` is a child of the provider.
CREATE TABLE scim_users (
  uid TEXT NOT NULL PRIMARY KEY,
  provider TEXT NOT NULL,
  org TEXT NOT NULL,
  external_id TEXT NOT NULL,
  -- Lower case: SCIM compares user names that way.
  user_name TEXT NOT NULL,
  -- UIDP of the person; '' until it is known.
  person TEXT NOT NULL,
  active INTEGER NOT NULL CHECK (active IN (0, 1)),
  -- The SCIM resource as JSON.
  resource TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX scim_users_external_id ON scim_users (provider, external_id);
CREATE UNIQUE INDEX scim_users_user_name ON scim_users (provider, user_name);
CREATE INDEX scim_users_by_person ON scim_users (person, org);

-- Roles that members of a provider's groups have while they are signed in. `parent` is the provider.
CREATE TABLE external_group_role_mappings (
  uid TEXT NOT NULL PRIMARY KEY,
  parent TEXT NOT NULL,
  org TEXT NOT NULL,
  external_group TEXT NOT NULL,
  role TEXT NOT NULL,
  -- The group that the role is granted at.
  scope TEXT NOT NULL,
  created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX external_group_role_mappings_once ON external_group_role_mappings (parent, external_group, role, scope);
CREATE INDEX external_group_role_mappings_by_parent ON external_group_role_mappings (parent, uid);
CREATE INDEX external_group_role_mappings_by_created ON external_group_role_mappings (org, created_at, uid);
CREATE INDEX external_group_role_mappings_by_role ON external_group_role_mappings (role, uid);

-- Invitations into a group, which is `parent`. The code is not stored: its signature is checked.
CREATE TABLE group_invites (
  uid TEXT NOT NULL PRIMARY KEY,
  parent TEXT NOT NULL,
  org TEXT NOT NULL,
  role TEXT NOT NULL,
  email TEXT NOT NULL,
  key_id TEXT NOT NULL,
  single_use INTEGER NOT NULL CHECK (single_use IN (0, 1)),
  -- Who invited: must still hold what the role gives when the invitation is used.
  inviter TEXT NOT NULL,
  expires_at INTEGER NOT NULL,
  used_at INTEGER,
  created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX group_invites_key ON group_invites (key_id);
CREATE INDEX group_invites_by_parent ON group_invites (parent, uid);
CREATE INDEX group_invites_by_created ON group_invites (org, created_at, uid);
CREATE INDEX group_invites_by_role ON group_invites (role, uid);

-- Accounts elsewhere that belong to a group, whose UIDP is `uid`. `spec` is an encoded AccountAssociation
-- message of the second version without uid, name, description and times.
CREATE TABLE account_associations (
  uid TEXT NOT NULL PRIMARY KEY,
  parent TEXT NOT NULL,
  org TEXT NOT NULL,
  name TEXT NOT NULL,
  description TEXT NOT NULL,
  spec BLOB NOT NULL,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX account_associations_by_parent ON account_associations (parent, uid);
CREATE INDEX account_associations_by_name ON account_associations (org, name, uid);
CREATE INDEX account_associations_by_created ON account_associations (org, created_at, uid);

-- Documents that an organization, which is `parent`, has accepted.
CREATE TABLE terms_acceptances (
  uid TEXT NOT NULL PRIMARY KEY,
  parent TEXT NOT NULL,
  org TEXT NOT NULL,
  document TEXT NOT NULL,
  accepted_by TEXT NOT NULL,
  created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX terms_acceptances_once ON terms_acceptances (parent, document);
CREATE INDEX terms_acceptances_by_parent ON terms_acceptances (parent, uid);
CREATE INDEX terms_acceptances_by_created ON terms_acceptances (org, created_at, uid);

-- What people tell of themselves: an encoded IdentityMetadata message of the second version.
CREATE TABLE identity_metadata (
  identity TEXT NOT NULL PRIMARY KEY,
  metadata BLOB NOT NULL,
  updated_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Who asked to be let into which group, and when last.
CREATE TABLE access_requests (
  identity TEXT NOT NULL,
  group_uid TEXT NOT NULL,
  at INTEGER NOT NULL,
  PRIMARY KEY (identity, group_uid)
) STRICT, WITHOUT ROWID;

-- Mail that waits for the relay.
CREATE TABLE mail_queue (
  id TEXT NOT NULL PRIMARY KEY,
  recipient TEXT NOT NULL,
  subject TEXT NOT NULL,
  body TEXT NOT NULL,
  attempts INTEGER NOT NULL,
  next_at INTEGER NOT NULL,
  created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX mail_queue_by_next ON mail_queue (next_at, id);

-- Identity providers that are offered to everyone, set by command; those of the configuration file are not stored.
CREATE TABLE operator_providers (
  id TEXT NOT NULL PRIMARY KEY,
  -- What the page shows.
  label TEXT NOT NULL,
  issuer TEXT NOT NULL,
  client_id TEXT NOT NULL,
  -- Sealed; empty for a public client.
  client_secret BLOB NOT NULL,
  -- JSON array, besides openid.
  scopes TEXT NOT NULL,
  created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- People who are signed in. A token that names a session ends with its row.
CREATE TABLE sessions (
  id TEXT NOT NULL PRIMARY KEY,
  identity TEXT NOT NULL,
  -- UIDP of the organization's provider; '' for one of the operator's.
  provider TEXT NOT NULL,
  -- SHA-256 of the browser's cookie, where there is one.
  cookie_hash BLOB,
  created_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX sessions_by_identity ON sessions (identity, provider);
CREATE INDEX sessions_by_provider ON sessions (provider, id);
CREATE UNIQUE INDEX sessions_by_cookie ON sessions (cookie_hash) WHERE cookie_hash IS NOT NULL;
CREATE INDEX sessions_by_end ON sessions (expires_at, id);
-- Groups of the provider that the person was in when the session began.
CREATE TABLE session_groups (
  session TEXT NOT NULL,
  external_group TEXT NOT NULL,
  PRIMARY KEY (session, external_group)
) STRICT, WITHOUT ROWID;

-- Refresh tokens by SHA-256. A family ends as a whole.
CREATE TABLE refresh_tokens (
  hash BLOB NOT NULL PRIMARY KEY,
  family TEXT NOT NULL,
  session TEXT NOT NULL,
  identity TEXT NOT NULL,
  -- JSON array of audiences.
  audiences TEXT NOT NULL,
  -- JSON object as in the token's narrowing claim.
  narrowing TEXT NOT NULL,
  expires_at INTEGER NOT NULL,
  spent_at INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX refresh_tokens_by_family ON refresh_tokens (family);
CREATE INDEX refresh_tokens_by_session ON refresh_tokens (session);
CREATE INDEX refresh_tokens_by_end ON refresh_tokens (expires_at);

-- Sign-ins under way, by SHA-256 of what the browser holds.
CREATE TABLE signin_flows (
  hash BLOB NOT NULL PRIMARY KEY,
  -- JSON: what was asked for and how far it came.
  state TEXT NOT NULL,
  expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX signin_flows_by_end ON signin_flows (expires_at);

-- Results of the headless flow, read once. `code` is the SHA-256 of the client's public key.
CREATE TABLE headless_sessions (
  code BLOB NOT NULL PRIMARY KEY,
  public_key TEXT NOT NULL,
  sealed BLOB NOT NULL,
  expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX headless_sessions_by_end ON headless_sessions (expires_at);

-- Device authorizations (RFC 8628), by SHA-256 of both codes.
CREATE TABLE device_codes (
  device_hash BLOB NOT NULL PRIMARY KEY,
  user_hash BLOB NOT NULL,
  -- JSON: client, scopes, address, and the outcome.
  state TEXT NOT NULL,
  polled_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX device_codes_user ON device_codes (user_hash);
CREATE INDEX device_codes_by_end ON device_codes (expires_at);

-- Links that work once, by SHA-256 of their code.
CREATE TABLE one_time_links (
  hash BLOB NOT NULL PRIMARY KEY,
  purpose TEXT NOT NULL,
  expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
