//! The decision about an image: from the policies that apply and what is known, without anything else.
//!
//! What is unknown never passes: a rule that lacks what it needs blocks as a failed one does, and says what is missing.

use bowline_contract::bowline::registry::v1 as own;
use bowline_core::Micros;
use bowline_resources::list::micros;

use super::evidence::{AppliedPolicy, Evidence, FindingFacts, ImageFacts};
use super::signing::{self, Claim, Flaw};
use crate::scan_reports::parse::rank;

pub(super) const DAY: Micros = 86_400_000_000;
/// Things that a reason names.
const NAMED: usize = 3;

/// What a rule found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Outcome {
    Passed,
    /// Something that it needs is missing.
    Unknown,
    Failed,
}

/// What a rule says about an image.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RuleVerdict {
    /// UIDP of the group or repository whose policy has the rule.
    pub(crate) scope: String,
    pub(crate) rule: String,
    pub(crate) mode: own::ImagePolicyMode,
    /// What it found, before exceptions.
    pub(crate) outcome: Outcome,
    pub(crate) reason: String,
    /// The exception that allows the image all the same.
    pub(crate) exception: Option<own::ImageException>,
    /// Days for which callers who pulled the image before may pull it again.
    pub(crate) grace_days: i32,
}

impl RuleVerdict {
    /// Whether the rule has nothing against the image, or an exception lets it pass.
    pub(crate) fn allows(&self) -> bool {
        self.outcome == Outcome::Passed || self.exception.is_some()
    }
}

/// What all rules say about an image.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Decision {
    /// It is a signature, an attestation or the like, which no rule is about.
    pub(crate) is_exempt: bool,
    pub(crate) rules: Vec<RuleVerdict>,
    /// Until when it holds, if nothing changes.
    pub(crate) until: Micros,
    /// A policy has a grace, so that pulls are remembered.
    pub(crate) has_grace: bool,
}

impl Decision {
    fn violated(&self, mode: own::ImagePolicyMode) -> impl Iterator<Item = &RuleVerdict> {
        self.rules.iter().filter(move |verdict| !verdict.allows() && verdict.mode == mode)
    }

    /// Why pulls are refused; absent if they are not.
    pub(crate) fn refusal(&self) -> Option<String> {
        sentence(self.violated(own::ImagePolicyMode::Enforce))
    }

    /// Since when a caller must have been let through to pull the image in spite of a refusal.
    pub(crate) fn spared_since(&self, now: Micros) -> Micros {
        let days = self.violated(own::ImagePolicyMode::Enforce).map(|verdict| verdict.grace_days).min();
        now - i64::from(days.unwrap_or_default()) * DAY
    }

    /// What rules say that only log; absent without anything.
    pub(crate) fn warning(&self) -> Option<String> {
        sentence(self.violated(own::ImagePolicyMode::Log))
    }
}

fn sentence<'a>(violated: impl Iterator<Item = &'a RuleVerdict>) -> Option<String> {
    let all: Vec<String> = violated
        .map(|verdict| {
            format!("rule \"{}\" of the image policy of {}: {}", verdict.rule, verdict.scope, verdict.reason)
        })
        .collect();
    (!all.is_empty()).then(|| few(&all, "; "))
}

/// The first of some texts, and how many there are beside them.
fn few(texts: &[String], between: &str) -> String {
    let shown = texts.iter().take(NAMED).cloned().collect::<Vec<_>>().join(between);
    match texts.len().saturating_sub(NAMED) {
        0 => shown,
        more => format!("{shown}{between}and {more} more"),
    }
}

/// What a rule finds, why, and until when that holds.
struct Finding {
    outcome: Outcome,
    reason: String,
    until: Micros,
}

impl Finding {
    fn new(outcome: Outcome, reason: impl Into<String>) -> Finding {
        Finding { outcome, reason: reason.into(), until: Micros::MAX }
    }
}

/// Decides about an image.
pub(super) fn decide(policies: &[AppliedPolicy], evidence: &Evidence, now: Micros) -> Decision {
    let has_grace = policies.iter().any(|applied| applied.policy.grace_days > 0);
    let is_exempt = evidence.is_exempt;
    let mut decision = Decision { is_exempt, rules: Vec::new(), until: Micros::MAX, has_grace };
    if evidence.is_exempt {
        return decision;
    }
    for applied in policies {
        for (at, rule) in applied.policy.rules.iter().enumerate() {
            let Finding { outcome, reason, until } = find(applied, at, rule, evidence, now);
            let exception = applied.policy.exceptions.iter().find(|one| excepts(one, &rule.name, evidence, now));
            let end = exception.and_then(|one| one.expire_time).map_or(Micros::MAX, micros);
            decision.until = decision.until.min(until).min(end);
            decision.rules.push(RuleVerdict {
                scope: applied.scope.clone(),
                rule: rule.name.clone(),
                mode: rule.mode(),
                outcome,
                reason,
                exception: exception.filter(|_| outcome != Outcome::Passed).cloned(),
                grace_days: applied.policy.grace_days,
            });
        }
    }
    decision
}

