//! Taking a batch of an import.

use std::collections::{BTreeMap, BTreeSet};

use bowline_contract::bowline::feeds::v1 as feeds;
use bowline_contract::bowline::feeds::v1::rpc::record_imports::StageRecords;
use bowline_core::{Error, FieldViolation, Result};
use bowline_osv::{Affects, Parsed};
use bowline_pipeline::{Authorized, Changed, Handlers};
use bowline_store::{ReadTx, Row, Value, WriteTx};

use super::import_row::{self, Counts, ImportRow};
use super::plan::{Known, Plan, PutOutcome, Stored};
use super::statements::{IN_A_LIST, among, delete_records, insert, set_until};
use super::{NEVER, severities};

pub(super) fn register(handlers: Handlers) -> Handlers {
    handlers
        .prepared_write::<StageRecords, _>(
            |request| Ok(Batch::read(request)),
            |tx, call, batch| Box::pin(stage(tx, call, batch)),
        )
        .validate::<StageRecords>(validate)
}

fn validate(request: &feeds::StageRecordsRequest) -> Vec<FieldViolation> {
    let wrong = request.removed_ids.iter().position(|id| !bowline_osv::is_id(id));
    let violation = |index| FieldViolation {
        field: format!("removedIds[{index}]"),
        description: "is no identifier of a record".into(),
    };
    let mut violations: Vec<FieldViolation> = wrong.map(violation).into_iter().collect();
    if request.records.len() > MAX_RECORDS {
        let description = format!("has {} elements; {MAX_RECORDS} are the most", request.records.len());
        violations.push(FieldViolation { field: "records".into(), description });
    }
    violations
}

/// Maximum number of records of a batch.
const MAX_RECORDS: usize = 1000;

/// A batch as it was read, before the transaction that takes it: that one holds the writer.
struct Batch {
    uid: String,
    attempt: Option<i64>,
    replace: bool,
    /// The readable records, each id once, with their positions in the request.
    records: Vec<(usize, Parsed)>,
    removed: BTreeSet<String>,
    /// Exact duplicates within the batch.
    unchanged: i32,
    refused: Vec<feeds::RefusedRecord>,
}

impl Batch {
    fn read(request: feeds::StageRecordsRequest) -> Batch {
        let mut batch = Batch {
            uid: request.uid,
            attempt: request.attempt,
            replace: request.replace,
            records: Vec::new(),
            removed: request.removed_ids.into_iter().collect(),
            unchanged: 0,
            refused: Vec::new(),
        };
        let mut first: BTreeMap<String, [u8; 32]> = BTreeMap::new();
        for (index, bytes) in request.records.iter().enumerate() {
            let parsed = match bowline_osv::parse(bytes) {
                Ok(parsed) => parsed,
                Err(reason) => {
                    batch.refused.push(feeds::RefusedRecord { index: index as i32, id: String::new(), reason });
                    continue;
                }
            };
            match first.get(&parsed.record.id) {
                None => {
                    first.insert(parsed.record.id.clone(), parsed.digest);
                    batch.records.push((index, parsed));
                }
                Some(digest) if *digest == parsed.digest => batch.unchanged += 1,
                Some(_) => batch.refused.push(conflict(index, &parsed.record.id)),
            }
        }
        batch
    }

    fn ids(&self) -> impl Iterator<Item = &str> {
        self.records.iter().map(|(_, parsed)| parsed.record.id.as_str()).chain(self.removed.iter().map(String::as_str))
    }
}

async fn stage(tx: &mut WriteTx, call: &Authorized<()>, batch: &Batch) -> Result<Changed<feeds::StageRecordsResponse>> {
    let import = import_row::require_open(tx, &batch.uid, batch.attempt).await?;
    if !import.full && !batch.removed.is_empty() {
        return Err(Error::invalid_field("removedIds", "must be empty: only a full import removes records"));
    }
    if let Some((_, parsed)) = batch.records.iter().find(|(_, parsed)| batch.removed.contains(&parsed.record.id)) {
        return Err(Error::invalid_field("removedIds", format!("{} is in `records` as well", parsed.record.id)));
    }
    let known = known(tx, &import, &batch.ids().collect::<Vec<_>>()).await?;
    let nothing = Known::default();
    let known_of = |id: &str| known.get(id).unwrap_or(&nothing);

    let mut plan = Plan::default();
    let mut written = Vec::new();
    let mut response = feeds::StageRecordsResponse {
        unchanged: batch.unchanged,
        refused: batch.refused.clone(),
        ..feeds::StageRecordsResponse::default()
    };
    for (index, parsed) in &batch.records {
        match plan.put(known_of(&parsed.record.id), &parsed.digest, &import.licence, batch.replace) {
            PutOutcome::New => written.push(parsed),
            PutOutcome::Unchanged => response.unchanged += 1,
            PutOutcome::Conflict => response.refused.push(conflict(*index, &parsed.record.id)),
        }
    }
    response.staged = written.len() as i32;
    response.removed = batch.removed.iter().map(|id| i32::from(plan.remove(known_of(id)))).sum();
    response.refused.sort_by_key(|refused| refused.index);
    apply(tx, &import, &plan).await?;
    write(tx, &import, &written).await?;
    update_counts(tx, &import, plan.counts, call.now()).await?;
    Ok(Changed::nothing(response))
}

