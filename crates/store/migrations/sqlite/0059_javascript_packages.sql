-- What npm's clients resolve and install a version by.
CREATE TABLE hosted_manifests (
  repository TEXT NOT NULL,
  package TEXT NOT NULL,
  sort_key BLOB NOT NULL,
  -- Members of the package.json in its file, as JSON.
  manifest TEXT NOT NULL,
  -- Digests of the file, lower-case hex.
  sha1 TEXT NOT NULL,
  sha512 TEXT NOT NULL,
  -- What lies in the file.
  file_count INTEGER NOT NULL,
  unpacked_bytes INTEGER NOT NULL,
  PRIMARY KEY (repository, package, sort_key)
) STRICT, WITHOUT ROWID;

-- Names for versions, such as latest.
CREATE TABLE hosted_tags (
  repository TEXT NOT NULL,
  package TEXT NOT NULL,
  tag TEXT NOT NULL,
  sort_key BLOB NOT NULL,
  updated_at INTEGER NOT NULL,
  PRIMARY KEY (repository, package, tag)
) STRICT, WITHOUT ROWID;

-- Of a package of npm: what clients are told of its versions, a message of bowline.libraries.v1.UpstreamManifests as gzip.
ALTER TABLE upstream_documents ADD COLUMN manifests BLOB NOT NULL DEFAULT x'';

-- Lower-case hex, in place of sha256, of files whose upstream has that digest.
ALTER TABLE upstream_files ADD COLUMN sha512 TEXT NOT NULL DEFAULT '';
