-- What is counted of each report, without the report: counts of many images would otherwise read their reports whole, which
-- have megabytes. Triggers keep them.
CREATE TABLE scan_summaries (
  repo TEXT NOT NULL,
  digest TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  -- Number of the scanner.
  scanner INTEGER NOT NULL,
  -- A JSON object from numbers of severities to the ids of what is that severe.
  summary TEXT NOT NULL,
  PRIMARY KEY (repo, digest, created_at, scanner)
) STRICT, WITHOUT ROWID;
INSERT INTO scan_summaries (repo, digest, created_at, scanner, summary)
SELECT repo, digest, created_at, scanner, summary FROM scan_reports;

CREATE TRIGGER scan_reports_summarized AFTER INSERT ON scan_reports BEGIN
  INSERT INTO scan_summaries (repo, digest, created_at, scanner, summary)
  VALUES (new.repo, new.digest, new.created_at, new.scanner, new.summary);
END;
CREATE TRIGGER scan_reports_removed AFTER DELETE ON scan_reports BEGIN
  DELETE FROM scan_summaries
  WHERE repo = old.repo AND digest = old.digest AND created_at = old.created_at AND scanner = old.scanner;
END;
