//! Compares what an image has with what was stored of it: findings that are new open, those that are gone close.

use std::cmp::Reverse;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use bowline_contract::Contract;
use bowline_contract::bowline::vulnerabilities::v1::ClosingReason;
use bowline_core::{Error, Micros, Result, Uidp};
use bowline_registry::components::{InRepo, PackageVersion, sboms_of};
use bowline_registry::findings::rank;
use bowline_store::{ReadTx, Row, Sql, Value, WriteTx};

use super::advisories;
use super::finding_events::{self, Events};

/// Images that one step compares at most, and number of findings after which it ends early.
const MAX_IMAGES: i64 = 25;
const ENOUGH: usize = 500;
/// Matches of components that are read of an image; further ones are left out.
const MAX_MATCHES: usize = 50_000;
/// Rows of an image that one step writes; the image waits on if there are more.
const MAX_CHANGES: usize = 1000;
/// Rows that one statement writes.
const AT_ONCE: usize = 100;

/// What identifies a finding in an image.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct FindingKey {
    pub(super) vulnerability: String,
    pub(super) version: PackageVersion,
}

/// Where the most severe match of a finding is.
#[derive(Clone, Debug)]
pub(super) struct BestMatch {
    /// Name and package URL of the component, as the SBOM has them.
    pub(super) component: String,
    pub(super) purl: String,
    pub(super) record_id: String,
    pub(super) severity: i32,
    pub(super) fixed_version: String,
}

/// An image whose findings are compared.
pub(super) struct WaitingImage {
    pub(super) repo: String,
    pub(super) digest: String,
    noted: i64,
}

impl BestMatch {
    fn names(&self) -> ComponentNames {
        ComponentNames { component: self.component.clone(), purl: self.purl.clone() }
    }
}

/// What changes in an image.
struct ImageChange {
    image: WaitingImage,
    /// Findings that it has no more.
    removed: Vec<FindingKey>,
    /// Findings that are new, or in another state, with the names of their components.
    changed: Vec<(FindingKey, State, ComponentNames)>,
    /// Whether there are no others.
    is_whole: bool,
    events: Events,
}

/// What an SBOM calls a component.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ComponentNames {
    pub(super) component: String,
    pub(super) purl: String,
}

/// The state of a finding as `image_findings` has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Open = 0,
    ClosedByAdvisory = 1,
}

/// What changes in some of the waiting images.
pub(super) struct ImageChanges(Vec<ImageChange>);

/// Those after a place, or from the beginning if none wait there.
pub(super) async fn next(tx: &mut ReadTx, after: &InRepo) -> Result<Option<ImageChanges>> {
    let mut waiting = waiting(tx, after).await?;
    if waiting.is_empty() {
        waiting = self::waiting(tx, &InRepo::default()).await?;
    }
    let (mut changes, mut examined) = (Vec::new(), 0);
    for image in waiting {
        let (change, count) = compare(tx, image).await?;
        changes.push(change);
        examined += count;
        if examined >= ENOUGH {
            break;
        }
    }
    Ok(Some(ImageChanges(changes)).filter(|changes| !changes.0.is_empty()))
}

async fn waiting(tx: &mut ReadTx, after: &InRepo) -> Result<Vec<WaitingImage>> {
    let sql = "SELECT repo, digest, noted FROM waiting_images WHERE (repo, digest) > ($1, $2)
               ORDER BY repo, digest LIMIT $3";
    let read =
        |row: &Row<'_>| Ok::<_, Error>(WaitingImage { repo: row.text(0)?, digest: row.text(1)?, noted: row.int(2)? });
    tx.query(sql, &[Value::from(&after.0), Value::from(&after.1), Value::Int(MAX_IMAGES)], read).await
}

