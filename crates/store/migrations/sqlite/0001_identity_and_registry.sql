-- Groups: the nodes of the hierarchy. `parent` is '' and `org` is the group itself for an organization.
CREATE TABLE groups (
  uid TEXT NOT NULL PRIMARY KEY,
  parent TEXT NOT NULL,
  org TEXT NOT NULL,
  name TEXT NOT NULL,
  description TEXT NOT NULL,
  verified INTEGER NOT NULL CHECK (verified IN (0, 1)),
  kind INTEGER NOT NULL,
  status INTEGER NOT NULL,
  -- JSON object of counters; '{}' for none.
  resource_limits TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX groups_name ON groups (parent, name) WHERE parent <> '';
CREATE UNIQUE INDEX groups_verified_name ON groups (name) WHERE parent = '' AND verified;
CREATE INDEX groups_by_parent ON groups (parent, uid);
CREATE INDEX groups_by_name ON groups (org, name, uid);
CREATE INDEX groups_by_created ON groups (org, created_at, uid);

-- Roles: built-in ones have no parent. `capabilities` are 32 bytes of bits.
CREATE TABLE roles (
  uid TEXT NOT NULL PRIMARY KEY,
  parent TEXT NOT NULL,
  org TEXT NOT NULL,
  name TEXT NOT NULL,
  description TEXT NOT NULL,
  capabilities BLOB NOT NULL,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX roles_name ON roles (parent, name);
CREATE INDEX roles_by_parent ON roles (parent, uid);
CREATE INDEX roles_by_name ON roles (org, name, uid);
CREATE INDEX roles_by_created ON roles (org, created_at, uid);

-- Identities: people have no parent.
CREATE TABLE identities (
  uid TEXT NOT NULL PRIMARY KEY,
  parent TEXT NOT NULL,
  org TEXT NOT NULL,
  name TEXT NOT NULL,
  description TEXT NOT NULL,
  email TEXT NOT NULL,
  email_unverified TEXT NOT NULL,
  company TEXT NOT NULL,
  -- Number of the relationship type; 0 for people.
  relationship_type INTEGER NOT NULL,
  -- The relationship as an encoded Identity message of the second version that holds nothing else.
  relationship BLOB NOT NULL,
  -- Exact issuer and subject, '' where they are patterns or absent.
  issuer TEXT NOT NULL,
  subject TEXT NOT NULL,
  expires_at INTEGER,
  deactivated INTEGER NOT NULL CHECK (deactivated IN (0, 1)),
  last_seen_at INTEGER,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX identities_by_subject ON identities (issuer, subject, uid);
CREATE INDEX identities_by_parent ON identities (parent, uid);
CREATE INDEX identities_by_name ON identities (org, name, uid);
CREATE INDEX identities_by_created ON identities (org, created_at, uid);

-- Role bindings: `parent` is the group that the role is granted at.
CREATE TABLE role_bindings (
  uid TEXT NOT NULL PRIMARY KEY,
  parent TEXT NOT NULL,
  org TEXT NOT NULL,
  identity TEXT NOT NULL,
  role TEXT NOT NULL,
  created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX role_bindings_once ON role_bindings (identity, role, parent);
CREATE INDEX role_bindings_by_parent ON role_bindings (parent, uid);
CREATE INDEX role_bindings_by_role ON role_bindings (role, uid);
CREATE INDEX role_bindings_by_created ON role_bindings (org, created_at, uid);

-- Repositories. `spec` is an encoded Repo message of the second version without uid, name, description and times.
CREATE TABLE repos (
  uid TEXT NOT NULL PRIMARY KEY,
  parent TEXT NOT NULL,
  org TEXT NOT NULL,
  name TEXT NOT NULL,
  description TEXT NOT NULL,
  spec BLOB NOT NULL,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX repos_name ON repos (parent, name);
CREATE INDEX repos_by_parent ON repos (parent, uid);
CREATE INDEX repos_by_name ON repos (org, name, uid);
CREATE INDEX repos_by_created ON repos (org, created_at, uid);
CREATE TABLE repo_readmes (
  repo TEXT NOT NULL PRIMARY KEY,
  content TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- What must not be read from a copy of the database alone: sealed with the key file.
CREATE TABLE signing_keys (
  kid TEXT NOT NULL PRIMARY KEY,
  algorithm TEXT NOT NULL,
  sealed BLOB NOT NULL,
  -- Unix seconds.
  published_at INTEGER NOT NULL,
  signs_from INTEGER NOT NULL,
  retired_at INTEGER
) STRICT, WITHOUT ROWID;
CREATE TABLE secrets (
  name TEXT NOT NULL PRIMARY KEY,
  sealed BLOB NOT NULL
) STRICT, WITHOUT ROWID;

-- Revision of everything that permissions are read from (used where reading it is cheaper).
CREATE TABLE revisions (
  name TEXT NOT NULL PRIMARY KEY,
  n INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO revisions (name, n) VALUES ('iam', 1);

-- The audit log. Rows are numbered by the writing transaction here; `org` is the first segment of the resource.
CREATE TABLE audit (
  seq INTEGER PRIMARY KEY,
  at INTEGER NOT NULL,
  org TEXT NOT NULL,
  actor TEXT NOT NULL,
  method TEXT NOT NULL,
  request_id TEXT NOT NULL,
  kind TEXT NOT NULL,
  resource TEXT NOT NULL,
  before_type TEXT,
  before_image BLOB,
  after_type TEXT,
  after_image BLOB
) STRICT;

-- Events that wait for delivery.
CREATE TABLE outbox (
  id INTEGER PRIMARY KEY,
  at INTEGER NOT NULL,
  event_type TEXT NOT NULL,
  customer INTEGER NOT NULL CHECK (customer IN (0, 1)),
  org TEXT NOT NULL,
  group_uid TEXT NOT NULL,
  subject TEXT NOT NULL,
  method TEXT NOT NULL,
  actor TEXT NOT NULL,
  extensions TEXT NOT NULL,
  body_type TEXT NOT NULL,
  body BLOB NOT NULL
) STRICT;

-- What the running server told about itself, for commands beside it: its addresses and audiences.
CREATE TABLE facts (
  name TEXT NOT NULL PRIMARY KEY,
  value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- Background work that one replica does at a time.
CREATE TABLE leases (
  name TEXT NOT NULL PRIMARY KEY,
  holder TEXT NOT NULL,
  until INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
