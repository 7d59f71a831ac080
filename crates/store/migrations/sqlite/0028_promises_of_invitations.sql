-- What the role gave when the invitation was made, as 32 bytes of bits; absent in invitations of before, which are refused.
ALTER TABLE group_invites ADD COLUMN promised BLOB;
-- What the inviter's token was narrowed to: a JSON object as in the token's narrowing claim.
ALTER TABLE group_invites ADD COLUMN narrowing TEXT NOT NULL DEFAULT '{}';
