//! The decision of a policy about a version: one pure function, and its reason.

use bowline_core::Micros;

use super::age::{Age, AgeSource};
use super::license;
use super::purl::Pattern;
use crate::ecosystems::Language;

/// Days that a version has to be public where a policy does not say.
pub const DEFAULT_COOLDOWN_DAYS: i32 = 7;
/// Longest cooldown of a policy, in days.
pub const MAX_COOLDOWN_DAYS: i32 = 30;

const DAY: Micros = 24 * 3600 * 1_000_000;

/// A policy, ready to check by.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Policy {
    /// Days of cooldown; absent for the default.
    pub cooldown_days: Option<i32>,
    /// What is always refused.
    pub blocked: Vec<Pattern>,
    /// What is exempt from checks.
    pub allowed: Vec<Exemption>,
    /// SPDX identifiers that are refused.
    pub blocked_licenses: Vec<String>,
    /// From when on the age of versions counts.
    pub age_source: AgeSource,
    /// Which known vulnerabilities are refused; absent for none.
    pub vulnerabilities: Option<VulnerabilityRule>,
    /// What holds beside the policy.
    pub overrides: Overrides,
}

/// What an organization has decided beside its policies: exceptions of single versions, and freezes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Overrides {
    pub exceptions: Vec<Exception>,
    /// At most one for each ecosystem.
    pub freezes: Vec<Freeze>,
}

/// A version that may be served for some time although its cooldown withholds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exception {
    /// The version: a pattern of that alone.
    pub pattern: Pattern,
    /// Whether it may be reported as malware.
    pub bypass_malware: bool,
    /// Whether it may be newer than a freeze allows.
    pub bypass_freeze: bool,
    /// When it ends, in microseconds.
    pub ends_at: Micros,
}

/// A time after which nothing may have been published.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Freeze {
    pub language: Language,
    /// The latest time of publication, in microseconds.
    pub cutoff: Micros,
    /// Whether it also holds for packages of groups.
    pub includes_own: bool,
}

/// Which versions with known vulnerabilities are refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VulnerabilityRule {
    /// The lowest that counts.
    pub minimum: Severity,
    /// Days that a fix must have been public.
    pub fix_days: i32,
    /// Whether vulnerabilities without a fix count, too.
    pub includes_unfixed: bool,
}

/// How severe a vulnerability is. The numbers are those of the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    Low = 1,
    Medium = 2,
    High = 3,
    Critical = 4,
}

impl Severity {
    /// As sentences name it.
    pub fn word(self) -> &'static str {
        match self {
            Severity::Low => "low",
            Severity::Medium => "medium",
            Severity::High => "high",
            Severity::Critical => "critical",
        }
    }
}

/// A known vulnerability of a version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Vulnerability {
    /// Id of the record.
    pub id: String,
    pub severity: Severity,
    /// The lowest later version without it; absent where none is known.
    pub fix: Option<Fix>,
}

/// A version without a vulnerability.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fix {
    pub version: String,
    /// Since when it has been public.
    pub age: Age,
    /// When the record was published, in microseconds: a fix that no one dates has been there since then.
    pub recorded_at: Micros,
}

impl Fix {
    fn since(&self, source: AgeSource) -> Micros {
        self.age.since(source).unwrap_or(self.recorded_at)
    }

    fn since_for_freeze(&self, source: AgeSource) -> Micros {
        self.age.since_for_freeze(source).unwrap_or(self.recorded_at)
    }
}

/// An entry of a list of what is allowed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exemption {
    /// What it is about.
    pub pattern: Pattern,
    /// Whether it may be young.
    pub bypass_cooldown: bool,
    /// Whether it may be reported as malware.
    pub bypass_malware: bool,
}

/// What a policy needs to know of a version.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    pub language: Language,
    /// Its package, as the catalogue names it.
    pub name: &'a str,
    pub version: &'a str,
    /// The licence that it declares, an SPDX expression; empty if none.
    pub license: &'a str,
    /// Whether it is reported as malware.
    pub is_malware: bool,
    /// Since when it is public, as far as that is known.
    pub age: Age,
    /// What is known to be wrong with it, where the policy has a rule about that.
    pub vulnerabilities: &'a [Vulnerability],
    /// Whether a group of the organization published it: then how long it has been public does not count, and freezes do
    /// where they say so.
    pub is_own: bool,
}

/// What a policy says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// It may be served.
    Allowed,
    Refused(Refusal),
}

/// Why a version is refused. The first that applies is reported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// An entry of the block list; nothing lifts it.
    Blocked(Pattern),
    /// A licence that the policy does not want; nothing lifts it.
    License(String),
    /// Reported as malware, and not exempt.
    Malware,
    /// Newer than a freeze allows, and no exception of it.
    Frozen {
        cutoff: Micros,
        /// From when its age counts; absent where no one knows when it was published.
        published_at: Option<Micros>,
        /// When this server saw it first, if its age counts from then.
        first_seen_at: Option<Micros>,
    },
    /// A vulnerability that has had a fix for long enough, or needs none, and no exception of the version.
    Vulnerable(Vulnerability),
    /// Too young, and not exempt.
    Cooldown {
        /// Days that it has to be public.
        days: i32,
        /// When it will be old enough; absent where no one knows when it was published, so that waiting does not help.
        until: Option<Micros>,
        /// When this server saw it first, if its age counts from then.
        first_seen_at: Option<Micros>,
    },
}

impl Refusal {
    /// The reason as block events carry it.
    pub fn reason(&self) -> &'static str {
        match self {
            Refusal::Blocked(_) => "BLOCK_LIST",
            Refusal::License(_) => "LICENSE",
            Refusal::Malware => "MALWARE_DETECTED",
            Refusal::Frozen { .. } => "FREEZE",
            Refusal::Vulnerable(_) => "VULNERABILITY",
            Refusal::Cooldown { .. } => "COOLDOWN",
        }
    }
}

