-- Rules that images must satisfy, of a repository or of all repositories below a group.
CREATE TABLE image_policies (
  -- UIDP of the group or repository.
  scope TEXT NOT NULL PRIMARY KEY,
  org TEXT NOT NULL,
  -- Grows with each change, so that decisions that were made before are recognized.
  revision INTEGER NOT NULL,
  grace_days INTEGER NOT NULL,
  -- bowline.registry.v1.ImagePolicy, without its UIDP.
  policy BLOB NOT NULL
) STRICT, WITHOUT ROWID;

-- Callers whose pulls of an image the rules let through, where a policy has a grace.
CREATE TABLE passed_pulls (
  repo TEXT NOT NULL,
  digest TEXT NOT NULL,
  -- UIDP of the caller.
  caller TEXT NOT NULL,
  -- At hour grain.
  passed_at INTEGER NOT NULL,
  PRIMARY KEY (repo, digest, caller)
) STRICT, WITHOUT ROWID;
CREATE INDEX passed_pulls_by_time ON passed_pulls (passed_at);

-- Number of changes of what decisions about the images of a repository depend on: manifests, referrer tags, reports of
-- scanners and SBOMs. Triggers keep it.
CREATE TABLE image_revisions (
  repo TEXT NOT NULL PRIMARY KEY,
  revision INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO image_revisions (repo, revision) SELECT DISTINCT repo, 1 FROM repo_manifests;

CREATE TRIGGER image_revisions_manifest_added AFTER INSERT ON repo_manifests BEGIN
  INSERT INTO image_revisions (repo, revision) VALUES (new.repo, 1)
  ON CONFLICT (repo) DO UPDATE SET revision = image_revisions.revision + 1;
END;
CREATE TRIGGER image_revisions_manifest_pushed AFTER UPDATE OF pushed_at ON repo_manifests BEGIN
  UPDATE image_revisions SET revision = revision + 1 WHERE repo = new.repo;
END;
CREATE TRIGGER image_revisions_manifest_removed AFTER DELETE ON repo_manifests BEGIN
  UPDATE image_revisions SET revision = revision + 1 WHERE repo = old.repo;
END;
CREATE TRIGGER image_revisions_tag_added AFTER INSERT ON tags WHEN new.hidden = 1 BEGIN
  UPDATE image_revisions SET revision = revision + 1 WHERE repo = new.parent;
END;
CREATE TRIGGER image_revisions_tag_moved AFTER UPDATE OF digest ON tags WHEN new.hidden = 1 BEGIN
  UPDATE image_revisions SET revision = revision + 1 WHERE repo = new.parent;
END;
CREATE TRIGGER image_revisions_tag_removed AFTER DELETE ON tags WHEN old.hidden = 1 BEGIN
  UPDATE image_revisions SET revision = revision + 1 WHERE repo = old.parent;
END;
CREATE TRIGGER image_revisions_report_added AFTER INSERT ON scan_reports BEGIN
  UPDATE image_revisions SET revision = revision + 1 WHERE repo = new.repo;
END;
CREATE TRIGGER image_revisions_report_removed AFTER DELETE ON scan_reports BEGIN
  UPDATE image_revisions SET revision = revision + 1 WHERE repo = old.repo;
END;
CREATE TRIGGER image_revisions_sbom_added AFTER INSERT ON repo_sboms BEGIN
  UPDATE image_revisions SET revision = revision + 1 WHERE repo = new.repo;
END;
CREATE TRIGGER image_revisions_sbom_read AFTER UPDATE OF state ON repo_sboms BEGIN
  UPDATE image_revisions SET revision = revision + 1 WHERE repo = new.repo;
END;
CREATE TRIGGER image_revisions_sbom_removed AFTER DELETE ON repo_sboms BEGIN
  UPDATE image_revisions SET revision = revision + 1 WHERE repo = old.repo;
END;
