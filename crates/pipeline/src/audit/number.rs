//! Numbers and chains rows that were committed. The caller holds a lease, and one transaction takes one batch.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::LazyLock;

use bowline_core::{Error, Micros, Result};
use bowline_store::{Engine, ReadTx, Row, Value, WriteTx};

use super::SERVER;
use super::chain::{Hash, Link, ORIGIN, organization_hash, server_hash, snapshot_hash, stored};

/// Maximum number of rows that one transaction numbers: few enough to hold no writer up.
pub const NUMBERED_AT_ONCE: u64 = 250;

/// Rows of one statement on PostgreSQL, where each statement costs a round trip.
const CHUNK: usize = 50;

const HEAD: &str = "SELECT seq, hash FROM audit_chains WHERE org = $1";

/// Row ids grow with the commits on SQLite, which knows one writer at a time.
const LAST_ID: &str = "SELECT id FROM audit WHERE seq IS NOT NULL AND seq = $1";

/// A snapshot whose hash is missing was written before there were hashes.
const COLUMNS: &str = "
SELECT a.id, a.at, a.org, a.actor, a.method, a.request_id, a.kind, a.resource,
  a.before_type, a.before_hash, CASE WHEN a.before_hash IS NULL THEN a.before_image END,
  a.after_type, a.after_hash, CASE WHEN a.after_hash IS NULL THEN a.after_image END, c.seq, c.hash
FROM audit a LEFT JOIN audit_chains c ON c.org = a.org";

const OF_SQLITE: &str = "WHERE a.seq IS NULL AND a.id > $1 ORDER BY a.id LIMIT $2";

/// What is below the oldest running transaction is complete: nothing can still be committed among it. Rows of
/// transactions that this server never had came with a dump of another one; they are complete too, and go first.
const OF_POSTGRES: &str = "
JOIN (
  (SELECT 0 AS part, txid, id FROM audit
   WHERE seq IS NULL AND id > $1 AND txid >= CAST(CAST(pg_snapshot_xmax(pg_current_snapshot()) AS TEXT) AS BIGINT)
   ORDER BY txid, id LIMIT $2)
  UNION ALL
  (SELECT 1 AS part, txid, id FROM audit
   WHERE seq IS NULL AND id > $1 AND txid < CAST(CAST(pg_snapshot_xmin(pg_current_snapshot()) AS TEXT) AS BIGINT)
   ORDER BY txid, id LIMIT $2)) AS ready ON ready.id = a.id
ORDER BY ready.part, ready.txid, ready.id LIMIT $2";

const UPDATE_ONE: &str = "
UPDATE audit SET seq = $2, org_seq = $3, before_hash = $4, after_hash = $5, org_hash = $6, hash = $7 WHERE id = $1";

const PUT_HEAD: &str = "
INSERT INTO audit_chains (org, seq, hash, pruned_seq, pruned_rows) VALUES ($1, $2, $3, 0, 0)
ON CONFLICT (org) DO UPDATE SET seq = excluded.seq, hash = excluded.hash";

const ADD_DAY: &str = "
INSERT INTO audit_days (org, day, kind, entries) VALUES ($1, $2, $3, $4)
ON CONFLICT (org, day, kind) DO UPDATE SET entries = audit_days.entries + excluded.entries";

/// A day, in microseconds.
const DAY: Micros = 24 * 3600 * 1_000_000;

/// A row without a number.
struct Waiting {
    id: i64,
    at: Micros,
    /// Organization, actor, method, request id, kind, resource.
    texts: [String; 6],
    before: (Option<String>, Option<Vec<u8>>),
    after: (Option<String>, Option<Vec<u8>>),
    /// Where the chain of the organization ended before this batch.
    head: Option<(i64, Vec<u8>)>,
}

/// The same with everything that numbering adds.
struct Numbered {
    id: i64,
    seq: i64,
    org_seq: i64,
    before_hash: Option<Vec<u8>>,
    after_hash: Option<Vec<u8>>,
    org_hash: Hash,
    hash: Hash,
}

/// Whether rows wait for their numbers: what a replica asks before it writes anything.
pub async fn rows_wait(tx: &mut ReadTx) -> Result<bool> {
    let last = numbered_to(tx).await?;
    let sql = "SELECT id FROM audit WHERE seq IS NULL AND id > $1 LIMIT 1";
    Ok(tx.query_opt(sql, &[Value::Int(last)], |row| row.int(0).map_err(Error::from)).await?.is_some())
}

/// Numbers and chains the next batch; gives how many rows that were.
pub async fn number_rows(tx: &mut WriteTx) -> Result<u64> {
    let (mut seq, mut hash) = head(tx).await?;
    let waiting = waiting(tx, seq).await?;
    let mut heads: BTreeMap<String, (i64, Hash)> = BTreeMap::new();
    let mut days: BTreeMap<(String, i64, String), i64> = BTreeMap::new();
    let mut numbered = Vec::with_capacity(waiting.len());
    for row in waiting {
        let known = match (heads.get(&row.texts[0]), &row.head) {
            (Some(known), _) => *known,
            (None, Some((seq, hash))) => (*seq, stored(hash, "the head of a chain")?),
            (None, None) => (0, ORIGIN),
        };
        let (org_seq, org_hash) = row.chained(known);
        seq += 1;
        hash = server_hash(&hash, seq, &org_hash);
        let Waiting { id, at, texts: [org, .., kind, _], before, after, .. } = row;
        for chain in [&org, SERVER] {
            *days.entry((chain.to_owned(), at.div_euclid(DAY), kind.clone())).or_default() += 1;
        }
        heads.insert(org, (org_seq, org_hash));
        numbered.push(Numbered { id, seq, org_seq, before_hash: before.1, after_hash: after.1, org_hash, hash });
    }
    if numbered.is_empty() {
        return Ok(0);
    }
    save(tx, &numbered).await?;
    heads.insert(SERVER.into(), (seq, hash));
    for (org, (seq, hash)) in &heads {
        tx.execute(PUT_HEAD, &[Value::from(org), Value::Int(*seq), Value::Bytes(hash)]).await?;
    }
    for ((org, day, kind), entries) in &days {
        tx.execute(ADD_DAY, &[Value::from(org), Value::Int(*day), Value::from(kind), Value::Int(*entries)]).await?;
    }
    Ok(numbered.len() as u64)
}

