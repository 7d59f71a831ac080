//! What a policy may say.

use bowline_contract::v1::libraries as v1;
use bowline_core::FieldViolation;

use crate::policy::decide::MAX_COOLDOWN_DAYS;
use crate::policy::license;
use crate::policy::purl::Pattern;

/// What is wrong with a policy to create.
pub(super) fn created(policy: Option<&v1::LibraryPolicy>) -> Vec<FieldViolation> {
    match policy {
        Some(policy) => violations(policy),
        None => vec![FieldViolation { field: "policy".into(), description: "policy is required".into() }],
    }
}

/// What is wrong with a policy, beyond what the rules of its fields say.
pub(crate) fn violations(policy: &v1::LibraryPolicy) -> Vec<FieldViolation> {
    let mut wrong = Vec::new();
    let mut refuse = |field: String, description: String| wrong.push(FieldViolation { field, description });
    if !policy.expression.is_empty() {
        refuse("expression".into(), "only system policies have an expression".into());
    }
    if policy.cooldown_days.is_some_and(|days| !(0..=MAX_COOLDOWN_DAYS).contains(&days)) {
        refuse("cooldownDays".into(), format!("must be 0 to {MAX_COOLDOWN_DAYS}; leave it out for the default"));
    }
    for (index, entry) in policy.block_list.iter().enumerate() {
        if let Err(description) = Pattern::parse(&entry.purl) {
            refuse(format!("blockList[{index}].purl"), description);
        }
    }
    for (index, entry) in policy.allow_list.iter().enumerate() {
        if let Err(description) = Pattern::parse(&entry.purl) {
            refuse(format!("allowList[{index}].purl"), description);
        }
        if entry.bypass_malware && entry.justification.trim().is_empty() {
            refuse(format!("allowList[{index}].justification"), "is required where malware is let through".into());
        }
    }
    for (index, identifier) in policy.blocked_licenses.iter().enumerate() {
        if identifier.is_empty() || license::is_operator(identifier) {
            let description = "must be one SPDX licence identifier: neither empty nor an operator of expressions";
            refuse(format!("blockedLicenses[{index}]"), description.into());
        }
    }
    wrong
}

/// A checked policy as it is stored: normalized, and without what the server says itself.
pub(super) fn stored(policy: v1::LibraryPolicy) -> v1::LibraryPolicy {
    // Valid patterns can be parsed; an invalid one would be stored as it is.
    let normalized = |purl: &str| Pattern::parse(purl).map_or_else(|_| purl.to_owned(), |pattern| pattern.text());
    let mut block_list: Vec<v1::LibraryBlockListEntry> = Vec::with_capacity(policy.block_list.len());
    for entry in &policy.block_list {
        let entry = v1::LibraryBlockListEntry { purl: normalized(&entry.purl) };
        if !block_list.contains(&entry) {
            block_list.push(entry);
        }
    }
    let allowed = |entry: &v1::LibraryAllowListEntry| v1::LibraryAllowListEntry {
        purl: normalized(&entry.purl),
        justification: entry.justification.trim().to_owned(),
        ..*entry
    };
    v1::LibraryPolicy {
        description: policy.description,
        cooldown_days: policy.cooldown_days,
        block_list,
        allow_list: policy.allow_list.iter().map(allowed).collect(),
        blocked_licenses: license::normalized(&policy.blocked_licenses),
        ..v1::LibraryPolicy::default()
    }
}
