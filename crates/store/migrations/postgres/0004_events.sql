-- Webhooks that receive the events of a group, which is `parent`, and of everything below it.
CREATE TABLE subscriptions (
  uid TEXT COLLATE "C" NOT NULL PRIMARY KEY,
  parent TEXT COLLATE "C" NOT NULL,
  org TEXT COLLATE "C" NOT NULL,
  sink TEXT COLLATE "C" NOT NULL,
  created_at BIGINT NOT NULL
);
CREATE INDEX subscriptions_by_parent ON subscriptions (parent, uid);
CREATE INDEX subscriptions_by_created ON subscriptions (org, created_at, uid);

-- Where the delivery to a subscription stands. The relay makes the row when it comes to the subscription's
-- own creation in the log of events.
CREATE TABLE subscription_cursors (
  subscription TEXT COLLATE "C" NOT NULL PRIMARY KEY,
  -- Number of the last event that needs nothing more here: delivered, dead or for others.
  cursor BIGINT NOT NULL,
  -- Failed attempts since the last success.
  attempts BIGINT NOT NULL,
  -- When the first of them failed.
  failing_since BIGINT,
  next_at BIGINT,
  last_error TEXT COLLATE "C" NOT NULL
);

-- Events that a subscription did not take for a day, with everything needed to send them again.
CREATE TABLE dead_letters (
  subscription TEXT COLLATE "C" NOT NULL,
  event_id TEXT COLLATE "C" NOT NULL,
  seq BIGINT NOT NULL,
  at BIGINT NOT NULL,
  died_at BIGINT NOT NULL,
  last_error TEXT COLLATE "C" NOT NULL,
  -- When somebody asked to send it again; absent while nobody did.
  redeliver_at BIGINT,
  event_type TEXT COLLATE "C" NOT NULL,
  group_uid TEXT COLLATE "C" NOT NULL,
  subject TEXT COLLATE "C" NOT NULL,
  method TEXT COLLATE "C" NOT NULL,
  actor TEXT COLLATE "C" NOT NULL,
  extensions TEXT COLLATE "C" NOT NULL,
  body_type TEXT COLLATE "C" NOT NULL,
  body BYTEA NOT NULL,
  PRIMARY KEY (subscription, event_id)
);
CREATE INDEX dead_letters_by_seq ON dead_letters (subscription, seq);
CREATE INDEX dead_letters_by_age ON dead_letters (died_at);
CREATE INDEX dead_letters_to_send ON dead_letters (redeliver_at) WHERE redeliver_at IS NOT NULL;

-- Events are a log that every subscription reads from where it stands. Rows commit without a number; the relay
-- numbers those of finished transactions, in the order of the transactions.
ALTER TABLE outbox ADD COLUMN seq BIGINT;
ALTER TABLE outbox ADD COLUMN txid BIGINT NOT NULL DEFAULT (pg_current_xact_id()::text::bigint);
CREATE UNIQUE INDEX outbox_by_seq ON outbox (seq);
CREATE INDEX outbox_unnumbered ON outbox (txid, id) WHERE seq IS NULL;
CREATE INDEX outbox_by_org ON outbox (org, seq);
