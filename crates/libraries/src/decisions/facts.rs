//! What policies need to know of versions, read for many at once.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use bowline_core::{Error, Micros, Result, Uidp};
use bowline_store::{ReadTx, Row, Value};
use bowline_versions::order_key;

use crate::ecosystems::Language;
use crate::hosting::{self, PackageFacts};
use crate::malware::{self, Withheld};
use crate::policy::age::Age;
use crate::policy::decide::{Severity, Subject, Vulnerability};
use crate::policy::purl;
use crate::vulnerabilities::{self, KnownVersions, PackageVulnerabilities};

/// Versions that one statement reads.
const AT_ONCE: usize = 64;

/// A version of a package, as the catalogue names both.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct VersionName {
    pub(super) language: Language,
    pub(super) name: String,
    pub(super) version: String,
}

impl VersionName {
    /// Reads a package URL that names one version.
    pub(super) fn parse(text: &str) -> std::result::Result<VersionName, String> {
        let (language, name, version) =
            purl::Pattern::parse(text)?.one_version().ok_or("must name one version, such as pkg:npm/left-pad@1.3.0")?;
        Ok(VersionName { language, name, version })
    }

    pub(super) fn purl(&self) -> String {
        purl::of_version(self.language, &self.name, &self.version)
    }
}

/// Whose downloads are decided, and what of that is looked up.
pub(super) struct Scope<'a> {
    pub(super) organization: &'a Uidp,
    /// The ecosystems whose own packages count.
    pub(super) readable: &'a [Language],
    /// The lowest severity that a rule of a policy is about; absent if there is no rule.
    pub(super) minimum: Option<Severity>,
}

/// What is known of a version; the default is known of none.
#[derive(Clone, Debug, Default)]
pub(super) struct Facts {
    pub(super) is_known: bool,
    pub(super) license: String,
    pub(super) age: Age,
    pub(super) is_malware: bool,
    /// What records say of it; empty where no policy has a rule about that.
    pub(super) vulnerabilities: Vec<Vulnerability>,
    /// Whether its name is the organization's own, so that what is said of a public package of that name is not about it.
    pub(super) is_own: bool,
}

impl Facts {
    /// Takes the facts by which downloads are decided, where a version with this sort key is published by a group or comes from an
    /// upstream; `records` are those of a public package of that name, and the versions among which fixes are looked for.
    fn complete(
        &mut self,
        package: &PackageFacts,
        (version, key): (&str, &[u8]),
        records: Option<((&PackageVulnerabilities, Severity), &KnownVersions)>,
    ) {
        if package.is_own {
            *self = Facts { is_own: true, ..Facts::default() };
        }
        if let Some(known) = package.versions.get(key) {
            self.is_known = true;
            self.age = known.age;
            if !known.license.is_empty() {
                self.license.clone_from(&known.license);
            }
        }
        if let Some(((records, minimum), listed)) = records.filter(|_| !package.is_own) {
            self.vulnerabilities = records.of_version(version, minimum, listed);
        }
    }

    pub(super) fn subject<'a>(&'a self, version: &'a VersionName) -> Subject<'a> {
        Subject {
            language: version.language,
            name: &version.name,
            version: &version.version,
            license: &self.license,
            is_malware: self.is_malware,
            age: self.age,
            vulnerabilities: &self.vulnerabilities,
            is_own: self.is_own,
        }
    }
}

/// The facts of versions that [`load`] was given.
pub(super) fn of<'a>(facts: &'a HashMap<VersionName, Facts>, version: &VersionName) -> &'a Facts {
    static UNKNOWN: Facts = Facts {
        is_known: false,
        license: String::new(),
        age: Age::UNKNOWN,
        is_malware: false,
        vulnerabilities: Vec::new(),
        is_own: false,
    };
    facts.get(version).unwrap_or(&UNKNOWN)
}

/// The facts by which an organization's downloads of these versions are decided: those of its groups or upstreams where they
/// have the package, else those of the catalogue. Own packages count in the ecosystems that are readable: others see them as
/// unknown ones.
pub(super) async fn load_for(
    tx: &mut ReadTx,
    scope: &Scope<'_>,
    versions: &[VersionName],
) -> Result<HashMap<VersionName, Facts>> {
    let mut facts = load(tx, versions).await?;
    let packages: BTreeSet<(Language, &str)> =
        versions.iter().map(|version| (version.language, version.name.as_str())).collect();
    let vulnerabilities = if scope.minimum.is_some() { recorded(tx, &packages).await? } else { HashMap::new() };
    for (language, name) in packages {
        let known = hosting::package_facts(tx, scope.organization, language, name).await?;
        if known.is_own && !scope.readable.contains(&language) {
            continue;
        }
        let records = vulnerabilities.get(&(language, name.to_owned())).zip(scope.minimum);
        let listed = known.known_versions();
        for version in versions.iter().filter(|version| version.language == language && version.name == name) {
            let key = order_key(language.scheme(), &version.version);
            let facts = facts.entry(version.clone()).or_default();
            facts.complete(&known, (&version.version, &key), records.map(|records| (records, &listed)));
        }
    }
    Ok(facts)
}

