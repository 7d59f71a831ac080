//! Repositories by a part of their name, with what is stored in them and when they were last used.
//!
//! By name or UIDP and without a text, pages are read along an index. Otherwise all that match are read, up to a bound,
//! and put in order here: what they are ordered by is summed, and has no index.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use bowline_contract::bowline::registry::v1 as own;
use bowline_contract::bowline::registry::v1::rpc::images::SearchRepos;
use bowline_core::{Error, Result, UidRange, intersect};
use bowline_pipeline::{Authorized, Direction, Handlers, Page, PageRequest, SortKey, handler};
use bowline_resources::list::{self, Selection, timestamp};
use bowline_resources::names::{NameSearch, NamedKind};
use bowline_store::activity::{self, ActivityKind};
use bowline_store::counters;
use bowline_store::{ReadTx, Row, Sql, Value};
use prost::Message as _;

use crate::repos::{RepoRow, TABLE};
use crate::stored_bytes;

pub(crate) fn register(handlers: Handlers) -> Handlers {
    handlers.heavy_read::<SearchRepos>(handler!(search))
}

/// Repositories that are put in order for one call.
const MAX_ORDERED: usize = 10_000;
/// Repositories that one statement names.
const AT_ONCE: usize = 500;
/// Days of pulls in a row.
const DAYS: i64 = 30;

/// The first two are those of the table.
const ORDERS: &[&[&str]] = &[
    &["uid", "id"],
    &["name"],
    &["size"],
    &["push_time", "pushTime", "pushed_at"],
    &["pull_time", "pullTime", "pulled_at"],
];
const BY_UID: usize = 0;
const BY_NAME: usize = 1;
const BY_SIZE: usize = 2;
const BY_PUSH: usize = 3;

type Call = Authorized<own::SearchReposRequest>;

async fn search(tx: &mut ReadTx, call: &Call) -> Result<own::SearchReposResponse> {
    let request = call.request();
    let (scope, query) = (request.scope.clone(), request.query.trim().to_ascii_lowercase());
    let filter = own::SearchReposRequest { scope: scope.clone(), query: query.clone(), ..Default::default() };
    let request = PageRequest {
        page_size: request.page_size,
        page_token: request.page_token.clone(),
        order_by: request.order_by.clone(),
        skip: 0,
        filter: filter.encode_to_vec(),
    };
    let page = Page::validate(call, &request, ORDERS, (BY_NAME, Direction::Ascending))?;
    let visible = call.visible();
    let ranges = if scope.is_empty() { visible } else { intersect(&visible, &[UidRange::subtree(&scope)]) };
    if query.is_empty() && matches!(page.order, BY_UID | BY_NAME) {
        return by_index(tx, call, ranges, &page).await;
    }
    let (mut matches, incomplete) = matches(tx, &ranges, &scope, &query).await?;
    add_keys(tx, page.order, &mut matches).await?;
    matches.sort_by(|one, other| one.compare(&other.key, &other.uid, page.direction));
    let total_count = i64::try_from(matches.len()).unwrap_or(i64::MAX);
    if let Some(cursor) = &page.cursor {
        let key = cursor.key.clone().unwrap_or(SortKey::Int(0));
        matches.retain(|one| one.compare(&key, &cursor.uid, page.direction) == Ordering::Greater);
    }
    let has_more = matches.len() > page.size;
    matches.truncate(page.size);
    let last = matches.last().filter(|_| has_more);
    let next_page_token = last.map(|last| page.next_token(call, Some(last.key.clone()), last.uid.clone()));
    let uids: Vec<&str> = matches.iter().map(|one| one.uid.as_str()).collect();
    let repos = summaries(tx, &uids, activity::day_of(call.now())).await?;
    let next_page_token = next_page_token.unwrap_or_default();
    Ok(own::SearchReposResponse { repos, next_page_token, total_count, incomplete })
}

