-- Dead letters that somebody asked to have sent again: narrow rows beside the letters, which carry whole events.
CREATE TABLE redeliveries (
  subscription TEXT NOT NULL,
  seq INTEGER NOT NULL,
  event_id TEXT NOT NULL,
  asked_at INTEGER NOT NULL,
  PRIMARY KEY (subscription, seq)
) STRICT, WITHOUT ROWID;
INSERT INTO redeliveries (subscription, seq, event_id, asked_at)
SELECT subscription, seq, event_id, redeliver_at FROM dead_letters WHERE redeliver_at IS NOT NULL
ON CONFLICT DO NOTHING;
DROP INDEX dead_letters_to_send;
ALTER TABLE dead_letters DROP COLUMN redeliver_at;

-- Subscriptions that were deleted and whose dead letters are still to go.
CREATE TABLE ended_subscriptions (
  uid TEXT NOT NULL PRIMARY KEY
) STRICT, WITHOUT ROWID;
