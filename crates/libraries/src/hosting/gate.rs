//! What the policies in force withhold of a package.

use std::borrow::Cow;
use std::collections::HashMap;

use bowline_core::{Error, Micros, Uidp};
use bowline_store::ReadTx;

use super::notes::Note;
use super::package::Package;
use super::package_file::PackageFile;
use super::{HostError, Withheld, facts};
use crate::ecosystems::Language;
use crate::in_force::{self, InForce};
use crate::policies::{self, Mode};
use crate::policy::age::AgeSource;
use crate::policy::decide::{Decision, Policy, Refusal, Severity, Subject, Vulnerability, decide, vulnerable_at};
use crate::policy::purl;
use crate::vulnerabilities::{self, KnownVersions, PackageVulnerabilities};

/// What holds for a package in an organization.
pub(super) struct Gate {
    organization: Uidp,
    language: Language,
    pub(super) enforced: Option<Bound>,
    logged: Option<Bound>,
    /// What records say of the package; absent where they say nothing, or no policy has a rule about it.
    recorded: Option<Recorded>,
    /// What is wrong with versions, by their sort keys, where that was looked up for all.
    vulnerabilities: HashMap<Vec<u8>, Vec<Vulnerability>>,
}

/// Records of a package, with what decides since when there are fixes.
struct Recorded {
    records: PackageVulnerabilities,
    versions: KnownVersions,
    /// The lowest severity that a rule is about.
    minimum: Severity,
}

/// A policy in force with its name, exceptions and freeze; a freeze holds without a policy too.
pub(super) struct Bound {
    uid: Option<Uidp>,
    pub(super) name: String,
    policy: Policy,
    /// Whether the package is of a group.
    is_own: bool,
}

impl Gate {
    /// What is in force for a package. To what a group publishes itself it applies block list and license, and a freeze that
    /// says so: how long it has been public, and what is said of a public package of that name, is not about it.
    pub(super) async fn load(
        tx: &mut ReadTx,
        organization: &Uidp,
        language: Language,
        package: &Package,
        now: Micros,
    ) -> Result<Gate, Error> {
        let overrides = in_force::overrides(tx, organization, Some((language, &package.name)), now).await?;
        let (mut enforced, mut logged) = (None, None);
        for (mode, bound) in [(Mode::Enforced, &mut enforced), (Mode::Log, &mut logged)] {
            let found = in_force::find(tx, organization, language, mode, &overrides).await?;
            *bound = found.map(|InForce { policy_uid, name, policy }| Bound {
                uid: policy_uid,
                name,
                policy,
                is_own: package.is_hosted(),
            });
        }
        let mut gate = Gate {
            organization: organization.clone(),
            language,
            enforced,
            logged,
            recorded: None,
            vulnerabilities: HashMap::new(),
        };
        gate.recorded = gate.recorded(tx, package).await?;
        Ok(gate)
    }

    /// The same for what shows all versions of a package.
    pub(super) async fn load_whole(
        tx: &mut ReadTx,
        organization: &Uidp,
        language: Language,
        package: &Package,
        now: Micros,
    ) -> Result<Gate, Error> {
        let mut gate = Gate::load(tx, organization, language, package, now).await?;
        for file in package.files.iter().filter(|_| gate.recorded.is_some()) {
            if !gate.vulnerabilities.contains_key(&file.sort_key) {
                let found = gate.vulnerabilities_of(file).into_owned();
                gate.vulnerabilities.insert(file.sort_key.clone(), found);
            }
        }
        Ok(gate)
    }

    /// What records say of a package of an upstream, if a rule is about that.
    async fn recorded(&self, tx: &mut ReadTx, package: &Package) -> Result<Option<Recorded>, Error> {
        let rules = self.bound().filter_map(|bound| Some(bound.policy.vulnerabilities.as_ref()?.minimum));
        let (Some(minimum), Some(upstream)) = (rules.min(), &package.upstream) else { return Ok(None) };
        let Some(records) = vulnerabilities::of_package(tx, self.language, &package.name).await? else {
            return Ok(None);
        };
        let versions = match self.language {
            Language::Python | Language::JavaScript | Language::Cargo if package.is_whole => {
                versions_of(&package.files)
            }
            // Packages of Java and Go are looked for file by file.
            _ => facts::known_versions(tx, &upstream.uid, self.language, &package.name).await?,
        };
        Ok(Some(Recorded { records, versions, minimum }))
    }

    fn bound(&self) -> impl Iterator<Item = &Bound> {
        [&self.enforced, &self.logged].into_iter().flatten()
    }

