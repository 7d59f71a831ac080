-- How often an import was begun: who begins it again takes it over, and batches of earlier attempts are refused.
ALTER TABLE record_imports ADD COLUMN attempt BIGINT NOT NULL DEFAULT 1;
