-- When the upstream was last asked what a tag names.
CREATE TABLE upstream_tags (
  repo TEXT NOT NULL,
  tag TEXT NOT NULL,
  checked_at INTEGER NOT NULL,
  PRIMARY KEY (repo, tag)
) STRICT, WITHOUT ROWID;
