//! What advisories change: those that changed note the images with the vulnerabilities that they are about, and those that
//! apply to a finding close it.

use std::collections::{BTreeMap, BTreeSet};

use bowline_contract::bowline::vulnerabilities::v1::{FindingAdvisory, FindingStatus};
use bowline_core::{Error, Result, UidRange};
use bowline_registry::components::{InRepo, PackageVersion, note_images};
use bowline_registry::findings::Finding;
use bowline_store::{ReadTx, Row, Sql, Value, WriteTx};

use super::image_findings::{BestMatch, FindingKey};
use crate::advisories::events::{FixedVersions, fixed_versions};
use crate::posture::applicable::{self, Assessment, Reader};
use crate::records::VISIBLE;

/// Aliases of advisories that one step looks at, and images that it notes.
const MAX_ALIASES: i64 = 50;
const MAX_IMAGES: usize = 100;
/// Ids of one vulnerability that are looked for.
const MAX_IDS: i64 = 200;
/// Findings whose advisories are read at once.
const AT_ONCE: usize = 200;

/// An advisory that waits, and an id of a vulnerability that it has or had.
struct WaitingAlias {
    key: AdvisoryAlias,
    after: InRepo,
    noted: i64,
}

/// An advisory, and one of its aliases.
pub(super) type AdvisoryAlias = (String, String);

/// The next images that some waiting advisories may be about.
pub(super) struct ImagesOfAdvisories {
    images: BTreeSet<InRepo>,
    /// Those of which all images are noted.
    done: Vec<WaitingAlias>,
    /// The one that continues after an image.
    rest: Option<(WaitingAlias, InRepo)>,
}

/// Those after a place, or from the beginning if there are none.
pub(super) async fn next(tx: &mut ReadTx, after: &AdvisoryAlias) -> Result<Option<ImagesOfAdvisories>> {
    let mut waiting = waiting(tx, after).await?;
    if waiting.is_empty() {
        waiting = self::waiting(tx, &AdvisoryAlias::default()).await?;
    }
    if waiting.is_empty() {
        return Ok(None);
    }
    let mut noted = ImagesOfAdvisories { images: BTreeSet::new(), done: Vec::new(), rest: None };
    for alias in waiting {
        let most = MAX_IMAGES - noted.images.len().min(MAX_IMAGES);
        if most == 0 {
            break;
        }
        let images = images_of(tx, &alias, most).await?;
        let last = images.last().filter(|_| images.len() == most).cloned();
        noted.images.extend(images);
        match last {
            Some(last) => {
                noted.rest = Some((alias, last));
                break;
            }
            None => noted.done.push(alias),
        }
    }
    Ok(Some(noted))
}

async fn waiting(tx: &mut ReadTx, after: &AdvisoryAlias) -> Result<Vec<WaitingAlias>> {
    let sql = "SELECT advisory, alias, after_repo, after_digest, noted FROM waiting_advisories
               WHERE (advisory, alias) > ($1, $2) ORDER BY advisory, alias LIMIT $3";
    let read = |row: &Row<'_>| {
        let (key, after) = ((row.text(0)?, row.text(1)?), (row.text(2)?, row.text(3)?));
        Ok::<_, Error>(WaitingAlias { key, after, noted: row.int(4)? })
    };
    tx.query(sql, &[Value::from(&after.0), Value::from(&after.1), Value::Int(MAX_ALIASES)], read).await
}

/// The next images in and below the group of the advisory that have the vulnerability, in order.
async fn images_of(tx: &mut ReadTx, waiting: &WaitingAlias, most: usize) -> Result<Vec<InRepo>> {
    let WaitingAlias { key: (advisory, alias), after, .. } = waiting;
    let ids = ids(tx, alias).await?;
    let group = advisory.rsplit_once('/').map_or("", |(group, _)| group);
    let below = UidRange::below(group);
    let first = after.0.as_str().max(below.lower.as_str());
    let digest = if first == after.0 { after.1.as_str() } else { "" };
    let mut sql = Sql::new("SELECT DISTINCT repo, digest FROM image_findings WHERE");
    sql.bind_list(" vulnerability IN ", ids.iter().map(Value::from));
    sql.bind(" AND (repo, digest) > (", first).bind(", ", digest).bind(") AND repo < ", &below.upper);
    sql.bind(" ORDER BY repo, digest LIMIT ", most as i64);
    tx.query(&sql.text, &sql.params, |row| Ok((row.text(0)?, row.text(1)?))).await
}

