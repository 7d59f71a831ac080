use std::collections::BTreeSet;

use bowline_contract::v1::registry::vulnerability::Severity;
use bowline_resources::list::timestamp;
use proptest::prelude::*;

use super::super::evidence::{ReportFacts, Reports};
use super::*;
use crate::components::SbomFacts;

const NOW: Micros = 1_800_000_000_000_000;
const SCOPE: &str = "scope";
const REPO: &str = "scope/repo";

fn rule(name: &str) -> own::ImageRule {
    own::ImageRule { name: name.into(), mode: own::ImagePolicyMode::Enforce as i32, ..own::ImageRule::default() }
}

fn rules() -> Vec<own::ImageRule> {
    let greatest = Severity::Medium as i32;
    let vulnerability = own::VulnerabilityRequirement { greatest, fix_days: 7, report_days: 30, unfixed: false };
    let license = own::LicenseRequirement { denied: vec!["GPL-3.0-only".into()], allow_unlicensed: false };
    vec![
        own::ImageRule { vulnerability: Some(vulnerability), ..rule("vulnerability") },
        own::ImageRule { license: Some(license), ..rule("license") },
        own::ImageRule { age: Some(own::AgeRequirement { max_days: 90 }), ..rule("age") },
        own::ImageRule { sbom: Some(own::SbomRequirement {}), ..rule("sbom") },
        own::ImageRule { signature: Some(own::SignatureRequirement::default()), ..rule("signature") },
    ]
}

fn policy(exceptions: Vec<own::ImageException>) -> AppliedPolicy {
    let policy = own::ImagePolicy { rules: rules(), exceptions, ..own::ImagePolicy::default() };
    AppliedPolicy::new(SCOPE.into(), policy)
}

fn finding(severity: Severity, fix_since: Option<Micros>) -> FindingFacts {
    let severity = severity as i32;
    FindingFacts { id: "CVE-1".into(), package: "openssl".into(), severity, has_fix: true, fix_since }
}

/// An image that all rules but that of signatures let pass.
fn good() -> ImageFacts {
    let report = ReportFacts { at: NOW - DAY, findings: vec![finding(Severity::Medium, None)] };
    let licenses = BTreeSet::from(["mit".to_owned()]);
    ImageFacts {
        digest: "sha256:a".into(),
        pushed_at: NOW - DAY,
        reports: Reports { newest: vec![report], has_unread: false },
        sboms: SbomFacts { indexed: 1, components: 3, licenses, ..SbomFacts::default() },
    }
}

fn evidence(images: Vec<ImageFacts>) -> Evidence {
    let covering = BTreeSet::from(["sha256:a".to_owned(), "sha256:index".to_owned()]);
    Evidence { repo: REPO.into(), covering, images, ..Evidence::default() }
}

fn outcome(rule: &str, image: ImageFacts) -> (Outcome, String) {
    let decision = decide(&[policy(Vec::new())], &evidence(vec![image]), NOW);
    let verdict = decision.rules.into_iter().find(|verdict| verdict.rule == rule).expect("the rule");
    (verdict.outcome, verdict.reason)
}

