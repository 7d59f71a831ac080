//! Findings as they are: the newest reports of the images that tags name, image by image.

use std::collections::BTreeMap;

use bowline_core::{Error, Micros, Result, UidRange};
use bowline_store::{ReadTx, Row, Sql, Value};

use crate::scan_reports::parse::Finding;
use crate::vuln_counts::Ids;

/// Reports that one look for images examines; an image has 50 at most.
const EXAMINED: usize = 500;
/// Images whose findings one call reads.
const MAX_IMAGES: usize = 50;
/// Bytes of the findings that one call reads, unless a single image has more.
const MAX_BYTES: i64 = 32 << 20;
/// Tags of an image that are shown.
const SHOWN_TAGS: usize = 10;
/// Tags that one statement reads.
const MAX_TAGS: i64 = 20_000;

/// An image with a tag, and its newest report.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReportedImage {
    pub repo: String,
    pub digest: String,
    /// When the report was stored.
    pub reported_at: Micros,
    scanner: i64,
    /// Numbers of the severities that its vulnerabilities have.
    pub severities: Vec<i32>,
}

/// Images in the order of repository and digest.
#[derive(Clone, Debug, Default)]
pub struct ReportedImages {
    pub images: Vec<ReportedImage>,
    /// The last examined image, if there are more after it.
    pub last: Option<(String, String)>,
}

/// The images of a scope from one on: those of its tags that have a report.
///
/// # Errors
/// Those of the database.
pub async fn images(tx: &mut ReadTx, range: &UidRange, from: (&str, &str)) -> Result<ReportedImages> {
    let tags = tx.index_hint("tags_by_digest");
    let sql = format!(
        "SELECT s.repo, s.digest, s.created_at, s.scanner, CASE
           WHEN EXISTS (SELECT 1 FROM tags t {tags} WHERE t.parent = s.repo AND t.digest = s.digest)
             AND NOT EXISTS (SELECT 1 FROM scan_summaries o WHERE o.repo = s.repo AND o.digest = s.digest
                             AND o.created_at > s.created_at)
           THEN s.summary ELSE '' END
         FROM scan_summaries s WHERE (s.repo, s.digest) >= ($1, $2) AND s.repo < $3
         ORDER BY s.repo, s.digest, s.created_at, s.scanner LIMIT $4"
    );
    let from_repo = if from.0.is_empty() { range.lower.as_str() } else { from.0 };
    let params = [Value::from(from_repo), Value::from(from.1), Value::from(&range.upper), Value::Int(EXAMINED as i64)];
    let read = |row: &Row<'_>| {
        let (repo, digest, reported_at, scanner) = (row.text(0)?, row.text(1)?, row.int(2)?, row.int(3)?);
        Ok::<_, Error>((ReportedImage { repo, digest, reported_at, scanner, severities: Vec::new() }, row.text(4)?))
    };
    let mut rows = tx.query(&sql, &params, read).await?;
    let mut found = ReportedImages::default();
    if rows.len() == EXAMINED {
        // The newest report of the last image may be among those that were not read.
        let cut = rows.pop();
        let is_cut = |image: &ReportedImage| cut.as_ref().is_some_and(|(cut, _)| cut.is_of(image));
        rows.retain(|(image, _)| !is_cut(image));
        found.last = rows.last().map(|(image, _)| (image.repo.clone(), image.digest.clone()));
    }
    for (mut image, summary) in rows {
        if !summary.is_empty() {
            let ids: Ids = serde_json::from_str(&summary).map_err(Error::internal)?;
            image.severities = ids.into_keys().collect();
            found.images.push(image);
        }
    }
    Ok(found)
}

impl ReportedImage {
    fn is_of(&self, other: &ReportedImage) -> bool {
        (&self.repo, &self.digest) == (&other.repo, &other.digest)
    }
}

