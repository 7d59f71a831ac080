-- Names of packages of groups in any case: a question to an upstream for one of them would tell others what it is.
CREATE INDEX hosted_files_by_folded ON hosted_files (lower(package), repository);
-- Versions often have the same metadata, which stay as long as one of them has them.
CREATE INDEX hosted_files_by_metadata ON hosted_files (repository, metadata_sha256);