fn conflict(index: usize, id: &str) -> feeds::RefusedRecord {
    let reason = "the import has another content of this id already; the first one stays".into();
    feeds::RefusedRecord { index: index as i32, id: id.into(), reason }
}

/// What is stored of ids, as the import sees it.
async fn known(tx: &mut ReadTx, import: &ImportRow, ids: &[&str]) -> Result<BTreeMap<String, Known>> {
    let mut known: BTreeMap<String, Known> = BTreeMap::new();
    for part in ids.chunks(IN_A_LIST) {
        let (placeholders, values) = among(3, part.iter().copied().map(Value::Text));
        // Rows that ended in earlier generations do not matter: `import.generation` is the one being written.
        let sql = format!(
            "SELECT id, n, since, until, digest, licence FROM records
             WHERE source = $1 AND until >= $2 AND id IN {placeholders}"
        );
        let before = [Value::Int(import.source_number), Value::Int(import.generation)];
        let params: Vec<Value<'_>> = before.into_iter().chain(values).collect();
        let read = |row: &Row<'_>| -> Result<_> {
            let stored = Stored { n: row.int(1)?, digest: row.bytes(4)?, licence: row.text(5)? };
            Ok((row.text(0)?, row.int(2)?, row.int(3)?, stored))
        };
        for (id, since, until, stored) in tx.query(&sql, &params, read).await? {
            let entry = known.entry(id).or_default();
            if since == import.generation {
                entry.staged = Some(stored);
            } else {
                entry.visible = Some(stored);
                entry.ends = until == import.generation;
            }
        }
    }
    Ok(known)
}

async fn apply(tx: &mut WriteTx, import: &ImportRow, plan: &Plan) -> Result<()> {
    set_until(tx, import.generation, &plan.end).await?;
    set_until(tx, NEVER, &plan.revive).await?;
    delete_records(tx, &plan.drop).await
}

/// Writes records as rows of the import's generation.
async fn write(tx: &mut WriteTx, import: &ImportRow, records: &[&Parsed]) -> Result<()> {
    if records.is_empty() {
        return Ok(());
    }
    let last =
        tx.query_opt("SELECT COALESCE(max(n), 0) FROM records", &[], |row| row.int(0).map_err(Error::from)).await?;
    let first = last.unwrap_or_default() + 1;
    let severities: Vec<String> = records.iter().map(|parsed| severities::stored(&parsed.record)).collect();
    let (mut rows, mut bodies, mut aliases) = (Vec::new(), Vec::new(), Vec::new());
    let affects: Vec<(i64, &Parsed, Affects)> = (first..)
        .zip(records)
        .flat_map(|(n, parsed)| Affects::of(&parsed.record).into_iter().map(move |affects| (n, *parsed, affects)))
        .collect();
    for ((n, parsed), severities) in (first..).zip(records).zip(&severities) {
        rows.extend([
            Value::Int(n),
            Value::from(&parsed.record.id),
            Value::Int(import.source_number),
            Value::Int(import.generation),
            Value::Int(NEVER),
            Value::Int(parsed.record.modified),
            Value::Bytes(&parsed.digest),
            Value::from(&import.licence),
            Value::from(severities),
            Value::Int(parsed.record.published.unwrap_or(0)),
        ]);
        bodies.extend([Value::Int(n), Value::from(&parsed.canonical)]);
        let unique: BTreeSet<&String> =
            parsed.record.aliases.iter().filter(|alias| **alias != parsed.record.id).collect();
        aliases.extend(unique.into_iter().flat_map(|alias| [Value::from(alias), Value::Int(n)]));
    }
    let packages = affects.iter().flat_map(|(n, parsed, affects)| {
        [
            Value::from(affects.package.as_str()),
            Value::Int(*n),
            Value::Int(import.source_number),
            Value::Int(import.generation),
            Value::Int(NEVER),
            Value::Int(parsed.record.modified),
            Value::from(&parsed.record.id),
            Value::from(&affects.ranges),
        ]
    });
    let packages: Vec<Value<'_>> = packages.collect();
    let columns = "(n, id, source, since, until, modified, digest, licence, severities, published)";
    insert(tx, &format!("INSERT INTO records {columns}"), 10, &rows).await?;
    insert(tx, "INSERT INTO record_bodies (record, body)", 2, &bodies).await?;
    let columns = "(package, record, source, since, until, modified, id, ranges)";
    insert(tx, &format!("INSERT INTO record_affects {columns}"), 8, &packages).await?;
    insert(tx, "INSERT INTO record_aliases (alias, record)", 2, &aliases).await
}

async fn update_counts(tx: &mut WriteTx, import: &ImportRow, counts: Counts, now: i64) -> Result<()> {
    let sql =
        "UPDATE record_imports SET added = added + $1, changed = changed + $2, removed = removed + $3, touched_at = $4
               WHERE uid = $5";
    let params = [
        Value::Int(counts.added),
        Value::Int(counts.changed),
        Value::Int(counts.removed),
        Value::Int(now),
        Value::from(&import.uid),
    ];
    tx.execute(sql, &params).await?;
    Ok(())
}
