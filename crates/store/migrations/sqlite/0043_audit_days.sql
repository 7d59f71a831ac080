-- Entries of the audit log by organization, UTC day and kind, written when entries are numbered. The chain of the whole
-- server has the empty name.
CREATE TABLE audit_days (
  org TEXT NOT NULL,
  -- Days since the epoch.
  day INTEGER NOT NULL,
  kind TEXT NOT NULL,
  entries INTEGER NOT NULL,
  PRIMARY KEY (org, day, kind)
) STRICT, WITHOUT ROWID;
INSERT INTO audit_days (org, day, kind, entries)
SELECT org, at / 86400000000, kind, count(*) FROM audit WHERE seq IS NOT NULL GROUP BY 1, 2, 3;
INSERT INTO audit_days (org, day, kind, entries)
SELECT '', at / 86400000000, kind, count(*) FROM audit WHERE seq IS NOT NULL GROUP BY 2, 3;
