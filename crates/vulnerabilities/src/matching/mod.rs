//! Matches of the components of images with imported records of vulnerabilities.
//!
//! Each version of a package is matched once, however many images have it (`package_versions`, `package_matches`). The
//! results are those of the query API of OSV for its package URL; packages of distributions are distinguished by release and
//! source package, too (`origin`), which the task reads from the package URLs of components. A version is matched again when
//! a commit of an import adds, changes or removes a record of its package, and deleted after its last SBOM.
//!
//! What an image has by its components are its findings (`image_findings`). They follow the matches: a version whose matches
//! changed (`changed_versions`) notes the SBOMs that list it (`waiting_sboms`), these note their images (`waiting_images`),
//! and for each noted image the findings that it has are compared with the stored ones. Pushes and deletions note what they
//! touch in the same way, and advisories the images that have their vulnerabilities (`waiting_advisories`).
//!
//! One task does all of it, in steps: each reads on a snapshot, off the writer, and writes the result under a lease. Nothing
//! that happens in between is lost, because every event leaves a note that a later step reads: new SBOMs
//! (`unmatched_sboms`), deleted ones (the state 2 of a version), and commits, whose generation is above the
//! `matched_generation` of their source. A step may be repeated.

mod advisories;
mod conditions;
mod finding_events;
mod follow;
mod image_findings;
mod list;
mod matches;
mod positions;
mod record_details;
mod search;
mod spread;
mod versions;

use std::sync::{Arc, Mutex, PoisonError};

use bowline_contract::Contract;
use bowline_contract::bowline::vulnerabilities::v1::rpc::matches::ListMatches;
use bowline_core::{Error, Micros, Result};
use bowline_pipeline::{Handlers, handler, lease};
use bowline_registry::components::InRepo;
use bowline_store::{Db, Engine, ReadTx, WriteTx};

use self::advisories::AdvisoryAlias;

pub(crate) fn register(handlers: Handlers) -> Handlers {
    handlers.heavy_read::<ListMatches>(handler!(list::list))
}

const MATCHING: &str = "package matches";
/// How long a replica may stay silent before another continues, in microseconds.
const LEASE: Micros = 30_000_000;
/// Of so many steps one looks at images first, so that a long import does not keep their findings back.
const IMAGES_FIRST: u32 = 8;

/// Keeps the matches of packages current.
#[derive(Clone)]
pub struct Matcher {
    db: Db,
    contract: Arc<Contract>,
    /// Name of this replica in the lease.
    holder: String,
    turns: Arc<Mutex<Turns>>,
}

/// Where the steps are: each continues after the one before and begins again at the end, so that an organization whose
/// images are noted without end keeps no other waiting.
#[derive(Clone, Default)]
struct Turns {
    /// How many steps were taken.
    taken: u32,
    image: InRepo,
    advisory: AdvisoryAlias,
}

impl Turns {
    fn follow(&mut self, step: &Step) {
        match step {
            Step::Compare(changes) => self.image = changes.last().unwrap_or_default(),
            Step::NoteAssessed(images) => self.advisory = images.last().cloned().unwrap_or_default(),
            _ => {}
        }
    }
}

/// What a step is to write.
enum Step {
    Follow(follow::TouchedPackages),
    Match(matches::Changes),
    Add(versions::NewVersions),
    Check(versions::CheckedVersions),
    NoteSboms(spread::SbomsOfVersions),
    NoteImages(spread::ImagesOfSboms),
    NoteAssessed(advisories::ImagesOfAdvisories),
    Compare(image_findings::ImageChanges),
}

