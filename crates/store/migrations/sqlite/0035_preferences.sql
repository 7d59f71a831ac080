-- How people want to see things, by identity.
CREATE TABLE preferences (
  identity TEXT NOT NULL PRIMARY KEY,
  -- Number of the theme in the contract.
  theme INTEGER NOT NULL,
  -- Name in the IANA database; '' for UTC.
  time_zone TEXT NOT NULL,
  -- Rows on a page; 0 for the client's own.
  page_size INTEGER NOT NULL,
  single_key_shortcuts INTEGER NOT NULL CHECK (single_key_shortcuts IN (0, 1)),
  updated_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
