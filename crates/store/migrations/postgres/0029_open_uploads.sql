-- Bytes that an open upload has brought, as noted last: they count against quotas.
ALTER TABLE uploads ADD COLUMN bytes BIGINT NOT NULL DEFAULT 0;
-- How many uploads an identity has open.
CREATE INDEX uploads_by_identity ON uploads (identity);
