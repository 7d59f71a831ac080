-- The audit log, numbered and chained after the commit, on both engines alike. `seq` numbers all rows, `org_seq`
-- those of one organization; rows without a number are not to be read yet.
ALTER TABLE audit
  ADD COLUMN org_seq BIGINT,
  ADD COLUMN before_hash BYTEA,
  ADD COLUMN after_hash BYTEA,
  ADD COLUMN org_hash BYTEA,
  ADD COLUMN hash BYTEA;

-- One index for each way of reading; a row enters them when it is numbered, not when it is written.
CREATE UNIQUE INDEX audit_by_seq ON audit (seq) WHERE seq IS NOT NULL;
CREATE UNIQUE INDEX audit_by_org ON audit (org, org_seq) WHERE seq IS NOT NULL;
CREATE INDEX audit_by_resource ON audit (resource, seq) WHERE seq IS NOT NULL;
CREATE INDEX audit_by_actor ON audit (actor, seq) WHERE seq IS NOT NULL;
CREATE INDEX audit_by_method ON audit (method, seq) WHERE seq IS NOT NULL;
-- What waits for its number: by transaction, since ids are drawn in another order than that of the commits.
CREATE INDEX audit_unnumbered ON audit (txid, id) WHERE seq IS NULL;

-- Where each chain ends, and up to where it was pruned. The chain of all rows has the empty name.
CREATE TABLE audit_chains (
  org TEXT COLLATE "C" PRIMARY KEY,
  seq BIGINT NOT NULL,
  hash BYTEA NOT NULL,
  pruned_seq BIGINT NOT NULL,
  pruned_hash BYTEA,
  pruned_rows BIGINT NOT NULL,
  pruned_at BIGINT
);