/// Whether an exception holds for a rule and an image now.
fn excepts(exception: &own::ImageException, rule: &str, evidence: &Evidence, now: Micros) -> bool {
    let is_of_rule = exception.rules.is_empty() || exception.rules.iter().any(|name| name == rule);
    let is_of_image = exception.digest.is_empty() || evidence.covering.contains(&exception.digest);
    let is_of_repo = exception.repo_uid.is_empty() || exception.repo_uid == evidence.repo;
    let names_something = !(exception.digest.is_empty() && exception.repo_uid.is_empty());
    let holds = exception.expire_time.is_some_and(|end| now < micros(end));
    is_of_rule && is_of_image && is_of_repo && names_something && holds
}

fn find(applied: &AppliedPolicy, at: usize, rule: &own::ImageRule, evidence: &Evidence, now: Micros) -> Finding {
    if rule.signature.is_some() {
        return signed(applied, at, evidence, "signature", &|claim| *claim == Claim::Signature);
    }
    if let Some(attestation) = &rule.attestation {
        let kind = format!("attestation of the type {}", attestation.predicate_type);
        let wanted = Claim::Attestation(attestation.predicate_type.clone());
        return signed(applied, at, evidence, &kind, &|claim| *claim == wanted);
    }
    let of_image: &dyn Fn(&ImageFacts) -> Finding = if let Some(vulnerability) = &rule.vulnerability {
        &|image: &ImageFacts| vulnerable(vulnerability, image, now)
    } else if let Some(license) = &rule.license {
        &|image: &ImageFacts| licensed(license, image)
    } else if let Some(age) = rule.age {
        &move |image: &ImageFacts| aged(age, image, now)
    } else if rule.sbom.is_some() {
        &listed
    } else {
        return Finding::new(Outcome::Unknown, "this server does not know what the rule requires");
    };
    of_all(evidence, of_image)
}

/// The worst of what a rule finds about the images.
fn of_all(evidence: &Evidence, find: &dyn Fn(&ImageFacts) -> Finding) -> Finding {
    if evidence.images.is_empty() || evidence.has_more_images {
        let reason = if evidence.has_more_images {
            "the index names more images than are evaluated"
        } else {
            "no image that the index names is in the repository"
        };
        return Finding::new(Outcome::Unknown, reason);
    }
    let mut worst: Option<Finding> = None;
    let mut until = Micros::MAX;
    for image in &evidence.images {
        let mut found = find(image);
        until = until.min(found.until);
        if evidence.images.len() > 1 && found.outcome != Outcome::Passed {
            found.reason = format!("{}: {}", image.digest, found.reason);
        }
        if worst.as_ref().is_none_or(|worst| found.outcome > worst.outcome) {
            worst = Some(found);
        }
    }
    let Finding { outcome, reason, .. } = worst.unwrap_or(Finding::new(Outcome::Unknown, ""));
    Finding { outcome, reason, until }
}

fn signed(
    applied: &AppliedPolicy,
    at: usize,
    evidence: &Evidence,
    kind: &str,
    is_wanted: &dyn Fn(&Claim) -> bool,
) -> Finding {
    let Some(signers) = applied.signers.get(at).and_then(Option::as_ref) else {
        return Finding::new(Outcome::Unknown, "the keys of the rule cannot be read");
    };
    let mut worst: Option<Flaw> = None;
    for document in &evidence.documents {
        match signing::verify(document, signers, applied.root.as_ref(), &evidence.covering) {
            Ok(claim) if is_wanted(&claim) => {
                return Finding::new(Outcome::Passed, format!("an accepted signer made the {kind}"));
            }
            Ok(_) => {}
            Err(flaw) => worst = worst.max(Some(flaw)),
        }
    }
    if evidence.has_more_documents {
        let reason =
            format!("no {kind} by an accepted signer among the attached documents that were read; there are others");
        return Finding::new(Outcome::Unknown, reason);
    }
    let reason = match worst {
        Some(flaw) => format!("no {kind} by an accepted signer: an attached document {}", flaw.sentence()),
        None => format!("no {kind} in a format of Sigstore is attached to the image"),
    };
    Finding::new(Outcome::Failed, reason)
}

