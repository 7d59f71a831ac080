-- Signed statements about files that groups published.
CREATE TABLE hosted_attestations (
  repository TEXT NOT NULL,
  package TEXT NOT NULL,
  file TEXT NOT NULL,
  predicate_type TEXT NOT NULL,
  sort_key BLOB NOT NULL,
  -- The JSON that was sent, in one spelling.
  document TEXT NOT NULL,
  -- Who signed it, by a certificate of the trusted root; absent if it was not verified.
  identity TEXT,
  issuer TEXT,
  -- Of a workflow: what it built, and its definition there; empty if the certificate does not say.
  source_repository TEXT NOT NULL,
  build_config TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (repository, package, file, predicate_type)
) STRICT, WITHOUT ROWID;
