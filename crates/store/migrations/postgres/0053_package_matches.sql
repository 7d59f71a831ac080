-- SBOMs whose components are stored and not yet among `package_versions`.
CREATE TABLE unmatched_sboms (
  sbom BYTEA NOT NULL PRIMARY KEY,
  -- Number of the last component that was looked at; -1 before the first.
  after BIGINT NOT NULL DEFAULT -1
);
INSERT INTO unmatched_sboms (sbom) SELECT DISTINCT sbom FROM repo_sboms WHERE state = 0;

-- Versions of packages that SBOMs list, each once for all SBOMs and images.
CREATE TABLE package_versions (
  -- As in `components`.
  package TEXT COLLATE "C" NOT NULL,
  version TEXT COLLATE "C" NOT NULL,
  -- The package as `record_affects` names it; '' where records know no such ecosystem.
  record_package TEXT COLLATE "C" NOT NULL,
  -- 0 is matched, 1 waits to be matched, 2 waits for a check whether an SBOM has it still.
  state BIGINT NOT NULL,
  PRIMARY KEY (package, version)
);
CREATE INDEX package_versions_by_record_package ON package_versions (record_package, state);
CREATE INDEX package_versions_waiting ON package_versions (state, package, version) WHERE state <> 0;

-- The visible records that affect a version of a package: each id once, of several sources the newest record.
CREATE TABLE package_matches (
  package TEXT COLLATE "C" NOT NULL,
  version TEXT COLLATE "C" NOT NULL,
  record_id TEXT COLLATE "C" NOT NULL,
  -- The CVE id of the vulnerability if its record names one, else the id of the record.
  vulnerability TEXT COLLATE "C" NOT NULL,
  -- The other ids that the record names, in order, separated by spaces.
  aliases TEXT COLLATE "C" NOT NULL,
  -- Number of the source of the record, and the generation that brought it: they change with its content.
  source BIGINT NOT NULL,
  since BIGINT NOT NULL,
  -- The lowest fixed version above `version` that the record names; '' without one.
  fixed_version TEXT COLLATE "C" NOT NULL,
  -- Number of Vulnerability.Severity.
  severity BIGINT NOT NULL,
  PRIMARY KEY (package, version, record_id)
);
CREATE INDEX package_matches_by_vulnerability ON package_matches (vulnerability, package);
CREATE INDEX package_matches_by_record ON package_matches (record_id, package);

-- Which SBOMs list a version of a package. The task that matches writes it: an index of `components` would cost every push
-- a page of the database for each component.
CREATE TABLE version_sboms (
  package TEXT COLLATE "C" NOT NULL,
  version TEXT COLLATE "C" NOT NULL,
  sbom BYTEA NOT NULL,
  PRIMARY KEY (package, version, sbom)
);

-- How far the matches follow a source, as `malware_generation` and `malware_after`: all packages wait at first.
ALTER TABLE record_sources ADD COLUMN matched_generation BIGINT NOT NULL DEFAULT 0;
ALTER TABLE record_sources ADD COLUMN matched_after TEXT COLLATE "C" NOT NULL DEFAULT '';
UPDATE record_sources SET matched_generation = generation;
