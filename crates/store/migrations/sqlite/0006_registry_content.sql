-- Blobs whose bytes are durable. Where the bytes lie follows from the digest.
CREATE TABLE blobs (
  digest TEXT NOT NULL PRIMARY KEY,
  size INTEGER NOT NULL,
  created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Which repository may show which blob: without a link there is no blob.
CREATE TABLE repo_blobs (
  repo TEXT NOT NULL,
  digest TEXT NOT NULL,
  org TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (repo, digest)
) STRICT, WITHOUT ROWID;
CREATE INDEX repo_blobs_by_digest ON repo_blobs (digest, repo);

-- Manifests, whole: they are small.
CREATE TABLE manifests (
  digest TEXT NOT NULL PRIMARY KEY,
  media_type TEXT NOT NULL,
  -- '' where the manifest has none.
  artifact_type TEXT NOT NULL,
  config_digest TEXT NOT NULL,
  subject TEXT NOT NULL,
  -- 1 image, 2 index, 3 other.
  shape INTEGER NOT NULL,
  -- Bytes of everything that it names, itself included.
  total_size INTEGER NOT NULL,
  -- JSON object.
  annotations TEXT NOT NULL,
  content BLOB NOT NULL,
  created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- What a manifest names: 1 config, 2 layer, 3 manifest of an index.
CREATE TABLE manifest_references (
  manifest TEXT NOT NULL,
  place INTEGER NOT NULL,
  kind INTEGER NOT NULL,
  digest TEXT NOT NULL,
  media_type TEXT NOT NULL,
  size INTEGER NOT NULL,
  -- Of a manifest of an index: its platform; '' otherwise.
  os TEXT NOT NULL,
  architecture TEXT NOT NULL,
  variant TEXT NOT NULL,
  PRIMARY KEY (manifest, place)
) STRICT, WITHOUT ROWID;
CREATE INDEX manifest_references_by_digest ON manifest_references (digest, manifest);

-- Which repository holds which manifest.
CREATE TABLE repo_manifests (
  repo TEXT NOT NULL,
  digest TEXT NOT NULL,
  org TEXT NOT NULL,
  subject TEXT NOT NULL,
  artifact_type TEXT NOT NULL,
  pushed_at INTEGER NOT NULL,
  -- At minute grain.
  last_pulled_at INTEGER,
  PRIMARY KEY (repo, digest)
) STRICT, WITHOUT ROWID;
CREATE INDEX repo_manifests_by_digest ON repo_manifests (digest, repo);
CREATE INDEX repo_manifests_by_subject ON repo_manifests (repo, subject, digest) WHERE subject <> '';

-- Tags. `parent` is the repository.
CREATE TABLE tags (
  uid TEXT NOT NULL PRIMARY KEY,
  parent TEXT NOT NULL,
  org TEXT NOT NULL,
  name TEXT NOT NULL,
  digest TEXT NOT NULL,
  deprecated INTEGER NOT NULL CHECK (deprecated IN (0, 1)),
  -- JSON array.
  bundles TEXT NOT NULL,
  -- What lists hide by default: 0 nothing, 1 a referrers tag, 2 a dated tag, 3 an epoch tag.
  hidden INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX tags_name ON tags (parent, name);
CREATE INDEX tags_by_parent ON tags (parent, uid);
CREATE INDEX tags_by_name ON tags (org, name, uid);
CREATE INDEX tags_by_updated ON tags (org, updated_at, uid);
CREATE INDEX tags_by_digest ON tags (parent, digest);

-- Every move of a tag; outlives the tag.
CREATE TABLE tag_history (
  repo TEXT NOT NULL,
  name TEXT NOT NULL,
  at INTEGER NOT NULL,
  -- Tells moves within one microsecond apart.
  id TEXT NOT NULL,
  -- '' for a removal.
  digest TEXT NOT NULL,
  PRIMARY KEY (repo, name, at, id)
) STRICT, WITHOUT ROWID;

-- Uploads under way. Their bytes lie beside the blobs, under their id.
CREATE TABLE uploads (
  id TEXT NOT NULL PRIMARY KEY,
  repo TEXT NOT NULL,
  -- Who began it, and alone may go on.
  identity TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX uploads_by_end ON uploads (expires_at, id);

-- What an operator or owner set for a repository or a group, which is `place`: an encoded message of bowline.registry.v1.
CREATE TABLE registry_policies (
  place TEXT NOT NULL PRIMARY KEY,
  org TEXT NOT NULL,
  -- Whether anybody may pull; read at every anonymous pull.
  is_public INTEGER NOT NULL CHECK (is_public IN (0, 1)),
  policy BLOB NOT NULL,
  updated_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Settings of an organization's registry.
CREATE TABLE registry_settings (
  org TEXT NOT NULL PRIMARY KEY,
  unique_tags INTEGER NOT NULL CHECK (unique_tags IN (0, 1)),
  eol_grace_period INTEGER NOT NULL CHECK (eol_grace_period IN (0, 1))
) STRICT, WITHOUT ROWID;

-- Helm charts that deploy a repository's image: an encoded Deployment message of the first version.
CREATE TABLE deployments (
  repo TEXT NOT NULL PRIMARY KEY,
  deployment BLOB NOT NULL,
  updated_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- What scanners found in a manifest.
CREATE TABLE scan_reports (
  repo TEXT NOT NULL,
  digest TEXT NOT NULL,
  -- Number of the scanner.
  scanner INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  org TEXT NOT NULL,
  scanner_version TEXT NOT NULL,
  database_built_at INTEGER,
  -- JSON: the findings in our own form; and what the scanner wrote.
  findings TEXT NOT NULL,
  raw TEXT NOT NULL,
  PRIMARY KEY (repo, digest, scanner, created_at)
) STRICT, WITHOUT ROWID;
CREATE INDEX scan_reports_by_created ON scan_reports (repo, created_at);

-- Pull-through: what a repository fetches and how that goes.
CREATE TABLE upstream_syncs (
  repo TEXT NOT NULL PRIMARY KEY,
  org TEXT NOT NULL,
  -- Number of SyncStatus.Status.
  status INTEGER NOT NULL,
  checked_at INTEGER NOT NULL,
  message TEXT NOT NULL
) STRICT, WITHOUT ROWID;
