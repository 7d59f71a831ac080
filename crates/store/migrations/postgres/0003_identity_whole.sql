-- Identity providers of organizations.
CREATE TABLE identity_providers (
  uid TEXT COLLATE "C" NOT NULL PRIMARY KEY,
  parent TEXT COLLATE "C" NOT NULL,
  org TEXT COLLATE "C" NOT NULL,
  name TEXT COLLATE "C" NOT NULL,
  description TEXT COLLATE "C" NOT NULL,
  -- Role that a person gets at the parent when they come for the first time.
  default_role TEXT COLLATE "C" NOT NULL,
  issuer TEXT COLLATE "C" NOT NULL,
  client_id TEXT COLLATE "C" NOT NULL,
  -- Sealed; empty for a public client.
  client_secret BYTEA NOT NULL,
  -- JSON array.
  additional_scopes TEXT COLLATE "C" NOT NULL,
  groups_claim TEXT COLLATE "C" NOT NULL,
  correlation_rule BIGINT NOT NULL,
  pkce_enabled BOOLEAN NOT NULL,
  scim_enabled BOOLEAN NOT NULL,
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL
);
CREATE INDEX identity_providers_by_parent ON identity_providers (parent, uid);
CREATE INDEX identity_providers_by_name ON identity_providers (org, name, uid);
CREATE INDEX identity_providers_by_created ON identity_providers (org, created_at, uid);
CREATE INDEX identity_providers_by_issuer ON identity_providers (issuer, uid);
CREATE INDEX identity_providers_by_role ON identity_providers (default_role, uid);

-- The SCIM credential of a provider. No row: none was ever issued; no hash: it was revoked.
CREATE TABLE scim_tokens (
  provider TEXT COLLATE "C" NOT NULL PRIMARY KEY,
  -- SHA-256 of the token.
  hash BYTEA,
  -- Absent for one that never expires.
  expires_at BIGINT,
  -- The one before, which works until it expires.
  previous_hash BYTEA,
  previous_expires_at BIGINT,
  revoked_at BIGINT,
  -- Grows with every change: the etag.
  revision BIGINT NOT NULL
);

-- People that an organization's directory provisions. `uid` is a child of the provider.
CREATE TABLE scim_users (
  uid TEXT COLLATE "C" NOT NULL PRIMARY KEY,
  provider TEXT COLLATE "C" NOT NULL,
  org TEXT COLLATE "C" NOT NULL,
  external_id TEXT COLLATE "C" NOT NULL,
  -- Lower case: SCIM compares user names that way.
  user_name TEXT COLLATE "C" NOT NULL,
  -- UIDP of the person; '' until it is known.
  person TEXT COLLATE "C" NOT NULL,
  active BOOLEAN NOT NULL,
  -- The SCIM resource as JSON.
  resource TEXT COLLATE "C" NOT NULL,
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL
);
CREATE UNIQUE INDEX scim_users_external_id ON scim_users (provider, external_id);
CREATE UNIQUE INDEX scim_users_user_name ON scim_users (provider, user_name);
CREATE INDEX scim_users_by_person ON scim_users (person, org);

-- Roles that members of a provider's groups have while they are signed in. `parent` is the provider.
CREATE TABLE external_group_role_mappings (
  uid TEXT COLLATE "C" NOT NULL PRIMARY KEY,
  parent TEXT COLLATE "C" NOT NULL,
  org TEXT COLLATE "C" NOT NULL,
  external_group TEXT COLLATE "C" NOT NULL,
  role TEXT COLLATE "C" NOT NULL,
  -- The group that the role is granted at.
  scope TEXT COLLATE "C" NOT NULL,
  created_at BIGINT NOT NULL
);
CREATE UNIQUE INDEX external_group_role_mappings_once ON external_group_role_mappings (parent, external_group, role, scope);
CREATE INDEX external_group_role_mappings_by_parent ON external_group_role_mappings (parent, uid);
CREATE INDEX external_group_role_mappings_by_created ON external_group_role_mappings (org, created_at, uid);
CREATE INDEX external_group_role_mappings_by_role ON external_group_role_mappings (role, uid);

