-- Bytes of small blobs that the disk may not have yet: whoever finds them at its start gives them their place again.
CREATE TABLE unsettled_blobs (
  upload TEXT NOT NULL PRIMARY KEY,
  digest TEXT NOT NULL,
  bytes BLOB NOT NULL
) STRICT;
