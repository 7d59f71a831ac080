//! Matches of the components of images with imported records of vulnerabilities.
//!
//! Each version of a package is matched once, however many images have it (`package_versions`, `package_matches`). The
//! results are those of the query API of OSV for its package URL. A version is matched again when a commit of an import
//! adds, changes or removes a record of its package, and deleted after its last SBOM.
//!
//! One task does all of it, in steps: each reads on a snapshot, off the writer, and writes the result under a lease. Nothing
//! that happens in between is lost, because every event leaves a note that a later step reads: new SBOMs
//! (`unmatched_sboms`), deleted ones (the state 2 of a version), and commits, whose generation is above the
//! `matched_generation` of their source. A step may be repeated.

mod conditions;
mod follow;
mod list;
mod matches;
mod positions;
mod record_details;
mod search;
mod versions;

use std::sync::Arc;

use bowline_contract::bowline::vulnerabilities::v1::rpc::matches::ListMatches;
use bowline_core::{Error, Micros, Result};
use bowline_pipeline::{Handlers, handler, lease};
use bowline_store::{Db, Engine, ReadTx, WriteTx};

pub(crate) fn register(handlers: Handlers) -> Handlers {
    handlers.heavy_read::<ListMatches>(handler!(list::list))
}

const MATCHING: &str = "package matches";
/// How long a replica may stay silent before another continues, in microseconds.
const LEASE: Micros = 30_000_000;

/// Keeps the matches of packages current.
#[derive(Clone)]
pub struct Matcher {
    db: Db,
    /// Name of this replica in the lease.
    holder: String,
}

/// What a step is to write.
enum Step {
    Follow(follow::TouchedPackages),
    Match(matches::Changes),
    Add(versions::NewVersions),
    Check(versions::CheckedVersions),
}

impl Matcher {
    pub fn new(db: Db, holder: String) -> Matcher {
        Matcher { db, holder }
    }

    /// Runs one step; false if there is nothing to do here.
    ///
    /// # Errors
    /// Those of the database; the step can be repeated.
    pub async fn step(&self, now: Micros) -> Result<bool> {
        // The lease comes before the snapshot, which so has all that an earlier holder wrote.
        if !self.db.read(|tx| Box::pin(has_work(tx))).await? || !self.take_lease(now).await? {
            return Ok(false);
        }
        let Some(step) = self.db.read(|tx| Box::pin(next(tx))).await? else { return Ok(false) };
        let (step, holder) = (Arc::new(step), self.holder.clone());
        let written = self.db.write_derived(move |tx| {
            let (step, holder) = (step.clone(), holder.clone());
            Box::pin(async move {
                if !lease::confirm(tx, MATCHING, &holder).await? {
                    return Ok(false);
                }
                step.write(tx).await.map(|()| true)
            })
        });
        written.await
    }

    async fn take_lease(&self, now: Micros) -> Result<bool> {
        if self.db.engine() == Engine::Sqlite {
            return Ok(true);
        }
        let holder = self.holder.clone();
        let taken = self.db.write_leased(move |tx| {
            let holder = holder.clone();
            Box::pin(async move { lease::keep(tx, MATCHING, &holder, LEASE, now).await })
        });
        taken.await
    }
}

impl Step {
    async fn write(&self, tx: &mut WriteTx) -> Result<()> {
        match self {
            Step::Follow(touched) => touched.write(tx).await,
            Step::Match(changes) => changes.write(tx).await,
            Step::Add(new) => new.write(tx).await,
            Step::Check(checked) => checked.write(tx).await,
        }
    }
}

async fn has_work(tx: &mut ReadTx) -> Result<bool> {
    let waiting = tx.index_hint("package_versions_waiting");
    let sql = format!(
        "SELECT EXISTS (SELECT 1 FROM record_sources WHERE matched_generation < generation)
             OR EXISTS (SELECT 1 FROM unmatched_sboms)
             OR EXISTS (SELECT 1 FROM package_versions {waiting} WHERE state <> 0)"
    );
    Ok(tx.query_opt(&sql, &[], |row| row.bool(0).map_err(Error::from)).await?.unwrap_or_default())
}

/// Commits come first, so that their records are soon matched while many SBOMs wait.
async fn next(tx: &mut ReadTx) -> Result<Option<Step>> {
    if let Some(touched) = follow::next(tx).await? {
        return Ok(Some(Step::Follow(touched)));
    }
    if let Some(changes) = matches::next(tx).await? {
        return Ok(Some(Step::Match(changes)));
    }
    if let Some(new) = versions::next_new(tx).await? {
        return Ok(Some(Step::Add(new)));
    }
    Ok(versions::next_checked(tx).await?.map(Step::Check))
}
