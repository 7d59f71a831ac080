-- Where events of advisories came from that an import brought.
CREATE TABLE advisory_event_origins (
  event TEXT NOT NULL PRIMARY KEY,
  advisory TEXT NOT NULL,
  source TEXT NOT NULL,
  -- SPDX expression; '' where nothing is known of one.
  licence TEXT NOT NULL,
  -- Whether the licence forbids to hand on derivatives, exports among them.
  is_restricted INTEGER NOT NULL CHECK (is_restricted IN (0, 1))
) STRICT, WITHOUT ROWID;
CREATE INDEX advisory_event_origins_by_advisory ON advisory_event_origins (advisory, event);

-- The order of exports.
CREATE INDEX advisories_by_artifact ON advisories (parent, artifact_type, artifact_name, uid);
