//! Images in the order of their size. The size of an index is that of its members, which come and go, so that no index of
//! the database has it: all images of a repository are put in order, as far as it has not too many.

use std::cmp::Ordering;

use bowline_core::{Error, Result, Uidp};
use bowline_pipeline::{Direction, Page, SortKey};
use bowline_store::{ReadTx, Row, Sql, Value};

use super::page::{MAX_DIGESTS_PER_STATEMENT, Part, SearchText, shown_condition};

/// Manifests of a repository that are put in order.
const MAX_MANIFESTS: usize = 10_000;
/// Members of its indexes whose sizes are added up.
const MAX_MEMBERS: usize = 100_000;

/// The images of a page.
pub(super) async fn part(tx: &mut ReadTx, repo: &Uidp, which: (&SearchText, bool), page: &Page) -> Result<Part> {
    let mut images: Vec<(i64, String)> = Vec::new();
    let mut members = 0;
    for digests in all(tx, repo, which).await?.chunks(MAX_DIGESTS_PER_STATEMENT) {
        members += count_members(tx, digests, MAX_MEMBERS - members + 1).await?;
        if members > MAX_MEMBERS {
            return Err(too_large(repo, format!("its indexes have more than {MAX_MEMBERS} members")));
        }
        images.extend(sizes(tx, repo, digests).await?);
    }
    let order = |one: &(i64, String), other: &(i64, String)| match page.direction {
        Direction::Ascending => one.cmp(other),
        Direction::Descending => other.cmp(one),
    };
    images.sort_by(order);
    if let Some(cursor) = &page.cursor {
        let size = match cursor.key {
            Some(SortKey::Int(size)) => size,
            _ => 0,
        };
        let last = (size, cursor.uid.clone());
        images.retain(|image| order(image, &last) == Ordering::Greater);
    }
    let has_more = images.len() > page.size;
    images.truncate(page.size);
    let next = images.last().filter(|_| has_more).map(|(size, digest)| (SortKey::Int(*size), digest.clone()));
    Ok(Part { digests: images.into_iter().map(|(_, digest)| digest).collect(), next })
}

/// The digests of all images that the list shows.
async fn all(tx: &mut ReadTx, repo: &Uidp, which: (&SearchText, bool)) -> Result<Vec<String>> {
    let mut query = Sql::default();
    let position = query.param(Value::from(repo.as_str()));
    let shown = shown_condition(tx, &mut query, &position, which);
    query.text = format!(
        "SELECT r.digest, CASE WHEN {shown} THEN 1 ELSE 0 END FROM repo_manifests r {} WHERE r.repo = {position}",
        tx.index_hint("repo_manifests_by_pushed")
    );
    query.bind(" ORDER BY r.pushed_at, r.digest LIMIT ", Value::Int(MAX_MANIFESTS as i64 + 1));
    let read = |row: &Row<'_>| Ok::<_, Error>((row.text(0)?, row.int(1)? > 0));
    let rows = tx.query(&query.text, &query.params, read).await?;
    if rows.len() > MAX_MANIFESTS {
        return Err(too_large(repo, format!("it has more than {MAX_MANIFESTS} manifests")));
    }
    Ok(rows.into_iter().filter(|(_, is_shown)| *is_shown).map(|(digest, _)| digest).collect())
}

fn too_large(repo: &Uidp, why: String) -> Error {
    let text =
        format!("the repository is too large to be ordered by size: {why}; order by push_time, pull_time or name");
    Error::precondition("REPOSITORY_TOO_LARGE", repo.as_str(), text)
}

/// How many members the indexes among these images have, counted up to `most`.
async fn count_members(tx: &mut ReadTx, digests: &[String], most: usize) -> Result<usize> {
    let mut query = Sql::new("SELECT count(*) FROM (SELECT 1 FROM manifest_references f WHERE f.kind = 3");
    query.bind_list(" AND f.manifest IN ", digests.iter().map(Value::from));
    query.bind(" LIMIT ", Value::Int(most as i64)).push(") AS members");
    let count = tx.query_opt(&query.text, &query.params, |row| row.int(0).map_err(Error::from)).await?;
    Ok(usize::try_from(count.unwrap_or_default()).unwrap_or_default())
}

/// The sizes of images: of an index, its own and that of its members that the repository has.
async fn sizes(tx: &mut ReadTx, repo: &Uidp, digests: &[String]) -> Result<Vec<(i64, String)>> {
    let mut query = Sql::default();
    let repo = query.param(Value::from(repo.as_str()));
    query.text = format!(
        "SELECT m.total_size + CAST(coalesce((SELECT sum(c.total_size) FROM manifest_references f
           JOIN repo_manifests r ON r.repo = {repo} AND r.digest = f.digest JOIN manifests c ON c.digest = r.digest
           WHERE f.manifest = m.digest AND f.kind = 3), 0) AS BIGINT), m.digest
         FROM manifests m WHERE "
    );
    query.bind_list("m.digest IN ", digests.iter().map(Value::from));
    tx.query(&query.text, &query.params, |row| Ok::<_, Error>((row.int(0)?, row.text(1)?))).await
}
