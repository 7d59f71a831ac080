-- How images are run, taken out of their configs when they are pushed: the bytes of the configs themselves are
-- blobs, which lie outside of the database.
CREATE TABLE image_configs (
  -- The image manifest.
  manifest TEXT COLLATE "C" NOT NULL PRIMARY KEY,
  os TEXT COLLATE "C" NOT NULL,
  architecture TEXT COLLATE "C" NOT NULL,
  variant TEXT COLLATE "C" NOT NULL,
  -- JSON object: the member `config` of the config.
  config TEXT COLLATE "C" NOT NULL
);

-- Tags that lists show unless asked for more: those that are neither referrers, nor dated, nor epochs.
CREATE VIEW shown_tags AS SELECT * FROM tags WHERE hidden = 0;

-- What a repository is synchronized from, '' where it is not: a copy of what its `spec` says, to count by.
ALTER TABLE repos ADD COLUMN source TEXT COLLATE "C" NOT NULL DEFAULT '';
CREATE INDEX repos_by_source ON repos (source, uid) WHERE source <> '';

-- What is counted of a report: a JSON object from numbers of severities to the ids of what is that severe.
ALTER TABLE scan_reports ADD COLUMN summary TEXT COLLATE "C" NOT NULL DEFAULT '{}';
CREATE INDEX scan_reports_by_digest ON scan_reports (digest, repo);
