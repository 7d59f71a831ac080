-- Other package indexes that organizations take packages from. Blobs of files are linked to the uid of an upstream, and
-- quotas count them there. `ecosystem` is a number of the wire contract.
CREATE TABLE package_upstreams (
  uid TEXT NOT NULL PRIMARY KEY,
  parent TEXT NOT NULL,
  ecosystem INTEGER NOT NULL,
  name TEXT NOT NULL,
  url TEXT NOT NULL,
  username TEXT NOT NULL,
  -- Sealed; empty without one.
  password BLOB NOT NULL,
  rank INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  -- Its rows and blobs go in steps, and the row of the upstream last.
  deleted_at INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX package_upstreams_by_rank ON package_upstreams (parent, ecosystem, rank);
CREATE INDEX package_upstreams_by_deletion ON package_upstreams (deleted_at);

-- The page of a package as an upstream answered it last.
CREATE TABLE upstream_documents (
  upstream TEXT NOT NULL,
  -- The name as its ecosystem compares it.
  package TEXT NOT NULL,
  -- What the next request is conditional on; '' without.
  etag TEXT NOT NULL,
  last_modified TEXT NOT NULL,
  -- The upstream's count of changes; 0 where it has none.
  serial INTEGER NOT NULL,
  document BLOB NOT NULL,
  -- When the upstream confirmed it last.
  fetched_at INTEGER NOT NULL,
  PRIMARY KEY (upstream, package)
) STRICT, WITHOUT ROWID;
CREATE INDEX upstream_documents_by_age ON upstream_documents (upstream, fetched_at);

-- Files whose bytes are stored. A name keeps its digest, whatever the upstream says later.
CREATE TABLE upstream_files (
  upstream TEXT NOT NULL,
  package TEXT NOT NULL,
  name TEXT NOT NULL,
  version TEXT NOT NULL,
  license TEXT NOT NULL,
  -- Lower-case hex.
  sha256 TEXT NOT NULL,
  -- When it was uploaded there; NULL if that is unknown.
  published_at INTEGER,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (upstream, package, name)
) STRICT, WITHOUT ROWID;

CREATE INDEX hosted_files_by_package ON hosted_files (package, repository);

-- Names of packages that belong to an organization.
CREATE TABLE package_reservations (
  parent TEXT NOT NULL,
  ecosystem INTEGER NOT NULL,
  -- A name as its ecosystem compares it, or the beginning of names and '*'.
  pattern TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (parent, ecosystem, pattern)
) STRICT, WITHOUT ROWID;
