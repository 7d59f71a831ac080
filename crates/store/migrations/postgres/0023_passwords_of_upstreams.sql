-- The password of a policy's upstream, sealed; empty where there is none.
ALTER TABLE registry_policies ADD COLUMN upstream_password BYTEA NOT NULL DEFAULT '';
