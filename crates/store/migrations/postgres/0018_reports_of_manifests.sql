-- Reports go with the manifest that they are about: those that had outlived theirs.
DELETE FROM scan_reports WHERE NOT EXISTS (
  SELECT 1 FROM repo_manifests m WHERE m.repo = scan_reports.repo AND m.digest = scan_reports.digest
);
