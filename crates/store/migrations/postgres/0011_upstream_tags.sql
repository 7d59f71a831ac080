-- When the upstream was last asked what a tag names.
CREATE TABLE upstream_tags (
  repo TEXT COLLATE "C" NOT NULL,
  tag TEXT COLLATE "C" NOT NULL,
  checked_at BIGINT NOT NULL,
  PRIMARY KEY (repo, tag)
);
