-- The images of a repository in the order of their last pulls; 0 stands for images that were never pulled.
CREATE INDEX repo_manifests_by_pulled ON repo_manifests (repo, (coalesce(last_pulled_at, 0)), digest);
