-- Names of groups, repositories, tags and identities, for the search over all of them. Triggers keep them, in the
-- transaction of every change, so that no writer can forget to. `kind`: 1 group, 2 repository, 3 tag, 7 identity.
CREATE TABLE search_names (
  n BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  kind BIGINT NOT NULL,
  uid TEXT COLLATE "C" NOT NULL,
  org TEXT COLLATE "C" NOT NULL,
  -- In lower case, as far as ASCII goes.
  name TEXT COLLATE "C" NOT NULL
);
INSERT INTO search_names (kind, uid, org, name) SELECT 1, uid, org, lower(name COLLATE "C") FROM groups;
INSERT INTO search_names (kind, uid, org, name) SELECT 2, uid, org, lower(name COLLATE "C") FROM repos;
INSERT INTO search_names (kind, uid, org, name) SELECT 3, uid, org, lower(name COLLATE "C") FROM tags;
INSERT INTO search_names (kind, uid, org, name) SELECT 7, uid, org, lower(name COLLATE "C") FROM identities;
CREATE UNIQUE INDEX search_names_uid ON search_names (uid);
CREATE INDEX search_names_by_name ON search_names (kind, name, uid);
CREATE INDEX search_names_by_org ON search_names (kind, org, name, uid);
-- Their trigrams.
CREATE INDEX search_names_search ON search_names USING gin (name gin_trgm_ops);

CREATE FUNCTION follow_search_names() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'INSERT' THEN
    INSERT INTO search_names (kind, uid, org, name)
      VALUES (CAST(TG_ARGV[0] AS BIGINT), NEW.uid, NEW.org, lower(NEW.name COLLATE "C"));
  ELSIF TG_OP = 'DELETE' THEN
    DELETE FROM search_names WHERE uid = OLD.uid;
  ELSIF OLD.name <> NEW.name THEN
    UPDATE search_names SET name = lower(NEW.name COLLATE "C") WHERE uid = NEW.uid;
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER groups_searched AFTER INSERT OR DELETE OR UPDATE OF name ON groups
  FOR EACH ROW EXECUTE FUNCTION follow_search_names('1');
CREATE TRIGGER repos_searched AFTER INSERT OR DELETE OR UPDATE OF name ON repos
  FOR EACH ROW EXECUTE FUNCTION follow_search_names('2');
CREATE TRIGGER tags_searched AFTER INSERT OR DELETE OR UPDATE OF name ON tags
  FOR EACH ROW EXECUTE FUNCTION follow_search_names('3');
CREATE TRIGGER identities_searched AFTER INSERT OR DELETE OR UPDATE OF name ON identities
  FOR EACH ROW EXECUTE FUNCTION follow_search_names('7');
