-- Bytes of the blobs below every group, each blob once: what is there is counted at its repository, and taken off
-- again at the deepest group that it shares with the repository before it which has the same blob.
INSERT INTO count_deltas (collection, uid, delta)
SELECT 'blob_bytes', r.repo, b.size FROM repo_blobs r JOIN blobs b ON b.digest = r.digest WHERE b.size > 0;

INSERT INTO count_deltas (collection, uid, delta)
WITH RECURSIVE
  -- The lengths of UIDPs.
  lengths (n) AS (SELECT 40 UNION ALL SELECT n + 17 FROM lengths WHERE n < 1200),
  links (repo, digest, size, beside) AS (
    SELECT r.repo, r.digest, b.size, lag(r.repo) OVER (PARTITION BY r.digest ORDER BY r.repo)
    FROM repo_blobs r JOIN blobs b ON b.digest = r.digest WHERE b.size > 0)
SELECT 'blob_bytes', substr(k.repo, 1, max(l.n)), -k.size
FROM links k JOIN lengths l ON substr(k.repo, 1, l.n) = substr(k.beside, 1, l.n)
GROUP BY k.repo, k.digest, k.size;