/// What is reported and recorded of packages, for versions of which all else is read already.
pub(super) struct PackageReports {
    language: Language,
    minimum: Option<Severity>,
    malware: HashMap<String, Withheld>,
    vulnerabilities: HashMap<String, PackageVulnerabilities>,
}

impl PackageReports {
    /// Nothing yet; `minimum` is the lowest severity that a rule is about.
    pub(super) fn new(language: Language, minimum: Option<Severity>) -> PackageReports {
        let (malware, vulnerabilities) = Default::default();
        PackageReports { language, minimum, malware, vulnerabilities }
    }

    /// Adds what is said of some packages.
    pub(super) async fn add(&mut self, tx: &mut ReadTx, names: &BTreeSet<&str>) -> Result<()> {
        self.malware.extend(malware::withheld_of(tx, self.language, names).await?);
        if self.minimum.is_some() {
            self.vulnerabilities.extend(vulnerabilities::of_names(tx, self.language, names).await?);
        }
        Ok(())
    }

    /// Whether the versions of packages are needed, among which fixes are looked for.
    pub(super) fn need_versions(&self) -> bool {
        self.minimum.is_some()
    }

    /// The facts about a version with this sort key; `listed` are the versions of its package, where they are needed.
    pub(super) fn facts(
        &self,
        version: &VersionName,
        key: &[u8],
        package: &PackageFacts,
        listed: Option<&KnownVersions>,
    ) -> Facts {
        let is_malware = self.malware.get(&version.name).is_some_and(|found| found.has(&version.version, key));
        let mut facts = Facts { is_malware, ..Facts::default() };
        let records = self.vulnerabilities.get(&version.name).zip(self.minimum).zip(listed);
        facts.complete(package, (&version.version, key), records);
        facts
    }
}

/// The records of packages, by ecosystem and name.
async fn recorded(
    tx: &mut ReadTx,
    packages: &BTreeSet<(Language, &str)>,
) -> Result<HashMap<(Language, String), PackageVulnerabilities>> {
    let mut names: BTreeMap<Language, BTreeSet<&str>> = BTreeMap::new();
    for (language, name) in packages {
        names.entry(*language).or_default().insert(name);
    }
    let mut found = HashMap::new();
    for (language, names) in names {
        let of_language = vulnerabilities::of_names(tx, language, &names).await?;
        found.extend(of_language.into_iter().map(|(name, records)| ((language, name), records)));
    }
    Ok(found)
}

/// The facts about these versions from the catalogue and the list of malware.
async fn load(tx: &mut ReadTx, versions: &[VersionName]) -> Result<HashMap<VersionName, Facts>> {
    let mut facts: HashMap<VersionName, Facts> = HashMap::with_capacity(versions.len());
    for chunk in versions.chunks(AT_ONCE) {
        for (artifact, number, license, published_at) in catalogued(tx, chunk).await? {
            let is_it = |version: &&VersionName| {
                version.version == number && version.language.artifact_id(&version.name) == artifact
            };
            let Some(version) = chunk.iter().find(is_it) else { continue };
            let known = facts.entry(version.clone()).or_default();
            known.is_known = true;
            if known.license.is_empty() {
                known.license = license;
            }
            // Of several sources the first publication counts.
            known.age = known.age.or_older(Age::published(published_at));
        }
    }
    let mut packages: BTreeMap<Language, BTreeSet<&str>> = BTreeMap::new();
    for version in versions {
        packages.entry(version.language).or_default().insert(&version.name);
    }
    for (language, names) in packages {
        let withheld = malware::withheld_of(tx, language, &names).await?;
        for version in versions.iter().filter(|version| version.language == language) {
            let Some(withheld) = withheld.get(&version.name) else { continue };
            let key = order_key(language.scheme(), &version.version);
            if withheld.has(&version.version, &key) {
                facts.entry(version.clone()).or_default().is_malware = true;
            }
        }
    }
    Ok(facts)
}

type CatalogueRow = (String, String, String, Option<Micros>);

/// The rows of the catalogue for these versions: one for each source.
async fn catalogued(tx: &mut ReadTx, versions: &[VersionName]) -> Result<Vec<CatalogueRow>> {
    let ids: Vec<String> = versions.iter().map(|version| version.language.artifact_id(&version.name)).collect();
    let mut params = Vec::with_capacity(2 * AT_ONCE);
    let mut conditions = Vec::with_capacity(AT_ONCE);
    // A few widths instead of any number, so that few texts fill the statement caches.
    let width = versions.len().next_power_of_two();
    for at in 0..width {
        let at = at.min(versions.len() - 1);
        conditions.push(format!("(v.artifact = ${} AND v.version = ${})", params.len() + 1, params.len() + 2));
        params.push(Value::from(&ids[at]));
        params.push(Value::from(&versions[at].version));
    }
    let sql = format!(
        "SELECT v.artifact, v.version, CASE WHEN v.license <> '' THEN v.license ELSE a.license END, v.published_at
         FROM library_versions v JOIN library_artifacts a ON a.id = v.artifact WHERE {}",
        conditions.join(" OR ")
    );
    let read = |row: &Row<'_>| Ok::<_, Error>((row.text(0)?, row.text(1)?, row.text(2)?, row.opt_int(3)?));
    tx.query(&sql, &params, read).await
}
