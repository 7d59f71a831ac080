-- Where the packages lie that a group publishes, one row for each ecosystem. Blobs are linked to its uid, and quotas count
-- them there, as for a repository of images. `ecosystem` is a number of the wire contract.
CREATE TABLE package_repositories (
  uid TEXT NOT NULL PRIMARY KEY,
  parent TEXT NOT NULL,
  ecosystem INTEGER NOT NULL,
  -- Files that can be downloaded.
  file_count INTEGER NOT NULL,
  created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX package_repositories_by_parent ON package_repositories (parent, ecosystem);

CREATE TABLE hosted_versions (
  repository TEXT NOT NULL,
  -- The name as its ecosystem compares it.
  package TEXT NOT NULL,
  -- Bytes that order versions as the ecosystem does, and are equal where it calls two texts the same version.
  sort_key BLOB NOT NULL,
  version TEXT NOT NULL,
  license TEXT NOT NULL,
  -- Why installers should pass over it; NULL if they need not.
  yanked TEXT,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (repository, package, sort_key)
) STRICT, WITHOUT ROWID;

-- The names of files of versions. A name is used up for good: the row of a deleted file stays.
CREATE TABLE hosted_files (
  repository TEXT NOT NULL,
  package TEXT NOT NULL,
  name TEXT NOT NULL,
  sort_key BLOB NOT NULL,
  size_bytes INTEGER NOT NULL,
  -- Lower-case hex.
  sha256 TEXT NOT NULL,
  -- Of a wheel: digest of its core metadata, which are a blob too; '' without.
  metadata_sha256 TEXT NOT NULL,
  requires_python TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  deleted_at INTEGER,
  PRIMARY KEY (repository, package, name)
) STRICT, WITHOUT ROWID;
CREATE INDEX hosted_files_by_version ON hosted_files (repository, package, sort_key);
