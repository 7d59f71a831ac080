-- From when on the age of versions counts by a policy: a bowline.libraries.v1.AgeSource; 0 for the upstream's word.
ALTER TABLE library_policies ADD COLUMN age_source INTEGER NOT NULL DEFAULT 0;
-- When this server saw the version of a file first, in microseconds; 0 if that is not known. Whether an earlier list lacked it.
ALTER TABLE upstream_files ADD COLUMN first_seen_at INTEGER NOT NULL DEFAULT 0;
ALTER TABLE upstream_files ADD COLUMN is_new INTEGER NOT NULL CHECK (is_new IN (0, 1)) DEFAULT 0;

-- Which versions were seen of packages whose documents were forgotten, so that they are not new when they are read again.
CREATE TABLE upstream_known_versions (
  upstream TEXT NOT NULL,
  package TEXT NOT NULL,
  forgotten_at INTEGER NOT NULL,
  -- A message of bowline.libraries.v1.UpstreamDocument: files with nothing but names and times.
  document BLOB NOT NULL,
  PRIMARY KEY (upstream, package)
) STRICT;
CREATE INDEX upstream_known_versions_by_age ON upstream_known_versions (upstream, forgotten_at);
