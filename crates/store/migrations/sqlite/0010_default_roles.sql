-- To whom a provider's default role was given: once, even if the person is deleted and comes back.
CREATE TABLE default_roles_given (
  provider TEXT NOT NULL,
  -- UIDP of the person, who may be gone.
  person TEXT NOT NULL,
  given_at INTEGER NOT NULL,
  PRIMARY KEY (provider, person)
) STRICT, WITHOUT ROWID;