/// A page of all repositories in the ranges, along the index of their order.
async fn by_index(
    tx: &mut ReadTx,
    call: &Call,
    ranges: Vec<UidRange>,
    page: &Page,
) -> Result<own::SearchReposResponse> {
    let (filters, conditions, clauses) = (Vec::new(), Vec::new(), Vec::new());
    let selection = Selection { ranges, parent: None, filters, conditions, clauses };
    let total_count = list::total(tx, &TABLE, &selection).await?;
    let mut rows: Vec<RepoRow> = list::rows_of(tx, &TABLE, &selection, page).await?;
    let has_more = rows.len() > page.size;
    rows.truncate(page.size);
    let last = rows.last().filter(|_| has_more);
    let next_page_token = last.map(|last| {
        let key = (page.order == BY_NAME).then(|| last.name_key());
        page.next_token(call, key, last.uid.clone())
    });
    let uids: Vec<&str> = rows.iter().map(|row| row.uid.as_str()).collect();
    let repos = summaries(tx, &uids, activity::day_of(call.now())).await?;
    let next_page_token = next_page_token.unwrap_or_default();
    Ok(own::SearchReposResponse { repos, next_page_token, total_count, incomplete: false })
}

/// A repository that matches, and what it is ordered by.
struct RepoMatch {
    uid: String,
    key: SortKey,
}

impl RepoMatch {
    fn compare(&self, key: &SortKey, uid: &str, direction: Direction) -> Ordering {
        let ascending = list::compare(&self.key, key).then_with(|| self.uid.as_str().cmp(uid));
        if direction == Direction::Ascending { ascending } else { ascending.reverse() }
    }
}

/// All repositories in the ranges that have the text in their name, and whether there may be more.
async fn matches(tx: &mut ReadTx, ranges: &[UidRange], scope: &str, text: &str) -> Result<(Vec<RepoMatch>, bool)> {
    let (uids, is_incomplete) = if text.is_empty() {
        (everything(tx, ranges).await?, false)
    } else {
        let mut search = NameSearch::new(NamedKind::Repo, text, ranges)?;
        let rows = search.after(tx, None, MAX_ORDERED + 1).await?;
        (rows.into_iter().map(|row| row.uid).collect(), search.is_incomplete())
    };
    // All of these are visible to the caller.
    if uids.len() > MAX_ORDERED {
        let text = format!(
            "more than {MAX_ORDERED} repositories match; narrow the scope, lengthen the query, or order all by name"
        );
        return Err(Error::precondition("TOO_MANY_REPOSITORIES", scope, text));
    }
    Ok((uids.into_iter().map(|uid| RepoMatch { uid, key: SortKey::Int(0) }).collect(), is_incomplete))
}

async fn everything(tx: &mut ReadTx, ranges: &[UidRange]) -> Result<Vec<String>> {
    let mut uids: Vec<String> = Vec::new();
    for UidRange { lower, upper } in ranges {
        let left = (MAX_ORDERED + 1 - uids.len()) as i64;
        let sql = "SELECT uid FROM repos WHERE uid >= $1 AND uid < $2 ORDER BY uid LIMIT $3";
        let params = [Value::from(lower), Value::from(upper), Value::Int(left)];
        uids.extend(tx.query(sql, &params, |row| row.text(0).map_err(Error::from)).await?);
    }
    Ok(uids)
}

/// Adds what the matches are ordered by.
async fn add_keys(tx: &mut ReadTx, order: usize, matches: &mut [RepoMatch]) -> Result<()> {
    let uids: Vec<String> = matches.iter().map(|one| one.uid.clone()).collect();
    let mut keys: BTreeMap<String, SortKey> = BTreeMap::new();
    if order == BY_SIZE {
        let uids: Vec<&str> = uids.iter().map(String::as_str).collect();
        let sizes = stored_bytes::totals(tx, &uids).await?;
        keys.extend(sizes.into_iter().map(|(uid, size)| (uid, SortKey::Int(size))));
    } else if order != BY_UID {
        for uids in uids.chunks(AT_ONCE) {
            keys.extend(read_keys(tx, order, uids).await?);
        }
    }
    for one in matches {
        one.key = keys.remove(&one.uid).unwrap_or(SortKey::Int(0));
    }
    Ok(())
}

