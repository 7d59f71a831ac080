-- The last attempts at deliveries to each subscription, numbered by subscription; the relay writes them in batches.
CREATE TABLE delivery_attempts (
  subscription TEXT NOT NULL,
  number INTEGER NOT NULL,
  -- 1 an event, 2 a redelivery, 3 a test.
  kind INTEGER NOT NULL,
  at INTEGER NOT NULL,
  -- Number of the event in the outbox; 0 for a test.
  seq INTEGER NOT NULL,
  event_id TEXT NOT NULL,
  event_type TEXT NOT NULL,
  subject TEXT NOT NULL,
  -- How long the sink took, in microseconds.
  took INTEGER NOT NULL,
  -- HTTP status of the response; absent if there was none.
  status INTEGER,
  error TEXT NOT NULL,
  -- The first KiB of the response.
  response TEXT NOT NULL,
  PRIMARY KEY (subscription, number)
) STRICT;

-- When deliveries were paused; absent if they are not.
ALTER TABLE subscriptions ADD COLUMN paused_at INTEGER;
-- When the sink was tested last.
ALTER TABLE subscriptions ADD COLUMN tested_at INTEGER;
