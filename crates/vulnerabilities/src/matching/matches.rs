//! Matching versions of packages with the visible records of their packages.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use bowline_core::{Error, Result};
use bowline_osv::{ComparedPackage, PackageOrigin, VersionQuery};
use bowline_registry::components::ListedVersion;
use bowline_store::{ReadTx, Row, Sql, Value, WriteTx};

use super::record_details::{self, RecordDetails};
use super::spread;
use crate::records::{Generations, among};

/// Versions that one step matches at most, and versions that are matched at once: their matches are held in memory.
const MAX_VERSIONS: i64 = 100;
const AT_ONCE: usize = 10;
/// Number of matches after which a step ends early.
const ENOUGH: usize = 500;
/// Versions that are written before other writes have their turn.
const VERSIONS_WRITTEN: usize = 4;
/// Rows that one statement writes or deletes.
const WRITTEN_AT_ONCE: usize = 50;

/// A version that waits, and what records are compared with.
struct Waiting {
    version: ListedVersion,
    compared: Vec<ComparedPackage>,
}

/// A record that affects a version.
struct Affecting {
    n: i64,
    modified: i64,
    content: Content,
    fixed_version: String,
}

/// Where a record comes from: the content of an id changes with it.
type Content = (i64, i64);

/// What matching changes. `package_matches` has nothing else of these versions, so that an image's vulnerabilities that come
/// and go are known here.
#[derive(Default)]
pub(super) struct Changes {
    /// In order, and so are the matches.
    versions: Vec<ListedVersion>,
    /// Matches that are no longer, each with the id of its record.
    removed: Vec<(ListedVersion, String)>,
    added: Vec<AddedMatch>,
}

/// A match that is new, or whose record has another content.
struct AddedMatch {
    version: ListedVersion,
    record_id: String,
    affecting: Affecting,
    details: RecordDetails,
    /// What the stored match names, if there is one.
    before: Option<Ids>,
}

/// The vulnerability of a match, and its aliases.
type Ids = (String, String);

impl AddedMatch {
    /// Whether findings of images depend on the difference: a refreshed feed changes every record, and few of these.
    fn concerns_images(&self) -> bool {
        self.before.as_ref() != Some(&(self.details.vulnerability.clone(), self.details.aliases.clone()))
    }
}

pub(super) async fn next(tx: &mut ReadTx) -> Result<Option<Changes>> {
    let waiting = waiting(tx).await?;
    if waiting.is_empty() {
        return Ok(None);
    }
    let generations = Generations::read(tx).await?;
    let (mut changes, mut examined) = (Changes::default(), 0);
    for part in waiting.chunks(AT_ONCE) {
        let affecting = affecting(tx, part, &generations).await?;
        let mut stored = stored(tx, part).await?;
        examined += affecting.len() + stored.len();
        for ((index, record_id), affecting) in affecting {
            let known = stored.remove(&(part[index].version.clone(), record_id.clone()));
            let (content, before) = known.map_or((None, None), |(content, ids)| (Some(content), Some(ids)));
            if content != Some(affecting.content) {
                let (version, details) = (part[index].version.clone(), RecordDetails::default());
                changes.added.push(AddedMatch { version, record_id, affecting, details, before });
            }
        }
        changes.removed.extend(stored.into_keys());
        changes.versions.extend(part.iter().map(|waiting| waiting.version.clone()));
        if examined >= ENOUGH {
            break;
        }
    }
    let records: BTreeSet<i64> = changes.added.iter().map(|added| added.affecting.n).collect();
    let details = record_details::read(tx, &records).await?;
    for added in &mut changes.added {
        let n = added.affecting.n;
        added.details = details.get(&n).cloned().ok_or_else(|| Error::internal(format!("record {n} has no body")))?;
    }
    Ok(Some(changes))
}

