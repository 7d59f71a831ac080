//! What is wrong with an image policy: a rule that could never be evaluated is refused when it is written.

use std::collections::BTreeSet;

use bowline_contract::bowline::registry::v1 as own;
use bowline_core::FieldViolation;
use prost::Message as _;

use super::evidence::signers_of;
use super::signing::Signers;
use crate::trusted_root::TrustedRoot;

/// Maximum bytes of a policy: it is read for decisions about images.
const MAX_BYTES: usize = 256 << 10;
/// Maximum number of days of a rule, and of the grace.
const MAX_DAYS: i32 = 3650;
const MAX_GRACE: i32 = 365;
/// Number of the greatest severity in the contract.
const SEVERITIES: std::ops::RangeInclusive<i32> = 0..=5;

/// What is wrong with a policy.
pub(super) fn validate(policy: &own::ImagePolicy) -> Vec<FieldViolation> {
    let mut wrong = Vec::new();
    let mut refuse = |field: String, description: String| wrong.push(FieldViolation { field, description });
    if policy.encoded_len() > MAX_BYTES {
        refuse("rules".into(), format!("the policy has more than {MAX_BYTES} bytes"));
        return wrong;
    }
    if !(0..=MAX_GRACE).contains(&policy.grace_days) {
        refuse("graceDays".into(), format!("must be 0 to {MAX_GRACE}"));
    }
    if !policy.trusted_root.is_empty()
        && let Err(description) = TrustedRoot::parse(&policy.trusted_root)
    {
        refuse("trustedRoot".into(), description);
    }
    let mut names = BTreeSet::new();
    for (at, rule) in policy.rules.iter().enumerate() {
        let field = format!("rules[{at}]");
        if !names.insert(&rule.name) {
            refuse(format!("{field}.name"), format!("\"{}\" is the name of another rule of the policy", rule.name));
        }
        for (member, description) in rule_violations(rule) {
            refuse(format!("{field}.{member}"), description);
        }
    }
    wrong
}

/// Certificates need a trusted root. Checked against the stored policy, since either may be changed alone.
pub(super) fn missing_root(policy: &own::ImagePolicy) -> Option<FieldViolation> {
    let needs =
        policy.rules.iter().any(|rule| signers_of(rule).is_some_and(|signers| !signers.certificates.is_empty()));
    (needs && policy.trusted_root.is_empty()).then(|| FieldViolation {
        field: "trustedRoot".into(),
        description: "must be set: a rule accepts signers by certificate, which nothing else verifies".into(),
    })
}

type Violation = (&'static str, String);

fn rule_violations(rule: &own::ImageRule) -> Vec<Violation> {
    let mut wrong = Vec::new();
    if rule.mode() == own::ImagePolicyMode::Unspecified {
        wrong.push(("mode", "must be IMAGE_POLICY_MODE_LOG or IMAGE_POLICY_MODE_ENFORCE".to_owned()));
    }
    let set = [
        rule.signature.is_some(),
        rule.attestation.is_some(),
        rule.vulnerability.is_some(),
        rule.license.is_some(),
        rule.age.is_some(),
        rule.sbom.is_some(),
    ];
    if set.iter().filter(|is_set| **is_set).count() != 1 {
        let description = "must be set, and no other one: signature, attestation, vulnerability, license, age or sbom";
        wrong.push(("requirement", format!("exactly one requirement {description}")));
    }
    if rule.signature.is_some() || rule.attestation.is_some() {
        wrong.extend(signer_violations(signers_of(rule)));
    }
    if let Some(limit) = &rule.vulnerability {
        if !SEVERITIES.contains(&limit.greatest) {
            wrong.push(("vulnerability.greatest", "must be a severity of the contract".to_owned()));
        }
        for (member, days) in
            [("vulnerability.fixDays", limit.fix_days), ("vulnerability.reportDays", limit.report_days)]
        {
            if !(0..=MAX_DAYS).contains(&days) {
                wrong.push((member, format!("must be 0 to {MAX_DAYS}")));
            }
        }
    }
    if let Some(limit) = &rule.license
        && (limit.denied.is_empty() || limit.denied.iter().any(|license| license.trim().is_empty()))
    {
        wrong.push(("license.denied", "must name at least one license, and no empty one".to_owned()));
    }
    if let Some(limit) = &rule.age
        && !(1..=MAX_DAYS).contains(&limit.max_days)
    {
        wrong.push(("age.maxDays", format!("must be 1 to {MAX_DAYS}")));
    }
    wrong
}

fn signer_violations(signers: Option<&own::ImageSigners>) -> Vec<Violation> {
    match signers.filter(|signers| !(signers.public_keys.is_empty() && signers.certificates.is_empty())) {
        None => vec![("signers", "must name at least one public key or certificate".to_owned())],
        Some(signers) => match Signers::parse(signers) {
            Ok(_) => Vec::new(),
            Err((at, description)) => vec![("signers.publicKeys", format!("the key at position {at} {description}"))],
        },
    }
}