#[test]
fn each_rule_passes_fails_and_does_not_know() {
    for rule in ["vulnerability", "license", "age", "sbom"] {
        assert_eq!(outcome(rule, good()).0, Outcome::Passed, "{rule}");
    }
    let reported = |finding| {
        let report = ReportFacts { at: NOW - DAY, findings: vec![finding] };
        ImageFacts { reports: Reports { newest: vec![report], has_unread: false }, ..good() }
    };
    let sboms = |sboms| ImageFacts { sboms, ..good() };
    let old = ReportFacts { at: NOW - 31 * DAY, findings: Vec::new() };
    let unlicensed = SbomFacts { unlicensed: Some("left-pad".into()), ..good().sboms };
    let denied = SbomFacts { licenses: BTreeSet::from(["gpl-3.0-only".into()]), ..unlicensed.clone() };
    for (rule, image, expected, reason) in [
        (
            "vulnerability",
            reported(finding(Severity::High, Some(NOW - 8 * DAY))),
            Outcome::Failed,
            "has CVE-1 in openssl",
        ),
        ("vulnerability", reported(finding(Severity::High, Some(NOW - 6 * DAY))), Outcome::Passed, "beyond the limit"),
        ("vulnerability", reported(finding(Severity::High, None)), Outcome::Unknown, "since when there is a fix"),
        (
            "vulnerability",
            reported(FindingFacts { has_fix: false, ..finding(Severity::Critical, None) }),
            Outcome::Passed,
            "",
        ),
        ("vulnerability", ImageFacts { reports: Reports::default(), ..good() }, Outcome::Unknown, "has no scan report"),
        (
            "vulnerability",
            ImageFacts { reports: Reports { newest: vec![old], has_unread: false }, ..good() },
            Outcome::Unknown,
            "of the last 30 days",
        ),
        (
            "vulnerability",
            ImageFacts { reports: Reports { has_unread: true, ..good().reports }, ..good() },
            Outcome::Unknown,
            "too large",
        ),
        ("license", sboms(denied), Outcome::Failed, "gpl-3.0-only"),
        ("license", sboms(unlicensed), Outcome::Unknown, "no license of left-pad"),
        ("license", sboms(SbomFacts::default()), Outcome::Unknown, "no SBOM"),
        ("license", sboms(SbomFacts { unindexed: 1, ..good().sboms }), Outcome::Unknown, "not indexed"),
        ("age", ImageFacts { pushed_at: NOW - 90 * DAY, ..good() }, Outcome::Failed, "90 days ago"),
        ("sbom", sboms(SbomFacts::default()), Outcome::Failed, "has no SBOM"),
        ("sbom", sboms(SbomFacts { unindexed: 1, ..SbomFacts::default() }), Outcome::Unknown, "not indexed"),
    ] {
        let (found, text) = outcome(rule, image);
        assert!(found == expected && text.contains(reason), "{rule}: {found:?}, {text}");
    }
    assert_eq!(outcome("signature", good()).0, Outcome::Unknown, "a rule without signers knows nothing");
}

#[test]
fn an_exception_allows_until_its_end_what_it_names_and_nothing_else() {
    let holds = |exception: own::ImageException| {
        let decision = decide(&[policy(vec![exception])], &evidence(vec![ImageFacts::default()]), NOW);
        let allowed = decision.rules.iter().filter(|verdict| verdict.allows());
        allowed.map(|verdict| verdict.rule.clone()).collect::<Vec<_>>()
    };
    let at = |digest: &str, repo_uid: &str, end: Micros| own::ImageException {
        digest: digest.into(),
        repo_uid: repo_uid.into(),
        expire_time: timestamp(end),
        ..own::ImageException::default()
    };
    let all = ["vulnerability", "license", "age", "sbom", "signature"];
    assert_eq!(holds(at("sha256:a", "", NOW + 1)), all);
    assert_eq!(holds(at("sha256:index", REPO, NOW + 1)), all);
    assert_eq!(holds(own::ImageException { rules: vec!["age".into()], ..at("", REPO, NOW + 1) }), ["age"]);
    for ineffective in [
        at("sha256:a", "", NOW),
        at("sha256:b", "", NOW + 1),
        at("sha256:a", "scope/other", NOW + 1),
        at("", "", NOW + 1),
        own::ImageException { expire_time: None, ..at("sha256:a", "", 0) },
    ] {
        assert!(holds(ineffective.clone()).is_empty(), "{ineffective:?}");
    }
}

#[test]
fn a_decision_ends_when_time_alone_changes_it() {
    let mut image = good();
    image.reports.newest[0].findings = vec![finding(Severity::High, Some(NOW - 5 * DAY))];
    let end = decide(&[policy(Vec::new())], &evidence(vec![image.clone()]), NOW).until;
    assert_eq!(end, NOW + 2 * DAY);
    let later = decide(&[policy(Vec::new())], &evidence(vec![image]), end);
    assert_eq!(later.rules[0].outcome, Outcome::Failed);
}

