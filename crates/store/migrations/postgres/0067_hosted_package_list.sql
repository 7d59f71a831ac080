-- The packages that groups publish, one row for each that has versions: what lists show beside the catalogue.
CREATE TABLE hosted_packages (
  repository TEXT COLLATE "C" NOT NULL,
  package TEXT COLLATE "C" NOT NULL,
  -- Drawn at random, so that it tells nothing; it is another after all versions were deleted.
  id TEXT COLLATE "C" NOT NULL,
  -- That of the repository.
  ecosystem BIGINT NOT NULL,
  -- The name in lower case, by which lists are ordered.
  folded TEXT COLLATE "C" NOT NULL,
  -- The highest release, or without one the highest pre-release, and its license.
  latest TEXT COLLATE "C" NOT NULL,
  license TEXT COLLATE "C" NOT NULL,
  version_count BIGINT NOT NULL,
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL,
  PRIMARY KEY (repository, package)
);
CREATE UNIQUE INDEX hosted_packages_by_id ON hosted_packages (id);
-- Lists read the rows of the repositories that a caller may read, and sort them: no index has the rows of others in between.
CREATE INDEX hosted_packages_by_ecosystem ON hosted_packages (ecosystem, repository, folded);

-- Which versions are releases is not known here: the latest is the highest of all until the package changes again.
INSERT INTO hosted_packages (repository, package, id, ecosystem, folded, latest, license, version_count, created_at, updated_at)
SELECT DISTINCT ON (v.repository, v.package)
       v.repository, v.package, 'hosted:' || replace(gen_random_uuid()::text, '-', ''), r.ecosystem, lower(v.package),
       v.version, v.license, s.version_count, s.created_at, s.updated_at
FROM (SELECT repository, package, count(*) AS version_count, min(created_at) AS created_at, max(created_at) AS updated_at
      FROM hosted_versions GROUP BY repository, package) s
JOIN hosted_versions v ON v.repository = s.repository AND v.package = s.package
JOIN package_repositories r ON r.uid = v.repository
ORDER BY v.repository, v.package, v.sort_key DESC;
