-- The images of a repository in the order of their pushes.
CREATE INDEX repo_manifests_by_pushed ON repo_manifests (repo, pushed_at, digest);

-- What happened where on which day of UTC: kinds are 1 pulls, 2 pushes, 3 bytes of pushed images, 4 blocked packages.
-- Writers append deltas, which contend with no one; a background job moves them into the days.
CREATE TABLE activity_deltas (
  id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  -- Repository, or the organization.
  scope TEXT COLLATE "C" NOT NULL,
  -- Who did it; '' where that is not told.
  identity TEXT COLLATE "C" NOT NULL,
  -- Days since the epoch.
  day BIGINT NOT NULL,
  kind BIGINT NOT NULL,
  n BIGINT NOT NULL
);

-- Sums by scope: with identity '' everything at and below it; otherwise what the identity did, at the repository and at
-- its organization.
CREATE TABLE activity_days (
  scope TEXT COLLATE "C" NOT NULL,
  kind BIGINT NOT NULL,
  identity TEXT COLLATE "C" NOT NULL,
  day BIGINT NOT NULL,
  n BIGINT NOT NULL,
  PRIMARY KEY (scope, kind, identity, day)
);
CREATE INDEX activity_days_by_day ON activity_days (day);
