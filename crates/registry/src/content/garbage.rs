//! What no repository shows any more, found page by page in the database, and checked again in the transaction that
//! takes it away.
//!
//! Rows are deleted before the bytes that they name. A push stores its bytes before the row, under a name of
//! its own, so that no order of steps, and no crash between them, leaves a row without bytes. Bytes without a
//! row are garbage as soon as the upload that brought them has ended too: only its own row lets it become a
//! blob.

use std::collections::HashSet;

use bowline_core::{Error, Micros, Result};
use bowline_store::{Db, ReadTx, Value};

use super::blobs::unlink;
use super::uploads::under_way;
use crate::{charts, paths};

/// Rows that one statement looks at.
const PAGE: i64 = 500;
/// Manifests of a repository whose references one statement collects.
const MANIFESTS: i64 = 100;
/// Rows that one transaction takes away.
const AT_ONCE: usize = 100;

const IS_NAMED: &str = "EXISTS (SELECT 1 FROM manifest_references f
  JOIN repo_manifests m ON m.digest = f.manifest AND m.repo = $1 WHERE f.digest = $2 AND f.kind IN (1, 2))";

/// A row of a blob.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlobRow {
    pub digest: String,
    /// The upload that brought its bytes.
    pub upload: String,
    pub size: u64,
    /// Whether a repository shows it.
    pub is_linked: bool,
}

/// The repositories with blobs after that one, in order, a page at a time; none at the end.
pub async fn repositories(db: &Db, after: &str) -> Result<Vec<String>> {
    let after = after.to_owned();
    let read = db.read(move |tx| {
        Box::pin(async move {
            let mut found = vec![after];
            while found.len() <= PAGE as usize {
                let sql = "SELECT repo FROM repo_blobs WHERE repo > $1 ORDER BY repo LIMIT 1";
                match texts(tx, sql, &[Value::from(found.last().map_or("", String::as_str))]).await?.pop() {
                    Some(repo) => found.push(repo),
                    None => break,
                }
            }
            found.remove(0);
            Ok(found)
        })
    });
    read.await
}

/// Blobs of a repository that none of its manifests names and that no client looked up for a push since
/// `until`. What holds package files is no repository of images, and names all its blobs.
pub async fn unnamed_links(db: &Db, repo: &str, until: Micros) -> Result<HashSet<String>> {
    let mut unnamed = HashSet::new();
    if page(db, "SELECT uid FROM repos WHERE uid = $1 AND uid > $2", repo, "", Vec::new()).await?.is_empty() {
        return Ok(unnamed);
    }
    let mut after = String::new();
    loop {
        let sql = "SELECT digest FROM repo_blobs WHERE repo = $1 AND digest > $2 AND created_at < $3
                   ORDER BY digest LIMIT $4";
        let page = page(db, sql, repo, &after, vec![Value::Int(until), Value::Int(PAGE)]).await?;
        let Some(last) = page.last() else { break };
        after.clone_from(last);
        unnamed.extend(page);
    }
    let mut after = String::new();
    while !unnamed.is_empty() {
        let sql = "SELECT digest FROM repo_manifests WHERE repo = $1 AND digest > $2 ORDER BY digest LIMIT $3";
        let held = page(db, sql, repo, &after, vec![Value::Int(MANIFESTS)]).await?;
        let Some(last) = held.last() else { break };
        for named in names_between(db, repo, &after, last).await? {
            unnamed.remove(&named);
        }
        after.clone_from(last);
    }
    Ok(unnamed)
}

/// What the manifests of a repository name whose digests are after the one and not after the other.
async fn names_between(db: &Db, repo: &str, after: &str, last: &str) -> Result<Vec<String>> {
    let (repo, after, last) = (repo.to_owned(), after.to_owned(), last.to_owned());
    let read = db.read(move |tx| {
        Box::pin(async move {
            let sql =
                "SELECT DISTINCT f.digest FROM repo_manifests m JOIN manifest_references f ON f.manifest = m.digest
                       WHERE m.repo = $1 AND m.digest > $2 AND m.digest <= $3 AND f.kind IN (1, 2)";
            texts(tx, sql, &[Value::from(&repo), Value::from(&after), Value::from(&last)]).await
        })
    });
    read.await
}

/// Takes those of these blobs out of a repository that are still unnamed; how many went.
pub async fn drop_links(db: &Db, repo: &str, digests: &[String], until: Micros) -> Result<u64> {
    let mut dropped = 0;
    for part in digests.chunks(AT_ONCE) {
        let (repo, part) = (repo.to_owned(), part.to_vec());
        let written = db.write(move |tx| {
            let (repo, part) = (repo.clone(), part.clone());
            Box::pin(async move {
                let at = paths::stored(&repo)?;
                let sql = format!(
                    "SELECT digest FROM repo_blobs WHERE repo = $1 AND digest = $2 AND created_at < $3 AND NOT {IS_NAMED}"
                );
                let mut dropped = 0;
                for digest in &part {
                    let params = [Value::from(&repo), Value::from(digest), Value::Int(until)];
                    if !texts(tx, &sql, &params).await?.is_empty() {
                        unlink(tx, &at, digest).await?;
                        dropped += 1;
                    }
                }
                Ok::<_, Error>(dropped)
            })
        });
        dropped += written.await?;
    }
    Ok(dropped)
}

