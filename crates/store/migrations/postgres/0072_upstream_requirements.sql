-- What versions of Python packages require, by the first wheel or core metadata of each that were stored.
CREATE TABLE upstream_requirements (
  upstream TEXT COLLATE "C" NOT NULL,
  package TEXT COLLATE "C" NOT NULL,
  -- As of hosted versions.
  sort_key BYTEA NOT NULL,
  -- JSON: `requires_dist`, a list of requirements as they are written.
  manifest TEXT COLLATE "C" NOT NULL,
  PRIMARY KEY (upstream, package, sort_key)
);
