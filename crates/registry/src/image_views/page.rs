//! Pages of a repository's images: by the times of pushing and pulling along an index, a bounded number of manifests at a
//! time; by name along the index of tags; by size in memory, as far as that is bounded.

use std::collections::{BTreeMap, BTreeSet};

use bowline_contract::bowline::registry::v1 as own;
use bowline_core::{Error, Result, Uidp};
use bowline_pipeline::{Authorized, Direction, Page, PageRequest, SortKey};
use bowline_store::{ReadTx, Row, Sql, Value, like};
use prost::Message as _;

use super::{by_size, summaries};
use crate::repos;
use crate::tags::Hidden;

/// Rows of an index that one page reads.
const EXAMINED: usize = 2000;
/// Maximum number of digests in one statement.
pub(super) const MAX_DIGESTS_PER_STATEMENT: usize = 500;

const ORDERS: &[&[&str]] =
    &[&["push_time", "pushTime", "pushed_at"], &["pull_time", "pullTime", "pulled_at"], &["name", "tag"], &["size"]];
const BY_PULL: usize = 1;
const BY_NAME: usize = 2;
const BY_SIZE: usize = 3;

/// Whether a request reads more than a page of an index: by size all images, by name all tags of the images of a page.
pub(super) fn is_heavy(request: &own::ListImagesRequest) -> bool {
    let field = request.order_by.split_whitespace().next().unwrap_or_default();
    [BY_NAME, BY_SIZE].iter().any(|order| ORDERS.get(*order).is_some_and(|names| names.contains(&field)))
}

pub(super) async fn list(
    tx: &mut ReadTx,
    call: &Authorized<own::ListImagesRequest>,
) -> Result<own::ListImagesResponse> {
    let (request, repo) = (call.request(), call.require_scope()?);
    repos::require(tx, repo).await?;
    let filter =
        own::ListImagesRequest { page_size: 0, page_token: String::new(), order_by: String::new(), ..request.clone() };
    let page = PageRequest {
        page_size: request.page_size,
        page_token: request.page_token.clone(),
        order_by: request.order_by.clone(),
        skip: 0,
        filter: filter.encode_to_vec(),
    };
    let page = Page::validate(call, &page, ORDERS, (0, Direction::Descending))?;
    if page.order == BY_NAME && request.untagged {
        return Err(Error::invalid_field("orderBy", "images without a tag have no name; order them by push_time"));
    }
    let text = SearchText::new(&request.query);
    let part = match page.order {
        BY_SIZE => by_size::part(tx, repo, (&text, request.untagged), &page).await?,
        BY_NAME => by_name(tx, repo, &page, &text).await?,
        _ => by_time(tx, repo, (&text, request.untagged), &page).await?,
    };
    let images = summaries::summaries(tx, repo, &part.digests).await?;
    let next = part.next.map(|(key, digest)| page.next_token(call, Some(key), digest));
    Ok(own::ListImagesResponse { images, next_page_token: next.unwrap_or_default() })
}

/// Text to search in tags and digests.
pub(super) struct SearchText {
    /// The text in lower case; empty for none.
    needle: String,
    /// Upper bound of the digests that begin with the text.
    prefix_end: String,
    pattern: String,
}

impl SearchText {
    fn new(query: &str) -> SearchText {
        let needle = query.to_lowercase();
        let (prefix_end, pattern) = (format!("{needle}~"), like(&needle, false));
        SearchText { needle, prefix_end, pattern }
    }
}

/// The images of a page, and where the next one begins if there are more.
pub(super) struct Part {
    pub(super) digests: Vec<String>,
    pub(super) next: Option<(SortKey, String)>,
}

/// A row of an index: its key, the digest of its image, and whether the list shows the image there.
type Examined = (SortKey, String, bool);

/// The images of a page out of the rows that were read, until the page is full or all rows are examined.
fn fill_page(rows: Vec<Examined>, page: &Page) -> Part {
    let examined = rows.len();
    let mut part = Part { digests: Vec::new(), next: None };
    for (at, (key, digest, is_shown)) in rows.into_iter().enumerate() {
        if is_shown {
            part.digests.push(digest.clone());
        }
        let is_last = part.digests.len() == page.size || at + 1 == EXAMINED;
        if is_last {
            part.next = (at + 1 < examined || examined == EXAMINED).then_some((key, digest));
            break;
        }
    }
    part
}

/// The SQL condition for the manifests `r` that a list shows; adds its parameters to `query`.
pub(super) fn shown_condition<'a>(
    tx: &ReadTx,
    query: &mut Sql<'a>,
    repo: &str,
    (text, untagged): (&'a SearchText, bool),
) -> String {
    let tags = tx.index_hint("tags_by_digest");
    // A tag that lists show, for which `and` is true as well.
    let has_tag = |and: &str| {
        let referrer = Hidden::Referrer as i64;
        format!(
            "EXISTS (SELECT 1 FROM tags t {tags}
                     WHERE t.parent = {repo} AND t.digest = r.digest AND t.hidden <> {referrer}{and})"
        )
    };
    let shown = if untagged {
        // Kind 3 is `Kind::Child`: a member of an index.
        format!(
            "NOT EXISTS (SELECT 1 FROM tags t {tags} WHERE t.parent = {repo} AND t.digest = r.digest) AND r.subject = ''
             AND NOT EXISTS (SELECT 1 FROM manifest_references f JOIN repo_manifests i ON i.repo = {repo}
                             AND i.digest = f.manifest WHERE f.digest = r.digest AND f.kind = 3)"
        )
    } else {
        has_tag("")
    };
    if text.needle.is_empty() {
        return shown;
    }
    let pattern = query.param(Value::from(&text.pattern));
    let (needle, end) = (query.param(Value::from(&text.needle)), query.param(Value::from(&text.prefix_end)));
    let begins = format!("(r.digest >= {needle} AND r.digest < {end})");
    let has_named_tag = has_tag(&format!(" AND lower(t.name) LIKE {pattern} ESCAPE '\\'"));
    format!("{shown} AND ({has_named_tag} OR {begins})")
}

