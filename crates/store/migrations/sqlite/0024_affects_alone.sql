-- What a query of a package reads, in one place: a row says by itself whether it is seen and what it is an answer with.
CREATE TABLE record_affects_alone (
  package TEXT NOT NULL,
  record INTEGER NOT NULL,
  source INTEGER NOT NULL,
  since INTEGER NOT NULL,
  until INTEGER NOT NULL,
  modified INTEGER NOT NULL,
  id TEXT NOT NULL,
  ranges TEXT NOT NULL,
  PRIMARY KEY (package, record)
) STRICT, WITHOUT ROWID;
INSERT INTO record_affects_alone (package, record, source, since, until, modified, id, ranges)
  SELECT a.package, a.record, r.source, r.since, r.until, r.modified, r.id, a.ranges
  FROM record_affects a JOIN records r ON r.n = a.record ORDER BY a.package, a.record;
DROP TABLE record_affects;
ALTER TABLE record_affects_alone RENAME TO record_affects;
CREATE INDEX record_affects_of ON record_affects (record);
