//! What the OSV API asks: records by id, and the records that affect a version of a package.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use bowline_core::{Error, Micros, Result};
use bowline_osv::{PackageKey, VersionQuery};
use bowline_store::{Db, ReadTx, Row, Value};

use super::statements::among;
use super::visible::{Generations, VISIBLE};

/// Maximum number of records in the response to one query; the rest is on further pages.
const MAX_PER_QUERY: usize = 1000;
/// Maximum number of records of all queries of a batch together.
const MAX_PER_BATCH: usize = 50_000;
/// Bytes of whole records in one response.
const MAX_BYTES: usize = 32 << 20;
/// Maximum number of packages of one statement: its result is held in memory.
const PACKAGES_AT_ONCE: usize = 64;

/// Queries of the visible records.
#[derive(Clone)]
pub struct RecordLookup {
    db: Db,
}

/// Asks for the records that affect a package.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Query {
    /// The ecosystem, with or without a release.
    pub ecosystem: String,
    pub name: String,
    /// The version; without one, every record that names the package counts.
    pub version: Option<String>,
    /// The last id of the page before; empty for the first page.
    pub after: String,
}

/// Matching records, by id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Results<T> {
    pub matches: Vec<T>,
    /// The id to continue after, where there are more.
    pub next: Option<String>,
}

/// A record that matches a query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordMatch {
    pub id: String,
    /// When it was last changed.
    pub modified: Micros,
    n: i64,
}

/// Why there is no record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing {
    /// Records that name the id as an alias.
    pub known_as: Vec<String>,
}

impl RecordLookup {
    pub fn new(db: Db) -> RecordLookup {
        RecordLookup { db }
    }

    /// The canonical JSON of a record, the newest if several sources have it.
    pub async fn get(&self, id: String) -> Result<std::result::Result<Vec<u8>, Missing>> {
        self.db
            .read(move |tx| {
                Box::pin(async move {
                    let sql = format!(
                        "SELECT b.body FROM records r {VISIBLE} JOIN record_bodies b ON b.record = r.n
                         WHERE r.id = $1 ORDER BY r.modified DESC, r.source LIMIT 1"
                    );
                    let id = [Value::from(&id)];
                    if let Some(body) = tx.query_opt(&sql, &id, |row| row.bytes(0).map_err(Error::from)).await? {
                        return Ok(Ok(body));
                    }
                    let sql = format!(
                        "SELECT DISTINCT r.id FROM record_aliases a JOIN records r ON r.n = a.record {VISIBLE}
                         WHERE a.alias = $1 ORDER BY r.id LIMIT 10"
                    );
                    let known_as = tx.query(&sql, &id, |row| row.text(0).map_err(Error::from)).await?;
                    Ok(Err(Missing { known_as }))
                })
            })
            .await
    }

    /// What each of some queries finds, in their order.
    pub async fn ids(&self, queries: Vec<Query>) -> Result<Vec<Results<RecordMatch>>> {
        let queries = Arc::new(queries);
        self.db.read(move |tx| Box::pin(async move { find(tx, &queries).await })).await
    }

    /// What a query finds, as canonical JSON.
    pub async fn records(&self, query: Query) -> Result<Results<Vec<u8>>> {
        self.db
            .read(move |tx| {
                Box::pin(async move {
                    let results = find(tx, std::slice::from_ref(&query)).await?.pop();
                    let results = results.ok_or_else(|| Error::internal("a query has no answer"))?;
                    whole(tx, results).await
                })
            })
            .await
    }
}

