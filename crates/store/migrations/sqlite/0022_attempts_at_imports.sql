-- How often an import was begun: who begins it again takes it over, and batches of earlier attempts are refused.
ALTER TABLE record_imports ADD COLUMN attempt INTEGER NOT NULL DEFAULT 1;
