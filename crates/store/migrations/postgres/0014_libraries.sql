-- Packages of language ecosystems that the operator has taken in. They belong to no organization. `ecosystem` holds the
-- numbers of the wire contract, without those of remediated tiers: these are sources of versions.
CREATE TABLE library_artifacts (
  -- One segment of a path: `python:requests`, `java:org.slf4j:slf4j-api`, `javascript:@scope:name`.
  id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
  ecosystem BIGINT NOT NULL,
  name TEXT COLLATE "C" NOT NULL,
  -- The name in lower case: what lists sort by and what is searched.
  folded TEXT COLLATE "C" NOT NULL,
  description TEXT COLLATE "C" NOT NULL,
  license TEXT COLLATE "C" NOT NULL,
  -- The highest version of all, and of those that were built.
  latest TEXT COLLATE "C" NOT NULL,
  latest_built TEXT COLLATE "C" NOT NULL,
  version_count BIGINT NOT NULL,
  built_count BIGINT NOT NULL,
  upstream_count BIGINT NOT NULL,
  -- Whether there is a version from another source than upstream, and whether one of these is remediated.
  is_built BOOLEAN NOT NULL,
  is_remediated BOOLEAN NOT NULL,
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL
);
CREATE INDEX library_artifacts_by_name ON library_artifacts (ecosystem, folded, id);
CREATE INDEX library_artifacts_built ON library_artifacts (ecosystem, is_built, folded, id);
CREATE INDEX library_artifacts_remediated ON library_artifacts (ecosystem, is_remediated, folded, id);
CREATE INDEX library_artifacts_by_created ON library_artifacts (ecosystem, is_built, created_at, id);
CREATE INDEX library_artifacts_by_updated ON library_artifacts (ecosystem, is_built, updated_at, id);

-- How many artifacts there are, kept in the transaction that brings them.
CREATE TABLE library_artifact_counts (
  ecosystem BIGINT NOT NULL PRIMARY KEY,
  total BIGINT NOT NULL,
  built BIGINT NOT NULL,
  remediated BIGINT NOT NULL,
  upstream BIGINT NOT NULL
);

-- Every three characters of every folded name: substring search on both engines, in the order of names.
CREATE TABLE library_trigrams (
  trigram TEXT COLLATE "C" NOT NULL,
  ecosystem BIGINT NOT NULL,
  folded TEXT COLLATE "C" NOT NULL,
  artifact TEXT COLLATE "C" NOT NULL,
  is_built BOOLEAN NOT NULL,
  PRIMARY KEY (trigram, ecosystem, folded, artifact)
);
CREATE INDEX library_trigrams_by_artifact ON library_trigrams (artifact);

-- Which CUDA versions the builds of an artifact are for, from local versions such as `2.3.0+cu128`.
CREATE TABLE library_cuda (
  artifact TEXT COLLATE "C" NOT NULL,
  cuda_version TEXT COLLATE "C" NOT NULL,
  PRIMARY KEY (artifact, cuda_version)
);

CREATE TABLE library_versions (
  artifact TEXT COLLATE "C" NOT NULL,
  -- Bytes that order versions as the ecosystem does.
  sort_key BYTEA NOT NULL,
  version TEXT COLLATE "C" NOT NULL,
  -- Where it was made, by the numbers of the wire contract.
  source BIGINT NOT NULL,
  description TEXT COLLATE "C" NOT NULL,
  license TEXT COLLATE "C" NOT NULL,
  is_prerelease BOOLEAN NOT NULL,
  size_bytes BIGINT NOT NULL,
  published_at BIGINT,
  -- Of npm's packages: files in the tarball, its manifest as JSON.
  file_count BIGINT NOT NULL,
  metadata TEXT COLLATE "C" NOT NULL,
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL,
  PRIMARY KEY (artifact, version, source)
);
CREATE INDEX library_versions_by_version ON library_versions (artifact, sort_key, version, source);

-- The files of a version.
CREATE TABLE library_files (
  artifact TEXT COLLATE "C" NOT NULL,
  version TEXT COLLATE "C" NOT NULL,
  source BIGINT NOT NULL,
  name TEXT COLLATE "C" NOT NULL,
  size_bytes BIGINT NOT NULL,
  -- Lower-case hex.
  sha256 TEXT COLLATE "C" NOT NULL,
  sha512 TEXT COLLATE "C" NOT NULL,
  PRIMARY KEY (artifact, version, source, name)
);

-- Packages that are withheld as malicious.
CREATE TABLE library_malware (
  -- The ecosystem in lower case; `spelled` is what its report writes.
  ecosystem TEXT COLLATE "C" NOT NULL,
  package TEXT COLLATE "C" NOT NULL,
  -- '' where the whole package is withheld.
  version TEXT COLLATE "C" NOT NULL,
  malid TEXT COLLATE "C" NOT NULL,
  spelled TEXT COLLATE "C" NOT NULL,
  scope BIGINT NOT NULL,
  source TEXT COLLATE "C" NOT NULL,
  blocked_at BIGINT NOT NULL,
  -- JSON array of texts.
  reason TEXT COLLATE "C" NOT NULL,
  description TEXT COLLATE "C" NOT NULL,
  PRIMARY KEY (ecosystem, package, version, malid)
);
CREATE INDEX library_malware_by_time ON library_malware (blocked_at DESC, package, version, malid, ecosystem);
CREATE INDEX library_malware_by_package ON library_malware (package, blocked_at);
CREATE INDEX library_malware_by_report ON library_malware (malid);

