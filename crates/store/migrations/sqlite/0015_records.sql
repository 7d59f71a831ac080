-- Records of vulnerabilities: where they come from, how they came, and what they say.
--
-- A record's row is visible while its source's generation is at least `since` and less than `until`. An import stages
-- rows of the generation after the present one, and committing it is one update of the source.
CREATE TABLE record_sources (
  name TEXT NOT NULL PRIMARY KEY,
  number INTEGER NOT NULL,
  licence TEXT NOT NULL,
  url TEXT NOT NULL,
  generation INTEGER NOT NULL,
  records INTEGER NOT NULL,
  imported_at INTEGER
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX record_sources_by_number ON record_sources (number);

CREATE TABLE record_imports (
  uid TEXT NOT NULL PRIMARY KEY,
  source TEXT NOT NULL REFERENCES record_sources (name),
  state INTEGER NOT NULL,
  is_full INTEGER NOT NULL CHECK (is_full IN (0, 1)),
  licence TEXT NOT NULL,
  url TEXT NOT NULL,
  generation INTEGER NOT NULL,
  added INTEGER NOT NULL,
  changed INTEGER NOT NULL,
  removed INTEGER NOT NULL,
  begun_at INTEGER NOT NULL,
  touched_at INTEGER NOT NULL,
  ended_at INTEGER
) STRICT, WITHOUT ROWID;
-- A source has one import at a time: open, or being cleared away.
CREATE UNIQUE INDEX record_imports_open ON record_imports (source) WHERE ended_at IS NULL;
CREATE INDEX record_imports_by_time ON record_imports (begun_at, uid);
CREATE INDEX record_imports_of_source ON record_imports (source, begun_at, uid);

-- Narrow rows: what decides whether a record is seen, and what lists say of it.
CREATE TABLE records (
  n INTEGER NOT NULL PRIMARY KEY,
  id TEXT NOT NULL,
  source INTEGER NOT NULL,
  since INTEGER NOT NULL,
  until INTEGER NOT NULL,
  modified INTEGER NOT NULL,
  digest BLOB NOT NULL,
  licence TEXT NOT NULL,
  severities TEXT NOT NULL
) STRICT;
CREATE UNIQUE INDEX records_by_id ON records (id, source, since);
CREATE INDEX records_of_source ON records (source, id);
CREATE INDEX records_by_since ON records (source, since, id);
-- Rows that end: 2147483647 is never.
CREATE INDEX records_by_until ON records (source, until, id) WHERE until < 2147483647;

-- The canonical JSON.
CREATE TABLE record_bodies (
  record INTEGER NOT NULL PRIMARY KEY,
  body BLOB NOT NULL
) STRICT;

-- Which packages a record affects, and at which versions.
CREATE TABLE record_affects (
  package TEXT NOT NULL,
  record INTEGER NOT NULL,
  ranges TEXT NOT NULL,
  PRIMARY KEY (package, record)
) STRICT, WITHOUT ROWID;
CREATE INDEX record_affects_of ON record_affects (record);

-- Other ids of the same vulnerability.
CREATE TABLE record_aliases (
  alias TEXT NOT NULL,
  record INTEGER NOT NULL,
  PRIMARY KEY (alias, record)
) STRICT, WITHOUT ROWID;
CREATE INDEX record_aliases_of ON record_aliases (record);
