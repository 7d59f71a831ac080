-- UIDP of the role binding that a provider's default role made, as long as nobody has changed that binding. Empty if it
-- made none or the binding was changed since; NULL for what was given before this column.
ALTER TABLE default_roles_given ADD COLUMN binding TEXT;
CREATE INDEX default_roles_given_by_binding ON default_roles_given (binding);
