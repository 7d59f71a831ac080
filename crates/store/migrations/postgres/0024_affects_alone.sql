-- What a query of a package reads, in one place: a row says by itself whether it is seen and what it is an answer with.
CREATE TABLE record_affects_alone (
  package TEXT COLLATE "C" NOT NULL,
  record BIGINT NOT NULL,
  source BIGINT NOT NULL,
  since BIGINT NOT NULL,
  until BIGINT NOT NULL,
  modified BIGINT NOT NULL,
  id TEXT COLLATE "C" NOT NULL,
  ranges TEXT COLLATE "C" NOT NULL,
  PRIMARY KEY (package, record)
);
INSERT INTO record_affects_alone (package, record, source, since, until, modified, id, ranges)
  SELECT a.package, a.record, r.source, r.since, r.until, r.modified, r.id, a.ranges
  FROM record_affects a JOIN records r ON r.n = a.record ORDER BY a.package, a.record;
DROP TABLE record_affects;
ALTER TABLE record_affects_alone RENAME TO record_affects;
ALTER INDEX record_affects_alone_pkey RENAME TO record_affects_pkey;
CREATE INDEX record_affects_of ON record_affects (record);
