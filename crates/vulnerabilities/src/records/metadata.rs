//! What is known of vulnerabilities, page by page, for anyone.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use bowline_contract::v2::advisory as v2;
use bowline_contract::v2::advisory::rpc::security_advisory_service::ListVulnerabilityMetadata;
use bowline_core::{Error, Result};
use bowline_osv::{Facts, Link, Rated};
use bowline_pipeline::{Direction, Handlers, Open, Page, PageRequest, Paged, SortKey};
use bowline_resources::list::Listing;
use bowline_store::{ReadTx, Row, Value};
use prost::Message as _;

use super::statements::{IN_A_LIST, among};
use super::visible::{Generations, VISIBLE};

pub(super) fn register(handlers: Handlers, totals: &Arc<Totals>) -> Handlers {
    let totals = totals.clone();
    handlers.open_read::<ListVulnerabilityMetadata>(move |tx, call| {
        let totals = totals.clone();
        Box::pin(async move { list(tx, call, &totals).await })
    })
}

/// Maximum number of different ids of one call.
const MAX_IDS: usize = 1000;
/// Records that one statement reads.
const BODIES_AT_ONCE: usize = 32;
/// Ids that are looked for at once where few are missing to a page.
const FEWEST_AT_ONCE: usize = 64;
/// Bytes of records after which a page ends early.
const MAX_BYTES: usize = 16 << 20;

/// The parameters of v1 and v2.
pub(super) struct VersionQuery {
    pub(super) id: String,
    pub(super) ids: Vec<String>,
    pub(super) page: PageRequest,
}

/// Renders the facts of one vulnerability as a message, under the requested id.
pub(super) type Describe<T> = fn(&str, Facts<'_>) -> T;

async fn list(
    tx: &mut ReadTx,
    call: &Open<v2::ListVulnerabilityMetadataRequest>,
    totals: &Totals,
) -> Result<v2::ListVulnerabilityMetadataResponse> {
    let request = call.request().clone();
    let page = PageRequest {
        page_size: request.page_size,
        page_token: request.page_token.clone(),
        order_by: request.order_by.clone(),
        skip: request.skip,
        filter: v2::ListVulnerabilityMetadataRequest {
            id: request.id.clone(),
            ids: request.ids.clone(),
            ..Default::default()
        }
        .encode_to_vec(),
    };
    let listing = page_of(tx, call, VersionQuery { id: request.id, ids: request.ids, page }, totals, to_v2).await?;
    Ok(v2::ListVulnerabilityMetadataResponse {
        vulnerability_metadata: listing.items,
        next_page_token: listing.next_page_token,
        total_count: Some(listing.total_count),
        skipped: listing.skipped,
    })
}

/// V2 does not know the words of Ubuntu.
fn to_v2(id: &str, facts: Facts<'_>) -> v2::VulnerabilityMetadata {
    let severity = |rated: &Rated<'_>| {
        let kind = v2::severity::Type::from_str_name(&format!("TYPE_{}", rated.kind))?;
        Some(v2::Severity { r#type: kind.into(), score: rated.score.to_string() })
    };
    let reference = |link: Link<'_>| {
        let kind = v2::reference::Type::from_str_name(&format!("TYPE_{}", link.kind)).unwrap_or_default();
        v2::Reference { r#type: kind.into(), url: link.url.into_owned() }
    };
    v2::VulnerabilityMetadata {
        id: id.to_owned(),
        severities: facts.severities().into_iter().filter_map(severity).collect(),
        references: facts.references.into_iter().map(reference).collect(),
        summary: facts.summary.into_owned(),
        details: facts.details.into_owned(),
    }
}

/// One page, by id.
pub(super) async fn page_of<T: Send>(
    tx: &mut ReadTx,
    call: &impl Paged,
    asked: VersionQuery,
    totals: &Totals,
    describe: Describe<T>,
) -> Result<Listing<T>> {
    let page = Page::validate(call, &asked.page, &[&["id"]], (0, Direction::Ascending))?;
    let mut ids: BTreeSet<&str> = asked.ids.iter().map(String::as_str).collect();
    if !asked.id.is_empty() {
        ids.insert(&asked.id);
    }
    if ids.len() > MAX_IDS {
        return Err(Error::invalid_field("ids", format!("has {} different ids; {MAX_IDS} are the most", ids.len())));
    }
    // The first page counts, and its tokens carry what it counted.
    let counted = page.cursor.as_ref().and_then(|cursor| match cursor.key {
        Some(SortKey::Int(total)) => Some(total),
        _ => None,
    });
    let (mut records, total) = if ids.is_empty() {
        let total = match counted {
            Some(total) => total,
            None => totals.count(tx).await?,
        };
        let listed = ids_of_page(tx, &page).await?;
        (of_ids(tx, &listed.iter().map(String::as_str).collect()).await?, total)
    } else {
        let ids = behind(&page, ids);
        let (found, total) = if let Some(total) = counted {
            (enough(tx, &page, ids).await?, total)
        } else {
            let found = of_ids(tx, &ids).await?;
            let total = found.len() as i64;
            (found, total)
        };
        (skipped(&page, found), total)
    };
    if page.direction == Direction::Descending {
        records.reverse();
    }
    let wanted = records.len();
    records.truncate(page.size);
    let items = described(tx, &records, describe).await?;
    let last = items.len().checked_sub(1).filter(|last| last + 1 < wanted);
    let next_page_token =
        last.map(|last| page.next_token(call, Some(SortKey::Int(total)), records[last].0.clone())).unwrap_or_default();
    let skipped = i32::try_from(page.skipped()).unwrap_or(i32::MAX);
    Ok(Listing { items, next_page_token, total_count: total, skipped })
}

/// The ids that come after the page before.
fn behind<'a>(page: &Page, ids: BTreeSet<&'a str>) -> BTreeSet<&'a str> {
    let Some(cursor) = &page.cursor else { return ids };
    let last = cursor.uid.as_str();
    let ascending = page.direction == Direction::Ascending;
    ids.into_iter().filter(|id| if ascending { *id > last } else { *id < last }).collect()
}

