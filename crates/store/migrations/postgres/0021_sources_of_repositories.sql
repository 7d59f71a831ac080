-- Where a synchronized repository takes what it lacks from: the UIDP of a repository here, or an https address. Empty
-- for repositories that take nothing, and for those whose source was set before anybody judged it.
ALTER TABLE repos ADD COLUMN synced_from TEXT COLLATE "C" NOT NULL DEFAULT '';
