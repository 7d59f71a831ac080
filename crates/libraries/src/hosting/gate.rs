//! What the policies in force withhold of a package.

use std::collections::HashMap;

use bowline_core::{Error, Micros, Uidp};
use bowline_store::ReadTx;

use super::notes::Note;
use super::package::Package;
use super::package_file::PackageFile;
use super::{HostError, Withheld};
use crate::ecosystems::Language;
use crate::in_force::{self, InForce};
use crate::policies::{self, Mode};
use crate::policy::decide::{Decision, Policy, Refusal, Subject, Vulnerability, decide, vulnerable_at};
use crate::policy::purl;
use crate::vulnerabilities;

/// What holds for a package in an organization.
pub(super) struct Gate {
    organization: Uidp,
    language: Language,
    pub(super) enforced: Option<Bound>,
    logged: Option<Bound>,
    /// What is known to be wrong with versions, by their sort keys; empty where no policy has a rule about it.
    vulnerabilities: HashMap<Vec<u8>, Vec<Vulnerability>>,
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
        let mut gate =
            Gate { organization: organization.clone(), language, enforced, logged, vulnerabilities: HashMap::new() };
        if !package.is_hosted() && gate.bound().any(|bound| bound.policy.vulnerabilities.is_some()) {
            gate.vulnerabilities = known(tx, language, package).await?;
        }
        Ok(gate)
    }

    fn bound(&self) -> impl Iterator<Item = &Bound> {
        [&self.enforced, &self.logged].into_iter().flatten()
    }

    fn vulnerabilities_of(&self, file: &PackageFile) -> &[Vulnerability] {
        self.vulnerabilities.get(&file.sort_key).map_or(&[], Vec::as_slice)
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
            let subject = bound.subject(self.language, name, file, self.vulnerabilities_of(file));
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
        let of_version = |found: &Vec<Vulnerability>| vulnerable_at(&self.enforced.as_ref()?.policy, found, now);
        let later = self.vulnerabilities.values().filter_map(of_version);
        refused.values().filter_map(Refusal::ends_at).chain(later).min()
    }

    /// What the policies say of a file: a note for each that refuses it, and what to answer where that is enforced.
    pub(super) fn decided(&self, package: &str, file: &PackageFile, now: Micros) -> Vec<(Note, Option<Withheld>)> {
        let modes = [(Mode::Enforced, &self.enforced), (Mode::Log, &self.logged)];
        let refused = modes.into_iter().filter_map(|(mode, bound)| {
            let bound = bound.as_ref()?;
            let subject = bound.subject(self.language, package, file, self.vulnerabilities_of(file));
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
            published_at: file.uploaded_at,
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
    for mode in [Mode::Enforced, Mode::Log] {
        let found = policies::named_in_force(tx, organization, language, mode).await?;
        if found.is_some_and(|(_, _, policy)| !policy.blocked_licenses.is_empty()) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// What records say of the versions of a package of an upstream.
async fn known(
    tx: &mut ReadTx,
    language: Language,
    package: &Package,
) -> Result<HashMap<Vec<u8>, Vec<Vulnerability>>, Error> {
    let known = vulnerabilities::of_package(tx, language, &package.name).await?;
    if known.records().is_empty() {
        return Ok(HashMap::new());
    }
    let mut published: HashMap<&[u8], Micros> = HashMap::new();
    for file in &package.files {
        if let Some(at) = file.uploaded_at {
            published.entry(&file.sort_key).and_modify(|first| *first = at.min(*first)).or_insert(at);
        }
    }
    let mut found: HashMap<Vec<u8>, Vec<Vulnerability>> = HashMap::new();
    for file in &package.files {
        if !found.contains_key(&file.sort_key) {
            let of_version = known.of_version(&file.version, |key| published.get(key).copied());
            found.insert(file.sort_key.clone(), of_version);
        }
    }
    Ok(found)
}

/// Whether a refusal is of the package rather than of some versions, as far as it says.
fn is_of_all_versions(refusal: &Refusal) -> bool {
    match refusal {
        Refusal::Blocked(pattern) => pattern.is_of_all_versions(),
        Refusal::Malware => true,
        Refusal::License(_) | Refusal::Cooldown { .. } | Refusal::Frozen { .. } | Refusal::Vulnerable(_) => false,
    }
}
