-- Other package indexes that organizations take packages from. Blobs of files are linked to the uid of an upstream, and
-- quotas count them there. `ecosystem` is a number of the wire contract.
CREATE TABLE package_upstreams (
  uid TEXT COLLATE "C" NOT NULL PRIMARY KEY,
  parent TEXT COLLATE "C" NOT NULL,
  ecosystem BIGINT NOT NULL,
  name TEXT COLLATE "C" NOT NULL,
  url TEXT COLLATE "C" NOT NULL,
  username TEXT COLLATE "C" NOT NULL,
  -- Sealed; empty without one.
  password BYTEA NOT NULL,
  rank BIGINT NOT NULL,
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL,
  -- Its rows and blobs go in steps, and the row of the upstream last.
  deleted_at BIGINT
);
CREATE INDEX package_upstreams_by_rank ON package_upstreams (parent, ecosystem, rank);
CREATE INDEX package_upstreams_by_deletion ON package_upstreams (deleted_at);

-- The page of a package as an upstream answered it last.
CREATE TABLE upstream_documents (
  upstream TEXT COLLATE "C" NOT NULL,
  -- The name as its ecosystem compares it.
  package TEXT COLLATE "C" NOT NULL,
  -- What the next request is conditional on; '' without.
  etag TEXT COLLATE "C" NOT NULL,
  last_modified TEXT COLLATE "C" NOT NULL,
  -- The upstream's count of changes; 0 where it has none.
  serial BIGINT NOT NULL,
  document BYTEA NOT NULL,
  -- When the upstream confirmed it last.
  fetched_at BIGINT NOT NULL,
  PRIMARY KEY (upstream, package)
);
CREATE INDEX upstream_documents_by_age ON upstream_documents (upstream, fetched_at);

-- Files whose bytes are stored. A name keeps its digest, whatever the upstream says later.
CREATE TABLE upstream_files (
  upstream TEXT COLLATE "C" NOT NULL,
  package TEXT COLLATE "C" NOT NULL,
  name TEXT COLLATE "C" NOT NULL,
  version TEXT COLLATE "C" NOT NULL,
  license TEXT COLLATE "C" NOT NULL,
  -- Lower-case hex.
  sha256 TEXT COLLATE "C" NOT NULL,
  -- When it was uploaded there; NULL if that is unknown.
  published_at BIGINT,
  created_at BIGINT NOT NULL,
  PRIMARY KEY (upstream, package, name)
);

CREATE INDEX hosted_files_by_package ON hosted_files (package, repository);

-- Names of packages that belong to an organization.
CREATE TABLE package_reservations (
  parent TEXT COLLATE "C" NOT NULL,
  ecosystem BIGINT NOT NULL,
  -- A name as its ecosystem compares it, or the beginning of names and '*'.
  pattern TEXT COLLATE "C" NOT NULL,
  created_at BIGINT NOT NULL,
  PRIMARY KEY (parent, ecosystem, pattern)
);
