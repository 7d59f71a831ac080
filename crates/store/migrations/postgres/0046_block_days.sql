-- Refused downloads of packages by day of UTC: one row for all versions of a package that a policy refused for a reason.
-- `mode` as in library_block_events. Counts begin with this migration: the events do not say on which days their attempts were.
CREATE TABLE library_block_days (
  org TEXT COLLATE "C" NOT NULL,
  mode BIGINT NOT NULL,
  -- Days since the epoch.
  day BIGINT NOT NULL,
  ecosystem BIGINT NOT NULL,
  policy TEXT COLLATE "C" NOT NULL,
  reason TEXT COLLATE "C" NOT NULL,
  package TEXT COLLATE "C" NOT NULL,
  attempts BIGINT NOT NULL,
  PRIMARY KEY (org, mode, day, ecosystem, policy, reason, package)
);
CREATE INDEX library_block_days_by_day ON library_block_days (day);
