-- Entries of the audit log by organization, UTC day and kind, written when entries are numbered. The chain of the whole
-- server has the empty name.
CREATE TABLE audit_days (
  org TEXT COLLATE "C" NOT NULL,
  -- Days since the epoch.
  day BIGINT NOT NULL,
  kind TEXT COLLATE "C" NOT NULL,
  entries BIGINT NOT NULL,
  PRIMARY KEY (org, day, kind)
);
INSERT INTO audit_days (org, day, kind, entries)
SELECT org, at / 86400000000, kind, count(*) FROM audit WHERE seq IS NOT NULL GROUP BY 1, 2, 3;
INSERT INTO audit_days (org, day, kind, entries)
SELECT '', at / 86400000000, kind, count(*) FROM audit WHERE seq IS NOT NULL GROUP BY 2, 3;
