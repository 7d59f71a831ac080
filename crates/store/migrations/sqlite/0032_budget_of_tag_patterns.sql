-- How many patterns of immutable tags a policy has: those that hold at one repository have one budget. NULL for policies
-- that were written before this column: their number is in the policy.
ALTER TABLE registry_policies ADD COLUMN tag_patterns INTEGER;
CREATE INDEX registry_policies_with_tag_patterns ON registry_policies (place)
  WHERE tag_patterns IS NULL OR tag_patterns > 0;