#[test]
fn what_logs_refuses_nothing_and_what_is_exempt_is_not_evaluated() {
    let mut logging = policy(Vec::new());
    for rule in &mut logging.policy.rules {
        rule.mode = own::ImagePolicyMode::Log as i32;
    }
    let bad = evidence(vec![ImageFacts::default()]);
    let decision = decide(&[logging], &bad, NOW);
    assert!(decision.refusal().is_none() && decision.warning().is_some(), "{decision:?}");
    let refusal = decide(&[policy(Vec::new())], &bad, NOW).refusal().expect("a refusal");
    assert!(refusal.contains("rule \"vulnerability\" of the image policy of scope: has no scan report"), "{refusal}");
    let exempt = decide(&[policy(Vec::new())], &Evidence { is_exempt: true, ..bad }, NOW);
    assert!(exempt.refusal().is_none() && exempt.rules.is_empty());
}

fn images() -> impl Strategy<Value = Vec<ImageFacts>> {
    let finding = (0..6_i32, any::<bool>(), prop::option::of(0..20 * DAY)).prop_map(|(severity, has_fix, age)| {
        FindingFacts { severity, has_fix, fix_since: age.map(|age| NOW - age), ..FindingFacts::default() }
    });
    let report = (0..40 * DAY, prop::collection::vec(finding, 0..4))
        .prop_map(|(age, findings)| ReportFacts { at: NOW - age, findings });
    let reports = (prop::collection::vec(report, 0..3), any::<bool>())
        .prop_map(|(newest, has_unread)| Reports { newest, has_unread });
    let licenses = prop::sample::subsequence(vec!["mit".to_owned(), "gpl-3.0-only".to_owned()], 0..=2);
    let sboms = (0..3_usize, 0..2_usize, 0..2_usize, licenses, prop::option::of(Just("x".to_owned()))).prop_map(
        |(indexed, unindexed, components, licenses, unlicensed)| {
            let licenses = licenses.into_iter().collect();
            SbomFacts { indexed, unindexed, components, licenses, unlicensed }
        },
    );
    let image = (0..200 * DAY, reports, sboms).prop_map(|(age, reports, sboms)| ImageFacts {
        digest: "sha256:a".into(),
        pushed_at: NOW - age,
        reports,
        sboms,
    });
    prop::collection::vec(image, 0..4)
}

proptest! {
    #[test]
    fn what_passes_is_known_of_every_image(images in images(), has_more_images in any::<bool>()) {
        let evidence = Evidence { has_more_images, ..evidence(images.clone()) };
        let decision = decide(&[policy(Vec::new())], &evidence, NOW);
        prop_assert!(decision.until > NOW);
        for verdict in &decision.rules {
            prop_assert!(!verdict.reason.is_empty());
            if verdict.outcome != Outcome::Passed {
                continue;
            }
            prop_assert!(!has_more_images && !images.is_empty());
            for image in &images {
                match verdict.rule.as_str() {
                    "vulnerability" => {
                        prop_assert!(!image.reports.has_unread);
                        prop_assert!(image.reports.newest.iter().any(|report| report.at > NOW - 30 * DAY));
                    }
                    "license" => {
                        prop_assert!(image.sboms.indexed > 0 && image.sboms.unindexed == 0);
                        prop_assert!(!image.sboms.licenses.contains("gpl-3.0-only") && image.sboms.unlicensed.is_none());
                    }
                    "age" => prop_assert!(image.pushed_at > NOW - 90 * DAY),
                    "sbom" => prop_assert!(image.sboms.indexed > 0),
                    other => prop_assert!(false, "{other} passed without a signature"),
                }
            }
        }
    }

    #[test]
    fn a_worse_image_beside_never_helps(images in images(), other in images()) {
        let policies = [policy(Vec::new())];
        let alone = decide(&policies, &evidence(images.clone()), NOW);
        let together = decide(&policies, &evidence(images.iter().cloned().chain(other).collect()), NOW);
        for (alone, together) in alone.rules.iter().zip(&together.rules) {
            let is_better = together.outcome == Outcome::Passed && alone.outcome != Outcome::Passed;
            prop_assert!(!is_better || images.is_empty(), "{alone:?} {together:?}");
        }
    }
}