/// Manifests in the order of a time.
async fn by_time(tx: &mut ReadTx, repo: &Uidp, which: (&SearchText, bool), page: &Page) -> Result<Part> {
    let mut query = Sql::default();
    let repo = query.param(Value::from(repo.as_str()));
    let shown = shown_condition(tx, &mut query, &repo, which);
    let (column, index) = match page.order {
        BY_PULL => ("coalesce(r.last_pulled_at, 0)", "repo_manifests_by_pulled"),
        _ => ("r.pushed_at", "repo_manifests_by_pushed"),
    };
    query.text = format!(
        "SELECT {column}, r.digest, CASE WHEN {shown} THEN 1 ELSE 0 END FROM repo_manifests r {} WHERE r.repo = {repo}",
        tx.index_hint(index)
    );
    continue_after(&mut query, page, &[column, "r.digest"]);
    let read = |row: &Row<'_>| Ok::<_, Error>((SortKey::Int(row.int(0)?), row.text(1)?, row.int(2)? > 0));
    Ok(fill_page(tx.query(&query.text, &query.params, read).await?, page))
}

/// Tags in the order of their names: an image with several tags is shown at the first of them in the order.
async fn by_name(tx: &mut ReadTx, repo: &Uidp, page: &Page, text: &SearchText) -> Result<Part> {
    let mut query = Sql::new(format!("SELECT r.name, r.digest, r.hidden FROM tags r {}", tx.index_hint("tags_name")));
    query.bind(" WHERE r.parent = ", Value::from(repo.as_str()));
    // No two tags have one name.
    continue_after(&mut query, page, &["r.name"]);
    let read = |row: &Row<'_>| Ok::<_, Error>((row.text(0)?, row.text(1)?, row.int(2)? != Hidden::Referrer as i64));
    let tags = tx.query(&query.text, &query.params, read).await?;
    let digests: BTreeSet<&str> =
        tags.iter().filter(|(_, _, is_visible)| *is_visible).map(|(_, digest, _)| digest.as_str()).collect();
    let first = first_tags(tx, repo, &digests.into_iter().collect::<Vec<_>>(), (page, text)).await?;
    let shown = |(name, digest, is_visible): (String, String, bool)| {
        let is_shown = is_visible && first.get(&digest) == Some(&name);
        (SortKey::Text(name), digest, is_shown)
    };
    Ok(fill_page(tags.into_iter().map(shown).collect(), page))
}

/// The name of the first tag of each of these images, of those that have the text.
async fn first_tags(
    tx: &mut ReadTx,
    repo: &Uidp,
    digests: &[&str],
    (page, text): (&Page, &SearchText),
) -> Result<BTreeMap<String, String>> {
    let first = if page.direction == Direction::Ascending { "min" } else { "max" };
    let mut names = BTreeMap::new();
    for digests in digests.chunks(MAX_DIGESTS_PER_STATEMENT) {
        let hint = tx.index_hint("tags_by_digest");
        let mut query = Sql::new(format!("SELECT t.digest, {first}(t.name) FROM tags t {hint}"));
        query.bind(" WHERE t.hidden <> ", Value::Int(Hidden::Referrer as i64));
        query.bind(" AND t.parent = ", Value::from(repo.as_str()));
        query.bind_list(" AND t.digest IN ", digests.iter().map(|digest| Value::from(*digest)));
        query.push(" GROUP BY t.digest");
        if !text.needle.is_empty() {
            query.bind(" HAVING max(CASE WHEN lower(t.name) LIKE ", Value::from(&text.pattern));
            query.bind(" ESCAPE '\\' THEN 1 ELSE 0 END) = 1 OR (t.digest >= ", Value::from(&text.needle));
            query.bind(" AND t.digest < ", Value::from(&text.prefix_end)).push(")");
        }
        let read = |row: &Row<'_>| Ok::<_, Error>((row.text(0)?, row.text(1)?));
        names.extend(tx.query(&query.text, &query.params, read).await?);
    }
    Ok(names)
}

/// The rows after the cursor of a page, in the order of these columns.
fn continue_after<'a>(query: &mut Sql<'a>, page: &'a Page, columns: &[&str]) {
    let (comparison, direction) = match page.direction {
        Direction::Ascending => (">", "ASC"),
        Direction::Descending => ("<", "DESC"),
    };
    if let Some(cursor) = &page.cursor {
        let key = match &cursor.key {
            Some(SortKey::Text(text)) => Value::from(text),
            Some(SortKey::Int(int)) => Value::Int(*int),
            None => Value::Int(0),
        };
        let last = [key, Value::from(&cursor.uid)].into_iter().take(columns.len());
        let last: Vec<String> = last.map(|value| query.param(value)).collect();
        query.text += &format!(" AND ({}) {comparison} ({})", columns.join(", "), last.join(", "));
    }
    let order: Vec<String> = columns.iter().map(|column| format!("{column} {direction}")).collect();
    query.bind(&format!(" ORDER BY {} LIMIT ", order.join(", ")), Value::Int(EXAMINED as i64));
}
