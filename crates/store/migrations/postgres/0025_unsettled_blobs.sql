-- Bytes of small blobs that the disk may not have yet: whoever finds them at its start gives them their place again.
CREATE TABLE unsettled_blobs (
  upload TEXT COLLATE "C" NOT NULL PRIMARY KEY,
  digest TEXT COLLATE "C" NOT NULL,
  bytes BYTEA NOT NULL
);