impl Matcher {
    pub fn new(db: Db, contract: Arc<Contract>, holder: String) -> Matcher {
        Matcher { db, contract, holder, turns: Arc::default() }
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
        let turns = self.turns();
        let step = self.db.read(move |tx| Box::pin(async move { next(tx, &turns).await }));
        let Some(step) = step.await? else { return Ok(false) };
        self.turns.lock().unwrap_or_else(PoisonError::into_inner).follow(&step);
        let matcher = Arc::new((self.clone(), step, now));
        // An event that was delivered must not be written a second time.
        if matches!(matcher.1, Step::Compare(_)) {
            let written = self.db.write_leased(move |tx| {
                let matcher = matcher.clone();
                Box::pin(async move { matcher.0.write(tx, &matcher.1, matcher.2).await })
            });
            return written.await;
        }
        let written = self.db.write_derived(move |tx| {
            let matcher = matcher.clone();
            Box::pin(async move { matcher.0.write(tx, &matcher.1, matcher.2).await })
        });
        written.await
    }

    fn turns(&self) -> Turns {
        let mut turns = self.turns.lock().unwrap_or_else(PoisonError::into_inner);
        turns.taken = turns.taken.wrapping_add(1);
        turns.clone()
    }

    async fn write(&self, tx: &mut WriteTx, step: &Step, now: Micros) -> Result<bool> {
        if !lease::confirm(tx, MATCHING, &self.holder).await? {
            return Ok(false);
        }
        step.write(tx, &self.contract, now).await.map(|()| true)
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
    async fn write(&self, tx: &mut WriteTx, contract: &Contract, now: Micros) -> Result<()> {
        match self {
            Step::Follow(touched) => touched.write(tx).await,
            Step::Match(changes) => changes.write(tx).await,
            Step::Add(new) => new.write(tx).await,
            Step::Check(checked) => checked.write(tx).await,
            Step::NoteSboms(sboms) => sboms.write(tx).await,
            Step::NoteImages(images) => images.write(tx).await,
            Step::NoteAssessed(images) => images.write(tx).await,
            Step::Compare(changes) => changes.write(tx, contract, now).await,
        }
    }
}

async fn has_work(tx: &mut ReadTx) -> Result<bool> {
    let waiting = tx.index_hint("package_versions_waiting");
    let sql = format!(
        "SELECT EXISTS (SELECT 1 FROM record_sources WHERE matched_generation < generation)
             OR EXISTS (SELECT 1 FROM unmatched_sboms)
             OR EXISTS (SELECT 1 FROM package_versions {waiting} WHERE state <> 0)
             OR EXISTS (SELECT 1 FROM changed_versions)
             OR EXISTS (SELECT 1 FROM waiting_sboms)
             OR EXISTS (SELECT 1 FROM waiting_advisories)
             OR EXISTS (SELECT 1 FROM waiting_images)"
    );
    Ok(tx.query_opt(&sql, &[], |row| row.bool(0).map_err(Error::from)).await?.unwrap_or_default())
}

/// Commits come first, so that their records are soon matched while many SBOMs wait, and images last, so that their findings
/// change together.
async fn next(tx: &mut ReadTx, turns: &Turns) -> Result<Option<Step>> {
    if turns.taken.is_multiple_of(IMAGES_FIRST)
        && let Some(step) = next_of_images(tx, turns).await?
    {
        return Ok(Some(step));
    }
    if let Some(touched) = follow::next(tx).await? {
        return Ok(Some(Step::Follow(touched)));
    }
    if let Some(changes) = matches::next(tx).await? {
        return Ok(Some(Step::Match(changes)));
    }
    if let Some(new) = versions::next_new(tx).await? {
        return Ok(Some(Step::Add(new)));
    }
    if let Some(checked) = versions::next_checked(tx).await? {
        return Ok(Some(Step::Check(checked)));
    }
    next_of_images(tx, turns).await
}

async fn next_of_images(tx: &mut ReadTx, turns: &Turns) -> Result<Option<Step>> {
    if let Some(sboms) = spread::next_versions(tx).await? {
        return Ok(Some(Step::NoteSboms(sboms)));
    }
    if let Some(images) = spread::next_sboms(tx).await? {
        return Ok(Some(Step::NoteImages(images)));
    }
    if let Some(images) = advisories::next(tx, &turns.advisory).await? {
        return Ok(Some(Step::NoteAssessed(images)));
    }
    Ok(image_findings::next(tx, &turns.image).await?.map(Step::Compare))
}
