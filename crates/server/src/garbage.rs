//! Garbage collection of the registry: takes away what no repository shows any more, while others push and pull.
//!
//! Any number of collections may run at a time, in any number of processes: what goes is checked again as it goes, see
//! [`bowline_registry::content::garbage`].

use std::collections::HashMap;
use std::time::Duration;

use bowline_content::{BlobLocation, Content, ContentError, Digest};
use bowline_core::{Error, Micros, Result};
use bowline_pipeline::UploadLimits;
use bowline_registry::components::{self, SbomPosition};
use bowline_registry::content::garbage::{self, BlobRow};
use bowline_store::Db;
use bowline_terminal::seconds;

use crate::error::StartError;
use crate::options::Options;

/// Longest time between two collections, and longest grace, in seconds.
const LONGEST_EVERY: i64 = 30 * 86400;
pub(crate) const LONGEST_GRACE: i64 = 365 * 86400;
/// Shortest and longest time that an upload may stay open without growing, in seconds. Clients may be silent for a minute
/// in the middle of a body: much more than that must be left when they are.
const SHORTEST_UPLOAD_IDLE: i64 = 300;
const LONGEST_UPLOAD_IDLE: i64 = 86400;

/// When is collected, and what is spared.
#[derive(Clone, Copy, Debug)]
pub struct Schedule {
    /// Time between two collections; absent if the server collects nothing by itself.
    pub every: Option<Duration>,
    /// How long a pushed blob may wait for its manifest.
    pub grace: Micros,
}

impl Schedule {
    /// The schedule that the options say.
    ///
    /// # Errors
    /// One of them is no time.
    pub fn of(options: &Options) -> std::result::Result<Schedule, StartError> {
        let every = match options.gc_every.as_deref().unwrap_or("1h") {
            "never" => None,
            text => Some(Duration::from_secs(seconds("gc-every", text, LONGEST_EVERY)?.unsigned_abs())),
        };
        let grace = seconds("gc-grace", options.gc_grace.as_deref().unwrap_or("24h"), LONGEST_GRACE)?;
        Ok(Schedule { every, grace: grace * 1_000_000 })
    }
}

/// What open uploads may take up.
///
/// # Errors
/// A time in which a client may stay silent in the middle of a body, or one beyond what an upload may take at all.
pub(crate) fn upload_limits(options: &Options) -> std::result::Result<UploadLimits, StartError> {
    let idle = seconds("upload-idle", options.upload_idle.as_deref().unwrap_or("1h"), LONGEST_UPLOAD_IDLE)?;
    if idle < SHORTEST_UPLOAD_IDLE {
        return Err(StartError::Option(format!("--upload-idle: {SHORTEST_UPLOAD_IDLE}s at least, not {idle}s")));
    }
    Ok(UploadLimits {
        per_identity: options.uploads_per_identity.unwrap_or(500),
        per_organization: options.uploads_per_organization.unwrap_or(2000),
        idle: idle * 1_000_000,
    })
}

#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Blobs that no manifest of their repository names are removed if they were pushed, or looked up for a
    /// push, before this.
    pub until: Micros,
    /// Nothing goes: it is only counted.
    pub is_dry_run: bool,
}

/// What went, or would go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Collected {
    /// Blobs of repositories that none of their manifests names.
    pub links: u64,
    /// Manifests that no repository holds.
    pub manifests: u64,
    /// Blobs that no repository shows.
    pub blobs: u64,
    /// Files that are no blob's.
    pub files: u64,
    /// Files of uploads that have ended.
    pub uploads: u64,
    /// Bytes of these blobs and files.
    pub bytes: u64,
}

impl Collected {
    pub(crate) fn add(&mut self, other: Collected) {
        self.links += other.links;
        self.manifests += other.manifests;
        self.blobs += other.blobs;
        self.files += other.files;
        self.uploads += other.uploads;
        self.bytes += other.bytes;
    }

    /// Whether there was nothing to collect.
    pub fn is_nothing(&self) -> bool {
        *self == Collected::default()
    }
}

/// Collects once.
///
/// # Errors
/// The database or the disk refuses; what has gone by then is gone, and the rest goes the next time.
pub async fn collect(db: &Db, content: &Content, plan: Plan) -> Result<Collected> {
    let (collected, result) = collect_parts(db, content, plan).await;
    result.map(|()| collected)
}

/// The same, with what went before an error.
pub(crate) async fn collect_parts(db: &Db, content: &Content, plan: Plan) -> (Collected, Result<()>) {
    let mut collection = Collection { db, content, plan, collected: Collected::default(), doomed: HashMap::new() };
    let result = collection.run().await;
    (collection.collected, result)
}

struct Collection<'a> {
    db: &'a Db,
    content: &'a Content,
    plan: Plan,
    collected: Collected,
    /// In a dry run: how many links of a digest would go.
    doomed: HashMap<String, u64>,
}

