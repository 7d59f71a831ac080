-- SBOMs of repositories, by the blob that each is in. What an SBOM lists is in `components`, once for all repositories.
CREATE TABLE repo_sboms (
  repo TEXT NOT NULL,
  -- The first 16 bytes of the digest.
  sbom BLOB NOT NULL,
  digest TEXT NOT NULL,
  -- Number of UnindexedReason: 0 if the components are indexed.
  state INTEGER NOT NULL,
  PRIMARY KEY (repo, sbom)
) STRICT, WITHOUT ROWID;
CREATE INDEX repo_sboms_by_sbom ON repo_sboms (sbom, repo);
CREATE INDEX repo_sboms_unindexed ON repo_sboms (repo, sbom) WHERE state <> 0;

-- The components that an SBOM lists.
CREATE TABLE components (
  sbom BLOB NOT NULL,
  number INTEGER NOT NULL,
  -- Type, namespace and name of the package URL, normalized, as in `maven/org.example/library`; '' without a package URL.
  package TEXT NOT NULL,
  name TEXT NOT NULL,
  version TEXT NOT NULL,
  -- Orders the versions of a package as its ecosystem does.
  version_key BLOB NOT NULL,
  purl TEXT NOT NULL,
  license TEXT NOT NULL,
  PRIMARY KEY (sbom, number)
) STRICT, WITHOUT ROWID;

-- Which repositories have a package. The repository comes before the SBOM, so that a search reads what its caller may see
-- and nothing else.
CREATE TABLE component_packages (
  package TEXT NOT NULL,
  repo TEXT NOT NULL,
  sbom BLOB NOT NULL,
  number INTEGER NOT NULL,
  PRIMARY KEY (package, repo, sbom, number)
) STRICT, WITHOUT ROWID;

-- Which repositories have a license: a whole text, or one license of an expression, in lower case.
CREATE TABLE component_licenses (
  license TEXT NOT NULL,
  repo TEXT NOT NULL,
  sbom BLOB NOT NULL,
  PRIMARY KEY (license, repo, sbom)
) STRICT, WITHOUT ROWID;

-- What may be SBOMs of earlier pushes waits to be read: 1 is PENDING.
INSERT INTO repo_sboms (repo, sbom, digest, state)
SELECT DISTINCT r.repo, substr(unhex(substr(f.digest, 8)), 1, 16), f.digest, 1
FROM repo_manifests r JOIN manifest_references f ON f.manifest = r.digest
WHERE f.kind = 2 AND f.media_type LIKE '%json%';