/// What findings may name a vulnerability by: as it is written, and as records that name it do.
async fn ids(tx: &mut ReadTx, alias: &str) -> Result<BTreeSet<String>> {
    let mut ids = BTreeSet::from(spellings(alias));
    let mut sql =
        Sql::new(format!("SELECT DISTINCT r.id FROM record_aliases a JOIN records r ON r.n = a.record {VISIBLE}"));
    sql.bind_list(" WHERE a.alias IN ", ids.iter().map(Value::from)).bind(" ORDER BY r.id LIMIT ", MAX_IDS);
    let records = tx.query(&sql.text, &sql.params, |row| row.text(0).map_err(Error::from)).await?;
    ids.extend(records);
    let mut sql = Sql::new("SELECT DISTINCT vulnerability FROM package_matches WHERE");
    sql.bind_list(" record_id IN ", ids.iter().map(Value::from)).bind(" ORDER BY vulnerability LIMIT ", MAX_IDS);
    let named = tx.query(&sql.text, &sql.params, |row| row.text(0).map_err(Error::from)).await?;
    ids.extend(named);
    Ok(ids)
}

/// An id in upper case, and as databases write those whose rest is in lower case, such as `GHSA-jfh8-c2jp-5v3q`.
fn spellings(id: &str) -> [String; 2] {
    let upper = id.to_uppercase();
    let lower = match upper.split_once('-') {
        Some((prefix, rest)) => format!("{prefix}-{}", rest.to_lowercase()),
        None => upper.clone(),
    };
    [upper, lower]
}

impl ImagesOfAdvisories {
    /// The last of those that were looked at.
    pub(super) fn last(&self) -> Option<&AdvisoryAlias> {
        let last = self.rest.as_ref().map(|(alias, _)| alias).or_else(|| self.done.last());
        last.map(|alias| &alias.key)
    }

    pub(super) async fn write(&self, tx: &mut WriteTx) -> Result<()> {
        note_images(tx, &self.images).await?;
        for WaitingAlias { key: (advisory, alias), noted, .. } in &self.done {
            let sql = "DELETE FROM waiting_advisories WHERE advisory = $1 AND alias = $2 AND noted = $3";
            tx.execute(sql, &[Value::from(advisory), Value::from(alias), Value::Int(*noted)]).await?;
        }
        if let Some((WaitingAlias { key: (advisory, alias), noted, .. }, (repo, digest))) = &self.rest {
            let sql = "UPDATE waiting_advisories SET after_repo = $4, after_digest = $5
                       WHERE advisory = $1 AND alias = $2 AND noted = $3";
            let key = [Value::from(advisory), Value::from(alias), Value::Int(*noted)];
            let [advisory, alias, noted] = key;
            tx.execute(sql, &[advisory, alias, noted, Value::from(repo), Value::from(digest)]).await?;
        }
        Ok(())
    }
}

/// A finding that advisories may be about.
pub(super) struct AssessedFinding<'a> {
    pub(super) repo: &'a str,
    pub(super) version: &'a PackageVersion,
    pub(super) finding: Finding,
}

/// What advisories say about a finding.
pub(super) struct Assessed {
    pub(super) status: FindingStatus,
    pub(super) advisory: Option<FindingAdvisory>,
    /// Whether it is closed by that: not affected, or fixed in this version of the package.
    pub(super) is_closed: bool,
}

