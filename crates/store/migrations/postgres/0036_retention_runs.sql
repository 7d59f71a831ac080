-- Runs of retention that removed something, the last ones of each repository.
CREATE TABLE retention_runs (
  repo TEXT COLLATE "C" NOT NULL,
  org TEXT COLLATE "C" NOT NULL,
  run_at BIGINT NOT NULL,
  id TEXT COLLATE "C" NOT NULL,
  removed BIGINT NOT NULL,
  tags BIGINT NOT NULL,
  bytes BIGINT NOT NULL,
  retained BIGINT NOT NULL,
  remaining BIGINT NOT NULL,
  PRIMARY KEY (repo, run_at, id)
);
