-- Explanations read the bindings of one identity at some groups, and those of some roles at some groups.
CREATE INDEX role_bindings_by_identity ON role_bindings (identity, parent, uid);
CREATE INDEX role_bindings_by_parent_role ON role_bindings (parent, role, uid);
-- When a request for access was answered; NULL while it is open.
ALTER TABLE access_requests ADD COLUMN answered_at BIGINT;
CREATE INDEX access_requests_by_time ON access_requests (group_uid, at, identity);
