-- The images of a repository in the order of their pushes.
CREATE INDEX repo_manifests_by_pushed ON repo_manifests (repo, pushed_at, digest);

-- What happened where on which day of UTC: kinds are 1 pulls, 2 pushes, 3 bytes of pushed images, 4 blocked packages.
-- Writers append deltas, which contend with no one; a background job moves them into the days.
CREATE TABLE activity_deltas (
  id INTEGER PRIMARY KEY,
  -- Repository, or the organization.
  scope TEXT NOT NULL,
  -- Who did it; '' where that is not told.
  identity TEXT NOT NULL,
  -- Days since the epoch.
  day INTEGER NOT NULL,
  kind INTEGER NOT NULL,
  n INTEGER NOT NULL
) STRICT;

-- Sums by scope: with identity '' everything at and below it; otherwise what the identity did, at the repository and at
-- its organization.
CREATE TABLE activity_days (
  scope TEXT NOT NULL,
  kind INTEGER NOT NULL,
  identity TEXT NOT NULL,
  day INTEGER NOT NULL,
  n INTEGER NOT NULL,
  PRIMARY KEY (scope, kind, identity, day)
) STRICT, WITHOUT ROWID;
CREATE INDEX activity_days_by_day ON activity_days (day);
