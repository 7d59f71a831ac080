-- Products and their release cycles, as the operator imported them.
CREATE TABLE release_products (
  name TEXT COLLATE "C" NOT NULL PRIMARY KEY,
  -- bowline.registry.v1.ReleaseProduct.
  product BYTEA NOT NULL,
  imported_at BIGINT NOT NULL
);

-- Names that products are looked up by: their own, and aliases.
CREATE TABLE release_product_names (
  name TEXT COLLATE "C" NOT NULL PRIMARY KEY,
  product TEXT COLLATE "C" NOT NULL
);
CREATE INDEX release_product_names_of ON release_product_names (product);