/// The records of as many of the ids as the page needs, and one more if there are more; by id.
async fn enough(tx: &mut ReadTx, page: &Page, ids: BTreeSet<&str>) -> Result<Vec<(String, i64)>> {
    let wanted = usize::try_from(page.skip).unwrap_or(usize::MAX).saturating_add(page.size + 1);
    let mut left: Vec<&str> = ids.into_iter().collect();
    if page.direction == Direction::Ascending {
        left.reverse();
    }
    let mut found = Vec::new();
    while !left.is_empty() && found.len() < wanted {
        let next = (wanted - found.len()).clamp(FEWEST_AT_ONCE, IN_A_LIST).min(left.len());
        let part: BTreeSet<&str> = left.drain(left.len() - next..).collect();
        found.extend(of_ids(tx, &part).await?);
    }
    found.sort_unstable();
    Ok(found)
}

/// Without those that the page leaves out at its beginning.
fn skipped(page: &Page, mut records: Vec<(String, i64)>) -> Vec<(String, i64)> {
    let skip = usize::try_from(page.skip).unwrap_or(usize::MAX).min(records.len());
    match page.direction {
        Direction::Ascending => drop(records.drain(..skip)),
        Direction::Descending => records.truncate(records.len() - skip),
    }
    records
}

/// The ids of a page of everything, and one more.
async fn ids_of_page(tx: &mut ReadTx, page: &Page) -> Result<Vec<String>> {
    let (comparison, order) = match page.direction {
        Direction::Ascending => (">", "ASC"),
        Direction::Descending => ("<", "DESC"),
    };
    let mut params = vec![Value::Int(page.size as i64 + 1), Value::Int(page.skip)];
    let mut after = String::new();
    if let Some(cursor) = &page.cursor {
        after = format!("WHERE r.id {comparison} $1");
        params.insert(0, Value::from(&cursor.uid));
    }
    let (limit, offset) = (params.len() - 1, params.len());
    let sql = format!(
        "SELECT DISTINCT r.id FROM records r {VISIBLE} {after} ORDER BY r.id {order} LIMIT ${limit} OFFSET ${offset}"
    );
    tx.query(&sql, &params, |row| Ok(row.text(0)?)).await
}