/// Reads the bodies, as many as a response may have.
async fn whole(tx: &mut ReadTx, results: Results<RecordMatch>) -> Result<Results<Vec<u8>>> {
    let (mut found, mut bytes, mut last) = (Vec::new(), 0, None);
    for part in results.matches.chunks(32) {
        let (placeholders, values) = among(1, part.iter().map(|found| Value::Int(found.n)));
        let sql = format!("SELECT record, body FROM record_bodies WHERE record IN {placeholders}");
        let rows = tx.query(&sql, &values, |row| Ok::<_, Error>((row.int(0)?, row.bytes(1)?))).await?;
        let mut bodies: BTreeMap<i64, Vec<u8>> = rows.into_iter().collect();
        for record in part {
            let body = bodies.remove(&record.n).ok_or_else(|| Error::internal("a record has no body"))?;
            bytes += body.len();
            if bytes > MAX_BYTES && last.is_some() {
                return Ok(Results { matches: found, next: last });
            }
            last = Some(record.id.clone());
            found.push(body);
        }
    }
    Ok(Results { matches: found, next: results.next })
}

async fn find(tx: &mut ReadTx, queries: &[Query]) -> Result<Vec<Results<RecordMatch>>> {
    // Equal queries are answered once: a batch may ask a thousand times for the package that has most records.
    let mut first: HashMap<&Query, usize> = HashMap::new();
    let same: Vec<usize> =
        queries.iter().enumerate().map(|(index, query)| *first.entry(query).or_insert(index)).collect();
    let mut packages: BTreeMap<PackageKey, Vec<usize>> = BTreeMap::new();
    for (index, query) in queries.iter().enumerate().filter(|(index, _)| same[*index] == *index) {
        packages.entry(PackageKey::new(&query.ecosystem, &query.name)).or_default().push(index);
    }
    let versions: Vec<VersionQuery<'_>> =
        queries.iter().map(|query| VersionQuery::new(&query.ecosystem, query.version.as_deref())).collect();
    let mut results = vec![Results { matches: Vec::new(), next: None }; queries.len()];
    let generations = Generations::read(tx).await?;
    let mut budget = MAX_PER_BATCH;
    let packages: Vec<(PackageKey, Vec<usize>)> = packages.into_iter().collect();
    for part in packages.chunks(PACKAGES_AT_ONCE) {
        if budget > 0 {
            candidates(tx, part, queries, &versions, &generations, &mut results, budget).await?;
        }
        for index in part.iter().flat_map(|(_, indexes)| indexes) {
            cut(&mut results[*index], &queries[*index], budget);
            budget = budget.saturating_sub(results[*index].matches.len());
        }
    }
    for (index, same) in same.into_iter().enumerate().filter(|(index, same)| index != same) {
        if budget > 0 {
            results[index] = results[same].clone();
        }
        cut(&mut results[index], &queries[index], budget);
        budget = budget.saturating_sub(results[index].matches.len());
    }
    Ok(results)
}

/// Adds what affects some packages to the results of the queries for them. Not much more than the budget is held.
async fn candidates(
    tx: &mut ReadTx,
    packages: &[(PackageKey, Vec<usize>)],
    queries: &[Query],
    versions: &[VersionQuery<'_>],
    generations: &Generations,
    results: &mut [Results<RecordMatch>],
    budget: usize,
) -> Result<()> {
    let indexes: BTreeMap<&str, &[usize]> =
        packages.iter().map(|(package, indexes)| (package.as_str(), indexes.as_slice())).collect();
    // The package of the row before: rows mostly come package by package.
    let mut current: Option<(&str, &[usize])> = None;
    let order: Vec<usize> = packages.iter().flat_map(|(_, indexes)| indexes).copied().collect();
    let mut is_closed = vec![false; queries.len()];
    let mut held = 0;
    let (placeholders, values) = among(1, packages.iter().map(|(package, _)| Value::from(package.as_str())));
    let sql = format!(
        "SELECT package, ranges, id, modified, record, source, since, until FROM record_affects
         WHERE package IN {placeholders}"
    );
    let mut hold = |row: &Row<'_>| -> Result<()> {
        if !generations.show(row, 5)? {
            return Ok(());
        }
        row.with_text(0, |package| {
            if current.is_none_or(|(current, _)| current != package) {
                current = indexes.get_key_value(package).map(|(package, indexes)| (*package, *indexes));
            }
        })?;
        for index in current.into_iter().flat_map(|(_, indexes)| indexes).copied() {
            if is_closed[index] {
                continue;
            }
            let is_hit = row.with_text(2, |id| id > queries[index].after.as_str())?
                && row.with_text(1, |ranges| versions[index].is_in(ranges))?;
            if is_hit {
                results[index].matches.push(RecordMatch { id: row.text(2)?, modified: row.int(3)?, n: row.int(4)? });
                held += 1;
            }
        }
        if held > 2 * MAX_PER_BATCH {
            held = squeeze(results, &order, &mut is_closed, budget);
        }
        Ok(())
    };
    tx.query(&sql, &values, &mut hold).await?;
    Ok(())
}