fn vulnerable(limit: &own::VulnerabilityRequirement, image: &ImageFacts, now: Micros) -> Finding {
    let oldest = if limit.report_days > 0 { now - i64::from(limit.report_days) * DAY } else { Micros::MIN };
    let reports = image.reports.newest.iter().filter(|report| report.at > oldest);
    let mut until = Micros::MAX;
    let (mut failed, mut unknown, mut count) = (Vec::new(), Vec::new(), 0);
    for report in reports {
        count += 1;
        if limit.report_days > 0 {
            until = until.min(report.at + i64::from(limit.report_days) * DAY);
        }
        for finding in &report.findings {
            match violation(limit, finding, report.at, now) {
                Violation::None(end) => until = until.min(end),
                Violation::Certain => failed.push(name(finding)),
                Violation::Undated => unknown.push(name(finding)),
            }
        }
    }
    let end = |found: Finding| Finding { until, ..found };
    if !failed.is_empty() {
        failed.sort();
        failed.dedup();
        return end(Finding::new(Outcome::Failed, format!("has {}", few(&failed, ", "))));
    }
    if image.reports.has_unread {
        return end(Finding::new(Outcome::Unknown, "its scan reports are too large to be evaluated"));
    }
    if count == 0 && image.reports.newest.is_empty() {
        return end(Finding::new(Outcome::Unknown, "has no scan report"));
    }
    if count == 0 {
        let reason = format!("has no scan report of the last {} days", limit.report_days);
        return end(Finding::new(Outcome::Unknown, reason));
    }
    if !unknown.is_empty() {
        unknown.sort();
        unknown.dedup();
        let reason = format!("its report does not say since when there is a fix of {}", few(&unknown, ", "));
        return end(Finding::new(Outcome::Unknown, reason));
    }
    end(Finding::new(Outcome::Passed, "has no vulnerability beyond the limit"))
}

fn name(finding: &FindingFacts) -> String {
    format!("{} in {}", finding.id, finding.package)
}

enum Violation {
    /// No violation until then.
    None(Micros),
    Certain,
    /// It depends on when the fix came, which is unknown.
    Undated,
}

fn violation(
    limit: &own::VulnerabilityRequirement,
    finding: &FindingFacts,
    reported_at: Micros,
    now: Micros,
) -> Violation {
    if rank(finding.severity) <= rank(limit.greatest) || !(finding.has_fix || limit.unfixed) {
        return Violation::None(Micros::MAX);
    }
    if !finding.has_fix || limit.fix_days == 0 {
        return Violation::Certain;
    }
    // A date after the report does not count: it would stay the newest for ever.
    let Some(since) = finding.fix_since.map(|since| since.min(reported_at)) else { return Violation::Undated };
    let end = since.saturating_add(i64::from(limit.fix_days) * DAY);
    if end <= now { Violation::Certain } else { Violation::None(end) }
}

fn licensed(limit: &own::LicenseRequirement, image: &ImageFacts) -> Finding {
    let sboms = &image.sboms;
    let denied = limit.denied.iter().map(|license| license.trim().to_lowercase());
    let has: Vec<String> = denied.filter(|license| sboms.licenses.contains(license)).collect();
    if !has.is_empty() {
        return Finding::new(Outcome::Failed, format!("has components with the denied license {}", few(&has, ", ")));
    }
    if sboms.unindexed > 0 {
        return Finding::new(Outcome::Unknown, "has an SBOM that is not indexed");
    }
    if sboms.indexed == 0 || sboms.components == 0 {
        return Finding::new(Outcome::Unknown, "has no SBOM with components");
    }
    match &sboms.unlicensed {
        Some(component) if !limit.allow_unlicensed => {
            Finding::new(Outcome::Unknown, format!("its SBOM names no license of {component}"))
        }
        _ => Finding::new(Outcome::Passed, "has no component with a denied license"),
    }
}

fn aged(limit: own::AgeRequirement, image: &ImageFacts, now: Micros) -> Finding {
    let end = image.pushed_at.saturating_add(i64::from(limit.max_days) * DAY);
    if now < end {
        return Finding { until: end, ..Finding::new(Outcome::Passed, "was pushed recently enough") };
    }
    let reason = format!("was pushed {} days ago; {} are allowed", (now - image.pushed_at) / DAY, limit.max_days);
    Finding::new(Outcome::Failed, reason)
}

fn listed(image: &ImageFacts) -> Finding {
    match &image.sboms {
        sboms if sboms.indexed > 0 => Finding::new(Outcome::Passed, "has an SBOM"),
        sboms if sboms.unindexed > 0 => Finding::new(Outcome::Unknown, "its SBOM is not indexed"),
        _ => Finding::new(Outcome::Failed, "has no SBOM"),
    }
}

#[cfg(test)]
#[path = "decide_tests.rs"]
mod tests;
