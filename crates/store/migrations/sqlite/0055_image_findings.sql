-- Vulnerabilities of images by their components: those of `package_matches` for the versions that the SBOMs of an image
-- list, open or closed by an advisory. The task that matches writes them with the events that tell of them, so that each opens
-- and closes once.
CREATE TABLE image_findings (
  repo TEXT NOT NULL,
  digest TEXT NOT NULL,
  -- The others as in `package_matches`.
  vulnerability TEXT NOT NULL,
  package TEXT NOT NULL,
  version TEXT NOT NULL,
  -- 0 is open; 1 is closed by an advisory.
  state INTEGER NOT NULL,
  -- When it opened or closed.
  since INTEGER NOT NULL,
  PRIMARY KEY (repo, digest, vulnerability, package, version)
) STRICT, WITHOUT ROWID;
CREATE INDEX image_findings_by_vulnerability ON image_findings (vulnerability, repo, digest);

-- What waits until these findings are compared again: versions whose matches changed, SBOMs that were indexed or whose
-- versions are among those, advisories that changed, and images.
CREATE TABLE changed_versions (
  package TEXT NOT NULL,
  version TEXT NOT NULL,
  -- The last SBOM that was noted; empty before the first.
  after BLOB NOT NULL,
  PRIMARY KEY (package, version)
) STRICT, WITHOUT ROWID;
CREATE TABLE waiting_sboms (
  repo TEXT NOT NULL,
  sbom BLOB NOT NULL,
  -- How often it was noted: what is noted again while the task looks at it waits on.
  noted INTEGER NOT NULL,
  PRIMARY KEY (repo, sbom)
) STRICT, WITHOUT ROWID;
CREATE TABLE waiting_advisories (
  advisory TEXT NOT NULL,
  -- An id of a vulnerability that it has or had, in upper case.
  alias TEXT NOT NULL,
  -- The last image that was noted; empty before the first.
  after_repo TEXT NOT NULL DEFAULT '',
  after_digest TEXT NOT NULL DEFAULT '',
  noted INTEGER NOT NULL,
  PRIMARY KEY (advisory, alias)
) STRICT, WITHOUT ROWID;
CREATE TABLE waiting_images (
  repo TEXT NOT NULL,
  digest TEXT NOT NULL,
  noted INTEGER NOT NULL,
  PRIMARY KEY (repo, digest)
) STRICT, WITHOUT ROWID;
INSERT INTO waiting_sboms (repo, sbom, noted) SELECT repo, sbom, 1 FROM repo_sboms WHERE state = 0;

-- Who pulled the image last; empty for pulls before this.
ALTER TABLE repo_manifests ADD COLUMN last_pulled_by TEXT NOT NULL DEFAULT '';