/// What changes in the image, and how many findings were looked at.
async fn compare(tx: &mut ReadTx, image: WaitingImage) -> Result<(ImageChange, usize)> {
    let is_there = is_there(tx, &image).await?;
    let sboms = if is_there { sboms_of(tx, &parsed(&image.repo)?, &image.digest).await? } else { Vec::new() };
    if is_any_unmatched(tx, &sboms).await? {
        // The SBOM notes the image again when its versions are known.
        return Ok((ImageChange::nothing(image, true), 0));
    }
    if is_any_version_new(tx, &sboms).await? {
        // Without matches that are still to come, findings would close and open again.
        return Ok((ImageChange::nothing(image, false), 0));
    }
    let current = current(tx, &sboms).await?;
    let (stored, names) = stored(tx, &image).await?;
    let examined = current.len() + stored.len();
    let by_advisory = advisories::closed(tx, &image.repo, &current).await?;
    let was_open = |key: &FindingKey| stored.get(key) == Some(&State::Open);
    let is_open = |key: &FindingKey| current.contains_key(key) && !by_advisory.contains(key);
    let state = |key: &FindingKey| if is_open(key) { State::Open } else { State::ClosedByAdvisory };
    let mut removed: Vec<FindingKey> = stored.keys().filter(|key| !current.contains_key(key)).cloned().collect();
    let changed = current.iter().filter(|(key, _)| stored.get(key) != Some(&state(key)));
    let changed = changed.map(|(key, best)| (key.clone(), state(key), best.names()));
    let mut changed: Vec<(FindingKey, State, ComponentNames)> = changed.collect();
    let is_whole = removed.len() + changed.len() <= MAX_CHANGES;
    removed.truncate(MAX_CHANGES);
    changed.truncate(MAX_CHANGES - removed.len());
    let gone = removed.iter().filter(|key| was_open(key));
    let closed = gone.chain(changed.iter().map(|(key, ..)| key).filter(|key| was_open(key) && !is_open(key)));
    let closed: Vec<(FindingKey, ComponentNames)> =
        closed.map(|key| (key.clone(), names.get(key).cloned().unwrap_or_default())).collect();
    let mut opened: Vec<(FindingKey, BestMatch)> = changed
        .iter()
        .filter(|(_, state, _)| *state == State::Open)
        .filter_map(|(key, ..)| Some((key.clone(), current.get(key)?.clone())))
        .collect();
    opened.sort_by(|(key, one), (other_key, other)| {
        (Reverse(rank(one.severity)), key).cmp(&(Reverse(rank(other.severity)), other_key))
    });
    let reasons = if is_there { reasons(tx, &sboms, &closed, &by_advisory).await? } else { Reasons::ImageDeleted };
    let events = Events {
        closed: finding_events::closed(tx, &image, &closed, &reasons).await?,
        opened: finding_events::opened(tx, &image, &opened).await?,
    };
    Ok((ImageChange { image, removed, changed, is_whole, events }, examined))
}

fn parsed(repo: &str) -> Result<Uidp> {
    Uidp::parse(repo).map_err(|_| Error::internal("an image waits in no repository"))
}

async fn is_there(tx: &mut ReadTx, image: &WaitingImage) -> Result<bool> {
    let sql = "SELECT 1 FROM repo_manifests WHERE repo = $1 AND digest = $2";
    let params = [Value::from(&image.repo), Value::from(&image.digest)];
    Ok(tx.query_opt(sql, &params, |row| row.int(0).map_err(Error::from)).await?.is_some())
}

async fn is_any_unmatched(tx: &mut ReadTx, sboms: &[Vec<u8>]) -> Result<bool> {
    if sboms.is_empty() {
        return Ok(false);
    }
    let mut sql = Sql::new("SELECT 1 FROM unmatched_sboms WHERE");
    sql.bind_list(" sbom IN ", sboms.iter().map(Value::from)).push(" LIMIT 1");
    Ok(tx.query_opt(&sql.text, &sql.params, |row| row.int(0).map_err(Error::from)).await?.is_some())
}

