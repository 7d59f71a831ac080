-- Whether a record is seen is told by the index that finds it; that a generation has an id once, by the other one.
DROP INDEX records_by_id;
DROP INDEX records_by_since;
CREATE INDEX records_by_id ON records (id, source, since, until, modified);
CREATE UNIQUE INDEX records_by_since ON records (source, since, id);
