//! Verifies a part of one organization's chain: what a call can do in one snapshot.

use bowline_core::{Error, Result};
use bowline_store::{ReadTx, Row, Value};

use super::chain::{Hash, ORIGIN, stored};
use super::verify::{BATCH, ChainHead, ROWS, Stored, read};

/// Maximum bytes of the snapshots that one part reads.
const SLICE_BYTES: i64 = 8 << 20;

/// The result of verifying one part of a chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifiedSlice {
    /// Number of the last row that was verified; before the first row of the part if there was none.
    pub last: i64,
    /// Hash of that row.
    pub hash: Hash,
    /// Number of the newest row of the chain.
    pub newest: i64,
    /// Snapshots that were erased; their hashes stand.
    pub erased: i64,
    /// The first thing that is wrong, and with which row.
    pub problem: Option<String>,
    /// Whether nothing is left to verify.
    pub is_end: bool,
}

/// Verifies the next rows of an organization after the number `after`, whose stored hash is taken as it is, and up to
/// `last`. Pruned rows are skipped.
///
/// # Errors
/// The database cannot be read. A defect of the rows is not an error; it is reported as a problem.
pub async fn verify_slice(tx: &mut ReadTx, organization: &str, after: i64, last: i64) -> Result<VerifiedSlice> {
    let Some(ends) = ends(tx, organization).await? else {
        return Ok(verified((after, ORIGIN), 0));
    };
    let mut head = match beginning(tx, organization, &ends, after).await? {
        Ok(head) => head,
        Err(problem) => return Ok(VerifiedSlice { problem: Some(problem), ..verified((after, ORIGIN), ends.newest) }),
    };
    let (end, is_end) = slice_end(tx, organization, head.0, last).await?;
    let sql = format!(
        "{ROWS} WHERE seq IS NOT NULL AND org = $1 AND org_seq > $2 AND org_seq <= $3 ORDER BY org_seq LIMIT $4"
    );
    let params = [Value::from(organization), Value::Int(head.0), Value::Int(end), Value::Int(BATCH)];
    let rows = tx.query(&sql, &params, read).await?;
    let mut erased = 0;
    for row in &rows {
        match take(row, head) {
            Ok((next, of_row)) => (head, erased) = (next, erased + of_row),
            Err(problem) => return Ok(VerifiedSlice { erased, problem: Some(problem), ..verified(head, ends.newest) }),
        }
    }
    let problem = if is_end { ends.problem(head, last) } else { None };
    Ok(VerifiedSlice { erased, problem, is_end, ..verified(head, ends.newest) })
}

/// The last number that one part reads, so that its snapshots have [`SLICE_BYTES`] at most, and whether no row follows.
async fn slice_end(tx: &mut ReadTx, organization: &str, after: i64, last: i64) -> Result<(i64, bool)> {
    let sql = "SELECT org_seq, CAST(coalesce(length(before_image), 0) + coalesce(length(after_image), 0) AS BIGINT)
               FROM audit WHERE seq IS NOT NULL AND org = $1 AND org_seq > $2 AND org_seq <= $3
               ORDER BY org_seq LIMIT $4";
    let params = [Value::from(organization), Value::Int(after), Value::Int(last), Value::Int(BATCH)];
    let read = |row: &Row<'_>| Ok::<_, Error>((row.int(0)?, row.int(1)?));
    let sizes: Vec<(i64, i64)> = tx.query(sql, &params, read).await?;
    let mut bytes = 0;
    // A row that is larger is read alone.
    let fitting = sizes.iter().enumerate().take_while(|(index, (_, size))| {
        bytes += size;
        *index == 0 || bytes <= SLICE_BYTES
    });
    let count = fitting.count();
    let end = count.checked_sub(1).and_then(|at| sizes.get(at)).map_or(last, |(number, _)| *number);
    let is_end = count == sizes.len() && sizes.len() < BATCH as usize;
    Ok((if is_end { last } else { end }, is_end))
}

fn verified((last, hash): ChainHead, newest: i64) -> VerifiedSlice {
    VerifiedSlice { last, hash, newest, erased: 0, problem: None, is_end: true }
}

fn take(row: &Stored, head: ChainHead) -> std::result::Result<(ChainHead, i64), String> {
    row.follow(head).map_err(|what| format!("entry {}: {what}", row.org_seq.unwrap_or(0)))
}

/// Where a chain begins and ends.
struct Ends {
    newest: i64,
    hash: Vec<u8>,
    pruned: i64,
    pruned_hash: Option<Vec<u8>>,
}

impl Ends {
    /// What is wrong where the rows end here.
    fn problem(&self, (last, hash): ChainHead, wanted: i64) -> Option<String> {
        if last < wanted.min(self.newest) {
            return Some(format!("the chain ends at entry {last}, and should end at entry {}", self.newest));
        }
        let differs = last == self.newest && hash.as_slice() != self.hash.as_slice();
        differs.then(|| format!("entry {last}: its hash is not the one that the chain ends with"))
    }
}

async fn ends(tx: &mut ReadTx, organization: &str) -> Result<Option<Ends>> {
    let sql = "SELECT seq, hash, pruned_seq, pruned_hash FROM audit_chains WHERE org = $1";
    let read = |row: &Row<'_>| {
        Ok::<_, Error>(Ends {
            newest: row.int(0)?,
            hash: row.bytes(1)?,
            pruned: row.int(2)?,
            pruned_hash: row.opt_bytes(3)?,
        })
    };
    tx.query_opt(sql, &[Value::from(organization)], read).await
}

/// The row that the part follows: the one of that number, or the last that was pruned. Or what is wrong with it.
async fn beginning(
    tx: &mut ReadTx,
    organization: &str,
    ends: &Ends,
    after: i64,
) -> Result<std::result::Result<ChainHead, String>> {
    if after <= ends.pruned {
        return Ok(match &ends.pruned_hash {
            None if ends.pruned == 0 => Ok((0, ORIGIN)),
            None => Err("the checkpoint of the chain holds no hash".into()),
            Some(hash) => Ok((ends.pruned, stored(hash, "the checkpoint of a chain")?)),
        });
    }
    let sql = "SELECT org_hash FROM audit WHERE seq IS NOT NULL AND org = $1 AND org_seq = $2";
    let params = [Value::from(organization), Value::Int(after)];
    let hash = tx.query_opt(sql, &params, |row| row.opt_bytes(0).map_err(Error::from)).await?.flatten();
    Ok(match hash {
        Some(hash) => Ok((after, stored(&hash, "an entry's hash")?)),
        None => Err(format!("entry {after} is missing")),
    })
}
