-- Rules of library policies about known vulnerabilities. A row for each policy that has one.
CREATE TABLE library_policy_vulnerabilities (
  policy TEXT NOT NULL PRIMARY KEY,
  -- bowline.libraries.v1.VulnerabilityRule.
  rule BLOB NOT NULL
) STRICT, WITHOUT ROWID;
-- When a record was published, in microseconds; 0 if it does not say, or was imported before.
ALTER TABLE records ADD COLUMN published INTEGER NOT NULL DEFAULT 0;
