-- Which upload brought the bytes that a blob has: they lie under its digest and this. Empty where the digest alone is
-- the name of the file.
ALTER TABLE blobs ADD COLUMN upload TEXT NOT NULL DEFAULT '';
