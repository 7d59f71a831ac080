//! Pages of a repository's images: along the index of their times of pushing, a bounded number of manifests at a time.

use bowline_contract::bowline::registry::v1 as ours;
use bowline_core::{Error, Micros, Result, Uidp};
use bowline_pipeline::{Authorized, Direction, Page, PageRequest, SortKey};
use bowline_store::{ReadTx, Row, Sql, Value};
use prost::Message as _;

use super::badges;
use crate::repos;

/// Manifests that one page reads.
const EXAMINED: usize = 2000;

const ORDERS: &[&[&str]] = &[&["push_time", "pushTime", "pushed_at"]];

pub(super) async fn list(
    tx: &mut ReadTx,
    call: &Authorized<ours::ListImagesRequest>,
) -> Result<ours::ListImagesResponse> {
    let (request, repo) = (call.request(), call.require_scope()?);
    repos::require(tx, repo).await?;
    let filter =
        ours::ListImagesRequest { page_size: 0, page_token: String::new(), order_by: String::new(), ..request.clone() };
    let page = PageRequest {
        page_size: request.page_size,
        page_token: request.page_token.clone(),
        order_by: request.order_by.clone(),
        skip: 0,
        filter: filter.encode_to_vec(),
    };
    let page = Page::validate(call, &page, ORDERS, (0, Direction::Descending))?;
    let part = examine(tx, repo, request, &page).await?;
    let images = badges::summaries(tx, repo, &part.digests).await?;
    let next = part.next.map(|(pushed_at, digest)| page.next_token(call, Some(SortKey::Int(pushed_at)), digest));
    Ok(ours::ListImagesResponse { images, next_page_token: next.unwrap_or_default() })
}

/// The images of a page, and the last manifest that was read if there are more.
struct Part {
    digests: Vec<String>,
    next: Option<(Micros, String)>,
}

async fn examine(tx: &mut ReadTx, repo: &Uidp, request: &ours::ListImagesRequest, page: &Page) -> Result<Part> {
    let needle = request.query.to_lowercase();
    let pattern = format!("%{}%", needle.replace('\\', "\\\\").replace('%', "\\%").replace('_', "\\_"));
    let end = format!("{needle}~");
    let query = statement(tx, repo, page, [&needle, &end, &pattern], request.untagged);
    let read = |row: &Row<'_>| Ok::<_, Error>((row.int(0)?, row.text(1)?, row.int(2)? > 0));
    let rows = tx.query(&query.text, &query.params, read).await?;
    let examined = rows.len();
    let mut part = Part { digests: Vec::new(), next: None };
    for (at, (pushed_at, digest, is_shown)) in rows.into_iter().enumerate() {
        if is_shown {
            part.digests.push(digest.clone());
        }
        let is_last = part.digests.len() == page.size || at + 1 == EXAMINED;
        if is_last {
            part.next = (at + 1 < examined || examined == EXAMINED).then_some((pushed_at, digest));
            break;
        }
    }
    Ok(part)
}

/// Reads manifests in the order of the page, each with whether the list shows it.
fn statement<'a>(
    tx: &ReadTx,
    repo: &'a Uidp,
    page: &'a Page,
    [needle, end, pattern]: [&'a str; 3],
    untagged: bool,
) -> Sql<'a> {
    let mut query = Sql::default();
    let repo = query.param(Value::from(repo.as_str()));
    let tags = tx.index_hint("tags_by_digest");
    let has_tags = format!(
        "EXISTS (SELECT 1 FROM tags t {tags} WHERE t.parent = {repo} AND t.digest = r.digest AND t.hidden <> 1"
    );
    let mut shown = if untagged {
        format!(
            "NOT EXISTS (SELECT 1 FROM tags t {tags} WHERE t.parent = {repo} AND t.digest = r.digest) AND r.subject = ''
             AND NOT EXISTS (SELECT 1 FROM manifest_references f JOIN repo_manifests i ON i.repo = {repo}
                             AND i.digest = f.manifest WHERE f.digest = r.digest AND f.kind = 3)"
        )
    } else {
        format!("{has_tags})")
    };
    if !needle.is_empty() {
        let pattern = query.param(Value::from(pattern));
        let (needle, end) = (query.param(Value::from(needle)), query.param(Value::from(end)));
        let begins = format!("(r.digest >= {needle} AND r.digest < {end})");
        shown += &format!(" AND ({has_tags} AND lower(t.name) LIKE {pattern} ESCAPE '\\') OR {begins})");
    }
    query.text = format!(
        "SELECT r.pushed_at, r.digest, CASE WHEN {shown} THEN 1 ELSE 0 END FROM repo_manifests r {} WHERE r.repo = {repo}",
        tx.index_hint("repo_manifests_by_pushed")
    );
    let (comparison, direction) = match page.direction {
        Direction::Ascending => (">", "ASC"),
        Direction::Descending => ("<", "DESC"),
    };
    if let Some(cursor) = &page.cursor {
        let pushed_at = match cursor.key {
            Some(SortKey::Int(pushed_at)) => pushed_at,
            _ => 0,
        };
        let (pushed_at, digest) = (query.param(Value::Int(pushed_at)), query.param(Value::from(&cursor.uid)));
        query.text += &format!(" AND (r.pushed_at, r.digest) {comparison} ({pushed_at}, {digest})");
    }
    let limit = query.param(Value::Int(EXAMINED as i64));
    query.text += &format!(" ORDER BY r.pushed_at {direction}, r.digest {direction} LIMIT {limit}");
    query
}
