-- Versions of packages that are installed for some time although something withholds them.
CREATE TABLE package_exceptions (
  uid TEXT NOT NULL PRIMARY KEY,
  parent TEXT NOT NULL,
  ecosystem INTEGER NOT NULL,
  package TEXT NOT NULL,
  -- Package URL of the version.
  purl TEXT NOT NULL,
  bypass_malware INTEGER NOT NULL CHECK (bypass_malware IN (0, 1)),
  bypass_freeze INTEGER NOT NULL CHECK (bypass_freeze IN (0, 1)),
  justification TEXT NOT NULL,
  hours INTEGER NOT NULL,
  requester TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  -- '' while it is requested.
  approver TEXT NOT NULL,
  -- Of the request, or of the exception.
  ends_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX package_exceptions_by_package ON package_exceptions (parent, ecosystem, package);

-- Organizations whose exceptions need a second person.
CREATE TABLE package_exception_approvals (
  parent TEXT NOT NULL PRIMARY KEY
) STRICT, WITHOUT ROWID;

-- Times after which nothing may have been published.
CREATE TABLE package_freezes (
  parent TEXT NOT NULL,
  ecosystem INTEGER NOT NULL,
  cutoff INTEGER NOT NULL,
  includes_own INTEGER NOT NULL CHECK (includes_own IN (0, 1)),
  justification TEXT NOT NULL,
  set_by TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (parent, ecosystem)
) STRICT, WITHOUT ROWID;
