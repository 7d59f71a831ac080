-- Where the packages lie that a group publishes, one row for each ecosystem. Blobs are linked to its uid, and quotas count
-- them there, as for a repository of images. `ecosystem` is a number of the wire contract.
CREATE TABLE package_repositories (
  uid TEXT COLLATE "C" NOT NULL PRIMARY KEY,
  parent TEXT COLLATE "C" NOT NULL,
  ecosystem BIGINT NOT NULL,
  -- Files that can be downloaded.
  file_count BIGINT NOT NULL,
  created_at BIGINT NOT NULL
);
CREATE UNIQUE INDEX package_repositories_by_parent ON package_repositories (parent, ecosystem);

CREATE TABLE hosted_versions (
  repository TEXT COLLATE "C" NOT NULL,
  -- The name as its ecosystem compares it.
  package TEXT COLLATE "C" NOT NULL,
  -- Bytes that order versions as the ecosystem does, and are equal where it calls two texts the same version.
  sort_key BYTEA NOT NULL,
  version TEXT COLLATE "C" NOT NULL,
  license TEXT COLLATE "C" NOT NULL,
  -- Why installers should pass over it; NULL if they need not.
  yanked TEXT COLLATE "C",
  created_at BIGINT NOT NULL,
  PRIMARY KEY (repository, package, sort_key)
);

-- The names of files of versions. A name is used up for good: the row of a deleted file stays.
CREATE TABLE hosted_files (
  repository TEXT COLLATE "C" NOT NULL,
  package TEXT COLLATE "C" NOT NULL,
  name TEXT COLLATE "C" NOT NULL,
  sort_key BYTEA NOT NULL,
  size_bytes BIGINT NOT NULL,
  -- Lower-case hex.
  sha256 TEXT COLLATE "C" NOT NULL,
  -- Of a wheel: digest of its core metadata, which are a blob too; '' without.
  metadata_sha256 TEXT COLLATE "C" NOT NULL,
  requires_python TEXT COLLATE "C" NOT NULL,
  created_at BIGINT NOT NULL,
  deleted_at BIGINT,
  PRIMARY KEY (repository, package, name)
);
CREATE INDEX hosted_files_by_version ON hosted_files (repository, package, sort_key);