-- Invitations into a group, which is `parent`. The code is not stored: its signature is checked.
CREATE TABLE group_invites (
  uid TEXT COLLATE "C" NOT NULL PRIMARY KEY,
  parent TEXT COLLATE "C" NOT NULL,
  org TEXT COLLATE "C" NOT NULL,
  role TEXT COLLATE "C" NOT NULL,
  email TEXT COLLATE "C" NOT NULL,
  key_id TEXT COLLATE "C" NOT NULL,
  single_use BOOLEAN NOT NULL,
  -- Who invited: must still hold what the role gives when the invitation is used.
  inviter TEXT COLLATE "C" NOT NULL,
  expires_at BIGINT NOT NULL,
  used_at BIGINT,
  created_at BIGINT NOT NULL
);
CREATE UNIQUE INDEX group_invites_key ON group_invites (key_id);
CREATE INDEX group_invites_by_parent ON group_invites (parent, uid);
CREATE INDEX group_invites_by_created ON group_invites (org, created_at, uid);
CREATE INDEX group_invites_by_role ON group_invites (role, uid);

-- Accounts elsewhere that belong to a group, whose UIDP is `uid`. `spec` is an encoded AccountAssociation
-- message of the second version without uid, name, description and times.
CREATE TABLE account_associations (
  uid TEXT COLLATE "C" NOT NULL PRIMARY KEY,
  parent TEXT COLLATE "C" NOT NULL,
  org TEXT COLLATE "C" NOT NULL,
  name TEXT COLLATE "C" NOT NULL,
  description TEXT COLLATE "C" NOT NULL,
  spec BYTEA NOT NULL,
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL
);
CREATE INDEX account_associations_by_parent ON account_associations (parent, uid);
CREATE INDEX account_associations_by_name ON account_associations (org, name, uid);
CREATE INDEX account_associations_by_created ON account_associations (org, created_at, uid);

-- Documents that an organization, which is `parent`, has accepted.
CREATE TABLE terms_acceptances (
  uid TEXT COLLATE "C" NOT NULL PRIMARY KEY,
  parent TEXT COLLATE "C" NOT NULL,
  org TEXT COLLATE "C" NOT NULL,
  document TEXT COLLATE "C" NOT NULL,
  accepted_by TEXT COLLATE "C" NOT NULL,
  created_at BIGINT NOT NULL
);
CREATE UNIQUE INDEX terms_acceptances_once ON terms_acceptances (parent, document);
CREATE INDEX terms_acceptances_by_parent ON terms_acceptances (parent, uid);
CREATE INDEX terms_acceptances_by_created ON terms_acceptances (org, created_at, uid);

-- What people tell of themselves: an encoded IdentityMetadata message of the second version.
CREATE TABLE identity_metadata (
  identity TEXT COLLATE "C" NOT NULL PRIMARY KEY,
  metadata BYTEA NOT NULL,
  updated_at BIGINT NOT NULL
);

-- Who asked to be let into which group, and when last.
CREATE TABLE access_requests (
  identity TEXT COLLATE "C" NOT NULL,
  group_uid TEXT COLLATE "C" NOT NULL,
  at BIGINT NOT NULL,
  PRIMARY KEY (identity, group_uid)
);

-- Mail that waits for the relay.
CREATE TABLE mail_queue (
  id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
  recipient TEXT COLLATE "C" NOT NULL,
  subject TEXT COLLATE "C" NOT NULL,
  body TEXT COLLATE "C" NOT NULL,
  attempts BIGINT NOT NULL,
  next_at BIGINT NOT NULL,
  created_at BIGINT NOT NULL
);
CREATE INDEX mail_queue_by_next ON mail_queue (next_at, id);

