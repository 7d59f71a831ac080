-- Dead letters that somebody asked to have sent again: narrow rows beside the letters, which carry whole events.
CREATE TABLE redeliveries (
  subscription TEXT COLLATE "C" NOT NULL,
  seq BIGINT NOT NULL,
  event_id TEXT COLLATE "C" NOT NULL,
  asked_at BIGINT NOT NULL,
  PRIMARY KEY (subscription, seq)
);
INSERT INTO redeliveries (subscription, seq, event_id, asked_at)
SELECT subscription, seq, event_id, redeliver_at FROM dead_letters WHERE redeliver_at IS NOT NULL
ON CONFLICT DO NOTHING;
DROP INDEX dead_letters_to_send;
ALTER TABLE dead_letters DROP COLUMN redeliver_at;

-- Subscriptions that were deleted and whose dead letters are still to go.
CREATE TABLE ended_subscriptions (
  uid TEXT COLLATE "C" NOT NULL PRIMARY KEY
);
