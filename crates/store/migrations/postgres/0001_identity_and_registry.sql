-- Groups: the nodes of the hierarchy. `parent` is '' and `org` is the group itself for an organization.
CREATE TABLE groups (
  uid TEXT COLLATE "C" NOT NULL PRIMARY KEY,
  parent TEXT COLLATE "C" NOT NULL,
  org TEXT COLLATE "C" NOT NULL,
  name TEXT COLLATE "C" NOT NULL,
  description TEXT COLLATE "C" NOT NULL,
  verified BOOLEAN NOT NULL,
  kind BIGINT NOT NULL,
  status BIGINT NOT NULL,
  -- JSON object of counters; '{}' for none.
  resource_limits TEXT COLLATE "C" NOT NULL,
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL
);
CREATE UNIQUE INDEX groups_name ON groups (parent, name) WHERE parent <> '';
CREATE UNIQUE INDEX groups_verified_name ON groups (name) WHERE parent = '' AND verified;
CREATE INDEX groups_by_parent ON groups (parent, uid);
CREATE INDEX groups_by_name ON groups (org, name, uid);
CREATE INDEX groups_by_created ON groups (org, created_at, uid);

-- Roles: built-in ones have no parent. `capabilities` are 32 bytes of bits.
CREATE TABLE roles (
  uid TEXT COLLATE "C" NOT NULL PRIMARY KEY,
  parent TEXT COLLATE "C" NOT NULL,
  org TEXT COLLATE "C" NOT NULL,
  name TEXT COLLATE "C" NOT NULL,
  description TEXT COLLATE "C" NOT NULL,
  capabilities BYTEA NOT NULL,
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL
);
CREATE UNIQUE INDEX roles_name ON roles (parent, name);
CREATE INDEX roles_by_parent ON roles (parent, uid);
CREATE INDEX roles_by_name ON roles (org, name, uid);
CREATE INDEX roles_by_created ON roles (org, created_at, uid);

-- Identities: people have no parent.
CREATE TABLE identities (
  uid TEXT COLLATE "C" NOT NULL PRIMARY KEY,
  parent TEXT COLLATE "C" NOT NULL,
  org TEXT COLLATE "C" NOT NULL,
  name TEXT COLLATE "C" NOT NULL,
  description TEXT COLLATE "C" NOT NULL,
  email TEXT COLLATE "C" NOT NULL,
  email_unverified TEXT COLLATE "C" NOT NULL,
  company TEXT COLLATE "C" NOT NULL,
  -- Number of the relationship type; 0 for people.
  relationship_type BIGINT NOT NULL,
  -- The relationship as an encoded Identity message of the second version that holds nothing else.
  relationship BYTEA NOT NULL,
  -- Exact issuer and subject, '' where they are patterns or absent.
  issuer TEXT COLLATE "C" NOT NULL,
  subject TEXT COLLATE "C" NOT NULL,
  expires_at BIGINT,
  deactivated BOOLEAN NOT NULL,
  last_seen_at BIGINT,
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL
);
CREATE INDEX identities_by_subject ON identities (issuer, subject, uid);
CREATE INDEX identities_by_parent ON identities (parent, uid);
CREATE INDEX identities_by_name ON identities (org, name, uid);
CREATE INDEX identities_by_created ON identities (org, created_at, uid);

-- Role bindings: `parent` is the group that the role is granted at.
CREATE TABLE role_bindings (
  uid TEXT COLLATE "C" NOT NULL PRIMARY KEY,
  parent TEXT COLLATE "C" NOT NULL,
  org TEXT COLLATE "C" NOT NULL,
  identity TEXT COLLATE "C" NOT NULL,
  role TEXT COLLATE "C" NOT NULL,
  created_at BIGINT NOT NULL
);
CREATE UNIQUE INDEX role_bindings_once ON role_bindings (identity, role, parent);
CREATE INDEX role_bindings_by_parent ON role_bindings (parent, uid);
CREATE INDEX role_bindings_by_role ON role_bindings (role, uid);
CREATE INDEX role_bindings_by_created ON role_bindings (org, created_at, uid);

