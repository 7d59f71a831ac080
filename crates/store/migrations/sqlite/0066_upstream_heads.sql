-- What is asked of a document with each request stands before the document, in a table that reads of it no more than that.
CREATE TABLE upstream_documents_by_row (
  upstream TEXT NOT NULL,
  -- The name as its ecosystem compares it.
  package TEXT NOT NULL,
  -- What the next request is conditional on; '' without.
  etag TEXT NOT NULL,
  last_modified TEXT NOT NULL,
  -- The upstream's count of changes; 0 where it has none.
  serial INTEGER NOT NULL,
  -- When the upstream confirmed it last.
  fetched_at INTEGER NOT NULL,
  -- A message of bowline.libraries.v1.UpstreamDocument.
  document BLOB NOT NULL,
  -- Of npm and Cargo: what clients are told of its versions, a message of bowline.libraries.v1.UpstreamManifests as gzip.
  manifests BLOB NOT NULL DEFAULT x'',
  PRIMARY KEY (upstream, package)
) STRICT;
INSERT INTO upstream_documents_by_row (upstream, package, etag, last_modified, serial, fetched_at, document, manifests)
  SELECT upstream, package, etag, last_modified, serial, fetched_at, document, manifests FROM upstream_documents;
DROP TABLE upstream_documents;
ALTER TABLE upstream_documents_by_row RENAME TO upstream_documents;
CREATE INDEX upstream_documents_by_age ON upstream_documents (upstream, fetched_at);
