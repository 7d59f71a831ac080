-- The audit log, numbered and chained after the commit, on both engines alike. `seq` numbers all rows, `org_seq`
-- those of one organization; rows without a number are not to be read yet. The images come last, so that
-- reading the rest of a row does not walk through them.
CREATE TABLE audit_chained (
  id INTEGER PRIMARY KEY,
  seq INTEGER,
  at INTEGER NOT NULL,
  org TEXT NOT NULL,
  org_seq INTEGER,
  actor TEXT NOT NULL,
  method TEXT NOT NULL,
  request_id TEXT NOT NULL,
  kind TEXT NOT NULL,
  resource TEXT NOT NULL,
  before_type TEXT,
  before_hash BLOB,
  after_type TEXT,
  after_hash BLOB,
  org_hash BLOB,
  hash BLOB,
  before_image BLOB,
  after_image BLOB
) STRICT;
INSERT INTO audit_chained (id, at, org, actor, method, request_id, kind, resource,
    before_type, before_image, after_type, after_image)
SELECT seq, at, org, actor, method, request_id, kind, resource, before_type, before_image, after_type, after_image
FROM audit ORDER BY seq;
DROP TABLE audit;
ALTER TABLE audit_chained RENAME TO audit;

-- One index for each way of reading; a row enters them when it is numbered, not when it is written.
CREATE UNIQUE INDEX audit_by_seq ON audit (seq) WHERE seq IS NOT NULL;
CREATE UNIQUE INDEX audit_by_org ON audit (org, org_seq) WHERE seq IS NOT NULL;
CREATE INDEX audit_by_resource ON audit (resource, seq) WHERE seq IS NOT NULL;
CREATE INDEX audit_by_actor ON audit (actor, seq) WHERE seq IS NOT NULL;
CREATE INDEX audit_by_method ON audit (method, seq) WHERE seq IS NOT NULL;

-- Where each chain ends, and up to where it was pruned. The chain of all rows has the empty name.
CREATE TABLE audit_chains (
  org TEXT PRIMARY KEY,
  seq INTEGER NOT NULL,
  hash BLOB NOT NULL,
  pruned_seq INTEGER NOT NULL,
  pruned_hash BLOB,
  pruned_rows INTEGER NOT NULL,
  pruned_at INTEGER
) STRICT, WITHOUT ROWID;
