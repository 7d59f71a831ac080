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

CREATE FUNCTION follow_manifests_of_images() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'INSERT' THEN
    INSERT INTO image_revisions (repo, revision) VALUES (NEW.repo, 1)
      ON CONFLICT (repo) DO UPDATE SET revision = image_revisions.revision + 1;
  ELSE
    UPDATE image_revisions SET revision = revision + 1 WHERE repo = OLD.repo;
  END IF;
  RETURN NULL;
END $$;
CREATE FUNCTION follow_tags_of_images() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  UPDATE image_revisions SET revision = revision + 1
    WHERE repo = CASE WHEN TG_OP = 'DELETE' THEN OLD.parent ELSE NEW.parent END;
  RETURN NULL;
END $$;
CREATE FUNCTION follow_evidence_of_images() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  UPDATE image_revisions SET revision = revision + 1
    WHERE repo = CASE WHEN TG_OP = 'DELETE' THEN OLD.repo ELSE NEW.repo END;
  RETURN NULL;
END $$;
CREATE TRIGGER image_revisions_manifests AFTER INSERT OR UPDATE OF pushed_at OR DELETE ON repo_manifests
  FOR EACH ROW EXECUTE FUNCTION follow_manifests_of_images();
CREATE TRIGGER image_revisions_tag_put AFTER INSERT OR UPDATE OF digest ON tags
  FOR EACH ROW WHEN (NEW.hidden = 1) EXECUTE FUNCTION follow_tags_of_images();
CREATE TRIGGER image_revisions_tag_removed AFTER DELETE ON tags
  FOR EACH ROW WHEN (OLD.hidden = 1) EXECUTE FUNCTION follow_tags_of_images();
CREATE TRIGGER image_revisions_reports AFTER INSERT OR DELETE ON scan_reports
  FOR EACH ROW EXECUTE FUNCTION follow_evidence_of_images();
CREATE TRIGGER image_revisions_sboms AFTER INSERT OR UPDATE OF state OR DELETE ON repo_sboms
  FOR EACH ROW EXECUTE FUNCTION follow_evidence_of_images();
