-- Webhooks that receive the events of a group, which is `parent`, and of everything below it.
CREATE TABLE subscriptions (
  uid TEXT NOT NULL PRIMARY KEY,
  parent TEXT NOT NULL,
  org TEXT NOT NULL,
  sink TEXT NOT NULL,
  created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX subscriptions_by_parent ON subscriptions (parent, uid);
CREATE INDEX subscriptions_by_created ON subscriptions (org, created_at, uid);

-- Where the delivery to a subscription stands. The relay makes the row when it comes to the subscription's
-- own creation in the log of events.
CREATE TABLE subscription_cursors (
  subscription TEXT NOT NULL PRIMARY KEY,
  -- Number of the last event that needs nothing more here: delivered, dead or for others.
  cursor INTEGER NOT NULL,
  -- Failed attempts since the last success.
  attempts INTEGER NOT NULL,
  -- When the first of them failed.
  failing_since INTEGER,
  next_at INTEGER,
  last_error TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- Events that a subscription did not take for a day, with everything needed to send them again.
CREATE TABLE dead_letters (
  subscription TEXT NOT NULL,
  event_id TEXT NOT NULL,
  seq INTEGER NOT NULL,
  at INTEGER NOT NULL,
  died_at INTEGER NOT NULL,
  last_error TEXT NOT NULL,
  -- When somebody asked to send it again; absent while nobody did.
  redeliver_at INTEGER,
  event_type TEXT NOT NULL,
  group_uid TEXT NOT NULL,
  subject TEXT NOT NULL,
  method TEXT NOT NULL,
  actor TEXT NOT NULL,
  extensions TEXT NOT NULL,
  body_type TEXT NOT NULL,
  body BLOB NOT NULL,
  PRIMARY KEY (subscription, event_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX dead_letters_by_seq ON dead_letters (subscription, seq);
CREATE INDEX dead_letters_by_age ON dead_letters (died_at);
CREATE INDEX dead_letters_to_send ON dead_letters (redeliver_at) WHERE redeliver_at IS NOT NULL;

-- Events are a log that every subscription reads from where it stands. The writing transaction numbers them here.
ALTER TABLE outbox RENAME COLUMN id TO seq;
CREATE INDEX outbox_by_org ON outbox (org, seq);