/// The newest record of each id, by id; of an id that no record has, the newest that names it as an alias.
async fn of_ids(tx: &mut ReadTx, ids: &BTreeSet<&str>) -> Result<Vec<(String, i64)>> {
    let columns = "r.n, r.modified, r.source, r.since, r.until";
    let by_id = format!("SELECT r.id, {columns} FROM records r");
    let mut found = newest(tx, &by_id, "r.id", ids).await?;
    let missing: BTreeSet<&str> = ids.iter().copied().filter(|id| !found.contains_key(*id)).collect();
    if !missing.is_empty() {
        let by_alias = format!("SELECT a.alias, {columns} FROM record_aliases a JOIN records r ON r.n = a.record");
        found.extend(newest(tx, &by_alias, "a.alias", &missing).await?);
    }
    Ok(found.into_iter().map(|(id, (_, n))| (id, n)).collect())
}

async fn newest(
    tx: &mut ReadTx,
    select: &str,
    column: &str,
    ids: &BTreeSet<&str>,
) -> Result<BTreeMap<String, ((i64, i64), i64)>> {
    let generations = Generations::read(tx).await?;
    let ids: Vec<&str> = ids.iter().copied().collect();
    let mut newest: BTreeMap<String, ((i64, i64), i64)> = BTreeMap::new();
    for part in ids.chunks(IN_A_LIST) {
        let (placeholders, values) = among(1, part.iter().copied().map(Value::Text));
        let sql = format!("{select} WHERE {column} IN {placeholders}");
        let row = |row: &Row<'_>| {
            let age = (row.int(2)?, -row.int(3)?);
            Ok::<_, Error>(if generations.show(row, 3)? { Some((row.text(0)?, row.int(1)?, age)) } else { None })
        };
        for (id, n, age) in tx.query(&sql, &values, row).await?.into_iter().flatten() {
            if newest.get(&id).is_none_or(|(known, _)| age > *known) {
                newest.insert(id, (age, n));
            }
        }
    }
    Ok(newest)
}

/// Describes records in their order: all of them, unless they are very large.
async fn described<T: Send>(tx: &mut ReadTx, records: &[(String, i64)], describe: Describe<T>) -> Result<Vec<T>> {
    let (mut all, mut bytes) = (Vec::new(), 0);
    for part in records.chunks(BODIES_AT_ONCE) {
        if bytes > MAX_BYTES {
            break;
        }
        let mut described: Vec<Option<T>> = part.iter().map(|_| None).collect();
        let (placeholders, values) = among(1, part.iter().map(|(_, n)| Value::Int(*n)));
        let sql = format!("SELECT record, body FROM record_bodies WHERE record IN {placeholders}");
        let read = |row: &Row<'_>| -> Result<()> {
            let record = row.int(0)?;
            // Several of the ids may be names of one record.
            for (index, (id, _)) in part.iter().enumerate().filter(|(_, (_, n))| *n == record) {
                described[index] = Some(row.with_bytes(1, |body| -> Result<T> {
                    bytes += body.len();
                    Ok(describe(id, Facts::read(body).map_err(Error::internal)?))
                })??);
            }
            Ok(())
        };
        tx.query(&sql, &values, read).await?;
        for (described, (_, n)) in described.into_iter().zip(part) {
            all.push(described.ok_or_else(|| Error::internal(format!("record {n} has no body")))?);
        }
    }
    Ok(all)
}

/// Number of different visible ids, cached with the sum of all generations, which every import that changes
/// something raises.
#[derive(Default)]
pub(super) struct Totals(Mutex<Option<(i64, i64)>>);

impl Totals {
    async fn count(&self, tx: &mut ReadTx) -> Result<i64> {
        let int = |row: &Row<'_>| row.int(0).map_err(Error::from);
        let sql = "SELECT CAST(COALESCE(sum(generation), 0) AS BIGINT) FROM record_sources";
        let generations = tx.query_opt(sql, &[], int).await?.unwrap_or_default();
        let cached = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, total)) = cached.filter(|(at, _)| *at == generations) {
            return Ok(total);
        }
        let sql = format!("SELECT count(DISTINCT r.id) FROM records r {VISIBLE}");
        let total = tx.query_opt(&sql, &[], int).await?.unwrap_or_default();
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some((generations, total));
        Ok(total)
    }
}