-- Which ecosystems an organization may use.
CREATE TABLE library_entitlements (
  uid TEXT COLLATE "C" NOT NULL PRIMARY KEY,
  parent TEXT COLLATE "C" NOT NULL,
  org TEXT COLLATE "C" NOT NULL,
  ecosystem BIGINT NOT NULL,
  policy BIGINT NOT NULL,
  source BIGINT NOT NULL,
  cooldown_days BIGINT NOT NULL
);
CREATE UNIQUE INDEX library_entitlements_ecosystem ON library_entitlements (parent, ecosystem);
CREATE INDEX library_entitlements_by_parent ON library_entitlements (parent, uid);

CREATE TABLE library_policies (
  uid TEXT COLLATE "C" NOT NULL PRIMARY KEY,
  parent TEXT COLLATE "C" NOT NULL,
  org TEXT COLLATE "C" NOT NULL,
  name TEXT COLLATE "C" NOT NULL,
  policy_type BIGINT NOT NULL,
  -- The message as it is shown, without what stands in the other columns.
  policy BYTEA NOT NULL,
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL
);
CREATE UNIQUE INDEX library_policies_name ON library_policies (parent, name);
CREATE INDEX library_policies_by_parent ON library_policies (parent, uid);

CREATE TABLE library_policy_bindings (
  uid TEXT COLLATE "C" NOT NULL PRIMARY KEY,
  parent TEXT COLLATE "C" NOT NULL,
  org TEXT COLLATE "C" NOT NULL,
  policy TEXT COLLATE "C" NOT NULL,
  ecosystem BIGINT NOT NULL,
  mode BIGINT NOT NULL,
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL
);
CREATE UNIQUE INDEX library_policy_bindings_place ON library_policy_bindings (parent, ecosystem, mode);
CREATE INDEX library_policy_bindings_by_parent ON library_policy_bindings (parent, uid);
CREATE INDEX library_policy_bindings_by_policy ON library_policy_bindings (policy);

-- Downloads that a policy refused or would have refused, one row for all attempts.
CREATE TABLE library_block_events (
  uid TEXT COLLATE "C" NOT NULL PRIMARY KEY,
  parent TEXT COLLATE "C" NOT NULL,
  org TEXT COLLATE "C" NOT NULL,
  purl TEXT COLLATE "C" NOT NULL,
  package TEXT COLLATE "C" NOT NULL,
  ecosystem BIGINT NOT NULL,
  mode BIGINT NOT NULL,
  reason TEXT COLLATE "C" NOT NULL,
  policy TEXT COLLATE "C" NOT NULL,
  published_at BIGINT,
  cooldown_days BIGINT NOT NULL,
  unblocks_at BIGINT,
  first_blocked_at BIGINT NOT NULL,
  last_blocked_at BIGINT NOT NULL,
  attempts BIGINT NOT NULL
);
CREATE UNIQUE INDEX library_block_events_same ON library_block_events (parent, purl, mode, reason, policy);
CREATE INDEX library_block_events_by_parent ON library_block_events (parent, uid);
CREATE INDEX library_block_events_by_last ON library_block_events (org, last_blocked_at, uid);

-- From which tier an organization was served a version, so that it is served from there again.
CREATE TABLE library_resolutions (
  org TEXT COLLATE "C" NOT NULL,
  ecosystem BIGINT NOT NULL,
  registry TEXT COLLATE "C" NOT NULL,
  package TEXT COLLATE "C" NOT NULL,
  version TEXT COLLATE "C" NOT NULL,
  tier BIGINT NOT NULL,
  digest TEXT COLLATE "C" NOT NULL,
  -- In effect while it is the generation of the ecosystem; 0 once it was forgotten by itself.
  generation BIGINT NOT NULL,
  observed_at BIGINT NOT NULL,
  PRIMARY KEY (org, ecosystem, registry, package, version)
);

CREATE TABLE library_watermarks (
  org TEXT COLLATE "C" NOT NULL,
  ecosystem BIGINT NOT NULL,
  generation BIGINT NOT NULL,
  zap_count BIGINT NOT NULL,
  opted_out BOOLEAN NOT NULL,
  last_zapped_at BIGINT,
  PRIMARY KEY (org, ecosystem)
);

-- What the last zap with a key of its caller's answered.
CREATE TABLE library_zaps (
  org TEXT COLLATE "C" NOT NULL PRIMARY KEY,
  idempotency_key TEXT COLLATE "C" NOT NULL,
  summary BYTEA NOT NULL
);