/// The findings of the first of these images, as many as one call reads; at least one, if there is one.
///
/// # Errors
/// Those of the database.
pub async fn of_images(tx: &mut ReadTx, images: &[ReportedImage]) -> Result<Vec<Vec<Finding>>> {
    let images = images.get(..MAX_IMAGES).unwrap_or(images);
    if images.is_empty() {
        return Ok(Vec::new());
    }
    let size = |row: &Row<'_>| row.int(1).map_err(Error::from);
    let sizes = read_all(tx, images, "CAST(octet_length(r.findings) AS BIGINT)", size).await?;
    let mut bytes = 0;
    let fits = images.iter().enumerate().take_while(|(at, image)| {
        bytes += sizes.get(&(image.repo.clone(), image.digest.clone())).copied().unwrap_or(0);
        *at == 0 || bytes <= MAX_BYTES
    });
    let count = fits.count();
    let findings = |row: &Row<'_>| serde_json::from_str::<Vec<Finding>>(&row.text(1)?).map_err(Error::internal);
    let mut read = read_all(tx, &images[..count], "r.findings", findings).await?;
    let of = |image: &ReportedImage| read.remove(&(image.repo.clone(), image.digest.clone())).unwrap_or_default();
    Ok(images[..count].iter().map(of).collect())
}

/// A column of the newest reports of these images. Rows are numbered from 0 in the order of the images.
async fn read_all<T: Send>(
    tx: &mut ReadTx,
    images: &[ReportedImage],
    column: &'static str,
    value: impl Fn(&Row<'_>) -> Result<T> + Send + Sync,
) -> Result<BTreeMap<(String, String), T>> {
    let mut sql = Sql::new("WITH wanted (repo, digest, scanner, at, n) AS (VALUES ");
    for (n, image) in (0_i64..).zip(images) {
        sql.bind(if n == 0 { "(" } else { ", (" }, &image.repo).bind(", ", &image.digest);
        sql.bind(", CAST(", Value::Int(image.scanner)).bind(" AS BIGINT), CAST(", Value::Int(image.reported_at));
        sql.bind(" AS BIGINT), CAST(", Value::Int(n)).push(" AS BIGINT))");
    }
    // The wanted ones first: each is one key of the other table.
    sql.push(") SELECT w.n, ").push(column).push(
        " FROM wanted w CROSS JOIN scan_reports r
          WHERE r.repo = w.repo AND r.digest = w.digest AND r.scanner = w.scanner AND r.created_at = w.at",
    );
    let rows = tx.query(&sql.text, &sql.params, |row| Ok::<_, Error>((row.int(0)?, value(row)?))).await?;
    let named = |(n, value): (i64, T)| {
        let image = usize::try_from(n).ok().and_then(|n| images.get(n))?;
        Some(((image.repo.clone(), image.digest.clone()), value))
    };
    Ok(rows.into_iter().filter_map(named).collect())
}

/// The first tags of each of these images, by repository and digest.
///
/// # Errors
/// Those of the database.
pub async fn tags(tx: &mut ReadTx, images: &[&ReportedImage]) -> Result<BTreeMap<(String, String), Vec<String>>> {
    let mut tags: BTreeMap<(String, String), Vec<String>> = BTreeMap::new();
    if images.is_empty() {
        return Ok(tags);
    }
    let mut sql = Sql::new("WITH wanted (repo, digest) AS (VALUES ");
    for (n, image) in images.iter().enumerate() {
        sql.bind(if n == 0 { "(" } else { ", (" }, &image.repo).bind(", ", &image.digest).push(")");
    }
    let hint = tx.index_hint("tags_by_digest");
    sql.push(&format!(
        ") SELECT t.parent, t.digest, t.name FROM wanted w CROSS JOIN tags t {hint}
         WHERE t.parent = w.repo AND t.digest = w.digest ORDER BY t.parent, t.digest, t.name LIMIT {MAX_TAGS}"
    ));
    let read = |row: &Row<'_>| Ok::<_, Error>(((row.text(0)?, row.text(1)?), row.text(2)?));
    for (image, tag) in tx.query(&sql.text, &sql.params, read).await? {
        let tags = tags.entry(image).or_default();
        if tags.len() < SHOWN_TAGS {
            tags.push(tag);
        }
    }
    Ok(tags)
}

/// The names of the repositories of these images.
///
/// # Errors
/// Those of the database.
pub async fn repo_names(tx: &mut ReadTx, images: &[&ReportedImage]) -> Result<BTreeMap<String, String>> {
    if images.is_empty() {
        return Ok(BTreeMap::new());
    }
    let mut sql = Sql::new("SELECT uid, name FROM repos WHERE ");
    sql.bind_list("uid IN ", images.iter().map(|image| Value::from(&image.repo)));
    let rows = tx.query(&sql.text, &sql.params, |row| Ok::<_, Error>((row.text(0)?, row.text(1)?))).await?;
    Ok(rows.into_iter().collect())
}
