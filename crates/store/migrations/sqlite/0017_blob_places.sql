-- An object store tells what brought the bytes that lie there, not their digest.
CREATE INDEX blobs_by_upload ON blobs (upload);
-- How many uploads somebody has under way in a repository.
CREATE INDEX uploads_by_repo ON uploads (repo, identity);
