-- Rules that images must satisfy, of a repository or of all repositories below a group.
CREATE TABLE image_policies (
  -- UIDP of the group or repository.
  scope TEXT COLLATE "C" NOT NULL PRIMARY KEY,
  org TEXT COLLATE "C" NOT NULL,
  -- Grows with each change, so that decisions that were made before are recognized.
  revision BIGINT NOT NULL,
  grace_days BIGINT NOT NULL,
  -- bowline.registry.v1.ImagePolicy, without its UIDP.
  policy BYTEA NOT NULL
);

-- Callers whose pulls of an image the rules let through, where a policy has a grace.
CREATE TABLE passed_pulls (
  repo TEXT COLLATE "C" NOT NULL,
  digest TEXT COLLATE "C" NOT NULL,
  -- UIDP of the caller.
  caller TEXT COLLATE "C" NOT NULL,
  -- At hour grain.
  passed_at BIGINT NOT NULL,
  PRIMARY KEY (repo, digest, caller)
);
CREATE INDEX passed_pulls_by_time ON passed_pulls (passed_at);

-- Number of changes of what decisions about the images of a repository depend on: manifests, referrer tags, reports of
-- scanners and SBOMs. Triggers keep it.
CREATE TABLE image_revisions (
  repo TEXT COLLATE "C" NOT NULL PRIMARY KEY,
  revision BIGINT NOT NULL
);
INSERT INTO image_revisions (repo, revision) SELECT DISTINCT repo, 1 FROM repo_manifests;

-- Once for each statement and repository: a row that one transaction updates a hundred thousand times has as many versions,
-- and each update reads them all.
CREATE FUNCTION follow_added_manifests() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO image_revisions (repo, revision) SELECT DISTINCT repo, 1 FROM changed ORDER BY repo
    ON CONFLICT (repo) DO UPDATE SET revision = image_revisions.revision + 1;
  RETURN NULL;
END $$;
CREATE FUNCTION follow_evidence_of_images() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  UPDATE image_revisions SET revision = revision + 1 WHERE repo IN (SELECT repo FROM changed);
  RETURN NULL;
END $$;
CREATE FUNCTION follow_hidden_tags() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  UPDATE image_revisions SET revision = revision + 1 WHERE repo IN (SELECT parent FROM changed WHERE hidden = 1);
  RETURN NULL;
END $$;
-- PostgreSQL has no tables of changes for triggers of single columns: these are for each row.
CREATE FUNCTION follow_changed_evidence() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  UPDATE image_revisions SET revision = revision + 1 WHERE repo = NEW.repo;
  RETURN NULL;
END $$;
CREATE FUNCTION follow_moved_tag() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  UPDATE image_revisions SET revision = revision + 1 WHERE repo = NEW.parent;
  RETURN NULL;
END $$;

CREATE TRIGGER image_revisions_manifest_added AFTER INSERT ON repo_manifests REFERENCING NEW TABLE AS changed
  FOR EACH STATEMENT EXECUTE FUNCTION follow_added_manifests();
CREATE TRIGGER image_revisions_manifest_pushed AFTER UPDATE OF pushed_at ON repo_manifests
  FOR EACH ROW EXECUTE FUNCTION follow_changed_evidence();
CREATE TRIGGER image_revisions_manifest_removed AFTER DELETE ON repo_manifests REFERENCING OLD TABLE AS changed
  FOR EACH STATEMENT EXECUTE FUNCTION follow_evidence_of_images();
CREATE TRIGGER image_revisions_tag_added AFTER INSERT ON tags REFERENCING NEW TABLE AS changed
  FOR EACH STATEMENT EXECUTE FUNCTION follow_hidden_tags();
CREATE TRIGGER image_revisions_tag_moved AFTER UPDATE OF digest ON tags
  FOR EACH ROW WHEN (NEW.hidden = 1) EXECUTE FUNCTION follow_moved_tag();
CREATE TRIGGER image_revisions_tag_removed AFTER DELETE ON tags REFERENCING OLD TABLE AS changed
  FOR EACH STATEMENT EXECUTE FUNCTION follow_hidden_tags();
CREATE TRIGGER image_revisions_report_added AFTER INSERT ON scan_reports REFERENCING NEW TABLE AS changed
  FOR EACH STATEMENT EXECUTE FUNCTION follow_evidence_of_images();
CREATE TRIGGER image_revisions_report_removed AFTER DELETE ON scan_reports REFERENCING OLD TABLE AS changed
  FOR EACH STATEMENT EXECUTE FUNCTION follow_evidence_of_images();
CREATE TRIGGER image_revisions_sbom_added AFTER INSERT ON repo_sboms REFERENCING NEW TABLE AS changed
  FOR EACH STATEMENT EXECUTE FUNCTION follow_evidence_of_images();
CREATE TRIGGER image_revisions_sbom_read AFTER UPDATE OF state ON repo_sboms
  FOR EACH ROW EXECUTE FUNCTION follow_changed_evidence();
CREATE TRIGGER image_revisions_sbom_removed AFTER DELETE ON repo_sboms REFERENCING OLD TABLE AS changed
  FOR EACH STATEMENT EXECUTE FUNCTION follow_evidence_of_images();
