-- Blobs whose bytes are durable. Where the bytes lie follows from the digest.
CREATE TABLE blobs (
  digest TEXT COLLATE "C" NOT NULL PRIMARY KEY,
  size BIGINT NOT NULL,
  created_at BIGINT NOT NULL
);

-- Which repository may show which blob: without a link there is no blob.
CREATE TABLE repo_blobs (
  repo TEXT COLLATE "C" NOT NULL,
  digest TEXT COLLATE "C" NOT NULL,
  org TEXT COLLATE "C" NOT NULL,
  created_at BIGINT NOT NULL,
  PRIMARY KEY (repo, digest)
);
CREATE INDEX repo_blobs_by_digest ON repo_blobs (digest, repo);

-- Manifests, whole: they are small.
CREATE TABLE manifests (
  digest TEXT COLLATE "C" NOT NULL PRIMARY KEY,
  media_type TEXT COLLATE "C" NOT NULL,
  -- '' where the manifest has none.
  artifact_type TEXT COLLATE "C" NOT NULL,
  config_digest TEXT COLLATE "C" NOT NULL,
  subject TEXT COLLATE "C" NOT NULL,
  -- 1 image, 2 index, 3 other.
  shape BIGINT NOT NULL,
  -- Bytes of everything that it names, itself included.
  total_size BIGINT NOT NULL,
  -- JSON object.
  annotations TEXT COLLATE "C" NOT NULL,
  content BYTEA NOT NULL,
  created_at BIGINT NOT NULL
);

-- What a manifest names: 1 config, 2 layer, 3 manifest of an index.
CREATE TABLE manifest_references (
  manifest TEXT COLLATE "C" NOT NULL,
  place BIGINT NOT NULL,
  kind BIGINT NOT NULL,
  digest TEXT COLLATE "C" NOT NULL,
  media_type TEXT COLLATE "C" NOT NULL,
  size BIGINT NOT NULL,
  -- Of a manifest of an index: its platform; '' otherwise.
  os TEXT COLLATE "C" NOT NULL,
  architecture TEXT COLLATE "C" NOT NULL,
  variant TEXT COLLATE "C" NOT NULL,
  PRIMARY KEY (manifest, place)
);
CREATE INDEX manifest_references_by_digest ON manifest_references (digest, manifest);

-- Which repository holds which manifest.
CREATE TABLE repo_manifests (
  repo TEXT COLLATE "C" NOT NULL,
  digest TEXT COLLATE "C" NOT NULL,
  org TEXT COLLATE "C" NOT NULL,
  subject TEXT COLLATE "C" NOT NULL,
  artifact_type TEXT COLLATE "C" NOT NULL,
  pushed_at BIGINT NOT NULL,
  -- At minute grain.
  last_pulled_at BIGINT,
  PRIMARY KEY (repo, digest)
);
CREATE INDEX repo_manifests_by_digest ON repo_manifests (digest, repo);
CREATE INDEX repo_manifests_by_subject ON repo_manifests (repo, subject, digest) WHERE subject <> '';

-- Tags. `parent` is the repository.
CREATE TABLE tags (
  uid TEXT COLLATE "C" NOT NULL PRIMARY KEY,
  parent TEXT COLLATE "C" NOT NULL,
  org TEXT COLLATE "C" NOT NULL,
  name TEXT COLLATE "C" NOT NULL,
  digest TEXT COLLATE "C" NOT NULL,
  deprecated BOOLEAN NOT NULL,
  -- JSON array.
  bundles TEXT COLLATE "C" NOT NULL,
  -- What lists hide by default: 0 nothing, 1 a referrers tag, 2 a dated tag, 3 an epoch tag.
  hidden BIGINT NOT NULL,
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL
);
CREATE UNIQUE INDEX tags_name ON tags (parent, name);
CREATE INDEX tags_by_parent ON tags (parent, uid);
CREATE INDEX tags_by_name ON tags (org, name, uid);
CREATE INDEX tags_by_updated ON tags (org, updated_at, uid);
CREATE INDEX tags_by_digest ON tags (parent, digest);

-- Every move of a tag; outlives the tag.
CREATE TABLE tag_history (
  repo TEXT COLLATE "C" NOT NULL,
  name TEXT COLLATE "C" NOT NULL,
  at BIGINT NOT NULL,
  -- Tells moves within one microsecond apart.
  id TEXT COLLATE "C" NOT NULL,
  -- '' for a removal.
  digest TEXT COLLATE "C" NOT NULL,
  PRIMARY KEY (repo, name, at, id)
);

-- Uploads under way. Their bytes lie beside the blobs, under their id.
CREATE TABLE uploads (
  id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
  repo TEXT COLLATE "C" NOT NULL,
  -- Who began it, and alone may go on.
  identity TEXT COLLATE "C" NOT NULL,
  created_at BIGINT NOT NULL,
  expires_at BIGINT NOT NULL
);
CREATE INDEX uploads_by_end ON uploads (expires_at, id);

-- What an operator or owner set for a repository or a group, which is `place`: an encoded message of bowline.registry.v1.
CREATE TABLE registry_policies (
  place TEXT COLLATE "C" NOT NULL PRIMARY KEY,
  org TEXT COLLATE "C" NOT NULL,
  -- Whether anybody may pull; read at every anonymous pull.
  is_public BOOLEAN NOT NULL,
  policy BYTEA NOT NULL,
  updated_at BIGINT NOT NULL
);

-- Settings of an organization's registry.
CREATE TABLE registry_settings (
  org TEXT COLLATE "C" NOT NULL PRIMARY KEY,
  unique_tags BOOLEAN NOT NULL,
  eol_grace_period BOOLEAN NOT NULL
);

-- Helm charts that deploy a repository's image: an encoded Deployment message of the first version.
CREATE TABLE deployments (
  repo TEXT COLLATE "C" NOT NULL PRIMARY KEY,
  deployment BYTEA NOT NULL,
  updated_at BIGINT NOT NULL
);

-- What scanners found in a manifest.
CREATE TABLE scan_reports (
  repo TEXT COLLATE "C" NOT NULL,
  digest TEXT COLLATE "C" NOT NULL,
  -- Number of the scanner.
  scanner BIGINT NOT NULL,
  created_at BIGINT NOT NULL,
  org TEXT COLLATE "C" NOT NULL,
  scanner_version TEXT COLLATE "C" NOT NULL,
  database_built_at BIGINT,
  -- JSON: the findings in our own form; and what the scanner wrote.
  findings TEXT COLLATE "C" NOT NULL,
  raw TEXT COLLATE "C" NOT NULL,
  PRIMARY KEY (repo, digest, scanner, created_at)
);
CREATE INDEX scan_reports_by_created ON scan_reports (repo, created_at);

-- Pull-through: what a repository fetches and how that goes.
CREATE TABLE upstream_syncs (
  repo TEXT COLLATE "C" NOT NULL PRIMARY KEY,
  org TEXT COLLATE "C" NOT NULL,
  -- Number of SyncStatus.Status.
  status BIGINT NOT NULL,
  checked_at BIGINT NOT NULL,
  message TEXT COLLATE "C" NOT NULL
);
