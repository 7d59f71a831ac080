-- Keys that sign versions of npm's packages. The newest one signs; those before it verify what they signed.
CREATE TABLE package_signing_keys (
  keyid TEXT NOT NULL,
  -- Grows with each key.
  generation INTEGER NOT NULL,
  -- SubjectPublicKeyInfo in DER.
  public_key BLOB NOT NULL,
  -- The private key as PKCS#8, sealed with the key file; empty once another key signs.
  sealed BLOB NOT NULL,
  created_at INTEGER NOT NULL,
  -- When another key took its place; absent for the key that signs.
  expires_at INTEGER,
  -- When it was removed because it leaked: it is not listed, and the row stays until what it signed is forgotten.
  removed_at INTEGER,
  PRIMARY KEY (keyid)
) STRICT, WITHOUT ROWID;

-- The signature of a version of npm in DER, and the key that made it. Absent until it is signed, empty for crates.
ALTER TABLE hosted_manifests ADD COLUMN signature_keyid TEXT NOT NULL DEFAULT '';
ALTER TABLE hosted_manifests ADD COLUMN signature BLOB;
UPDATE hosted_manifests SET signature = x''
 WHERE repository IN (SELECT uid FROM package_repositories WHERE ecosystem <> 3);
CREATE INDEX hosted_manifests_unsigned ON hosted_manifests (repository, package, sort_key) WHERE signature IS NULL;
CREATE INDEX hosted_manifests_signed ON hosted_manifests (signature_keyid);

-- Versions of upstreams are signed when their document arrives: the stored ones are requested again, whether they changed or not.
UPDATE upstream_documents SET etag = '', last_modified = ''
 WHERE upstream IN (SELECT uid FROM package_upstreams WHERE ecosystem = 3);
