-- Signed statements about files that groups published.
CREATE TABLE hosted_attestations (
  repository TEXT NOT NULL,
  package TEXT NOT NULL,
  file TEXT NOT NULL,
  predicate_type TEXT NOT NULL,
  sort_key BLOB NOT NULL,
  -- As it was sent, as JSON.
  document TEXT NOT NULL,
  -- Who signed it, by a certificate of the trusted root; absent if it was not verified.
  identity TEXT,
  issuer TEXT,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (repository, package, file, predicate_type)
) STRICT, WITHOUT ROWID;