/// Whether a version that these SBOMs list was never matched.
async fn is_any_version_new(tx: &mut ReadTx, sboms: &[Vec<u8>]) -> Result<bool> {
    let hint = tx.index_hint("package_versions_waiting");
    let sql = format!("SELECT EXISTS (SELECT 1 FROM package_versions {hint} WHERE state <> 0 AND state = 3)");
    let is_any = tx.query_opt(&sql, &[], |row| row.bool(0).map_err(Error::from)).await?.unwrap_or_default();
    if sboms.is_empty() || !is_any {
        return Ok(false);
    }
    let mut sql = Sql::new(
        "SELECT 1 FROM components c CROSS JOIN package_versions v
         WHERE v.package = c.package AND v.version = c.version AND v.origin = c.origin AND v.state = 3",
    );
    sql.bind_list(" AND c.sbom IN ", sboms.iter().map(Value::from)).push(" LIMIT 1");
    Ok(tx.query_opt(&sql.text, &sql.params, |row| row.int(0).map_err(Error::from)).await?.is_some())
}

/// The findings of an image with these SBOMs.
async fn current(tx: &mut ReadTx, sboms: &[Vec<u8>]) -> Result<BTreeMap<FindingKey, BestMatch>> {
    let sql = "SELECT c.package, c.version, c.name, m.vulnerability, c.purl, m.record_id, m.severity, m.fixed_version
               FROM components c CROSS JOIN package_matches m
               WHERE c.sbom = $1 AND c.package <> '' AND m.package = c.package AND m.version = c.version
                 AND m.origin = c.origin
               ORDER BY c.number, m.record_id LIMIT $2";
    let (mut current, mut left) = (BTreeMap::new(), MAX_MATCHES);
    for sbom in sboms {
        let read = |row: &Row<'_>| {
            let key = FindingKey { version: PackageVersion::read(row)?, vulnerability: row.text(3)? };
            let best = BestMatch {
                component: row.text(2)?,
                purl: row.text(4)?,
                record_id: row.text(5)?,
                severity: i32::try_from(row.int(6)?).map_err(Error::internal)?,
                fixed_version: row.text(7)?,
            };
            Ok::<_, Error>((key, best))
        };
        let rows = tx.query(sql, &[Value::from(sbom), Value::Int(left as i64)], read).await?;
        left = left.saturating_sub(rows.len());
        for (key, one) in rows {
            match current.entry(key) {
                Entry::Vacant(entry) => _ = entry.insert(one),
                Entry::Occupied(mut known) if rank(one.severity) > rank(known.get().severity) => _ = known.insert(one),
                Entry::Occupied(_) => {}
            }
        }
    }
    Ok(current)
}

/// The stored findings of an image: their states, and what their components were called when they were stored.
async fn stored(
    tx: &mut ReadTx,
    image: &WaitingImage,
) -> Result<(BTreeMap<FindingKey, State>, BTreeMap<FindingKey, ComponentNames>)> {
    let sql = "SELECT package, version, vulnerability, state, component, purl FROM image_findings
               WHERE repo = $1 AND digest = $2";
    let params = [Value::from(&image.repo), Value::from(&image.digest)];
    let read = |row: &Row<'_>| {
        let key = FindingKey { version: PackageVersion::read(row)?, vulnerability: row.text(2)? };
        let state = if row.int(3)? == 0 { State::Open } else { State::ClosedByAdvisory };
        Ok::<_, Error>(((key.clone(), state), (key, ComponentNames { component: row.text(4)?, purl: row.text(5)? })))
    };
    Ok(tx.query(sql, &params, read).await?.into_iter().unzip())
}

/// Why the findings of an image closed.
pub(super) enum Reasons<'a> {
    ImageDeleted,
    ByFinding {
        by_advisory: &'a BTreeSet<FindingKey>,
        /// The versions that the image still has.
        listed: BTreeSet<PackageVersion>,
    },
}

impl Reasons<'_> {
    pub(super) fn of(&self, key: &FindingKey) -> ClosingReason {
        match self {
            Reasons::ImageDeleted => ClosingReason::ImageDeleted,
            Reasons::ByFinding { by_advisory, .. } if by_advisory.contains(key) => ClosingReason::Advisory,
            Reasons::ByFinding { listed, .. } if listed.contains(&key.version) => ClosingReason::RecordChanged,
            Reasons::ByFinding { .. } => ClosingReason::ComponentRemoved,
        }
    }
}

