//! Recomputes everything that the audit log claims of itself: hashes of snapshots, chains, numbers without gaps.

use std::collections::BTreeMap;

use bowline_core::{Error, Micros, Result, hex};
use bowline_store::{Db, ReadTx, Row, Value};

use super::SERVER;
use super::chain::{Hash, Link, ORIGIN, organization_hash, server_hash, snapshot_hash};

/// Rows that are read at a time.
pub(super) const BATCH: i64 = 500;
/// How often verification starts again when rows are pruned meanwhile.
const STARTS: u32 = 5;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Findings {
    pub rows: i64,
    /// Number of the first row that should be there.
    pub first: i64,
    /// Number of the last row.
    pub last: i64,
    /// Hash of the last row.
    pub head: String,
    /// Images that were erased; their hashes stand.
    pub erased: i64,
    /// Rows that have no number yet.
    pub waiting: i64,
    /// The first thing that is wrong, and with which row.
    pub wrong: Option<String>,
}

/// Verifies the chain of all rows, or that of one organization. `progress` is called with the number of
/// verified rows.
///
/// # Errors
/// The database cannot be read. What is wrong with the rows is no error but a finding.
pub async fn verify(db: &Db, organization: Option<&str>, mut progress: impl FnMut(i64)) -> Result<Findings> {
    let mut last = None;
    for _ in 0..STARTS {
        let mut verification = begin(db, organization).await?;
        while verification.wrong.is_none() {
            let (at, is_done) = step(db, verification).await?;
            verification = at;
            progress(verification.rows);
            if is_done {
                break;
            }
        }
        let is_sound = verification.wrong.is_none();
        let pruned = verification.first - 1;
        let now = begin(db, organization).await?.first - 1;
        last = Some(verification);
        // What was pruned meanwhile is missed by a walk that had not come so far: then it says nothing.
        if is_sound || now == pruned {
            break;
        }
    }
    last.map(Verification::findings).ok_or_else(|| Error::internal("verification did not begin"))
}

/// Where a chain stands: the number and the hash of its last row so far.
pub(super) type ChainHead = (i64, Hash);

struct Verification {
    /// The organization, or the empty name of the chain of all rows.
    chain: String,
    /// The head of each chain; of organizations that were not met yet, where their rows begin.
    heads: BTreeMap<String, ChainHead>,
    first: i64,
    rows: i64,
    erased: i64,
    waiting: i64,
    wrong: Option<String>,
}

/// Name, number and hash of the last row, number and hash of the last pruned one.
struct Ends {
    org: String,
    head: (i64, Vec<u8>),
    pruned: (i64, Option<Vec<u8>>),
}

const ENDS: &str = "
SELECT org, seq, hash, pruned_seq, pruned_hash FROM audit_chains WHERE org > $1 OR ($1 = '' AND org = '')
ORDER BY org LIMIT 1000";

async fn ends(tx: &mut ReadTx, organization: &str) -> Result<Vec<Ends>> {
    let read = |row: &Row<'_>| {
        Ok::<_, Error>(Ends {
            org: row.text(0)?,
            head: (row.int(1)?, row.bytes(2)?),
            pruned: (row.int(3)?, row.opt_bytes(4)?),
        })
    };
    if organization != SERVER {
        let sql = "SELECT org, seq, hash, pruned_seq, pruned_hash FROM audit_chains WHERE org = $1";
        return tx.query(sql, &[Value::from(organization)], read).await;
    }
    let mut all: Vec<Ends> = Vec::new();
    loop {
        let after = all.last().map(|last| last.org.clone()).unwrap_or_default();
        let some = tx.query(ENDS, &[Value::from(&after)], read).await?;
        // The empty name comes first, and is read again if there is nothing else.
        let some: Vec<Ends> = some.into_iter().filter(|end| all.is_empty() || !end.org.is_empty()).collect();
        if some.is_empty() {
            return Ok(all);
        }
        all.extend(some);
    }
}

