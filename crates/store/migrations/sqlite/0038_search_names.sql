-- Names of groups, repositories, tags and identities, for the search over all of them. Triggers keep them, in the
-- transaction of every change, so that no writer can forget to. `kind`: 1 group, 2 repository, 3 tag, 7 identity.
CREATE TABLE search_names (
  n INTEGER PRIMARY KEY,
  kind INTEGER NOT NULL,
  uid TEXT NOT NULL,
  org TEXT NOT NULL,
  -- In lower case, as far as ASCII goes.
  name TEXT NOT NULL
) STRICT;
CREATE UNIQUE INDEX search_names_uid ON search_names (uid);
CREATE INDEX search_names_by_name ON search_names (kind, name, uid);
CREATE INDEX search_names_by_org ON search_names (kind, org, name, uid);

-- Their trigrams. `kind` and `scope` are one trigram each, of characters that no name has: the kind, and the kind with
-- the beginning of the organization. So a search reads what may match in one organization, however much others have.
CREATE VIRTUAL TABLE search_index USING fts5(
  name, kind, scope, content = '', contentless_delete = 1, detail = 'none', tokenize = 'trigram');
CREATE TRIGGER search_names_added AFTER INSERT ON search_names BEGIN
  INSERT INTO search_index (rowid, name, kind, scope) VALUES (
    new.n, new.name,
    char(61696 + new.kind, 61696 + new.kind, 61696 + new.kind),
    char(61696 + new.kind,
      57344 + (instr('0123456789abcdef', substr(new.org, 1, 1)) - 1) * 256
            + (instr('0123456789abcdef', substr(new.org, 2, 1)) - 1) * 16
            + instr('0123456789abcdef', substr(new.org, 3, 1)) - 1,
      57344 + (instr('0123456789abcdef', substr(new.org, 4, 1)) - 1) * 256
            + (instr('0123456789abcdef', substr(new.org, 5, 1)) - 1) * 16
            + instr('0123456789abcdef', substr(new.org, 6, 1)) - 1));
END;
CREATE TRIGGER search_names_removed AFTER DELETE ON search_names BEGIN
  DELETE FROM search_index WHERE rowid = old.n;
END;

INSERT INTO search_names (kind, uid, org, name) SELECT 1, uid, org, lower(name) FROM groups;
INSERT INTO search_names (kind, uid, org, name) SELECT 2, uid, org, lower(name) FROM repos;
INSERT INTO search_names (kind, uid, org, name) SELECT 3, uid, org, lower(name) FROM tags;
INSERT INTO search_names (kind, uid, org, name) SELECT 7, uid, org, lower(name) FROM identities;

CREATE TRIGGER groups_searched AFTER INSERT ON groups BEGIN
  INSERT INTO search_names (kind, uid, org, name) VALUES (1, new.uid, new.org, lower(new.name));
END;
CREATE TRIGGER groups_renamed AFTER UPDATE OF name ON groups WHEN old.name <> new.name BEGIN
  DELETE FROM search_names WHERE uid = old.uid;
  INSERT INTO search_names (kind, uid, org, name) VALUES (1, new.uid, new.org, lower(new.name));
END;
CREATE TRIGGER groups_unsearched AFTER DELETE ON groups BEGIN
  DELETE FROM search_names WHERE uid = old.uid;
END;
CREATE TRIGGER repos_searched AFTER INSERT ON repos BEGIN
  INSERT INTO search_names (kind, uid, org, name) VALUES (2, new.uid, new.org, lower(new.name));
END;
CREATE TRIGGER repos_renamed AFTER UPDATE OF name ON repos WHEN old.name <> new.name BEGIN
  DELETE FROM search_names WHERE uid = old.uid;
  INSERT INTO search_names (kind, uid, org, name) VALUES (2, new.uid, new.org, lower(new.name));
END;
CREATE TRIGGER repos_unsearched AFTER DELETE ON repos BEGIN
  DELETE FROM search_names WHERE uid = old.uid;
END;
CREATE TRIGGER tags_searched AFTER INSERT ON tags BEGIN
  INSERT INTO search_names (kind, uid, org, name) VALUES (3, new.uid, new.org, lower(new.name));
END;
CREATE TRIGGER tags_renamed AFTER UPDATE OF name ON tags WHEN old.name <> new.name BEGIN
  DELETE FROM search_names WHERE uid = old.uid;
  INSERT INTO search_names (kind, uid, org, name) VALUES (3, new.uid, new.org, lower(new.name));
END;
CREATE TRIGGER tags_unsearched AFTER DELETE ON tags BEGIN
  DELETE FROM search_names WHERE uid = old.uid;
END;
CREATE TRIGGER identities_searched AFTER INSERT ON identities BEGIN
  INSERT INTO search_names (kind, uid, org, name) VALUES (7, new.uid, new.org, lower(new.name));
END;
CREATE TRIGGER identities_renamed AFTER UPDATE OF name ON identities WHEN old.name <> new.name BEGIN
  DELETE FROM search_names WHERE uid = old.uid;
  INSERT INTO search_names (kind, uid, org, name) VALUES (7, new.uid, new.org, lower(new.name));
END;
CREATE TRIGGER identities_unsearched AFTER DELETE ON identities BEGIN
  DELETE FROM search_names WHERE uid = old.uid;
END;
