-- Versions of packages that are installed for some time although something withholds them.
CREATE TABLE package_exceptions (
  uid TEXT COLLATE "C" NOT NULL PRIMARY KEY,
  parent TEXT COLLATE "C" NOT NULL,
  ecosystem BIGINT NOT NULL,
  package TEXT COLLATE "C" NOT NULL,
  -- Package URL of the version.
  purl TEXT COLLATE "C" NOT NULL,
  bypass_malware BOOLEAN NOT NULL,
  bypass_freeze BOOLEAN NOT NULL,
  justification TEXT COLLATE "C" NOT NULL,
  hours BIGINT NOT NULL,
  requester TEXT COLLATE "C" NOT NULL,
  created_at BIGINT NOT NULL,
  -- '' while it is requested.
  approver TEXT COLLATE "C" NOT NULL,
  -- Of the request, or of the exception.
  ends_at BIGINT NOT NULL
);
CREATE INDEX package_exceptions_by_package ON package_exceptions (parent, ecosystem, package);

-- Organizations whose exceptions need a second person.
CREATE TABLE package_exception_approvals (
  parent TEXT COLLATE "C" NOT NULL PRIMARY KEY
);

-- Times after which nothing may have been published.
CREATE TABLE package_freezes (
  parent TEXT COLLATE "C" NOT NULL,
  ecosystem BIGINT NOT NULL,
  cutoff BIGINT NOT NULL,
  includes_own BOOLEAN NOT NULL,
  justification TEXT COLLATE "C" NOT NULL,
  set_by TEXT COLLATE "C" NOT NULL,
  created_at BIGINT NOT NULL,
  PRIMARY KEY (parent, ecosystem)
);