impl Refusal {
    /// When time alone ends it, in microseconds; absent if that does not.
    pub fn ends_at(&self) -> Option<Micros> {
        match self {
            Refusal::Cooldown { until, .. } => *until,
            Refusal::Blocked(_)
            | Refusal::License(_)
            | Refusal::Malware
            | Refusal::Frozen { .. }
            | Refusal::Vulnerable(_) => None,
        }
    }

    /// Whether a policy refuses; a freeze holds without one.
    pub fn is_of_policy(&self) -> bool {
        !matches!(self, Refusal::Frozen { .. })
    }
}

/// Checks a version at a moment. The block list beats everything, and licences beat exemptions. Without a known time of publication a version counts as
/// published this moment: an unknown age is no age. Exemptions of a policy do not lift a freeze; exceptions may.
pub fn decide(policy: &Policy, subject: &Subject<'_>, now: Micros) -> Decision {
    match refusal(policy, subject, now) {
        Some(refusal) => Decision::Refused(refusal),
        None => Decision::Allowed,
    }
}

fn refusal(policy: &Policy, subject: &Subject<'_>, now: Micros) -> Option<Refusal> {
    let is_meant = |pattern: &&Pattern| pattern.matches(subject.language, subject.name, subject.version);
    if let Some(pattern) = policy.blocked.iter().find(is_meant) {
        return Some(Refusal::Blocked(pattern.clone()));
    }
    if let Some(name) = policy.blocked_licenses.iter().find(|name| license::names(subject.license, name)) {
        return Some(Refusal::License(name.clone()));
    }
    let exempt =
        |from: fn(&Exemption) -> bool| policy.allowed.iter().any(|entry| from(entry) && is_meant(&&entry.pattern));
    let overrides = &policy.overrides;
    let excepted = |from: fn(&Exception) -> bool| {
        let named = |entry: &Exception| entry.pattern.names(subject.language, subject.name, subject.version);
        overrides.exceptions.iter().any(|entry| now < entry.ends_at && from(entry) && named(entry))
    };
    if subject.is_malware && !exempt(|entry| entry.bypass_malware) && !excepted(|entry| entry.bypass_malware) {
        return Some(Refusal::Malware);
    }
    let holds = |freeze: &&Freeze| freeze.language == subject.language && (freeze.includes_own || !subject.is_own);
    let freeze = overrides.freezes.iter().find(holds);
    let published_at = subject.age.since_for_freeze(policy.age_source);
    if let Some(Freeze { cutoff, .. }) = freeze.copied()
        && published_at.is_none_or(|at| at > cutoff)
        && !excepted(|entry| entry.bypass_freeze)
    {
        let first_seen_at = subject.age.first_seen_if_decisive_for_freeze(policy.age_source);
        return Some(Refusal::Frozen { cutoff, published_at, first_seen_at });
    }
    if !subject.is_own
        && !excepted(|_| true)
        && let Some(vulnerability) = subject
            .vulnerabilities
            .iter()
            .find(|found| counts_from(policy, subject.language, found).is_some_and(|at| at <= now))
    {
        return Some(Refusal::Vulnerable(vulnerability.clone()));
    }
    let days = policy.cooldown_days.unwrap_or(DEFAULT_COOLDOWN_DAYS);
    if subject.is_own || days <= 0 || exempt(|entry| entry.bypass_cooldown) || excepted(|_| true) {
        return None;
    }
    let (age, source) = (&subject.age, policy.age_source);
    let until = age.since(source).map(|at| at.saturating_add(Micros::from(days).saturating_mul(DAY)));
    let first_seen_at = age.first_seen_if_decisive(source);
    until.is_none_or(|until| now < until).then_some(Refusal::Cooldown { days, until, first_seen_at })
}

/// From when on a vulnerability is refused, in microseconds; absent if it never is. A fix that the cooldown or a freeze
/// withholds does not count: for the cooldown the source of its age decides. The days of the rule count from what the upstream
/// says, so that a source that withholds more never refuses less.
fn counts_from(policy: &Policy, language: Language, vulnerability: &Vulnerability) -> Option<Micros> {
    let rule = policy.vulnerabilities.as_ref().filter(|rule| vulnerability.severity >= rule.minimum)?;
    let cooldown = policy.cooldown_days.unwrap_or(DEFAULT_COOLDOWN_DAYS);
    let source = policy.age_source;
    let withholds =
        |freeze: &Freeze, fix: &Fix| freeze.language == language && fix.since_for_freeze(source) > freeze.cutoff;
    let is_frozen = |fix: &&Fix| policy.overrides.freezes.iter().any(|freeze| withholds(freeze, fix));
    match vulnerability.fix.as_ref().filter(|fix| !is_frozen(fix)) {
        Some(fix) => {
            let after = |source, days: i32| fix.since(source).saturating_add(Micros::from(days).saturating_mul(DAY));
            Some(after(AgeSource::Upstream, rule.fix_days).max(after(source, cooldown)))
        }
        None => rule.includes_unfixed.then_some(Micros::MIN),
    }
}

/// When time alone has the next vulnerability of a version refused, in microseconds; absent if it never does.
pub fn vulnerable_at(
    policy: &Policy,
    language: Language,
    vulnerabilities: &[Vulnerability],
    now: Micros,
) -> Option<Micros> {
    vulnerabilities.iter().filter_map(|found| counts_from(policy, language, found)).filter(|at| *at > now).min()
}

#[cfg(test)]
#[path = "decide_tests.rs"]
mod tests;
