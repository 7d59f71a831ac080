-- What an organization was served lately: previews of policies decide about it again.
CREATE INDEX library_resolutions_by_time ON library_resolutions (org, ecosystem, observed_at);
