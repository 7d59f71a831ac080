-- How people want to see things, by identity.
CREATE TABLE preferences (
  identity TEXT COLLATE "C" NOT NULL PRIMARY KEY,
  -- Number of the theme in the contract.
  theme BIGINT NOT NULL,
  -- Name in the IANA database; '' for UTC.
  time_zone TEXT COLLATE "C" NOT NULL,
  -- Rows on a page; 0 for the client's own.
  page_size BIGINT NOT NULL,
  single_key_shortcuts BOOLEAN NOT NULL,
  updated_at BIGINT NOT NULL
);