/// Those that were never matched come first: images wait for them.
async fn waiting(tx: &mut ReadTx) -> Result<Vec<Waiting>> {
    let hint = tx.index_hint("package_versions_waiting");
    let sql = format!(
        "SELECT package, version, origin FROM package_versions {hint} WHERE state <> 0 AND state = $1
         ORDER BY package, version, origin LIMIT $2"
    );
    let mut waiting = tx.query(&sql, &[Value::Int(3), Value::Int(MAX_VERSIONS)], ListedVersion::read).await?;
    if waiting.is_empty() {
        waiting = tx.query(&sql, &[Value::Int(1), Value::Int(MAX_VERSIONS)], ListedVersion::read).await?;
    }
    let with_compared = |listed: ListedVersion| {
        let ListedVersion { version, origin } = &listed;
        let compared = PackageOrigin::from_text(origin).compared(&version.package, &version.version);
        Waiting { version: listed, compared }
    };
    Ok(waiting.into_iter().map(with_compared).collect())
}

/// The records that affect each of these, by position and id; of several sources the newest record, as the query API has it.
async fn affecting(
    tx: &mut ReadTx,
    waiting: &[Waiting],
    generations: &Generations,
) -> Result<BTreeMap<(usize, String), Affecting>> {
    let mut queries: BTreeMap<&str, Vec<(usize, VersionQuery<'_>)>> = BTreeMap::new();
    for (index, Waiting { compared, .. }) in waiting.iter().enumerate() {
        for ComparedPackage { package, ecosystem, version } in compared {
            let query = VersionQuery::new(ecosystem, Some(version));
            queries.entry(package.as_str()).or_default().push((index, query));
        }
    }
    let mut found: BTreeMap<(usize, String), Affecting> = BTreeMap::new();
    if queries.is_empty() {
        return Ok(found);
    }
    let (placeholders, values) = among(1, queries.keys().map(|package| Value::from(*package)));
    let sql = format!(
        "SELECT package, ranges, id, modified, record, source, since, until FROM record_affects
         WHERE package IN {placeholders}"
    );
    let read = |row: &Row<'_>| -> Result<()> {
        if !generations.show(row, 5)? {
            return Ok(());
        }
        let package = row.text(0)?;
        for (index, query) in queries.get(package.as_str()).into_iter().flatten() {
            let fixed = |ranges: &str| {
                let is_affected = query.is_in(ranges);
                is_affected.then(|| query.fixed_in(ranges).unwrap_or_default().to_owned())
            };
            let Some(fixed_version) = row.with_text(1, fixed)? else { continue };
            let content = (row.int(5)?, row.int(6)?);
            let one = Affecting { n: row.int(4)?, modified: row.int(3)?, content, fixed_version };
            let key = (*index, row.text(2)?);
            // One record may be about the source package and about what is installed.
            let is_newer = |known: &Affecting| {
                let order = (one.modified, Reverse(one.n)).cmp(&(known.modified, Reverse(known.n)));
                order.then_with(|| one.fixed_version.cmp(&known.fixed_version)).is_gt()
            };
            if found.get(&key).is_none_or(is_newer) {
                found.insert(key, one);
            }
        }
        Ok(())
    };
    tx.query(&sql, &values, read).await?;
    Ok(found)
}

/// The stored matches of these.
async fn stored(tx: &mut ReadTx, waiting: &[Waiting]) -> Result<BTreeMap<(ListedVersion, String), (Content, Ids)>> {
    let versions: Vec<ListedVersion> = waiting.iter().map(|waiting| waiting.version.clone()).collect();
    let mut sql = ListedVersion::with(&versions);
    sql.push(
        "SELECT m.package, m.version, m.origin, m.record_id, m.source, m.since, m.vulnerability, m.aliases
         FROM wanted w CROSS JOIN package_matches m
         WHERE m.package = w.package AND m.version = w.version AND m.origin = w.origin",
    );
    let read = |row: &Row<'_>| {
        let (content, ids) = ((row.int(4)?, row.int(5)?), (row.text(6)?, row.text(7)?));
        Ok::<_, Error>(((ListedVersion::read(row)?, row.text(3)?), (content, ids)))
    };
    Ok(tx.query(&sql.text, &sql.params, read).await?.into_iter().collect())
}

