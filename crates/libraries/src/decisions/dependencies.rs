//! What a version requires, and what of that is withheld: an exception for the version covers none of it.

mod declared;
mod requirement;
mod walk;

use std::collections::{BTreeSet, HashMap};

use bowline_contract::bowline::libraries::v1 as own;
use bowline_core::{Error, FieldViolation, Micros, Reason, Result};
use bowline_pipeline::Authorized;
use bowline_store::ReadTx;

use self::requirement::{DependencyChoice, RequiredVersions, VersionRequirement};
use self::walk::{DependencyEdge, DependencyWalk, VersionNode, WalkLimits};
use super::facts::{Facts, PackageReports, VersionName};
use super::{in_force, lowest, parsed, purl_violations, readable, shown};
use crate::ecosystems::Language;
use crate::hosting::{PackageReader, StoredPackage, StoredVersion};
use crate::policies::Mode;
use crate::policy::decide::{Decision, Policy, decide};
use crate::policy::purl;
use crate::require_organization;
use crate::vulnerabilities::KnownVersions;

/// How much of what versions require is followed.
const LIMITS: WalkLimits = WalkLimits { packages: 500, edges: 2000, depth: 20 };
/// Manifests that are in memory together.
const MANIFESTS_AT_ONCE: usize = 32;
/// Versions that requirements are compared with in all.
const COMPARISONS: usize = 4_000_000;
const TOO_MANY: &str = "its versions were not compared: those of all packages are too many";
const NOT_STORED: &str = "no version of it is stored here";
const TOO_LARGE: &str = "it was not read: the documents of all packages are too large";

/// Refuses what is no version, or of an ecosystem whose requirements are not stored.
pub(super) fn violations(request: &own::ExplainDependenciesRequest) -> Vec<FieldViolation> {
    let mut wrong: Vec<FieldViolation> = purl_violations("purl", &request.purl).collect();
    if let Ok(version) = VersionName::parse(&request.purl)
        && !matches!(version.language, Language::JavaScript | Language::Python | Language::Cargo)
    {
        let description = format!(
            "dependencies of {} are not stored: `bowline libraries check LOCKFILE` checks all versions that a lock file pins",
            version.language.word()
        );
        wrong.push(FieldViolation { field: "purl".into(), description });
    }
    wrong
}

pub(super) async fn explain(
    tx: &mut ReadTx,
    call: &Authorized<own::ExplainDependenciesRequest>,
) -> Result<own::PackageDependencies> {
    let organization = require_organization(tx, call).await?;
    let version = parsed("purl", &call.request().purl)?;
    let language = version.language;
    let overrides = in_force::overrides(tx, &organization, None, call.now()).await?;
    let enforced = in_force::find(tx, &organization, language, Mode::Enforced, &overrides).await?;
    let policy = enforced.map(|found| found.policy);
    let shows_own = readable(call, &organization).contains(&language);
    let mut tree = DependencyTree {
        reader: PackageReader::open(tx, &organization, language, shows_own).await?,
        language,
        packages: HashMap::new(),
        listed: HashMap::new(),
        reports: PackageReports::new(language, lowest(policy.as_ref())),
        policy,
        now: call.now(),
    };
    let (edges, incomplete) = tree.walk(tx, &version).await?;
    Ok(own::PackageDependencies {
        purl: version.purl(),
        incomplete: incomplete || !tree.reader.left_out.is_empty(),
        dependencies: edges.into_iter().map(|edge| tree.shown(edge)).collect(),
    })
}

/// Which versions are withheld, as far as that was decided, and with how many more versions requirements are compared.
struct DecidedVersions {
    withheld: HashMap<VersionNode, bool>,
    comparisons_left: usize,
    /// Whether a requirement was not compared, since its package has more versions than that.
    is_cut: bool,
}

impl DecidedVersions {
    fn new() -> DecidedVersions {
        DecidedVersions { withheld: HashMap::new(), comparisons_left: COMPARISONS, is_cut: false }
    }

    /// Whether a requirement is compared with so many versions.
    fn takes(&mut self, versions: usize) -> bool {
        let left = self.comparisons_left.checked_sub(versions);
        self.is_cut |= left.is_none();
        self.comparisons_left = left.unwrap_or_default();
        left.is_some()
    }
}

/// What is read of packages, and what decides about them.
struct DependencyTree<'a> {
    reader: PackageReader<'a>,
    language: Language,
    packages: HashMap<String, StoredPackage>,
    /// The versions of each package among which fixes are looked for, if a policy needs them.
    listed: HashMap<String, KnownVersions>,
    reports: PackageReports,
    policy: Option<Policy>,
    now: Micros,
}