-- Repositories. `spec` is an encoded Repo message of the second version without uid, name, description and times.
CREATE TABLE repos (
  uid TEXT COLLATE "C" NOT NULL PRIMARY KEY,
  parent TEXT COLLATE "C" NOT NULL,
  org TEXT COLLATE "C" NOT NULL,
  name TEXT COLLATE "C" NOT NULL,
  description TEXT COLLATE "C" NOT NULL,
  spec BYTEA NOT NULL,
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL
);
CREATE UNIQUE INDEX repos_name ON repos (parent, name);
CREATE INDEX repos_by_parent ON repos (parent, uid);
CREATE INDEX repos_by_name ON repos (org, name, uid);
CREATE INDEX repos_by_created ON repos (org, created_at, uid);
CREATE TABLE repo_readmes (
  repo TEXT COLLATE "C" NOT NULL PRIMARY KEY,
  content TEXT COLLATE "C" NOT NULL
);

-- What must not be read from a copy of the database alone: sealed with the key file.
CREATE TABLE signing_keys (
  kid TEXT COLLATE "C" NOT NULL PRIMARY KEY,
  algorithm TEXT COLLATE "C" NOT NULL,
  sealed BYTEA NOT NULL,
  -- Unix seconds.
  published_at BIGINT NOT NULL,
  signs_from BIGINT NOT NULL,
  retired_at BIGINT
);
CREATE TABLE secrets (
  name TEXT COLLATE "C" NOT NULL PRIMARY KEY,
  sealed BYTEA NOT NULL
);

-- Revision of everything that permissions are read from (used where reading it is cheaper).
CREATE TABLE revisions (
  name TEXT COLLATE "C" NOT NULL PRIMARY KEY,
  n BIGINT NOT NULL
);
INSERT INTO revisions (name, n) VALUES ('iam', 1);

-- The audit log. `org` is the first segment of the resource.
CREATE TABLE audit (
  id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  seq BIGINT,
  -- Rows are numbered after commit, in the order of the transactions.
  txid BIGINT NOT NULL DEFAULT (pg_current_xact_id()::text::bigint),
  at BIGINT NOT NULL,
  org TEXT COLLATE "C" NOT NULL,
  actor TEXT COLLATE "C" NOT NULL,
  method TEXT COLLATE "C" NOT NULL,
  request_id TEXT COLLATE "C" NOT NULL,
  kind TEXT COLLATE "C" NOT NULL,
  resource TEXT COLLATE "C" NOT NULL,
  before_type TEXT COLLATE "C",
  before_image BYTEA,
  after_type TEXT COLLATE "C",
  after_image BYTEA
);

-- Events that wait for delivery.
CREATE TABLE outbox (
  id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  at BIGINT NOT NULL,
  event_type TEXT COLLATE "C" NOT NULL,
  customer BOOLEAN NOT NULL,
  org TEXT COLLATE "C" NOT NULL,
  group_uid TEXT COLLATE "C" NOT NULL,
  subject TEXT COLLATE "C" NOT NULL,
  method TEXT COLLATE "C" NOT NULL,
  actor TEXT COLLATE "C" NOT NULL,
  extensions TEXT COLLATE "C" NOT NULL,
  body_type TEXT COLLATE "C" NOT NULL,
  body BYTEA NOT NULL
);

-- What the running server told about itself, for commands beside it: its addresses and audiences.
CREATE TABLE facts (
  name TEXT COLLATE "C" NOT NULL PRIMARY KEY,
  value TEXT COLLATE "C" NOT NULL
);

-- Background work that one replica does at a time.
CREATE TABLE leases (
  name TEXT COLLATE "C" NOT NULL PRIMARY KEY,
  holder TEXT COLLATE "C" NOT NULL,
  until BIGINT NOT NULL
);
