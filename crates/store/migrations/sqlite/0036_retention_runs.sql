-- Runs of retention that removed something, the last ones of each repository.
CREATE TABLE retention_runs (
  repo TEXT NOT NULL,
  org TEXT NOT NULL,
  run_at INTEGER NOT NULL,
  id TEXT NOT NULL,
  removed INTEGER NOT NULL,
  tags INTEGER NOT NULL,
  bytes INTEGER NOT NULL,
  retained INTEGER NOT NULL,
  remaining INTEGER NOT NULL,
  PRIMARY KEY (repo, run_at, id)
) STRICT, WITHOUT ROWID;
