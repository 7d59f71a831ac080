-- Grows with each change of what a repository holds: what was made of an older one is out of date.
ALTER TABLE package_repositories ADD COLUMN revision BIGINT NOT NULL DEFAULT 0;
