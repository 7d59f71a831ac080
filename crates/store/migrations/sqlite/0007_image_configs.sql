-- How images are run, taken out of their configs when they are pushed: the bytes of the configs themselves are
-- blobs, which lie outside of the database.
CREATE TABLE image_configs (
  -- The image manifest.
  manifest TEXT NOT NULL PRIMARY KEY,
  os TEXT NOT NULL,
  architecture TEXT NOT NULL,
  variant TEXT NOT NULL,
  -- JSON object: the member `config` of the config.
  config TEXT NOT NULL
) STRICT, WITHOUT ROWID;
