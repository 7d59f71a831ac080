-- What versions of Python packages require, by the first wheel or core metadata of each that were stored.
CREATE TABLE upstream_requirements (
  upstream TEXT NOT NULL,
  package TEXT NOT NULL,
  -- As of hosted versions.
  sort_key BLOB NOT NULL,
  -- JSON: `requires_dist`, a list of requirements as they are written.
  manifest TEXT NOT NULL,
  PRIMARY KEY (upstream, package, sort_key)
) STRICT;
