-- To whom a provider's default role was given: once, even if the person is deleted and comes back.
CREATE TABLE default_roles_given (
  provider TEXT COLLATE "C" NOT NULL,
  -- UIDP of the person, who may be gone.
  person TEXT COLLATE "C" NOT NULL,
  given_at BIGINT NOT NULL,
  PRIMARY KEY (provider, person)
);