/// Manifests after that one, in order, each with whether a repository holds it; none at the end.
pub async fn manifests(db: &Db, after: &str) -> Result<Vec<(String, bool)>> {
    let after = after.to_owned();
    let read = db.read(move |tx| {
        Box::pin(async move {
            let sql = "SELECT m.digest, EXISTS (SELECT 1 FROM repo_manifests r WHERE r.digest = m.digest)
                       FROM manifests m WHERE m.digest > $1 ORDER BY m.digest LIMIT $2";
            let params = [Value::from(&after), Value::Int(PAGE)];
            tx.query(sql, &params, |row| Ok::<_, Error>((row.text(0)?, row.bool(1)?))).await
        })
    });
    read.await
}

/// Deletes those of these manifests that still no repository holds; how many went.
pub async fn drop_manifests(db: &Db, digests: &[String]) -> Result<u64> {
    let mut dropped = 0;
    for part in digests.chunks(AT_ONCE) {
        let part = part.to_vec();
        let written = db.write(move |tx| {
            let part = part.clone();
            Box::pin(async move {
                let mut dropped = 0;
                for digest in &part {
                    let params = [Value::from(digest)];
                    let sql = "DELETE FROM manifests WHERE digest = $1
                               AND NOT EXISTS (SELECT 1 FROM repo_manifests WHERE digest = $1)";
                    if tx.execute(sql, &params).await? > 0 {
                        tx.execute("DELETE FROM manifest_references WHERE manifest = $1", &params).await?;
                        tx.execute("DELETE FROM image_configs WHERE manifest = $1", &params).await?;
                        charts::images::forget(tx, digest).await?;
                        dropped += 1;
                    }
                }
                Ok::<_, Error>(dropped)
            })
        });
        dropped += written.await?;
    }
    Ok(dropped)
}

/// Blobs after that one, in order; none at the end.
pub async fn blobs(db: &Db, after: &str) -> Result<Vec<BlobRow>> {
    let after = after.to_owned();
    let read = db.read(move |tx| {
        Box::pin(async move {
            let sql = "SELECT b.digest, b.upload, b.size, EXISTS (SELECT 1 FROM repo_blobs r WHERE r.digest = b.digest)
                       FROM blobs b WHERE b.digest > $1 ORDER BY b.digest LIMIT $2";
            tx.query(sql, &[Value::from(&after), Value::Int(PAGE)], blob_row).await
        })
    });
    read.await
}

/// The row of a blob as it is now.
pub async fn blob(db: &Db, digest: &str) -> Result<Option<BlobRow>> {
    let digest = digest.to_owned();
    let read = db.read(move |tx| {
        Box::pin(async move {
            let sql = "SELECT b.digest, b.upload, b.size, EXISTS (SELECT 1 FROM repo_blobs r WHERE r.digest = b.digest)
                       FROM blobs b WHERE b.digest = $1";
            tx.query_opt(sql, &[Value::from(&digest)], blob_row).await
        })
    });
    read.await
}

/// Stores what brought the bytes of a blob to where they are now.
pub async fn set_upload(db: &Db, digest: &str, upload: &str) -> Result<()> {
    let (digest, upload) = (digest.to_owned(), upload.to_owned());
    let written = db.write_derived(move |tx| {
        let (digest, upload) = (digest.clone(), upload.clone());
        Box::pin(async move {
            let params = [Value::from(&digest), Value::from(&upload)];
            tx.execute("UPDATE blobs SET upload = $2 WHERE digest = $1", &params).await?;
            Ok::<_, Error>(())
        })
    });
    written.await
}

fn blob_row(row: &bowline_store::Row<'_>) -> Result<BlobRow> {
    Ok(BlobRow { digest: row.text(0)?, upload: row.text(1)?, size: row.int(2)? as u64, is_linked: row.bool(3)? })
}

/// How many repositories show a blob.
pub async fn links_of(db: &Db, digest: &str) -> Result<u64> {
    let digest = digest.to_owned();
    let read = db.read(move |tx| {
        Box::pin(async move {
            let sql = "SELECT count(*) FROM repo_blobs WHERE digest = $1";
            tx.query_opt(sql, &[Value::from(&digest)], |row| row.int(0).map_err(Error::from)).await
        })
    });
    Ok(read.await?.unwrap_or_default() as u64)
}

/// UIDPs and names of repositories that show a blob, the first hundred.
pub async fn holders(db: &Db, digest: &str) -> Result<Vec<String>> {
    let digest = digest.to_owned();
    let read = db.read(move |tx| {
        Box::pin(async move {
            let sql = "SELECT b.repo, coalesce(r.name, 'packages') FROM repo_blobs b
                       LEFT JOIN repos r ON r.uid = b.repo WHERE b.digest = $1 ORDER BY b.repo LIMIT 100";
            let named = |row: &bowline_store::Row<'_>| Ok::<_, Error>(format!("{} {}", row.text(0)?, row.text(1)?));
            tx.query(sql, &[Value::from(&digest)], named).await
        })
    });
    read.await
}

