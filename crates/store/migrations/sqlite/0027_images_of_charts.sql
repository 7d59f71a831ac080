-- What Helm charts say of the images that they use, read when they are pushed.
CREATE TABLE charts (
  manifest TEXT NOT NULL PRIMARY KEY,
  -- Why the images are not known; empty if they are.
  problem TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE chart_images (
  manifest TEXT NOT NULL,
  -- A repository of images as the chart names it, without a tag.
  repository TEXT NOT NULL,
  PRIMARY KEY (manifest, repository)
) STRICT, WITHOUT ROWID;
CREATE INDEX chart_images_by_repository ON chart_images (repository);
