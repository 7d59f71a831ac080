-- What is counted of each report, without the report: counts of many images would otherwise read their reports whole, which
-- have megabytes. Triggers keep them.
CREATE TABLE scan_summaries (
  repo TEXT COLLATE "C" NOT NULL,
  digest TEXT COLLATE "C" NOT NULL,
  created_at BIGINT NOT NULL,
  -- Number of the scanner.
  scanner BIGINT NOT NULL,
  -- A JSON object from numbers of severities to the ids of what is that severe.
  summary TEXT COLLATE "C" NOT NULL,
  PRIMARY KEY (repo, digest, created_at, scanner)
);
INSERT INTO scan_summaries (repo, digest, created_at, scanner, summary)
SELECT repo, digest, created_at, scanner, summary FROM scan_reports;

CREATE FUNCTION follow_scan_reports() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'INSERT' THEN
    INSERT INTO scan_summaries (repo, digest, created_at, scanner, summary)
      VALUES (NEW.repo, NEW.digest, NEW.created_at, NEW.scanner, NEW.summary);
  ELSE
    DELETE FROM scan_summaries
      WHERE repo = OLD.repo AND digest = OLD.digest AND created_at = OLD.created_at AND scanner = OLD.scanner;
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER scan_reports_summarized AFTER INSERT OR DELETE ON scan_reports
  FOR EACH ROW EXECUTE FUNCTION follow_scan_reports();