-- Identity providers that are offered to everyone, set by command; those of the configuration file are not stored.
CREATE TABLE operator_providers (
  id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
  -- What the page shows.
  label TEXT COLLATE "C" NOT NULL,
  issuer TEXT COLLATE "C" NOT NULL,
  client_id TEXT COLLATE "C" NOT NULL,
  -- Sealed; empty for a public client.
  client_secret BYTEA NOT NULL,
  -- JSON array, besides openid.
  scopes TEXT COLLATE "C" NOT NULL,
  created_at BIGINT NOT NULL
);

-- People who are signed in. A token that names a session ends with its row.
CREATE TABLE sessions (
  id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
  identity TEXT COLLATE "C" NOT NULL,
  -- UIDP of the organization's provider; '' for one of the operator's.
  provider TEXT COLLATE "C" NOT NULL,
  -- SHA-256 of the browser's cookie, where there is one.
  cookie_hash BYTEA,
  created_at BIGINT NOT NULL,
  expires_at BIGINT NOT NULL
);
CREATE INDEX sessions_by_identity ON sessions (identity, provider);
CREATE INDEX sessions_by_provider ON sessions (provider, id);
CREATE UNIQUE INDEX sessions_by_cookie ON sessions (cookie_hash) WHERE cookie_hash IS NOT NULL;
CREATE INDEX sessions_by_end ON sessions (expires_at, id);
-- Groups of the provider that the person was in when the session began.
CREATE TABLE session_groups (
  session TEXT COLLATE "C" NOT NULL,
  external_group TEXT COLLATE "C" NOT NULL,
  PRIMARY KEY (session, external_group)
);

-- Refresh tokens by SHA-256. A family ends as a whole.
CREATE TABLE refresh_tokens (
  hash BYTEA NOT NULL PRIMARY KEY,
  family TEXT COLLATE "C" NOT NULL,
  session TEXT COLLATE "C" NOT NULL,
  identity TEXT COLLATE "C" NOT NULL,
  -- JSON array of audiences.
  audiences TEXT COLLATE "C" NOT NULL,
  -- JSON object as in the token's narrowing claim.
  narrowing TEXT COLLATE "C" NOT NULL,
  expires_at BIGINT NOT NULL,
  spent_at BIGINT
);
CREATE INDEX refresh_tokens_by_family ON refresh_tokens (family);
CREATE INDEX refresh_tokens_by_session ON refresh_tokens (session);
CREATE INDEX refresh_tokens_by_end ON refresh_tokens (expires_at);

-- Sign-ins under way, by SHA-256 of what the browser holds.
CREATE TABLE signin_flows (
  hash BYTEA NOT NULL PRIMARY KEY,
  -- JSON: what was asked for and how far it came.
  state TEXT COLLATE "C" NOT NULL,
  expires_at BIGINT NOT NULL
);
CREATE INDEX signin_flows_by_end ON signin_flows (expires_at);

-- Results of the headless flow, read once. `code` is the SHA-256 of the client's public key.
CREATE TABLE headless_sessions (
  code BYTEA NOT NULL PRIMARY KEY,
  public_key TEXT COLLATE "C" NOT NULL,
  sealed BYTEA NOT NULL,
  expires_at BIGINT NOT NULL
);
CREATE INDEX headless_sessions_by_end ON headless_sessions (expires_at);

-- Device authorizations (RFC 8628), by SHA-256 of both codes.
CREATE TABLE device_codes (
  device_hash BYTEA NOT NULL PRIMARY KEY,
  user_hash BYTEA NOT NULL,
  -- JSON: client, scopes, address, and the outcome.
  state TEXT COLLATE "C" NOT NULL,
  polled_at BIGINT NOT NULL,
  expires_at BIGINT NOT NULL
);
CREATE UNIQUE INDEX device_codes_user ON device_codes (user_hash);
CREATE INDEX device_codes_by_end ON device_codes (expires_at);

-- Links that work once, by SHA-256 of their code.
CREATE TABLE one_time_links (
  hash BYTEA NOT NULL PRIMARY KEY,
  purpose TEXT COLLATE "C" NOT NULL,
  expires_at BIGINT NOT NULL
);