/// What the advisories that the reader may read say about these, in their order.
pub(super) async fn assess(
    tx: &mut ReadTx,
    reader: &Reader<'_>,
    findings: &[AssessedFinding<'_>],
) -> Result<Vec<Assessed>> {
    let mut assessed = Vec::with_capacity(findings.len());
    for part in findings.chunks(AT_ONCE) {
        let about: Vec<(&str, &Finding)> = part.iter().map(|one| (one.repo, &one.finding)).collect();
        let advisories = applicable::load(tx, reader, &about).await?;
        let said: Vec<Assessment> = part.iter().map(|one| advisories.about(one.repo, &one.finding)).collect();
        // The fixed version of an advisory about a component is that of what contains it.
        let fixing = said.iter().filter(|said| said.status == FindingStatus::Fixed);
        let fixing: BTreeSet<String> = fixing.filter_map(Assessment::about_package).map(String::from).collect();
        let versions = fixed_versions(tx, fixing.iter()).await?;
        for (one, said) in part.iter().zip(said) {
            let fixed = said.about_package().and_then(|advisory| versions.get(advisory));
            let is_closed = match said.status {
                FindingStatus::NotAffected => true,
                FindingStatus::Fixed => fixed.is_some_and(|fixed| fixed.has(one.version)),
                _ => false,
            };
            assessed.push(Assessed { status: said.status, advisory: said.advisory, is_closed });
        }
    }
    Ok(assessed)
}

/// Those of the findings of an image that advisories of the groups at and above its repository close.
pub(super) async fn closed(
    tx: &mut ReadTx,
    repo: &str,
    current: &BTreeMap<FindingKey, BestMatch>,
) -> Result<BTreeSet<FindingKey>> {
    let mut closed = BTreeSet::new();
    if !applicable::has_any(tx, repo).await? {
        return Ok(closed);
    }
    let all: Vec<(&FindingKey, &BestMatch)> = current.iter().collect();
    for part in all.chunks(AT_ONCE) {
        let keys: Vec<&FindingKey> = part.iter().map(|(key, _)| *key).collect();
        let names = names(tx, &keys).await?;
        let findings = part.iter().map(|(key, best)| AssessedFinding {
            repo,
            version: &key.version,
            finding: finding(key, names.get(key), &best.component, &best.purl),
        });
        let findings: Vec<AssessedFinding<'_>> = findings.collect();
        let assessed = assess(tx, &Reader::Server, &findings).await?;
        let keys = keys.into_iter().zip(assessed).filter(|(_, assessed)| assessed.is_closed);
        closed.extend(keys.map(|(key, _)| key.clone()));
    }
    Ok(closed)
}

/// The ids that all records about these findings have and name: an advisory about one of them is about the vulnerability.
pub(super) async fn names(tx: &mut ReadTx, keys: &[&FindingKey]) -> Result<BTreeMap<FindingKey, BTreeSet<String>>> {
    let mut names: BTreeMap<FindingKey, BTreeSet<String>> = BTreeMap::new();
    if keys.is_empty() {
        return Ok(names);
    }
    let mut sql = Sql::new("WITH wanted (vulnerability, package, version) AS (VALUES ");
    for (at, key) in keys.iter().enumerate() {
        sql.bind(if at == 0 { "(" } else { ", (" }, &key.vulnerability);
        sql.bind(", ", &key.version.package).bind(", ", &key.version.version).push(")");
    }
    let hint = tx.index_hint("package_matches_by_vulnerability");
    sql.push(&format!(
        ") SELECT m.package, m.version, m.vulnerability, m.record_id, m.aliases
         FROM wanted w CROSS JOIN package_matches m {hint}
         WHERE m.vulnerability = w.vulnerability AND m.package = w.package AND m.version = w.version"
    ));
    let read = |row: &Row<'_>| {
        let key = FindingKey { version: PackageVersion::read(row)?, vulnerability: row.text(2)? };
        Ok::<_, Error>((key, row.text(3)?, row.text(4)?))
    };
    for (key, record_id, aliases) in tx.query(&sql.text, &sql.params, read).await? {
        let names = names.entry(key).or_default();
        names.insert(record_id);
        names.extend(aliases.split_whitespace().map(String::from));
    }
    Ok(names)
}

/// A finding as advisories are matched with it: its ids, its component, and its package URL.
pub(super) fn finding(key: &FindingKey, names: Option<&BTreeSet<String>>, component: &str, purl: &str) -> Finding {
    Finding {
        id: key.vulnerability.clone(),
        aliases: names.into_iter().flatten().cloned().collect(),
        package: component.to_owned(),
        version: key.version.version.clone(),
        purl: purl.to_owned(),
        ..Finding::default()
    }
}

impl FixedVersions {
    /// Whether the version is one of them.
    fn has(&self, version: &PackageVersion) -> bool {
        let key = |version_text: &str| version.order_key(version_text);
        match self {
            FixedVersions::From(fixed) => !fixed.is_empty() && key(&version.version) >= key(fixed),
            FixedVersions::Exactly(fixed) => fixed.iter().any(|fixed| key(&version.version) == key(fixed)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_looked_for_in_both_spellings() {
        assert_eq!(spellings("CVE-2021-44228"), ["CVE-2021-44228", "CVE-2021-44228"]);
        assert_eq!(spellings("GHSA-JFH8-C2JP-5V3Q"), ["GHSA-JFH8-C2JP-5V3Q", "GHSA-jfh8-c2jp-5v3q"]);
        assert_eq!(spellings("X"), ["X", "X"]);
    }

    #[test]
    fn a_version_is_fixed_from_the_first_fixed_one_on_or_if_it_is_patched() {
        let version = |version: &str| PackageVersion { package: "apk/wolfi/curl".into(), version: version.into() };
        let from = FixedVersions::From("8.10.0-r1".into());
        assert!(!from.has(&version("8.9.1-r5")) && !from.has(&version("8.10.0-r0")));
        assert!(from.has(&version("8.10.0-r1")) && from.has(&version("9.0.0-r0")));
        assert!(!FixedVersions::From(String::new()).has(&version("1")));
        let exactly = FixedVersions::Exactly(vec!["1.0-r1".into(), "2.0-r0".into()]);
        assert!(exactly.has(&version("2.0-r0")) && !exactly.has(&version("3.0-r0")));
    }
}