async fn reasons<'a>(
    tx: &mut ReadTx,
    sboms: &[Vec<u8>],
    closed: &[(FindingKey, ComponentNames)],
    by_advisory: &'a BTreeSet<FindingKey>,
) -> Result<Reasons<'a>> {
    let versions: BTreeSet<&PackageVersion> = closed.iter().map(|(key, _)| &key.version).collect();
    let mut listed = BTreeSet::new();
    if versions.is_empty() || sboms.is_empty() {
        return Ok(Reasons::ByFinding { by_advisory, listed });
    }
    let versions: Vec<PackageVersion> = versions.into_iter().cloned().collect();
    for part in versions.chunks(AT_ONCE) {
        let mut sql = PackageVersion::with(part);
        sql.push("SELECT w.package, w.version FROM wanted w WHERE EXISTS (SELECT 1 FROM version_sboms s");
        sql.push(" WHERE s.package = w.package AND s.version = w.version");
        sql.bind_list(" AND s.sbom IN ", sboms.iter().map(Value::from)).push(")");
        listed.extend(tx.query(&sql.text, &sql.params, PackageVersion::read).await?);
    }
    Ok(Reasons::ByFinding { by_advisory, listed })
}

impl ImageChanges {
    /// The last image that was compared.
    pub(super) fn last(&self) -> Option<InRepo> {
        self.0.last().map(|change| change.image.key())
    }

    /// Writes the first image, or all if no other write waits; the rest still waits.
    pub(super) async fn write(&self, tx: &mut WriteTx, contract: &Contract, now: Micros) -> Result<()> {
        for change in &self.0 {
            change.write(tx, contract, now).await?;
            if tx.others_wait() {
                break;
            }
        }
        Ok(())
    }
}

impl ImageChange {
    fn nothing(image: WaitingImage, is_whole: bool) -> ImageChange {
        ImageChange { image, removed: Vec::new(), changed: Vec::new(), is_whole, events: Events::default() }
    }

    async fn write(&self, tx: &mut WriteTx, contract: &Contract, now: Micros) -> Result<()> {
        let WaitingImage { repo, digest, noted } = &self.image;
        for part in self.removed.chunks(AT_ONCE) {
            let mut sql = Sql::new("WITH gone (vulnerability, package, version) AS (VALUES ");
            for (at, FindingKey { vulnerability, version }) in part.iter().enumerate() {
                sql.bind(if at == 0 { "(" } else { ", (" }, vulnerability);
                sql.bind(", ", &version.package).bind(", ", &version.version).push(")");
            }
            sql.bind(") DELETE FROM image_findings WHERE repo = ", repo).bind(" AND digest = ", digest);
            sql.push(" AND (vulnerability, package, version) IN (SELECT vulnerability, package, version FROM gone)");
            tx.execute(&sql.text, &sql.params).await?;
        }
        for part in self.changed.chunks(AT_ONCE) {
            let columns = "repo, digest, vulnerability, package, version, state, since, component, purl";
            let mut sql = Sql::new(format!("INSERT INTO image_findings ({columns}) VALUES "));
            for (at, (FindingKey { vulnerability, version }, state, names)) in part.iter().enumerate() {
                sql.bind(if at == 0 { "(" } else { ", (" }, repo).bind(", ", digest).bind(", ", vulnerability);
                sql.bind(", ", &version.package).bind(", ", &version.version);
                sql.bind(", ", *state as i64).bind(", ", now);
                sql.bind(", ", &names.component).bind(", ", &names.purl).push(")");
            }
            sql.push(" ON CONFLICT (repo, digest, vulnerability, package, version)");
            sql.push(" DO UPDATE SET state = excluded.state, since = excluded.since,");
            sql.push(" component = excluded.component, purl = excluded.purl");
            tx.execute(&sql.text, &sql.params).await?;
        }
        self.events.record(tx, contract, now).await?;
        if !self.is_whole {
            return Ok(());
        }
        let sql = "DELETE FROM waiting_images WHERE repo = $1 AND digest = $2 AND noted = $3";
        tx.execute(sql, &[Value::from(repo), Value::from(digest), Value::Int(*noted)]).await?;
        Ok(())
    }
}

impl WaitingImage {
    pub(super) fn key(&self) -> InRepo {
        (self.repo.clone(), self.digest.clone())
    }
}