impl Changes {
    /// Writes the first versions, or all if no other write waits; the rest still waits.
    pub(super) async fn write(&self, tx: &mut WriteTx) -> Result<()> {
        let (mut removed, mut added) = (&self.removed[..], &self.added[..]);
        for versions in self.versions.chunks(VERSIONS_WRITTEN) {
            let is_of_these = |version: &ListedVersion| versions.last().is_some_and(|last| version <= last);
            let of_these = removed.split_at(removed.partition_point(|(version, _)| is_of_these(version)));
            let new = added.split_at(added.partition_point(|added| is_of_these(&added.version)));
            write(tx, versions, of_these.0, new.0).await?;
            (removed, added) = (of_these.1, new.1);
            if tx.others_wait() {
                break;
            }
        }
        Ok(())
    }
}

async fn write(
    tx: &mut WriteTx,
    versions: &[ListedVersion],
    removed: &[(ListedVersion, String)],
    added: &[AddedMatch],
) -> Result<()> {
    for part in removed.chunks(WRITTEN_AT_ONCE) {
        delete(tx, part).await?;
    }
    for part in added.chunks(WRITTEN_AT_ONCE) {
        upsert(tx, part).await?;
    }
    let changed = removed.iter().map(|(version, _)| &version.version);
    let added = added.iter().filter(|added| added.concerns_images()).map(|added| &added.version.version);
    spread::note_versions(tx, &changed.chain(added).collect()).await?;
    // A version whose SBOM was deleted meanwhile still waits for its check.
    let matched = "UPDATE package_versions SET state = 0 WHERE state IN (1, 3) AND";
    ListedVersion::for_each(tx, matched, versions).await
}

async fn delete(tx: &mut WriteTx, matches: &[(ListedVersion, String)]) -> Result<()> {
    let mut sql = Sql::new("WITH gone (package, version, origin, record_id) AS (VALUES ");
    for (at, (ListedVersion { version, origin }, record_id)) in matches.iter().enumerate() {
        sql.bind(if at == 0 { "(" } else { ", (" }, &version.package).bind(", ", &version.version);
        sql.bind(", ", origin).bind(", ", record_id).push(")");
    }
    sql.push(") DELETE FROM package_matches WHERE (package, version, origin, record_id) IN ");
    sql.push("(SELECT package, version, origin, record_id FROM gone)");
    tx.execute(&sql.text, &sql.params).await?;
    Ok(())
}

async fn upsert(tx: &mut WriteTx, matches: &[AddedMatch]) -> Result<()> {
    let mut sql = Sql::new(
        "INSERT INTO package_matches
           (package, version, origin, record_id, vulnerability, aliases, source, since, fixed_version, severity) VALUES ",
    );
    for (at, AddedMatch { version, record_id, affecting, details, .. }) in matches.iter().enumerate() {
        let ListedVersion { version, origin } = version;
        sql.bind(if at == 0 { "(" } else { ", (" }, &version.package).bind(", ", &version.version).bind(", ", origin);
        sql.bind(", ", record_id).bind(", ", &details.vulnerability).bind(", ", &details.aliases);
        sql.bind(", ", affecting.content.0).bind(", ", affecting.content.1).bind(", ", &affecting.fixed_version);
        sql.bind(", ", i64::from(details.severity as i32)).push(")");
    }
    sql.push(
        " ON CONFLICT (package, version, origin, record_id) DO UPDATE SET vulnerability = excluded.vulnerability,
            aliases = excluded.aliases, source = excluded.source, since = excluded.since,
            fixed_version = excluded.fixed_version, severity = excluded.severity",
    );
    tx.execute(&sql.text, &sql.params).await?;
    Ok(())
}
