-- Requests to check every replicated tag of a repository at its next pull: a tag that was checked in an earlier
-- generation is due. So a request changes one row, however many tags there are.
CREATE TABLE upstream_generations (
  repo TEXT NOT NULL PRIMARY KEY,
  generation INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
ALTER TABLE upstream_tags ADD COLUMN generation INTEGER NOT NULL DEFAULT 0;
