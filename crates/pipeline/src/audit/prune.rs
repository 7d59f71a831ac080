//! Takes old rows away from the beginning of the chains, which then begin at what the last of those rows said.

use std::collections::BTreeMap;

use bowline_core::{Error, Micros, Result};
use bowline_store::{Row, Value, WriteTx};

use super::SERVER;

/// Maximum number of rows that one transaction takes away.
pub const PRUNED_AT_ONCE: u64 = 500;

const ENDS: &str = "SELECT seq, pruned_seq FROM audit_chains WHERE org = $1";

/// The newest row stays, whatever its age: new ones are found behind it.
const OLD: &str = "
SELECT seq, at, org, org_seq, org_hash, hash FROM audit
WHERE seq IS NOT NULL AND seq > $1 AND seq < $2 ORDER BY seq LIMIT $3";

const DELETE: &str = "DELETE FROM audit WHERE seq IS NOT NULL AND seq > $1 AND seq <= $2";

const ADVANCE: &str = "
UPDATE audit_chains SET pruned_seq = $2, pruned_hash = $3, pruned_rows = pruned_rows + $4, pruned_at = $5
WHERE org = $1";

struct Old {
    seq: i64,
    at: Micros,
    org: String,
    org_seq: i64,
    org_hash: Vec<u8>,
    hash: Vec<u8>,
}

/// Where a chain begins after a batch: number, hash, rows that went.
type Beginning = (i64, Vec<u8>, i64);

/// Takes away the next batch of numbered rows from before `until`; gives how many those were.
pub async fn prune_rows(tx: &mut WriteTx, until: Micros, now: Micros) -> Result<u64> {
    let read = |row: &Row<'_>| Ok::<_, Error>((row.int(0)?, row.int(1)?));
    let Some((head, pruned)) = tx.query_opt(ENDS, &[Value::from(SERVER)], read).await? else {
        return Ok(0);
    };
    let read = |row: &Row<'_>| {
        Ok::<_, Error>(Old {
            seq: row.int(0)?,
            at: row.int(1)?,
            org: row.text(2)?,
            org_seq: row.int(3)?,
            org_hash: row.bytes(4)?,
            hash: row.bytes(5)?,
        })
    };
    let params = [Value::Int(pruned), Value::Int(head), Value::Int(PRUNED_AT_ONCE as i64)];
    let mut rows = tx.query(OLD, &params, read).await?;
    let old = rows.iter().take_while(|row| row.at < until).count();
    rows.truncate(old);
    let Some(last) = rows.last().map(|last| last.seq) else { return Ok(0) };
    tx.execute(DELETE, &[Value::Int(pruned), Value::Int(last)]).await?;
    for (org, (seq, hash, count)) in beginnings(rows) {
        let params = [Value::from(&org), Value::Int(seq), Value::Bytes(&hash), Value::Int(count), Value::Int(now)];
        tx.execute(ADVANCE, &params).await?;
    }
    Ok(old as u64)
}

fn beginnings(rows: Vec<Old>) -> BTreeMap<String, Beginning> {
    let mut beginnings: BTreeMap<String, Beginning> = BTreeMap::new();
    for row in rows {
        for (chain, seq, hash) in [(row.org, row.org_seq, row.org_hash), (SERVER.into(), row.seq, row.hash)] {
            let count = beginnings.get(&chain).map_or(0, |(_, _, count)| *count);
            beginnings.insert(chain, (seq, hash, count + 1));
        }
    }
    beginnings
}
