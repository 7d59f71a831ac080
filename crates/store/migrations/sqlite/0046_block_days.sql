-- Refused downloads of packages by day of UTC: one row for all versions of a package that a policy refused for a reason.
-- `mode` as in library_block_events. Counts begin with this migration: the events do not say on which days their attempts were.
CREATE TABLE library_block_days (
  org TEXT NOT NULL,
  mode INTEGER NOT NULL,
  -- Days since the epoch.
  day INTEGER NOT NULL,
  ecosystem INTEGER NOT NULL,
  policy TEXT NOT NULL,
  reason TEXT NOT NULL,
  package TEXT NOT NULL,
  attempts INTEGER NOT NULL,
  PRIMARY KEY (org, mode, day, ecosystem, policy, reason, package)
) STRICT, WITHOUT ROWID;
CREATE INDEX library_block_days_by_day ON library_block_days (day);
