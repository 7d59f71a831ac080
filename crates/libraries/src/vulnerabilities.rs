//! What records of vulnerabilities say of versions of a package.

use std::collections::{BTreeSet, HashMap};

use bowline_core::{Micros, Result};
use bowline_osv::{PackageKey, Rating, VersionQuery};
use bowline_store::ReadTx;
use bowline_vulnerabilities::records::{PackageRecord, of_packages};

use super::ecosystems::Language;
use super::malware;
use super::policy::decide::{Fix, Severity, Vulnerability};

/// How records of malware begin: the list of malware decides about them.
const MALWARE: &str = "MAL-";

/// The records of a package.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PackageVulnerabilities {
    language: Language,
    records: Vec<PackageRecord>,
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
    for record in of_packages(tx, ecosystem, &list).await? {
        if !record.id.starts_with(MALWARE) {
            by_package.entry(record.package.clone()).or_default().push(record);
        }
    }
    let of = |name: &&str| {
        let records = by_package.get(PackageKey::new(ecosystem, name).as_str())?.clone();
        Some(((*name).to_owned(), PackageVulnerabilities { language, records }))
    };
    Ok(names.iter().filter_map(of).collect())
}

/// The records of a package.
pub(super) async fn of_package(tx: &mut ReadTx, language: Language, name: &str) -> Result<PackageVulnerabilities> {
    let found = of_names(tx, language, &BTreeSet::from([name])).await?.remove(name);
    Ok(found.unwrap_or(PackageVulnerabilities { language, records: Vec::new() }))
}

impl PackageVulnerabilities {
    pub(super) fn records(&self) -> &[PackageRecord] {
        &self.records
    }

    pub(super) fn into_records(self) -> Vec<PackageRecord> {
        self.records
    }

    /// The vulnerabilities of a version. `published_at` is when another version became public, where that is known; a fix
    /// without that has been there since its record was changed last, at the latest.
    pub(super) fn of_version(
        &self,
        version: &str,
        published_at: impl Fn(&[u8]) -> Option<Micros>,
    ) -> Vec<Vulnerability> {
        let query = VersionQuery::new(malware::spelled(self.language), Some(version));
        let affecting = self.records.iter().filter(|record| query.is_in(&record.ranges));
        let vulnerability = |record: &PackageRecord| Vulnerability {
            id: record.id.clone(),
            severity: severity(record.rating),
            fix: query.fixed_in(&record.ranges).map(|fixed| Fix {
                version: fixed.to_owned(),
                since: published_at(&self.language.order_key(fixed)).unwrap_or(record.modified),
            }),
        };
        affecting.map(vulnerability).collect()
    }
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
