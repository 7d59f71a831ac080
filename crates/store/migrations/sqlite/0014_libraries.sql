-- Packages of language ecosystems that the operator has taken in. They belong to no organization. `ecosystem` holds the
-- numbers of the wire contract, without those of remediated tiers: these are sources of versions.
CREATE TABLE library_artifacts (
  -- One segment of a path: `python:requests`, `java:org.slf4j:slf4j-api`, `javascript:@scope:name`.
  id TEXT NOT NULL PRIMARY KEY,
  ecosystem INTEGER NOT NULL,
  name TEXT NOT NULL,
  -- The name in lower case: what lists sort by and what is searched.
  folded TEXT NOT NULL,
  description TEXT NOT NULL,
  license TEXT NOT NULL,
  -- The highest version of all, and of those that were built.
  latest TEXT NOT NULL,
  latest_built TEXT NOT NULL,
  version_count INTEGER NOT NULL,
  built_count INTEGER NOT NULL,
  upstream_count INTEGER NOT NULL,
  -- Whether there is a version from another source than upstream, and whether one of these is remediated.
  is_built INTEGER NOT NULL CHECK (is_built IN (0, 1)),
  is_remediated INTEGER NOT NULL CHECK (is_remediated IN (0, 1)),
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX library_artifacts_by_name ON library_artifacts (ecosystem, folded, id);
CREATE INDEX library_artifacts_built ON library_artifacts (ecosystem, is_built, folded, id);
CREATE INDEX library_artifacts_remediated ON library_artifacts (ecosystem, is_remediated, folded, id);
CREATE INDEX library_artifacts_by_created ON library_artifacts (ecosystem, is_built, created_at, id);
CREATE INDEX library_artifacts_by_updated ON library_artifacts (ecosystem, is_built, updated_at, id);

-- How many artifacts there are, kept in the transaction that brings them.
CREATE TABLE library_artifact_counts (
  ecosystem INTEGER NOT NULL PRIMARY KEY,
  total INTEGER NOT NULL,
  built INTEGER NOT NULL,
  remediated INTEGER NOT NULL,
  upstream INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Every three characters of every folded name: substring search on both engines, in the order of names.
CREATE TABLE library_trigrams (
  trigram TEXT NOT NULL,
  ecosystem INTEGER NOT NULL,
  folded TEXT NOT NULL,
  artifact TEXT NOT NULL,
  is_built INTEGER NOT NULL CHECK (is_built IN (0, 1)),
  PRIMARY KEY (trigram, ecosystem, folded, artifact)
) STRICT, WITHOUT ROWID;
CREATE INDEX library_trigrams_by_artifact ON library_trigrams (artifact);

-- Which CUDA versions the builds of an artifact are for, from local versions such as `2.3.0+cu128`.
CREATE TABLE library_cuda (
  artifact TEXT NOT NULL,
  cuda_version TEXT NOT NULL,
  PRIMARY KEY (artifact, cuda_version)
) STRICT, WITHOUT ROWID;

CREATE TABLE library_versions (
  artifact TEXT NOT NULL,
  -- Bytes that order versions as the ecosystem does.
  sort_key BLOB NOT NULL,
  version TEXT NOT NULL,
  -- Where it was made, by the numbers of the wire contract.
  source INTEGER NOT NULL,
  description TEXT NOT NULL,
  license TEXT NOT NULL,
  is_prerelease INTEGER NOT NULL CHECK (is_prerelease IN (0, 1)),
  size_bytes INTEGER NOT NULL,
  published_at INTEGER,
  -- Of npm's packages: files in the tarball, its manifest as JSON.
  file_count INTEGER NOT NULL,
  metadata TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  PRIMARY KEY (artifact, version, source)
) STRICT, WITHOUT ROWID;
CREATE INDEX library_versions_by_version ON library_versions (artifact, sort_key, version, source);

-- The files of a version.
CREATE TABLE library_files (
  artifact TEXT NOT NULL,
  version TEXT NOT NULL,
  source INTEGER NOT NULL,
  name TEXT NOT NULL,
  size_bytes INTEGER NOT NULL,
  -- Lower-case hex.
  sha256 TEXT NOT NULL,
  sha512 TEXT NOT NULL,
  PRIMARY KEY (artifact, version, source, name)
) STRICT, WITHOUT ROWID;

-- Packages that are withheld as malicious.
CREATE TABLE library_malware (
  -- The ecosystem in lower case; `spelled` is what its report writes.
  ecosystem TEXT NOT NULL,
  package TEXT NOT NULL,
  -- '' where the whole package is withheld.
  version TEXT NOT NULL,
  malid TEXT NOT NULL,
  spelled TEXT NOT NULL,
  scope INTEGER NOT NULL,
  source TEXT NOT NULL,
  blocked_at INTEGER NOT NULL,
  -- JSON array of texts.
  reason TEXT NOT NULL,
  description TEXT NOT NULL,
  PRIMARY KEY (ecosystem, package, version, malid)
) STRICT, WITHOUT ROWID;
CREATE INDEX library_malware_by_time ON library_malware (blocked_at DESC, package, version, malid, ecosystem);
CREATE INDEX library_malware_by_package ON library_malware (package, blocked_at);
CREATE INDEX library_malware_by_report ON library_malware (malid);

-- Which ecosystems an organization may use.
CREATE TABLE library_entitlements (
  uid TEXT NOT NULL PRIMARY KEY,
  parent TEXT NOT NULL,
  org TEXT NOT NULL,
  ecosystem INTEGER NOT NULL,
  policy INTEGER NOT NULL,
  source INTEGER NOT NULL,
  cooldown_days INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX library_entitlements_ecosystem ON library_entitlements (parent, ecosystem);
CREATE INDEX library_entitlements_by_parent ON library_entitlements (parent, uid);

CREATE TABLE library_policies (
  uid TEXT NOT NULL PRIMARY KEY,
  parent TEXT NOT NULL,
  org TEXT NOT NULL,
  name TEXT NOT NULL,
  policy_type INTEGER NOT NULL,
  -- The message as it is shown, without what stands in the other columns.
  policy BLOB NOT NULL,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX library_policies_name ON library_policies (parent, name);
CREATE INDEX library_policies_by_parent ON library_policies (parent, uid);

CREATE TABLE library_policy_bindings (
  uid TEXT NOT NULL PRIMARY KEY,
  parent TEXT NOT NULL,
  org TEXT NOT NULL,
  policy TEXT NOT NULL,
  ecosystem INTEGER NOT NULL,
  mode INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX library_policy_bindings_place ON library_policy_bindings (parent, ecosystem, mode);
CREATE INDEX library_policy_bindings_by_parent ON library_policy_bindings (parent, uid);
CREATE INDEX library_policy_bindings_by_policy ON library_policy_bindings (policy);

-- Downloads that a policy refused or would have refused, one row for all attempts.
CREATE TABLE library_block_events (
  uid TEXT NOT NULL PRIMARY KEY,
  parent TEXT NOT NULL,
  org TEXT NOT NULL,
  purl TEXT NOT NULL,
  package TEXT NOT NULL,
  ecosystem INTEGER NOT NULL,
  mode INTEGER NOT NULL,
  reason TEXT NOT NULL,
  policy TEXT NOT NULL,
  published_at INTEGER,
  cooldown_days INTEGER NOT NULL,
  unblocks_at INTEGER,
  first_blocked_at INTEGER NOT NULL,
  last_blocked_at INTEGER NOT NULL,
  attempts INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX library_block_events_same ON library_block_events (parent, purl, mode, reason, policy);
CREATE INDEX library_block_events_by_parent ON library_block_events (parent, uid);
CREATE INDEX library_block_events_by_last ON library_block_events (org, last_blocked_at, uid);

-- From which tier an organization was served a version, so that it is served from there again.
CREATE TABLE library_resolutions (
  org TEXT NOT NULL,
  ecosystem INTEGER NOT NULL,
  registry TEXT NOT NULL,
  package TEXT NOT NULL,
  version TEXT NOT NULL,
  tier INTEGER NOT NULL,
  digest TEXT NOT NULL,
  -- In effect while it is the generation of the ecosystem; 0 once it was forgotten by itself.
  generation INTEGER NOT NULL,
  observed_at INTEGER NOT NULL,
  PRIMARY KEY (org, ecosystem, registry, package, version)
) STRICT, WITHOUT ROWID;

CREATE TABLE library_watermarks (
  org TEXT NOT NULL,
  ecosystem INTEGER NOT NULL,
  generation INTEGER NOT NULL,
  zap_count INTEGER NOT NULL,
  opted_out INTEGER NOT NULL CHECK (opted_out IN (0, 1)),
  last_zapped_at INTEGER,
  PRIMARY KEY (org, ecosystem)
) STRICT, WITHOUT ROWID;

-- What the last zap with a key of its caller's answered.
CREATE TABLE library_zaps (
  org TEXT NOT NULL PRIMARY KEY,
  idempotency_key TEXT NOT NULL,
  summary BLOB NOT NULL
) STRICT, WITHOUT ROWID;
