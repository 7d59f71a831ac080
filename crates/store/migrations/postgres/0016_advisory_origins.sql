-- Where events of advisories came from that an import brought.
CREATE TABLE advisory_event_origins (
  event TEXT COLLATE "C" NOT NULL PRIMARY KEY,
  advisory TEXT COLLATE "C" NOT NULL,
  source TEXT COLLATE "C" NOT NULL,
  -- SPDX expression; '' where nothing is known of one.
  licence TEXT COLLATE "C" NOT NULL,
  -- Whether the licence forbids to hand on derivatives, exports among them.
  is_restricted BOOLEAN NOT NULL
);
CREATE INDEX advisory_event_origins_by_advisory ON advisory_event_origins (advisory, event);

-- The order of exports.
CREATE INDEX advisories_by_artifact ON advisories (parent, artifact_type, artifact_name, uid);