impl Waiting {
    fn read(row: &Row<'_>) -> Result<Waiting> {
        let texts = [2, 3, 4, 5, 6, 7].map(|column| row.text(column));
        let [org, actor, method, request_id, kind, resource] = texts;
        let hash = |at| -> Result<Option<Vec<u8>>> {
            let hashed = row.opt_bytes(at)?;
            Ok(match hashed {
                Some(hash) => Some(hash),
                None => row.opt_bytes(at + 1)?.map(|snapshot| snapshot_hash(&snapshot).to_vec()),
            })
        };
        let head = match (row.opt_int(14)?, row.opt_bytes(15)?) {
            (Some(seq), Some(hash)) => Some((seq, hash)),
            _ => None,
        };
        Ok(Waiting {
            id: row.int(0)?,
            at: row.int(1)?,
            texts: [org?, actor?, method?, request_id?, kind?, resource?],
            before: (row.opt_text(8)?, hash(9)?),
            after: (row.opt_text(11)?, hash(12)?),
            head,
        })
    }

    /// Its number and hash in the chain of its organization, which ended there.
    fn chained(&self, (seq, hash): (i64, Hash)) -> (i64, Hash) {
        let [org, actor, method, request_id, kind, resource] = &self.texts;
        let link = Link {
            org_seq: seq + 1,
            at: self.at,
            org,
            actor,
            method,
            request_id,
            kind,
            resource,
            before_type: self.before.0.as_deref(),
            before_hash: self.before.1.as_deref(),
            after_type: self.after.0.as_deref(),
            after_hash: self.after.1.as_deref(),
        };
        (link.org_seq, organization_hash(&hash, &link))
    }
}

impl Numbered {
    fn params(&self) -> [Value<'_>; 7] {
        [
            Value::Int(self.id),
            Value::Int(self.seq),
            Value::Int(self.org_seq),
            Value::OptBytes(self.before_hash.as_deref()),
            Value::OptBytes(self.after_hash.as_deref()),
            Value::Bytes(&self.org_hash),
            Value::Bytes(&self.hash),
        ]
    }
}

async fn head(tx: &mut ReadTx) -> Result<(i64, Hash)> {
    let read = |row: &Row<'_>| Ok::<_, Error>((row.int(0)?, row.bytes(1)?));
    match tx.query_opt(HEAD, &[Value::from(SERVER)], read).await? {
        None => Ok((0, ORIGIN)),
        Some((seq, hash)) => Ok((seq, stored(&hash, "the head of the chain")?)),
    }
}

/// An id up to which every row has its number: the only bound on SQLite, where nothing indexes the others.
pub(super) async fn numbered_to(tx: &mut ReadTx) -> Result<i64> {
    let (seq, _) = head(tx).await?;
    last_id(tx, seq).await
}

/// The id of the row with this number: rows up to it need no look on SQLite.
async fn last_id(tx: &mut ReadTx, seq: i64) -> Result<i64> {
    if tx.engine() == Engine::Postgres {
        return Ok(0);
    }
    let found = tx.query_opt(LAST_ID, &[Value::Int(seq)], |row| row.int(0).map_err(Error::from)).await?;
    Ok(found.unwrap_or(0))
}

async fn waiting(tx: &mut ReadTx, seq: i64) -> Result<Vec<Waiting>> {
    let last = last_id(tx, seq).await?;
    let condition = match tx.engine() {
        Engine::Sqlite => OF_SQLITE,
        Engine::Postgres => OF_POSTGRES,
    };
    let sql = format!("{COLUMNS} {condition}");
    tx.query(&sql, &[Value::Int(last), Value::Int(NUMBERED_AT_ONCE as i64)], Waiting::read).await
}

async fn save(tx: &mut WriteTx, rows: &[Numbered]) -> Result<()> {
    let mut rest = rows;
    while tx.engine() == Engine::Postgres && rest.len() >= CHUNK {
        let (chunk, after) = rest.split_at(CHUNK);
        let params: Vec<Value<'_>> = chunk.iter().flat_map(Numbered::params).collect();
        tx.execute(&UPDATE_CHUNK, &params).await?;
        rest = after;
    }
    for row in rest {
        tx.execute(UPDATE_ONE, &row.params()).await?;
    }
    Ok(())
}

static UPDATE_CHUNK: LazyLock<String> = LazyLock::new(|| {
    let mut rows = String::new();
    for n in (1..=CHUNK * 7).step_by(7) {
        let comma = if n == 1 { "" } else { "," };
        let [i, s, o, b, a, c, h] = std::array::from_fn(|k| n + k);
        let _ = write!(
            rows,
            "{comma}(CAST(${i} AS BIGINT),CAST(${s} AS BIGINT),CAST(${o} AS BIGINT),\
             CAST(${b} AS BYTEA),CAST(${a} AS BYTEA),CAST(${c} AS BYTEA),CAST(${h} AS BYTEA))"
        );
    }
    format!(
        "UPDATE audit SET seq = v.column2, org_seq = v.column3, before_hash = v.column4, after_hash = v.column5,
         org_hash = v.column6, hash = v.column7 FROM (VALUES {rows}) AS v WHERE audit.id = v.column1"
    )
});