impl DependencyTree<'_> {
    /// Walks from a version to all that it requires.
    ///
    /// # Errors
    /// NOT_FOUND if what it requires is not stored.
    async fn walk(&mut self, tx: &mut ReadTx, version: &VersionName) -> Result<(Vec<DependencyEdge>, bool)> {
        self.read(tx, BTreeSet::from([version.name.clone()])).await?;
        let key = self.language.order_key(&version.version);
        let stored = self.packages.get(&version.name).map(|package| package.versions.as_slice()).unwrap_or_default();
        let first = stored.iter().find(|stored| stored.sort_key == key).map(|stored| stored.version.clone());
        let first: VersionNode = (version.name.clone(), first.ok_or_else(|| not_stored(version))?);
        let (mut walk, mut decided) = (DependencyWalk::from(first.clone(), LIMITS), DecidedVersions::new());
        while !walk.level().is_empty() {
            let requirements = self.requirements(tx, walk.level(), walk.room()).await?;
            if walk.level().first() == Some(&first) && !requirements.contains_key(&first) {
                return Err(not_stored(version));
            }
            let new = walk.require(requirements);
            self.read(tx, new).await?;
            walk.choose(|requirement| self.choice(requirement, &mut decided));
        }
        let (edges, incomplete) = walk.end(&first);
        Ok((edges, incomplete || decided.is_cut))
    }

    /// Reads packages, and what is said of them.
    async fn read(&mut self, tx: &mut ReadTx, names: BTreeSet<String>) -> Result<()> {
        if names.is_empty() {
            return Ok(());
        }
        let packages = self.reader.packages(tx, &names).await?;
        self.reports.add(tx, &packages.keys().map(String::as_str).collect()).await?;
        if self.reports.need_versions() {
            self.listed.extend(packages.iter().map(|(name, package)| (name.clone(), package.facts.known_versions())));
        }
        self.packages.extend(packages);
        Ok(())
    }

    /// What versions require, without those that are not known to, and those for which there is no room.
    async fn requirements(
        &mut self,
        tx: &mut ReadTx,
        level: &[VersionNode],
        room: usize,
    ) -> Result<HashMap<VersionNode, Vec<VersionRequirement>>> {
        let (mut read, mut count) = (HashMap::new(), 0);
        // Versions of one package together: its manifests are unpacked for each part.
        let mut nodes = level.to_vec();
        nodes.sort_unstable();
        for part in nodes.chunks(MANIFESTS_AT_ONCE) {
            if count > room || room == 0 {
                break;
            }
            let manifests = self.reader.manifests(tx, &self.packages, part).await?;
            for node in part {
                let manifest = manifests.get(node);
                let requirements =
                    manifest.and_then(|manifest| declared::requirements(self.language, manifest, room + 1));
                let Some(requirements) = requirements else { continue };
                count += requirements.len();
                read.insert(node.clone(), requirements);
                if count > room {
                    break;
                }
            }
        }
        Ok(read)
    }

    /// Chooses a version; whether one is withheld is decided once for all requirements.
    fn choice(&self, requirement: &VersionRequirement, decided: &mut DecidedVersions) -> DependencyChoice {
        if let RequiredVersions::Unclear(why) = requirement.versions {
            return DependencyChoice::Unknown(why);
        }
        let name = &requirement.name;
        let Some(package) = self.packages.get(name).filter(|package| !package.versions.is_empty()) else {
            let is_left_out = self.reader.left_out.contains(name);
            return DependencyChoice::Unknown(if is_left_out { TOO_LARGE } else { NOT_STORED });
        };
        if !decided.takes(package.versions.len() * requirement.versions.comparisons()) {
            return DependencyChoice::Unknown(TOO_MANY);
        }
        let is_withheld = |stored: &StoredVersion| {
            let Some(policy) = &self.policy else { return false };
            *decided.withheld.entry((name.clone(), stored.version.clone())).or_insert_with(|| {
                let (version, facts) = self.facts(name, stored);
                decide(policy, &facts.subject(&version), self.now) != Decision::Allowed
            })
        };
        requirement::choose(&requirement.versions, (&package.versions, &package.tags), is_withheld)
    }

    /// What decides about a version of a package that was read.
    fn facts(&self, name: &str, stored: &StoredVersion) -> (VersionName, Facts) {
        let version = VersionName { language: self.language, name: name.to_owned(), version: stored.version.clone() };
        let facts = self
            .packages
            .get(name)
            .map(|package| self.reports.facts(&version, &stored.sort_key, &package.facts, self.listed.get(name)));
        (version, facts.unwrap_or_default())
    }

    fn shown(&self, edge: DependencyEdge) -> own::PackageDependency {
        let DependencyEdge { from: (from, version), requirement, choice } = edge;
        let name = &requirement.name;
        let is_name = self.language.validate_name(name).is_ok();
        let decision = |version: &str| {
            let stored = self.packages.get(name)?.versions.iter().find(|stored| stored.version == version)?;
            let (version, facts) = self.facts(name, stored);
            Some(shown(&version, &facts, self.policy.as_ref(), self.now))
        };
        let (state, because) = match choice {
            DependencyChoice::Allowed(_) => (own::DependencyState::Allowed, ""),
            DependencyChoice::Older { .. } => (own::DependencyState::Older, ""),
            DependencyChoice::Held(_) => (own::DependencyState::Held, ""),
            DependencyChoice::Unknown(why) => (own::DependencyState::Unknown, why),
        };
        let chosen = choice.chosen().map(|version| purl::of_version(self.language, name, version));
        own::PackageDependency {
            purl: if is_name { purl::of_package(self.language, name) } else { String::new() },
            required_by: purl::of_version(self.language, &from, &version),
            optional: requirement.is_optional,
            state: state as i32,
            chosen: chosen.unwrap_or_default(),
            withheld: choice.withheld().and_then(decision),
            unknown_because: because.into(),
            requirement: requirement.text,
        }
    }
}

fn not_stored(version: &VersionName) -> Error {
    let text = format!("Not found: what {} requires is not stored here", version.purl());
    Error::new(Reason::NotFound, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_up_to_a_bound() {
        let mut decided = DecidedVersions::new();
        assert!(decided.takes(COMPARISONS - 1) && decided.takes(1) && !decided.is_cut);
        assert!(!decided.takes(1) && decided.is_cut);
    }
}
