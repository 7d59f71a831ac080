-- What goes with an identity, and with a group, is found without a look at all the rest.
CREATE INDEX refresh_tokens_by_identity ON refresh_tokens (identity);
CREATE INDEX access_requests_by_group ON access_requests (group_uid);
