-- Products and their release cycles, as the operator imported them.
CREATE TABLE release_products (
  name TEXT NOT NULL PRIMARY KEY,
  -- bowline.registry.v1.ReleaseProduct.
  product BLOB NOT NULL,
  imported_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Names that products are looked up by: their own, and aliases.
CREATE TABLE release_product_names (
  name TEXT NOT NULL PRIMARY KEY,
  product TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX release_product_names_of ON release_product_names (product);
