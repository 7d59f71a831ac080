-- The last attempts at deliveries to each subscription, numbered by subscription; the relay writes them in batches.
CREATE TABLE delivery_attempts (
  subscription TEXT COLLATE "C" NOT NULL,
  number BIGINT NOT NULL,
  -- 1 an event, 2 a redelivery, 3 a test.
  kind BIGINT NOT NULL,
  at BIGINT NOT NULL,
  -- Number of the event in the outbox; 0 for a test.
  seq BIGINT NOT NULL,
  event_id TEXT COLLATE "C" NOT NULL,
  event_type TEXT COLLATE "C" NOT NULL,
  subject TEXT COLLATE "C" NOT NULL,
  -- How long the sink took, in microseconds.
  took BIGINT NOT NULL,
  -- HTTP status of the response; absent if there was none.
  status BIGINT,
  error TEXT COLLATE "C" NOT NULL,
  -- The first KiB of the response.
  response TEXT COLLATE "C" NOT NULL,
  PRIMARY KEY (subscription, number)
);

-- When deliveries were paused; absent if they are not.
ALTER TABLE subscriptions ADD COLUMN paused_at BIGINT;
-- When the sink was tested last.
ALTER TABLE subscriptions ADD COLUMN tested_at BIGINT;