async fn begin(db: &Db, organization: Option<&str>) -> Result<Verification> {
    let chain = organization.unwrap_or(SERVER).to_owned();
    let name = chain.clone();
    let ends = db.read(move |tx| Box::pin(async move { ends(tx, &name).await })).await?;
    let mut verification =
        Verification { chain, heads: BTreeMap::new(), first: 1, rows: 0, erased: 0, waiting: 0, wrong: None };
    for end in ends {
        let hash = match end.pruned.1 {
            None if end.pruned.0 == 0 => Some(ORIGIN),
            None => None,
            Some(hash) => hash.as_slice().try_into().ok(),
        };
        if let Some(hash) = hash {
            verification.heads.insert(end.org, (end.pruned.0, hash));
        } else {
            verification.wrong = Some(format!("the checkpoint of {} holds no hash", named(&end.org)));
        }
    }
    verification.first = verification.head(&verification.chain).0 + 1;
    Ok(verification)
}

pub(super) const ROWS: &str = "
SELECT seq, at, org, org_seq, actor, method, request_id, kind, resource, before_type, before_hash, before_image,
  after_type, after_hash, after_image, org_hash, hash FROM audit";

pub(super) struct Stored {
    seq: i64,
    at: Micros,
    org: String,
    pub(super) org_seq: Option<i64>,
    /// Actor, method, request id, kind, resource.
    texts: [String; 5],
    before: Side,
    after: Side,
    org_hash: Option<Vec<u8>>,
    hash: Option<Vec<u8>>,
}

/// Type, hash and snapshot.
type Side = (Option<String>, Option<Vec<u8>>, Option<Vec<u8>>);

pub(super) fn read(row: &Row<'_>) -> Result<Stored> {
    let [actor, method, request_id, kind, resource] = [4, 5, 6, 7, 8].map(|column| row.text(column));
    let side = |at| Ok::<_, Error>((row.opt_text(at)?, row.opt_bytes(at + 1)?, row.opt_bytes(at + 2)?));
    Ok(Stored {
        seq: row.int(0)?,
        at: row.int(1)?,
        org: row.text(2)?,
        org_seq: row.opt_int(3)?,
        texts: [actor?, method?, request_id?, kind?, resource?],
        before: side(9)?,
        after: side(12)?,
        org_hash: row.opt_bytes(15)?,
        hash: row.opt_bytes(16)?,
    })
}

/// Takes the next batch; says whether it was the last, whose snapshot then shows the heads as well.
async fn step(db: &Db, mut verification: Verification) -> Result<(Verification, bool)> {
    db.read(move |tx| {
        Box::pin(async move {
            let at = verification.head(&verification.chain).0;
            let rows = if verification.chain == SERVER {
                let sql = format!("{ROWS} WHERE seq IS NOT NULL AND seq > $1 ORDER BY seq LIMIT $2");
                tx.query(&sql, &[Value::Int(at), Value::Int(BATCH)], read).await?
            } else {
                let sql =
                    format!("{ROWS} WHERE seq IS NOT NULL AND org = $3 AND org_seq > $1 ORDER BY org_seq LIMIT $2");
                let chain = verification.chain.clone();
                tx.query(&sql, &[Value::Int(at), Value::Int(BATCH), Value::from(&chain)], read).await?
            };
            let is_done = rows.len() < BATCH as usize;
            for row in &rows {
                if let Err(what) = verification.take(row) {
                    let number = if verification.chain == SERVER { Some(row.seq) } else { row.org_seq };
                    verification.wrong = Some(format!("row {}: {what}", number.unwrap_or(0)));
                    return Ok((verification, true));
                }
            }
            if is_done {
                verification.close(tx).await?;
            }
            Ok((verification, is_done))
        })
    })
    .await
}

impl Verification {
    fn head(&self, chain: &str) -> ChainHead {
        self.heads.get(chain).copied().unwrap_or((0, ORIGIN))
    }

