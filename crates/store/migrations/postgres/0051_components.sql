-- SBOMs of repositories, by the blob that each is in. What an SBOM lists is in `components`, once for all repositories.
CREATE TABLE repo_sboms (
  repo TEXT COLLATE "C" NOT NULL,
  -- The first 16 bytes of the digest.
  sbom BYTEA NOT NULL,
  digest TEXT COLLATE "C" NOT NULL,
  -- Number of UnindexedReason: 0 if the components are indexed.
  state BIGINT NOT NULL,
  PRIMARY KEY (repo, sbom)
);
CREATE INDEX repo_sboms_by_sbom ON repo_sboms (sbom, repo);
CREATE INDEX repo_sboms_unindexed ON repo_sboms (repo, sbom) WHERE state <> 0;

-- The components that an SBOM lists.
CREATE TABLE components (
  sbom BYTEA NOT NULL,
  number BIGINT NOT NULL,
  -- Type, namespace and name of the package URL, normalized, as in `maven/org.example/library`; '' without a package URL.
  package TEXT COLLATE "C" NOT NULL,
  name TEXT COLLATE "C" NOT NULL,
  version TEXT COLLATE "C" NOT NULL,
  -- Orders the versions of a package as its ecosystem does.
  version_key BYTEA NOT NULL,
  purl TEXT COLLATE "C" NOT NULL,
  license TEXT COLLATE "C" NOT NULL,
  PRIMARY KEY (sbom, number)
);

-- Which repositories have a package. The repository comes before the SBOM, so that a search reads what its caller may see
-- and nothing else.
CREATE TABLE component_packages (
  package TEXT COLLATE "C" NOT NULL,
  repo TEXT COLLATE "C" NOT NULL,
  sbom BYTEA NOT NULL,
  number BIGINT NOT NULL,
  PRIMARY KEY (package, repo, sbom, number)
);

-- Which repositories have a license: a whole text, or one license of an expression, in lower case.
CREATE TABLE component_licenses (
  license TEXT COLLATE "C" NOT NULL,
  repo TEXT COLLATE "C" NOT NULL,
  sbom BYTEA NOT NULL,
  PRIMARY KEY (license, repo, sbom)
);

-- What may be SBOMs of earlier pushes waits to be read: 1 is PENDING.
INSERT INTO repo_sboms (repo, sbom, digest, state)
SELECT DISTINCT r.repo, substring(decode(substr(f.digest, 8), 'hex') FROM 1 FOR 16), f.digest, 1
FROM repo_manifests r JOIN manifest_references f ON f.manifest = r.digest
WHERE f.kind = 2 AND f.media_type ILIKE '%json%';
