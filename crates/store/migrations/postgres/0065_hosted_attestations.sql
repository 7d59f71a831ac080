-- Signed statements about files that groups published.
CREATE TABLE hosted_attestations (
  repository TEXT COLLATE "C" NOT NULL,
  package TEXT COLLATE "C" NOT NULL,
  file TEXT COLLATE "C" NOT NULL,
  predicate_type TEXT COLLATE "C" NOT NULL,
  sort_key BYTEA NOT NULL,
  -- The JSON that was sent, in one spelling.
  document TEXT COLLATE "C" NOT NULL,
  -- Who signed it, by a certificate of the trusted root; absent if it was not verified.
  identity TEXT COLLATE "C",
  issuer TEXT COLLATE "C",
  -- Of a workflow: what it built, and its definition there; empty if the certificate does not say.
  source_repository TEXT COLLATE "C" NOT NULL,
  build_config TEXT COLLATE "C" NOT NULL,
  created_at BIGINT NOT NULL,
  PRIMARY KEY (repository, package, file, predicate_type)
);
