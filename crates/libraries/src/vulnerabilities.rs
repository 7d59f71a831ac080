//! What records of vulnerabilities say of versions of a package.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use bowline_core::Result;
use bowline_osv::{PackageKey, Rating, VersionQuery};
use bowline_store::ReadTx;
use bowline_versions::Version;
use bowline_vulnerabilities::records::{self, PackageRecord};

use super::ecosystems::Language;
use super::malware;
use super::policy::age::Age;
use super::policy::decide::{Fix, Severity, Vulnerability};

/// How records of malware begin: the list of malware decides about them.
const MALWARE: &str = "MAL-";

/// The records of a package.
#[derive(Debug)]
pub(super) struct PackageVulnerabilities {
    language: Language,
    records: Vec<PackageRecord>,
}

/// The versions that a package is known to have.
#[derive(Debug)]
pub(super) struct KnownVersions {
    /// With their ages, by their sort keys.
    versions: BTreeMap<Vec<u8>, (String, Age)>,
    /// Whether these are all: files of Java and Go are served without a list.
    are_all: bool,
}

impl KnownVersions {
    pub(super) fn new(are_all: bool) -> KnownVersions {
        KnownVersions { versions: BTreeMap::new(), are_all }
    }

    /// Adds a version by its sort key; of several files of one, the first that became public counts.
    pub(super) fn add(&mut self, sort_key: &[u8], version: &str, age: Age) {
        let (_, known) = self.versions.entry(sort_key.to_vec()).or_insert_with(|| (version.to_owned(), age));
        *known = known.or_older(age);
    }
}

/// The records of some packages, by their names; packages without one are left out.
pub(super) async fn of_names(
    tx: &mut ReadTx,
    language: Language,
    names: &BTreeSet<&str>,
) -> Result<HashMap<String, PackageVulnerabilities>> {
    let ecosystem = malware::spelled(language);
    let list: Vec<&str> = names.iter().copied().collect();
    let mut by_package: HashMap<String, Vec<PackageRecord>> = HashMap::new();
    for record in records::of_packages(tx, ecosystem, &list).await? {
        if !record.id.starts_with(MALWARE) {
            by_package.entry(record.package.clone()).or_default().push(record);
        }
    }
    let of = |name: &&str| {
        let records = by_package.remove(PackageKey::new(ecosystem, name).as_str())?;
        Some(((*name).to_owned(), PackageVulnerabilities { language, records }))
    };
    Ok(names.iter().filter_map(of).collect())
}

/// The records of a package; absent if there are none.
pub(super) async fn of_package(
    tx: &mut ReadTx,
    language: Language,
    name: &str,
) -> Result<Option<PackageVulnerabilities>> {
    Ok(of_names(tx, language, &BTreeSet::from([name])).await?.remove(name))
}

/// Stands for the records of a package.
pub(super) async fn stamp(tx: &mut ReadTx, language: Language, name: &str) -> Result<Vec<i64>> {
    records::numbers_of_package(tx, malware::spelled(language), name).await
}

impl PackageVulnerabilities {
    /// The vulnerabilities of a version from a severity on, the most severe first.
    pub(super) fn of_version(&self, version: &str, minimum: Severity, known: &KnownVersions) -> Vec<Vulnerability> {
        let query = self.query(version);
        let severe = self.records.iter().filter(|record| severity(record.rating) >= minimum);
        let affecting = severe.filter(|record| query.is_in(&record.ranges));
        let mut found: Vec<Vulnerability> = affecting
            .map(|record| Vulnerability {
                id: record.id.clone(),
                severity: severity(record.rating),
                fix: self.fix(record, version, known),
            })
            .collect();
        found.sort_by(|one, other| (other.severity, &one.id).cmp(&(one.severity, &other.id)));
        found
    }

    /// The lowest later release that a record does not affect, of those that are known; where not all are, the version that the
    /// record names. A fix without a time has been there since the record was published.
    fn fix(&self, record: &PackageRecord, version: &str, known: &KnownVersions) -> Option<Fix> {
        let own = self.language.order_key(version);
        let later = known.versions.range(own.clone()..).filter(|(key, _)| **key != own);
        let is_fix = |text: &str| is_release(self.language, text) && !self.query(text).is_in(&record.ranges);
        for (_, (text, age)) in later {
            if is_fix(text) {
                return Some(Fix { version: text.clone(), age: *age, recorded_at: record.published });
            }
        }
        let query = self.query(version);
        let named = query.fixed_in(&record.ranges).filter(|_| !known.are_all)?;
        Some(Fix { version: named.to_owned(), age: Age::default(), recorded_at: record.published })
    }

    fn query<'a>(&self, version: &'a str) -> VersionQuery<'a> {
        VersionQuery::new(malware::spelled(self.language), Some(version))
    }
}

fn is_release(language: Language, version: &str) -> bool {
    Version::parse(language.scheme(), version).is_ok_and(|version| !version.is_prerelease())
}

/// The severity of a rating; of none, the one that clients of npm take an advisory for that says nothing.
fn severity(rating: Option<Rating>) -> Severity {
    match rating {
        Some(Rating::None | Rating::Low) => Severity::Low,
        Some(Rating::Medium) => Severity::Medium,
        Some(Rating::High) | None => Severity::High,
        Some(Rating::Critical) => Severity::Critical,
    }
}
