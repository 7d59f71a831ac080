-- Of a signature that lies beside a file of Java: SHA-256 of that file in hex; empty for what came with the file that it is about.
ALTER TABLE hosted_attestations ADD COLUMN subject_sha256 TEXT COLLATE "C" NOT NULL DEFAULT '';
