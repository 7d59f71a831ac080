-- They are compressed already.
ALTER TABLE upstream_documents ALTER COLUMN manifests SET STORAGE EXTERNAL;
