-- How images are run, taken out of their configs when they are pushed: the bytes of the configs themselves are
-- blobs, which lie outside of the database.
CREATE TABLE image_configs (
  -- The image manifest.
  manifest TEXT COLLATE "C" NOT NULL PRIMARY KEY,
  os TEXT COLLATE "C" NOT NULL,
  architecture TEXT COLLATE "C" NOT NULL,
  variant TEXT COLLATE "C" NOT NULL,
  -- JSON object: the member `config` of the config.
  config TEXT COLLATE "C" NOT NULL
);
