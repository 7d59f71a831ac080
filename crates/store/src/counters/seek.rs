//! Skipping rows without walking them.

use std::collections::BTreeMap;

use futures_util::future::BoxFuture;

use super::{BUCKET, after, below_node, bucket_node, child_node, folded, join, pending};
use crate::error::StoreError;
use crate::tx::ReadTx;

/// Where to continue after a skip.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seek {
    /// The lower bound to continue from (`uid >= start_uid_prefix`), inside the range.
    pub start_uid_prefix: String,
    /// How many rows from there still have to be skipped by `OFFSET`.
    pub remaining: i64,
}

/// Up to this many rows are left to `OFFSET`; below it, walking rows costs no
/// more than walking counts. It is a bucket of a million children.
const ENOUGH: i64 = 4096;

/// Skips `skip` resources in uid order within `lower <= uid < upper`. A skip past the end returns `upper` or
/// leaves a remainder that reaches past it.
pub async fn seek(tx: &mut ReadTx, collection: &str, lower: &str, upper: &str, skip: i64) -> Result<Seek, StoreError> {
    seek_within(tx, collection, lower, upper, skip, ENOUGH).await
}

/// [`seek`] with another bound on `remaining`; tests make it small.
#[doc(hidden)]
pub fn seek_within<'a>(
    tx: &'a mut ReadTx,
    collection: &'a str,
    lower: &'a str,
    upper: &'a str,
    skip: i64,
    enough: i64,
) -> BoxFuture<'a, Result<Seek, StoreError>> {
    Box::pin(async move {
        for bound in [lower, upper] {
            // Such a character sorts before `/`, between a uid and what is below it.
            if bound.bytes().any(|byte| byte < b'/') {
                return Err(StoreError::bug(format!("{bound:?} is not a uid bound")));
            }
        }
        let here = Seek { start_uid_prefix: lower.to_owned(), remaining: skip };
        if skip <= 0 || lower >= upper {
            return Ok(Seek { remaining: 0, ..here });
        }
        let mut walk = RangeCount { tx, collection, enough };
        let base = base(lower, upper);
        let found = {
            let rest = lower.strip_prefix(base).unwrap_or(lower);
            let rest = rest.strip_prefix('/').unwrap_or(rest);
            let before = walk.count_before(base, rest).await?;
            walk.descend(base, before + skip).await?
        };
        Ok(match found {
            // The range starts inside the bucket that was found.
            Some(found) if found.start_uid_prefix.as_str() < lower => here,
            Some(found) if found.start_uid_prefix.as_str() < upper => found,
            _ => Seek { start_uid_prefix: upper.to_owned(), remaining: 0 },
        })
    })
}

/// The deepest path that has the whole range below it.
fn base<'a>(lower: &'a str, upper: &str) -> &'a str {
    let paths = lower.match_indices('/').map(|(at, _)| &lower[..at]);
    paths.take_while(|path| !path.is_empty() && upper <= after(path).as_str()).last().unwrap_or("")
}

struct RangeCount<'t, 'c> {
    tx: &'t mut ReadTx,
    collection: &'c str,
    enough: i64,
}

impl RangeCount<'_, '_> {
    /// How many resources below `base` sort before `base/bound`.
    async fn count_before(&mut self, base: &str, bound: &str) -> Result<i64, StoreError> {
        if bound.is_empty() {
            return Ok(0);
        }
        let (lower, upper) = if base.is_empty() {
            (String::new(), bound.to_owned())
        } else {
            (format!("{base}/"), format!("{base}/{bound}"))
        };
        let mut count = pending(self.tx, self.collection, &lower, &upper).await?;
        let (mut parent, mut rest) = (base.to_owned(), bound);
        loop {
            let (segment, deeper) = match rest.split_once('/') {
                Some((segment, deeper)) => (segment, Some(deeper)),
                None => (rest, None),
            };
            // Whole buckets, then the children in the bound's own bucket.
            let own = segment.get(..BUCKET);
            let (from, to) = (bucket_node(&parent, ""), bucket_node(&parent, own.unwrap_or(segment)));
            count += self.folded_range(&from, &to).await?;
            if let Some(own) = own {
                let (from, to) = (child_node(&parent, own), child_node(&parent, segment));
                count += self.folded_range(&from, &to).await?;
            }
            let Some(deeper) = deeper else { break };
            let child = join(&parent, segment);
            let whole = folded(self.tx, self.collection, &child_node(&parent, segment)).await?;
            let below = folded(self.tx, self.collection, &below_node(&child)).await?;
            count += whole - below;
            (parent, rest) = (child, deeper);
        }
        Ok(count)
    }

