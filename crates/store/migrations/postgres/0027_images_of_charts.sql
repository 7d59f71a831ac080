-- What Helm charts say of the images that they use, read when they are pushed.
CREATE TABLE charts (
  manifest TEXT COLLATE "C" NOT NULL PRIMARY KEY,
  -- Why the images are not known; empty if they are.
  problem TEXT COLLATE "C" NOT NULL
);

CREATE TABLE chart_images (
  manifest TEXT COLLATE "C" NOT NULL,
  -- A repository of images as the chart names it, without a tag.
  repository TEXT COLLATE "C" NOT NULL,
  PRIMARY KEY (manifest, repository)
);
CREATE INDEX chart_images_by_repository ON chart_images (repository);