/// Deletes those of these rows that still no repository shows; these are given, and their bytes may go.
pub async fn drop_blobs(db: &Db, rows: &[BlobRow]) -> Result<Vec<BlobRow>> {
    let mut dropped = Vec::new();
    for part in rows.chunks(AT_ONCE) {
        let part = part.to_vec();
        let written = db.write(move |tx| {
            let part = part.clone();
            Box::pin(async move {
                let mut dropped = Vec::new();
                for row in part {
                    let sql = "DELETE FROM blobs WHERE digest = $1 AND upload = $2
                               AND NOT EXISTS (SELECT 1 FROM repo_blobs WHERE digest = $1)";
                    if tx.execute(sql, &[Value::from(&row.digest), Value::from(&row.upload)]).await? > 0 {
                        dropped.push(row);
                    }
                }
                Ok::<_, Error>(dropped)
            })
        });
        dropped.extend(written.await?);
    }
    Ok(dropped)
}

/// Location of stored bytes, as the storage lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocationKey {
    /// The digest, if the names of the storage contain it.
    pub digest: Option<String>,
    /// What a blob with these bytes records as its `upload`.
    pub key: String,
    /// The open upload that the bytes may still belong to.
    pub open_upload: String,
}

/// The positions of those of these locations that belong to no blob and can become none: the caller has seen
/// them before, and both the row of the blob and that of the upload are missing in one snapshot.
pub async fn unknown_locations(db: &Db, locations: &[LocationKey]) -> Result<Vec<usize>> {
    let mut unknown = Vec::new();
    for (n, part) in locations.chunks(AT_ONCE).enumerate() {
        let part = part.to_vec();
        let read = db.read(move |tx| {
            Box::pin(async move {
                let known = known_locations(tx, &part).await?;
                let open: Vec<String> = part.iter().map(|location| location.open_upload.clone()).collect();
                let live: HashSet<_> = under_way(tx, &open).await?.into_iter().collect();
                let is_known = |location: &LocationKey| match &location.digest {
                    Some(digest) => known.contains(&(digest.clone(), location.key.clone())),
                    None => known.iter().any(|(_, upload)| *upload == location.key),
                };
                let is_unknown = |location: &LocationKey| !is_known(location) && !live.contains(&location.open_upload);
                let of_part = part.iter().enumerate().filter(|(_, location)| is_unknown(location)).map(|(at, _)| at);
                Ok::<_, Error>(of_part.collect::<Vec<_>>())
            })
        });
        unknown.extend(read.await?.into_iter().map(|at| n * AT_ONCE + at));
    }
    Ok(unknown)
}

/// Digest and upload of the blobs that these locations could belong to.
async fn known_locations(tx: &mut ReadTx, locations: &[LocationKey]) -> Result<HashSet<(String, String)>> {
    let mut known = HashSet::new();
    let by_digest = locations.iter().filter_map(|location| location.digest.as_ref());
    let by_upload = locations.iter().filter(|location| location.digest.is_none()).map(|location| &location.key);
    let asked = [("digest", by_digest.collect::<Vec<_>>()), ("upload", by_upload.collect())];
    for (column, keys) in asked.into_iter().filter(|(_, keys)| !keys.is_empty()) {
        let places: Vec<String> = (1..=keys.len()).map(|n| format!("${n}")).collect();
        let sql = format!("SELECT digest, upload FROM blobs WHERE {column} IN ({})", places.join(", "));
        let params: Vec<Value<'_>> = keys.into_iter().map(Value::from).collect();
        known.extend(tx.query(&sql, &params, |row| Ok::<_, Error>((row.text(0)?, row.text(1)?))).await?);
    }
    Ok(known)
}

/// Those of these uploads that are not under way: no one writes to them any more, and they become no blob.
pub async fn ended_uploads(db: &Db, ids: &[String]) -> Result<Vec<String>> {
    let mut ended = Vec::new();
    for part in ids.chunks(AT_ONCE) {
        let part = part.to_vec();
        let read = db.read(move |tx| {
            Box::pin(async move {
                let live: HashSet<_> = under_way(tx, &part).await?.into_iter().collect();
                Ok::<_, Error>(part.into_iter().filter(|id| !live.contains(id)).collect::<Vec<_>>())
            })
        });
        ended.extend(read.await?);
    }
    Ok(ended)
}

/// One page of texts of a repository after a key.
async fn page(db: &Db, sql: &'static str, repo: &str, after: &str, rest: Vec<Value<'static>>) -> Result<Vec<String>> {
    let (repo, after) = (repo.to_owned(), after.to_owned());
    let read = db.read(move |tx| {
        Box::pin(async move {
            let mut params = vec![Value::from(&repo), Value::from(&after)];
            params.extend(rest);
            texts(tx, sql, &params).await
        })
    });
    read.await
}

async fn texts(tx: &mut ReadTx, sql: &str, params: &[Value<'_>]) -> Result<Vec<String>> {
    tx.query(sql, params, |row| row.text(0).map_err(Error::from)).await
}