    /// Finds where `skip` resources below `path` are behind; `None` if it has not
    /// so many.
    async fn descend(&mut self, path: &str, mut skip: i64) -> Result<Option<Seek>, StoreError> {
        let mut path = path.to_owned();
        loop {
            let buckets = self.buckets(&path).await?;
            let Some((bucket, n)) = pass(buckets, &mut skip) else {
                return Ok(None);
            };
            let start = join(&path, &bucket);
            if n <= self.enough {
                return Ok(Some(Seek { start_uid_prefix: start, remaining: skip }));
            }
            let children = self.children(&path, &bucket).await?;
            let Some((segment, n)) = pass(children, &mut skip) else {
                return Err(StoreError::bug(format!("the counts of {start:?} in {} do not add up", self.collection)));
            };
            let child = join(&path, &segment);
            let itself = n - self.below(&child).await?;
            if n <= self.enough || skip < itself {
                return Ok(Some(Seek { start_uid_prefix: child, remaining: skip }));
            }
            skip -= itself;
            path = child;
        }
    }

    async fn below(&mut self, path: &str) -> Result<i64, StoreError> {
        Ok(folded(self.tx, self.collection, &below_node(path)).await?
            + pending(self.tx, self.collection, &format!("{path}/"), &after(path)).await?)
    }

    /// The buckets below a path, with what is pending.
    async fn buckets(&mut self, path: &str) -> Result<BTreeMap<String, i64>, StoreError> {
        let from = bucket_node(path, "");
        let mut found = self.folded_rows(&from, &bucket_node(path, "~")).await?;
        let lower = join(path, "");
        let start = lower.len() as i64 + 1;
        let pending = self
            .tx
            .query(
                "SELECT substr(uid, CAST($4 AS INTEGER), 2), CAST(sum(delta) AS BIGINT)
                 FROM count_deltas WHERE collection = $1 AND uid >= $2 AND uid < $3
                 GROUP BY substr(uid, CAST($4 AS INTEGER), 2)",
                &[self.collection.into(), (&lower).into(), (&after(path)).into(), start.into()],
                |row| Ok::<_, StoreError>((row.text(0)?, row.int(1)?)),
            )
            .await?;
        for (bucket, delta) in pending {
            *found.entry(bucket).or_default() += delta;
        }
        Ok(found)
    }

    /// The children in one bucket, each with what is below it and what is pending.
    async fn children(&mut self, path: &str, bucket: &str) -> Result<BTreeMap<String, i64>, StoreError> {
        let from = child_node(path, bucket);
        let mut found = self.folded_rows(&from, &format!("{from}~")).await?;
        let lower = join(path, bucket);
        let skipped = lower.len() - bucket.len();
        let pending = self
            .tx
            .query(
                "SELECT uid, delta FROM count_deltas
                 WHERE collection = $1 AND uid >= $2 AND uid < $3",
                &[self.collection.into(), (&lower).into(), (&format!("{lower}~")).into()],
                |row| {
                    let child = row.with_text(0, |uid| {
                        let rest = uid.get(skipped..).unwrap_or_default();
                        rest.split('/').next().unwrap_or_default().to_owned()
                    })?;
                    Ok::<_, StoreError>((child, row.int(1)?))
                },
            )
            .await?;
        for (child, delta) in pending {
            *found.entry(child).or_default() += delta;
        }
        Ok(found)
    }

    async fn folded_range(&mut self, from: &str, to: &str) -> Result<i64, StoreError> {
        let sum = self
            .tx
            .query_opt(
                "SELECT CAST(coalesce(sum(n), 0) AS BIGINT) FROM counts
                 WHERE collection = $1 AND node >= $2 AND node < $3",
                &[self.collection.into(), from.into(), to.into()],
                |row| row.int(0),
            )
            .await?;
        Ok(sum.unwrap_or(0))
    }

    /// The nodes in a range, by what follows the space in them.
    async fn folded_rows(&mut self, from: &str, to: &str) -> Result<BTreeMap<String, i64>, StoreError> {
        let rows = self
            .tx
            .query(
                "SELECT node, n FROM counts
                 WHERE collection = $1 AND node >= $2 AND node < $3 ORDER BY node",
                &[self.collection.into(), from.into(), to.into()],
                |row| {
                    let name = row.with_text(0, |node| node.rsplit(' ').next().unwrap_or_default().to_owned())?;
                    Ok::<_, StoreError>((name, row.int(1)?))
                },
            )
            .await?;
        Ok(rows.into_iter().collect())
    }
}

/// Skips whole entries; returns the one in which the skip ends.
fn pass(entries: BTreeMap<String, i64>, skip: &mut i64) -> Option<(String, i64)> {
    for (name, n) in entries {
        if *skip < n {
            return Some((name, n));
        }
        *skip -= n;
    }
    None
}
