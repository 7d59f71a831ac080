-- Judgements about vulnerabilities: one row for an artifact, a component of it and a vulnerability. Texts that an
-- advisory does not have are ''.
CREATE TABLE advisories (
  uid TEXT COLLATE "C" NOT NULL PRIMARY KEY,
  -- The group.
  parent TEXT COLLATE "C" NOT NULL,
  org TEXT COLLATE "C" NOT NULL,
  -- What people call it by, such as BWL-2345-6789-cfgh.
  advisory_id TEXT COLLATE "C" NOT NULL,
  legacy_id TEXT COLLATE "C" NOT NULL,
  artifact_name TEXT COLLATE "C" NOT NULL,
  artifact_type TEXT COLLATE "C" NOT NULL,
  artifact_architecture TEXT COLLATE "C" NOT NULL,
  component_name TEXT COLLATE "C" NOT NULL,
  component_location TEXT COLLATE "C" NOT NULL,
  component_type TEXT COLLATE "C" NOT NULL,
  -- JSON array, in the order that was given; and its first element in upper case, to sort by.
  aliases TEXT COLLATE "C" NOT NULL,
  first_alias TEXT COLLATE "C" NOT NULL,
  author TEXT COLLATE "C" NOT NULL,
  -- Numbers of EventTypeFilter, 0 for none: of the latest approved event, and of the latest one that judges, which a
  -- moved component does not. Kept with every write of an event, so that lists filter by an index.
  latest_event_type BIGINT NOT NULL,
  latest_judgement_type BIGINT NOT NULL,
  latest_event_at BIGINT,
  -- How many events there are, and how many bytes their bodies have together.
  event_count BIGINT NOT NULL,
  event_bytes BIGINT NOT NULL,
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL,
  -- Marked as deleted since; the row stays.
  deleted_at BIGINT
);
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
  alias TEXT COLLATE "C" NOT NULL,
  advisory TEXT COLLATE "C" NOT NULL,
  PRIMARY KEY (alias, advisory)
);

-- What happened to an advisory, each with its review. `uid` is a child of the advisory's.
CREATE TABLE advisory_events (
  uid TEXT COLLATE "C" NOT NULL PRIMARY KEY,
  advisory TEXT COLLATE "C" NOT NULL,
  org TEXT COLLATE "C" NOT NULL,
  -- Number of EventTypeFilter.
  type BIGINT NOT NULL,
  -- Number of ReviewStatus.
  state BIGINT NOT NULL,
  author TEXT COLLATE "C" NOT NULL,
  -- '' until somebody decides.
  reviewer TEXT COLLATE "C" NOT NULL,
  -- When it took place, which its author may tell.
  at BIGINT NOT NULL,
  created_at BIGINT NOT NULL,
  -- The rest: an encoded AdvisoryEvent of the first version.
  body BYTEA NOT NULL
);
CREATE INDEX advisory_events_by_advisory ON advisory_events (advisory, at, uid);
CREATE INDEX advisory_events_by_state ON advisory_events (state, advisory);
CREATE INDEX advisory_events_by_type ON advisory_events (type, advisory);
CREATE INDEX advisory_events_by_author ON advisory_events (author, advisory);
CREATE INDEX advisory_events_by_reviewer ON advisory_events (reviewer, advisory) WHERE reviewer <> '';

-- What free text is looked for in: artifact, component and aliases in lower case, a line each.
CREATE TABLE advisory_words (
  n BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  advisory TEXT COLLATE "C" NOT NULL,
  words TEXT COLLATE "C" NOT NULL
);
CREATE UNIQUE INDEX advisory_words_advisory ON advisory_words (advisory);
-- Its trigrams. The extension belongs to PostgreSQL's own, and owners of a database may add it.
CREATE EXTENSION IF NOT EXISTS pg_trgm;
CREATE INDEX advisory_words_search ON advisory_words USING gin (words gin_trgm_ops);

-- Which packages of an organization are built from which origin package.
CREATE TABLE package_origins (
  org TEXT COLLATE "C" NOT NULL,
  origin TEXT COLLATE "C" NOT NULL,
  package TEXT COLLATE "C" NOT NULL,
  PRIMARY KEY (origin, org, package)
);
CREATE INDEX package_origins_by_package ON package_origins (org, package, origin);

-- How a group's advisories are reviewed and published.
CREATE TABLE advisory_settings (
  place TEXT COLLATE "C" NOT NULL PRIMARY KEY,
  org TEXT COLLATE "C" NOT NULL,
  -- Whether anybody may read the approved events of the group's own advisories.
  is_public BOOLEAN NOT NULL,
  -- Whether nobody, here and below, decides on events of their own.
  second_reviewer BOOLEAN NOT NULL,
  -- Grows with every change of what a public group publishes.
  revision BIGINT NOT NULL,
  updated_at BIGINT NOT NULL
);
CREATE INDEX advisory_settings_public ON advisory_settings (place, revision) WHERE is_public;