    fn vulnerabilities_of(&self, file: &PackageFile) -> Cow<'_, [Vulnerability]> {
        if let Some(found) = self.vulnerabilities.get(&file.sort_key) {
            return Cow::Borrowed(found);
        }
        let of = |recorded: &Recorded| recorded.records.of_version(&file.version, recorded.minimum, &recorded.versions);
        Cow::Owned(self.recorded.as_ref().map(of).unwrap_or_default())
    }

    /// Whether what the policies say of a file depends on its license, which is known once it has been fetched.
    pub(super) fn needs_licenses(&self) -> bool {
        self.bound().any(|bound| !bound.policy.blocked_licenses.is_empty())
    }

    /// The files of a package that the policy in force refuses, by name.
    ///
    /// # Errors
    /// It refuses the package itself.
    pub(super) fn refused<'a>(
        &self,
        package: &'a Package,
        now: Micros,
    ) -> std::result::Result<HashMap<&'a str, Refusal>, HostError> {
        let Some(bound) = &self.enforced else { return Ok(HashMap::new()) };
        let name = &package.name;
        let refusal = |file: &'a PackageFile| {
            let vulnerabilities = self.vulnerabilities_of(file);
            let subject = bound.subject(self.language, name, file, &vulnerabilities);
            Some((file.name.as_str(), bound.refusal(&subject, now)?))
        };
        let refused: HashMap<&str, Refusal> = package.files.iter().filter_map(refusal).collect();
        match refused.values().next() {
            Some(refusal) if refused.len() == package.files.len() && refused.values().all(is_of_all_versions) => {
                let purl = purl::of_package(self.language, name);
                Err(HostError::Withheld(Withheld::new(purl, &bound.name, refusal)))
            }
            _ => Ok(refused),
        }
    }

    /// When time alone changes what is refused of a package, in microseconds; absent if that does not.
    pub(super) fn changes_at(&self, refused: &HashMap<&str, Refusal>, now: Micros) -> Option<Micros> {
        let of_version =
            |found: &Vec<Vulnerability>| vulnerable_at(&self.enforced.as_ref()?.policy, self.language, found, now);
        let later = self.vulnerabilities.values().filter_map(of_version);
        refused.values().filter_map(Refusal::ends_at).chain(later).min()
    }

    /// What the policies say of a file: a note for each that refuses it, and what to answer where that is enforced.
    pub(super) fn decided(&self, package: &str, file: &PackageFile, now: Micros) -> Vec<(Note, Option<Withheld>)> {
        let modes = [(Mode::Enforced, &self.enforced), (Mode::Log, &self.logged)];
        let vulnerabilities = self.vulnerabilities_of(file);
        let refused = modes.into_iter().filter_map(|(mode, bound)| {
            let bound = bound.as_ref()?;
            let subject = bound.subject(self.language, package, file, &vulnerabilities);
            let refusal = bound.refusal(&subject, now)?;
            let purl = purl::of_version(self.language, package, &file.version);
            let withheld = (mode == Mode::Enforced).then(|| Withheld::new(purl, &bound.name, &refusal));
            let note = Note {
                organization: self.organization.clone(),
                language: self.language,
                package: package.to_owned(),
                version: file.version.clone(),
                policy: bound.uid.clone().filter(|_| refusal.is_of_policy()),
                mode,
                refusal,
            };
            Some((note, withheld))
        });
        refused.collect()
    }
}

impl Bound {
    /// A file as the policy is about it. Its own age counts: a file may come to an old version today.
    fn subject<'a>(
        &self,
        language: Language,
        package: &'a str,
        file: &'a PackageFile,
        vulnerabilities: &'a [Vulnerability],
    ) -> Subject<'a> {
        Subject {
            language,
            name: package,
            version: &file.version,
            license: &file.license,
            is_malware: file.is_malware,
            age: file.age(),
            vulnerabilities,
            is_own: self.is_own,
        }
    }

    /// Why the policy refuses it.
    fn refusal(&self, subject: &Subject<'_>, now: Micros) -> Option<Refusal> {
        match decide(&self.policy, subject, now) {
            Decision::Allowed => None,
            Decision::Refused(refusal) => Some(refusal),
        }
    }
}

/// Whether what the policies of an organization say of files depends on licenses.
pub(super) async fn needs_licenses(tx: &mut ReadTx, organization: &Uidp, language: Language) -> Result<bool, Error> {
    is_any_in_force(tx, organization, language, |policy| !policy.blocked_licenses.is_empty()).await
}

/// Whether what the policies of an organization say of versions depends on when they were seen first.
pub(super) async fn needs_first_seen(tx: &mut ReadTx, organization: &Uidp, language: Language) -> Result<bool, Error> {
    is_any_in_force(tx, organization, language, |policy| policy.age_source != AgeSource::Upstream).await
}

/// Whether a policy in force for an ecosystem is of a kind.
async fn is_any_in_force(
    tx: &mut ReadTx,
    organization: &Uidp,
    language: Language,
    is_of_kind: fn(&Policy) -> bool,
) -> Result<bool, Error> {
    for mode in [Mode::Enforced, Mode::Log] {
        let found = policies::named_in_force(tx, organization, language, mode).await?;
        if found.is_some_and(|(_, _, policy)| is_of_kind(&policy)) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The versions of a whole package.
fn versions_of(files: &[PackageFile]) -> KnownVersions {
    let mut versions = KnownVersions::new(true);
    for file in files {
        versions.add(&file.sort_key, &file.version, file.age());
    }
    versions
}

/// Whether a refusal is of the package rather than of some versions, as far as it says.
fn is_of_all_versions(refusal: &Refusal) -> bool {
    match refusal {
        Refusal::Blocked(pattern) => pattern.is_of_all_versions(),
        Refusal::Malware => true,
        Refusal::License(_) | Refusal::Cooldown { .. } | Refusal::Frozen { .. } | Refusal::Vulnerable(_) => false,
    }
}