async fn read_keys(tx: &mut ReadTx, order: usize, uids: &[String]) -> Result<Vec<(String, SortKey)>> {
    let (pushed, pulled) = times(tx);
    let column = match order {
        BY_NAME => "name".to_owned(),
        BY_PUSH => pushed,
        _ => pulled,
    };
    let mut sql = Sql::new(format!("SELECT r.uid, {column} FROM repos r WHERE "));
    sql.bind_list("r.uid IN ", uids.iter().map(Value::from));
    let read = |row: &Row<'_>| {
        let key = if order == BY_NAME { SortKey::Text(row.text(1)?) } else { SortKey::Int(row.int(1)?) };
        Ok::<_, Error>((row.text(0)?, key))
    };
    tx.query(&sql.text, &sql.params, read).await
}

/// When something was last pushed to the repository `r`, and last pulled, each the end of an index; 0 for never.
fn times(tx: &ReadTx) -> (String, String) {
    let last = |column: &str, index: &'static str| {
        let hint = tx.index_hint(index);
        format!("coalesce((SELECT max({column}) FROM repo_manifests m {hint} WHERE m.repo = r.uid), 0)")
    };
    let pushed = last("m.pushed_at", "repo_manifests_by_pushed");
    (pushed, last("coalesce(m.last_pulled_at, 0)", "repo_manifests_by_pulled"))
}

/// The repositories of these UIDPs in the given order, a few statements for all of them.
async fn summaries(tx: &mut ReadTx, uids: &[&str], today: i64) -> Result<Vec<own::RepoSummary>> {
    if uids.is_empty() {
        return Ok(Vec::new());
    }
    let mut repos = rows(tx, uids).await?;
    for (uid, size) in stored_bytes::totals(tx, uids).await? {
        if let Some(repo) = repos.get_mut(&uid) {
            repo.size = size;
        }
    }
    for (uid, tags) in counters::totals(tx, "tags", uids).await? {
        if let Some(repo) = repos.get_mut(&uid) {
            repo.tags = tags;
        }
    }
    let first = today - DAYS + 1;
    for (uid, day, pulls) in activity::days_of_scopes(tx, uids, ActivityKind::Pulls, (first, today)).await? {
        let at = usize::try_from(day - first).ok();
        let place = repos.get_mut(&uid).zip(at).and_then(|(repo, at)| repo.pulls_by_day.get_mut(at));
        if let Some(place) = place {
            *place = pulls;
        }
    }
    Ok(uids.iter().filter_map(|uid| repos.remove(*uid)).collect())
}

async fn rows(tx: &mut ReadTx, uids: &[&str]) -> Result<BTreeMap<String, own::RepoSummary>> {
    let (pushed, pulled) = times(tx);
    let mut sql =
        Sql::new(format!("SELECT r.uid, r.parent, r.name, r.description, {pushed}, {pulled} FROM repos r WHERE "));
    sql.bind_list("r.uid IN ", uids.iter().map(|uid| Value::from(*uid)));
    let read = |row: &Row<'_>| {
        let uid = row.text(0)?;
        let summary = own::RepoSummary {
            uid: uid.clone(),
            parent: row.text(1)?,
            name: row.text(2)?,
            description: row.text(3)?,
            push_time: Some(row.int(4)?).filter(|at| *at > 0).and_then(timestamp),
            pull_time: Some(row.int(5)?).filter(|at| *at > 0).and_then(timestamp),
            pulls_by_day: vec![0; DAYS as usize],
            ..own::RepoSummary::default()
        };
        Ok::<_, Error>((uid, summary))
    };
    Ok(tx.query(&sql.text, &sql.params, read).await?.into_iter().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_keys_are_ordered_by_uidp_in_either_direction() {
        let one = RepoMatch { uid: "b".into(), key: SortKey::Int(1) };
        assert_eq!(one.compare(&SortKey::Int(1), "a", Direction::Ascending), Ordering::Greater);
        assert_eq!(one.compare(&SortKey::Int(1), "a", Direction::Descending), Ordering::Less);
        assert_eq!(one.compare(&SortKey::Int(2), "a", Direction::Descending), Ordering::Greater);
    }
}
