-- Named operators: people of the operator's providers who may read or do what the operator may.
CREATE TABLE operators (
  identity TEXT COLLATE "C" NOT NULL PRIMARY KEY,
  -- `operator.viewer` or `operator.admin`.
  role TEXT COLLATE "C" NOT NULL,
  granted_by TEXT COLLATE "C" NOT NULL,
  granted_at BIGINT NOT NULL
);