/// Drops what no answer will have, and says how much is left. What was found can only become more: a query for which
/// nothing is left of the budget now will have nothing at the end, and is closed.
fn squeeze(results: &mut [Results<RecordMatch>], order: &[usize], is_closed: &mut [bool], budget: usize) -> usize {
    let (mut left, mut held) = (budget, 0);
    for index in order {
        let found = &mut results[*index].matches;
        if left == 0 {
            *found = Vec::new();
            is_closed[*index] = true;
            continue;
        }
        tidy(found);
        // One more than the response has shows that there is a further page.
        let most = left.min(MAX_PER_QUERY);
        found.truncate(most + 1);
        left -= found.len().min(most);
        held += found.len();
    }
    held
}

/// By id, and of each the newest.
fn tidy(found: &mut Vec<RecordMatch>) {
    found.sort_by(|one, other| one.id.cmp(&other.id).then(other.modified.cmp(&one.modified)).then(one.n.cmp(&other.n)));
    found.dedup_by(|later, kept| later.id == kept.id);
}

/// Puts what was found in order, each id once, and leaves what is too much for a later page.
fn cut(results: &mut Results<RecordMatch>, query: &Query, budget: usize) {
    if budget == 0 {
        results.next = Some(query.after.clone());
        return;
    }
    let found = &mut results.matches;
    tidy(found);
    let most = budget.min(MAX_PER_QUERY);
    if found.len() > most {
        found.truncate(most);
        results.next = found.last().map(|last| last.id.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn results(ids: &[&str]) -> Results<RecordMatch> {
        let found = ids.iter().map(|id| RecordMatch { id: (*id).into(), modified: 0, n: 0 });
        Results { matches: found.collect(), next: None }
    }

    fn ids(results: &Results<RecordMatch>) -> Vec<&str> {
        results.matches.iter().map(|found| found.id.as_str()).collect()
    }

    #[test]
    fn what_no_answer_will_have_is_not_held() {
        let mut all = [results(&["C", "A", "A"]), results(&["D", "C", "B", "A"]), results(&["A"])];
        let mut is_closed = [false; 3];
        assert_eq!(squeeze(&mut all, &[0, 1, 2], &mut is_closed, 4), 5);
        assert_eq!((ids(&all[0]), ids(&all[1]), ids(&all[2])), (vec!["A", "C"], vec!["A", "B", "C"], vec![]));
        assert_eq!(is_closed, [false, false, true]);
    }

    #[test]
    fn a_page_that_was_squeezed_says_where_it_goes_on() {
        let query = Query { ecosystem: "npm".into(), name: "a".into(), version: None, after: "0".into() };
        let mut all = [results(&["C", "B", "A"]), results(&["A"])];
        squeeze(&mut all, &[0, 1], &mut [false; 2], 2);
        cut(&mut all[0], &query, 2);
        cut(&mut all[1], &query, 0);
        assert_eq!((ids(&all[0]), all[0].next.as_deref()), (vec!["A", "B"], Some("B")));
        assert_eq!((ids(&all[1]), all[1].next.as_deref()), (vec![], Some("0")));
    }
}
