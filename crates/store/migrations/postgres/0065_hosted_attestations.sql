-- Signed statements about files that groups published.
CREATE TABLE hosted_attestations (
  repository TEXT COLLATE "C" NOT NULL,
  package TEXT COLLATE "C" NOT NULL,
  file TEXT COLLATE "C" NOT NULL,
  predicate_type TEXT COLLATE "C" NOT NULL,
  sort_key BYTEA NOT NULL,
  -- As it was sent, as JSON.
  document TEXT COLLATE "C" NOT NULL,
  -- Who signed it, by a certificate of the trusted root; absent if it was not verified.
  identity TEXT COLLATE "C",
  issuer TEXT COLLATE "C",
  created_at BIGINT NOT NULL,
  PRIMARY KEY (repository, package, file, predicate_type)
);
