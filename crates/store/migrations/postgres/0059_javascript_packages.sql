-- What npm's clients resolve and install a version by.
CREATE TABLE hosted_manifests (
  repository TEXT COLLATE "C" NOT NULL,
  package TEXT COLLATE "C" NOT NULL,
  sort_key BYTEA NOT NULL,
  -- Members of the package.json in its file, as JSON.
  manifest TEXT COLLATE "C" NOT NULL,
  -- Digests of the file, lower-case hex.
  sha1 TEXT COLLATE "C" NOT NULL,
  sha512 TEXT COLLATE "C" NOT NULL,
  -- What lies in the file.
  file_count BIGINT NOT NULL,
  unpacked_bytes BIGINT NOT NULL,
  PRIMARY KEY (repository, package, sort_key)
);

-- Names for versions, such as latest.
CREATE TABLE hosted_tags (
  repository TEXT COLLATE "C" NOT NULL,
  package TEXT COLLATE "C" NOT NULL,
  tag TEXT COLLATE "C" NOT NULL,
  sort_key BYTEA NOT NULL,
  updated_at BIGINT NOT NULL,
  PRIMARY KEY (repository, package, tag)
);

-- Of a package of npm: what clients are told of its versions, a message of bowline.libraries.v1.UpstreamManifests as gzip.
ALTER TABLE upstream_documents ADD COLUMN manifests BYTEA NOT NULL DEFAULT '';

-- Lower-case hex, in place of sha256, of files whose upstream has that digest.
ALTER TABLE upstream_files ADD COLUMN sha512 TEXT COLLATE "C" NOT NULL DEFAULT '';
