-- Named operators: people of the operator's providers who may read or do what the operator may.
CREATE TABLE operators (
  identity TEXT NOT NULL PRIMARY KEY,
  -- `operator.viewer` or `operator.admin`.
  role TEXT NOT NULL,
  granted_by TEXT NOT NULL,
  granted_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
