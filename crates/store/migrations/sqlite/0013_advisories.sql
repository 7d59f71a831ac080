-- Judgements about vulnerabilities: one row for an artifact, a component of it and a vulnerability. Texts that an
-- advisory does not have are ''.
CREATE TABLE advisories (
  uid TEXT NOT NULL PRIMARY KEY,
  -- The group.
  parent TEXT NOT NULL,
  org TEXT NOT NULL,
  -- What people call it by, such as BWL-2345-6789-cfgh.
  advisory_id TEXT NOT NULL,
  legacy_id TEXT NOT NULL,
  artifact_name TEXT NOT NULL,
  artifact_type TEXT NOT NULL,
  artifact_architecture TEXT NOT NULL,
  component_name TEXT NOT NULL,
  component_location TEXT NOT NULL,
  component_type TEXT NOT NULL,
  -- JSON array, in the order that was given; and its first element in upper case, to sort by.
  aliases TEXT NOT NULL,
  first_alias TEXT NOT NULL,
  author TEXT NOT NULL,
  -- Numbers of EventTypeFilter, 0 for none: of the latest approved event, and of the latest one that judges, which a
  -- moved component does not. Kept with every write of an event, so that lists filter by an index.
  latest_event_type INTEGER NOT NULL,
  latest_judgement_type INTEGER NOT NULL,
  latest_event_at INTEGER,
  -- How many events there are, and how many bytes their bodies have together.
  event_count INTEGER NOT NULL,
  event_bytes INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  -- Marked as deleted since; the row stays.
  deleted_at INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX advisories_by_parent ON advisories (parent, uid);
CREATE UNIQUE INDEX advisories_advisory_id ON advisories (org, advisory_id);
CREATE INDEX advisories_by_advisory_id ON advisories (advisory_id, uid);
CREATE INDEX advisories_by_folded_id ON advisories (upper(advisory_id));
CREATE INDEX advisories_by_legacy_id ON advisories (legacy_id, uid) WHERE legacy_id <> '';
CREATE INDEX advisories_by_artifact_name ON advisories (artifact_name, uid);
CREATE INDEX advisories_by_artifact_type ON advisories (artifact_type, uid);
CREATE INDEX advisories_by_artifact_architecture ON advisories (artifact_architecture, uid);
CREATE INDEX advisories_by_component_name ON advisories (component_name, uid);
CREATE INDEX advisories_by_component_location ON advisories (component_location, uid);
CREATE INDEX advisories_by_component_type ON advisories (component_type, uid);
CREATE INDEX advisories_by_latest_event_type ON advisories (latest_event_type, uid);
CREATE INDEX advisories_by_latest_judgement_type ON advisories (latest_judgement_type, uid);
CREATE INDEX advisories_by_first_alias ON advisories (org, first_alias, uid);
CREATE INDEX advisories_by_created ON advisories (org, created_at, uid);
CREATE INDEX advisories_by_updated ON advisories (org, updated_at, uid);
CREATE INDEX advisories_by_deleted ON advisories (org, deleted_at, uid) WHERE deleted_at IS NOT NULL;

-- Those that lists show, and those that they show when they are sorted by the time of deletion.
CREATE VIEW shown_advisories AS SELECT * FROM advisories WHERE deleted_at IS NULL;
CREATE VIEW deleted_advisories AS SELECT * FROM advisories WHERE deleted_at IS NOT NULL;

-- The aliases of each advisory again, in upper case, to find it by.
CREATE TABLE advisory_aliases (
  alias TEXT NOT NULL,
  advisory TEXT NOT NULL,
  PRIMARY KEY (alias, advisory)
) STRICT, WITHOUT ROWID;

-- What happened to an advisory, each with its review. `uid` is a child of the advisory's.
CREATE TABLE advisory_events (
  uid TEXT NOT NULL PRIMARY KEY,
  advisory TEXT NOT NULL,
  org TEXT NOT NULL,
  -- Number of EventTypeFilter.
  type INTEGER NOT NULL,
  -- Number of ReviewStatus.
  state INTEGER NOT NULL,
  author TEXT NOT NULL,
  -- '' until somebody decides.
  reviewer TEXT NOT NULL,
  -- When it took place, which its author may tell.
  at INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  -- The rest: an encoded AdvisoryEvent of the first version.
  body BLOB NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX advisory_events_by_advisory ON advisory_events (advisory, at, uid);
CREATE INDEX advisory_events_by_state ON advisory_events (state, advisory);
CREATE INDEX advisory_events_by_type ON advisory_events (type, advisory);
CREATE INDEX advisory_events_by_author ON advisory_events (author, advisory);
CREATE INDEX advisory_events_by_reviewer ON advisory_events (reviewer, advisory) WHERE reviewer <> '';

-- What free text is looked for in: artifact, component and aliases in lower case, a line each.
CREATE TABLE advisory_words (
  n INTEGER PRIMARY KEY,
  advisory TEXT NOT NULL,
  words TEXT NOT NULL
) STRICT;
CREATE UNIQUE INDEX advisory_words_advisory ON advisory_words (advisory);
-- Its trigrams.
CREATE VIRTUAL TABLE advisory_search USING fts5(
  words, content = 'advisory_words', content_rowid = 'n', columnsize = 0, tokenize = 'trigram');
CREATE TRIGGER advisory_words_added AFTER INSERT ON advisory_words BEGIN
  INSERT INTO advisory_search (rowid, words) VALUES (new.n, new.words);
END;
CREATE TRIGGER advisory_words_removed AFTER DELETE ON advisory_words BEGIN
  INSERT INTO advisory_search (advisory_search, rowid, words) VALUES ('delete', old.n, old.words);
END;
CREATE TRIGGER advisory_words_changed AFTER UPDATE ON advisory_words BEGIN
  INSERT INTO advisory_search (advisory_search, rowid, words) VALUES ('delete', old.n, old.words);
  INSERT INTO advisory_search (rowid, words) VALUES (new.n, new.words);
END;

-- Which packages of an organization are built from which origin package.
CREATE TABLE package_origins (
  org TEXT NOT NULL,
  origin TEXT NOT NULL,
  package TEXT NOT NULL,
  PRIMARY KEY (origin, org, package)
) STRICT, WITHOUT ROWID;
CREATE INDEX package_origins_by_package ON package_origins (org, package, origin);

-- How a group's advisories are reviewed and published.
CREATE TABLE advisory_settings (
  place TEXT NOT NULL PRIMARY KEY,
  org TEXT NOT NULL,
  -- Whether anybody may read the approved events of the group's own advisories.
  is_public INTEGER NOT NULL CHECK (is_public IN (0, 1)),
  -- Whether nobody, here and below, decides on events of their own.
  second_reviewer INTEGER NOT NULL CHECK (second_reviewer IN (0, 1)),
  -- Grows with every change of what a public group publishes.
  revision INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX advisory_settings_public ON advisory_settings (place, revision) WHERE is_public;
