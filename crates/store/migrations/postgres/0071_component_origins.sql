-- Components of distributions are compared in their release and by their source package, which the qualifiers of their package
-- URLs name: so one name and version may be several things.
--
-- Release and source package, as `PackageOrigin` of the crate `osv` writes them; '' where there are none, '?' where records know the
-- ecosystem and nothing can be compared: the version or the release is missing. The task that matches writes it.
ALTER TABLE components ADD COLUMN origin TEXT COLLATE "C" NOT NULL DEFAULT '';
-- Number of components with '?'.
ALTER TABLE repo_sboms ADD COLUMN uncompared BIGINT NOT NULL DEFAULT 0;
CREATE INDEX repo_sboms_uncompared ON repo_sboms (repo, sbom) WHERE uncompared <> 0;

CREATE TABLE package_versions_by_origin (
  -- As in `components`.
  package TEXT COLLATE "C" NOT NULL,
  version TEXT COLLATE "C" NOT NULL,
  origin TEXT COLLATE "C" NOT NULL,
  -- The package as `record_affects` names it; '' where records know no such ecosystem.
  record_package TEXT COLLATE "C" NOT NULL,
  -- The source package likewise, if records about both count; else ''.
  record_source TEXT COLLATE "C" NOT NULL,
  -- 0 is matched, 1 waits to be matched again, 2 waits for a check whether an SBOM has it still, 3 was never matched.
  state BIGINT NOT NULL,
  PRIMARY KEY (package, version, origin)
);
INSERT INTO package_versions_by_origin (package, version, origin, record_package, record_source, state)
  SELECT package, version, '', record_package, '', state FROM package_versions
  WHERE package NOT LIKE 'apk/%' AND package NOT LIKE 'deb/%' AND package NOT LIKE 'rpm/%'
  ORDER BY package, version;
DROP TABLE package_versions;
ALTER TABLE package_versions_by_origin RENAME TO package_versions;
ALTER INDEX package_versions_by_origin_pkey RENAME TO package_versions_pkey;
CREATE INDEX package_versions_by_record_package ON package_versions (record_package, state);
CREATE INDEX package_versions_by_record_source ON package_versions (record_source, state) WHERE record_source <> '';
CREATE INDEX package_versions_waiting ON package_versions (state, package, version, origin) WHERE state <> 0;

-- As before, by origin.
CREATE TABLE package_matches_by_origin (
  package TEXT COLLATE "C" NOT NULL,
  version TEXT COLLATE "C" NOT NULL,
  origin TEXT COLLATE "C" NOT NULL,
  record_id TEXT COLLATE "C" NOT NULL,
  vulnerability TEXT COLLATE "C" NOT NULL,
  aliases TEXT COLLATE "C" NOT NULL,
  source BIGINT NOT NULL,
  since BIGINT NOT NULL,
  -- The lowest fixed version above the compared one that the record names; '' without one.
  fixed_version TEXT COLLATE "C" NOT NULL,
  severity BIGINT NOT NULL,
  PRIMARY KEY (package, version, origin, record_id)
);
-- Scores of CVSS 4 were not computed: such a match is written again, as if the record had changed.
INSERT INTO package_matches_by_origin
    (package, version, origin, record_id, vulnerability, aliases, source, since, fixed_version, severity)
  SELECT m.package, m.version, '', m.record_id, m.vulnerability, m.aliases, m.source,
    CASE WHEN EXISTS (SELECT 1 FROM records r WHERE r.id = m.record_id AND r.severities LIKE '%CVSS:4%') THEN -1
         ELSE m.since END,
    m.fixed_version, m.severity
  FROM package_matches m
  WHERE m.package NOT LIKE 'apk/%' AND m.package NOT LIKE 'deb/%' AND m.package NOT LIKE 'rpm/%'
  ORDER BY m.package, m.version, m.record_id;
DROP TABLE package_matches;
ALTER TABLE package_matches_by_origin RENAME TO package_matches;
ALTER INDEX package_matches_by_origin_pkey RENAME TO package_matches_pkey;
CREATE INDEX package_matches_by_vulnerability ON package_matches (vulnerability, package);
CREATE INDEX package_matches_by_record ON package_matches (record_id, package);
UPDATE package_versions SET state = 1 WHERE state = 0 AND EXISTS
  (SELECT 1 FROM package_matches m
   WHERE m.package = package_versions.package AND m.version = package_versions.version AND m.since = -1);

CREATE TABLE version_sboms_by_origin (
  package TEXT COLLATE "C" NOT NULL,
  version TEXT COLLATE "C" NOT NULL,
  sbom BYTEA NOT NULL,
  origin TEXT COLLATE "C" NOT NULL,
  PRIMARY KEY (package, version, sbom, origin)
);
INSERT INTO version_sboms_by_origin (package, version, sbom, origin)
  SELECT package, version, sbom, '' FROM version_sboms
  WHERE package NOT LIKE 'apk/%' AND package NOT LIKE 'deb/%' AND package NOT LIKE 'rpm/%'
  ORDER BY package, version, sbom;
DROP TABLE version_sboms;
ALTER TABLE version_sboms_by_origin RENAME TO version_sboms;
ALTER INDEX version_sboms_by_origin_pkey RENAME TO version_sboms_pkey;

-- SBOMs with such components, or with components without a version, are read again. Images wait for that, so that a finding
-- that stays does not close and open.
INSERT INTO unmatched_sboms (sbom, after)
  SELECT DISTINCT c.sbom, -1 FROM components c
  WHERE (c.package LIKE 'apk/%' OR c.package LIKE 'deb/%' OR c.package LIKE 'rpm/%'
         OR c.package <> '' AND c.version = '')
    AND EXISTS (SELECT 1 FROM repo_sboms s WHERE s.sbom = c.sbom AND s.state = 0)
  ON CONFLICT (sbom) DO UPDATE SET after = -1;

-- Name and package URL of the component when the finding opened, for the event that closes it: SBOMs may be gone by then.
ALTER TABLE image_findings ADD COLUMN component TEXT COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE image_findings ADD COLUMN purl TEXT COLLATE "C" NOT NULL DEFAULT '';
UPDATE image_findings SET
  component = coalesce((SELECT c.name FROM component_packages i JOIN components c ON c.sbom = i.sbom AND c.number = i.number
    WHERE i.package = image_findings.package AND i.repo = image_findings.repo AND c.version = image_findings.version
    ORDER BY i.sbom, i.number LIMIT 1), ''),
  purl = coalesce((SELECT c.purl FROM component_packages i JOIN components c ON c.sbom = i.sbom AND c.number = i.number
    WHERE i.package = image_findings.package AND i.repo = image_findings.repo AND c.version = image_findings.version
    ORDER BY i.sbom, i.number LIMIT 1), '');