impl Collection<'_> {
    async fn run(&mut self) -> Result<()> {
        self.links().await?;
        self.manifests().await?;
        self.sboms().await?;
        self.blobs().await?;
        self.files().await?;
        self.uploads().await
    }

    async fn links(&mut self) -> Result<()> {
        let mut after = String::new();
        loop {
            let page = garbage::repositories(self.db, &after).await?;
            let Some(last) = page.last() else { return Ok(()) };
            after.clone_from(last);
            for repo in &page {
                let unnamed = garbage::unnamed_links(self.db, repo, self.plan.until).await?;
                if self.plan.is_dry_run {
                    self.collected.links += unnamed.len() as u64;
                    for digest in unnamed {
                        *self.doomed.entry(digest).or_default() += 1;
                    }
                } else {
                    let unnamed: Vec<String> = unnamed.into_iter().collect();
                    self.collected.links += garbage::drop_links(self.db, repo, &unnamed, self.plan.until).await?;
                }
            }
        }
    }

    async fn manifests(&mut self) -> Result<()> {
        let mut after = String::new();
        loop {
            let page = garbage::manifests(self.db, &after).await?;
            let Some((last, _)) = page.last() else { return Ok(()) };
            after.clone_from(last);
            let unheld: Vec<String> =
                page.into_iter().filter(|(_, is_held)| !is_held).map(|(digest, _)| digest).collect();
            self.collected.manifests += if self.plan.is_dry_run {
                unheld.len() as u64
            } else {
                garbage::drop_manifests(self.db, &unheld).await?
            };
        }
    }

    /// Rows of SBOMs, which are not counted: their bytes are those of blobs.
    async fn sboms(&mut self) -> Result<()> {
        if self.plan.is_dry_run {
            return Ok(());
        }
        let mut after = SbomPosition::default();
        loop {
            let page = components::garbage::sboms(self.db, &after).await?;
            let Some((last, _)) = page.last() else { return Ok(()) };
            after = last.clone();
            let unnamed: Vec<SbomPosition> =
                page.into_iter().filter(|(_, is_named)| !is_named).map(|(position, _)| position).collect();
            components::garbage::drop_sboms(self.db, &unnamed).await?;
        }
    }

    /// The row goes, then the bytes.
    async fn blobs(&mut self) -> Result<()> {
        let mut after = String::new();
        loop {
            let page = garbage::blobs(self.db, &after).await?;
            let Some(last) = page.last() else { return Ok(()) };
            after.clone_from(&last.digest);
            let mut unlinked = Vec::new();
            for row in page {
                if self.is_unlinked(&row).await? {
                    unlinked.push(row);
                }
            }
            if !self.plan.is_dry_run {
                unlinked = garbage::drop_blobs(self.db, &unlinked).await?;
            }
            for row in unlinked {
                self.collected.blobs += 1;
                self.collected.bytes += row.size;
                if !self.plan.is_dry_run {
                    self.content.delete(&digest(&row.digest)?, &row.upload).await.map_err(refused)?;
                }
            }
        }
    }

    async fn is_unlinked(&self, row: &BlobRow) -> Result<bool> {
        match self.doomed.get(&row.digest) {
            Some(doomed) if row.is_linked => Ok(garbage::links_of(self.db, &row.digest).await? <= *doomed),
            _ => Ok(!row.is_linked),
        }
    }

    /// Files are listed before their rows are read.
    async fn files(&mut self) -> Result<()> {
        for shard in self.content.shards() {
            let locations = self.content.locations(shard).await.map_err(refused)?;
            let describe: Vec<garbage::LocationKey> = locations.iter().map(describe).collect();
            for at in garbage::unknown_locations(self.db, &describe).await? {
                let location = &locations[at];
                let Some(size) = self.content.size_at(location).await.map_err(refused)? else { continue };
                self.collected.files += 1;
                self.collected.bytes += size;
                if !self.plan.is_dry_run {
                    self.content.delete_at(location).await.map_err(refused)?;
                }
            }
        }
        Ok(())
    }

    async fn uploads(&mut self) -> Result<()> {
        let ids = self.content.uploads().await.map_err(refused)?;
        for id in garbage::ended_uploads(self.db, &ids).await? {
            let size = match self.content.uploaded(&id).await {
                Ok(size) => size,
                Err(ContentError::UnknownUpload) => continue,
                Err(error) => return Err(refused(error)),
            };
            if !self.plan.is_dry_run {
                match self.content.cancel(&id) {
                    Ok(()) => {}
                    // A request still writes to it, in vain.
                    Err(ContentError::Busy) => continue,
                    Err(error) => return Err(refused(error)),
                }
            }
            self.collected.uploads += 1;
            self.collected.bytes += size;
        }
        Ok(())
    }
}

fn describe(location: &BlobLocation) -> garbage::LocationKey {
    let digest = location.digest.as_ref().map(|digest| digest.as_str().to_owned());
    garbage::LocationKey { digest, key: location.key.clone(), open_upload: location.open_upload.clone() }
}

/// A digest out of the database.
pub(crate) fn digest(text: &str) -> Result<Digest> {
    Digest::parse(text).map_err(|_| Error::internal(format!("the database holds the damaged digest {text}")))
}

pub(crate) fn refused(error: ContentError) -> Error {
    match error {
        ContentError::Objects(error) => Error::unavailable(error),
        error => Error::internal(error),
    }
}
