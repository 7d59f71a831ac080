-- Lower-case hex, of files of Java, whose clients verify by any of these; '' of others.
ALTER TABLE hosted_files ADD COLUMN md5 TEXT COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE hosted_files ADD COLUMN sha1 TEXT COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE hosted_files ADD COLUMN sha512 TEXT COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE upstream_files ADD COLUMN md5 TEXT COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE upstream_files ADD COLUMN sha1 TEXT COLLATE "C" NOT NULL DEFAULT '';

-- Of versions of Java whose POM has come: what kind of thing it describes, and group:artifact:version of the POM that it
-- inherits from; '' without.
ALTER TABLE hosted_versions ADD COLUMN packaging TEXT COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE hosted_versions ADD COLUMN parent_pom TEXT COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE upstream_files ADD COLUMN parent_pom TEXT COLLATE "C" NOT NULL DEFAULT '';

-- Files of different names may have the same bytes, which are linked once.
CREATE INDEX hosted_files_by_sha256 ON hosted_files (repository, sha256);