    /// One row: its number, its snapshots, its hashes.
    fn take(&mut self, row: &Stored) -> std::result::Result<(), String> {
        let (last, last_hash) = self.head(SERVER);
        if self.chain == SERVER && row.seq != last + 1 {
            return Err(format!("row {} is missing before it", last + 1));
        }
        let ((org_seq, org_hash), erased) = row.follow(self.head(&row.org))?;
        self.erased += erased;
        self.heads.insert(row.org.clone(), (org_seq, org_hash));
        if self.chain == SERVER {
            let hash = server_hash(&last_hash, row.seq, &org_hash);
            if row.hash.as_deref() != Some(hash.as_slice()) {
                return Err("its hash in the chain of all rows is not what the rows make".into());
            }
            self.heads.insert(SERVER.into(), (row.seq, hash));
        }
        self.rows += 1;
        Ok(())
    }

    /// At the end: every chain stands where it says that it ends.
    async fn close(&mut self, tx: &mut ReadTx) -> Result<()> {
        let mut left = self.heads.clone();
        for end in ends(tx, &self.chain).await? {
            let (seq, hash) = left.remove(&end.org).unwrap_or((0, ORIGIN));
            if (seq, hash.as_slice()) != (end.head.0, end.head.1.as_slice()) {
                self.wrong = Some(format!(
                    "{} ends at row {seq} with {}, and should end at row {} with {}",
                    named(&end.org),
                    hex(&hash),
                    end.head.0,
                    hex(&end.head.1)
                ));
                return Ok(());
            }
        }
        if let Some((org, (seq, _))) = left.into_iter().find(|(_, (seq, _))| *seq > 0) {
            self.wrong = Some(format!("{} has rows up to {seq}, and its end is not known", named(&org)));
        }
        let sql = "SELECT count(*) FROM audit WHERE seq IS NULL AND ($1 = '' OR org = $1)";
        let chain = self.chain.clone();
        let waiting = tx.query_opt(sql, &[Value::from(&chain)], |row| row.int(0).map_err(Error::from)).await?;
        self.waiting = waiting.unwrap_or(0);
        Ok(())
    }

    fn findings(self) -> Findings {
        let (last, head) = self.head(&self.chain);
        Findings {
            rows: self.rows,
            first: self.first,
            last,
            head: hex(&head),
            erased: self.erased,
            waiting: self.waiting,
            wrong: self.wrong,
        }
    }
}

impl Stored {
    /// Verifies the row as the next one of its organization; returns its number and hash there, and how many of its
    /// snapshots were erased.
    pub(super) fn follow(&self, (last, hash): ChainHead) -> std::result::Result<(ChainHead, i64), String> {
        let org_seq = self.org_seq.ok_or("it has no number in its organization")?;
        if org_seq != last + 1 {
            return Err(format!(
                "it is number {org_seq} of organization {}, and number {} is missing before it",
                self.org,
                last + 1
            ));
        }
        let mut erased = 0;
        for (name, (_, hash, snapshot)) in [("before", &self.before), ("after", &self.after)] {
            match (hash, snapshot) {
                (Some(hash), Some(snapshot)) if snapshot_hash(snapshot).as_slice() == hash.as_slice() => {}
                (_, Some(_)) => return Err(format!("its snapshot \"{name}\" differs from what was written")),
                (Some(_), None) => erased += 1,
                (None, None) => {}
            }
        }
        let hash = organization_hash(&hash, &self.link(org_seq));
        if self.org_hash.as_deref() != Some(hash.as_slice()) {
            return Err("its hash in the chain of its organization is not what its columns make".into());
        }
        Ok(((org_seq, hash), erased))
    }

    fn link(&self, org_seq: i64) -> Link<'_> {
        let [actor, method, request_id, kind, resource] = &self.texts;
        Link {
            org_seq,
            at: self.at,
            org: &self.org,
            actor,
            method,
            request_id,
            kind,
            resource,
            before_type: self.before.0.as_deref(),
            before_hash: self.before.1.as_deref(),
            after_type: self.after.0.as_deref(),
            after_hash: self.after.1.as_deref(),
        }
    }
}

fn named(chain: &str) -> String {
    if chain == SERVER { "the chain of all rows".into() } else { format!("the chain of {chain}") }
}
