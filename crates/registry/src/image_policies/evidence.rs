//! What decisions about images depend on, without the database that it comes from.

use std::collections::BTreeSet;

use bowline_contract::bowline::registry::v1 as own;
use bowline_core::Micros;

use super::signing::{SignedDocument, Signers};
use crate::components::SbomFacts;
use crate::trusted_root::TrustedRoot;

/// A policy that applies, with its keys and trusted root read.
pub(super) struct AppliedPolicy {
    /// UIDP of the group or repository that it is of.
    pub(super) scope: String,
    pub(super) policy: own::ImagePolicy,
    /// The signers of each rule; absent for rules without any.
    pub(super) signers: Vec<Option<Signers>>,
    pub(super) root: Option<TrustedRoot>,
}

impl AppliedPolicy {
    /// A policy that was checked when it was written. Keys that cannot be read any more verify nothing.
    pub(super) fn new(scope: String, policy: own::ImagePolicy) -> AppliedPolicy {
        let signers = policy.rules.iter().map(|rule| signers_of(rule).and_then(|signers| Signers::parse(signers).ok()));
        let root = if policy.trusted_root.is_empty() { None } else { TrustedRoot::parse(&policy.trusted_root).ok() };
        AppliedPolicy { scope, signers: signers.collect(), root, policy }
    }
}

/// The signers that a rule accepts.
pub(super) fn signers_of(rule: &own::ImageRule) -> Option<&own::ImageSigners> {
    let of_signature = rule.signature.as_ref().and_then(|signature| signature.signers.as_ref());
    of_signature.or_else(|| rule.attestation.as_ref().and_then(|attestation| attestation.signers.as_ref()))
}

/// What is known about an image and the images that it stands for.
#[derive(Clone, Debug, Default)]
pub(super) struct Evidence {
    /// UIDP of the repository.
    pub(super) repo: String,
    /// The digest in question, and those of indexes of the repository that name it: signatures and exceptions of these
    /// are about it too.
    pub(super) covering: BTreeSet<String>,
    /// It is a signature, an attestation or the like, which no rule is about.
    pub(super) is_exempt: bool,
    pub(super) documents: Vec<SignedDocument>,
    /// There are further attached documents, which were not read.
    pub(super) has_more_documents: bool,
    /// The images to evaluate: itself, or the members of an index.
    pub(super) images: Vec<ImageFacts>,
    /// There are further members, which were not looked at.
    pub(super) has_more_images: bool,
}

/// What is known about one image.
#[derive(Clone, Debug, Default)]
pub(super) struct ImageFacts {
    pub(super) digest: String,
    /// Time of its last push.
    pub(super) pushed_at: Micros,
    pub(super) reports: Reports,
    pub(super) sboms: SbomFacts,
}

/// The newest report of each scanner.
#[derive(Clone, Debug, Default)]
pub(super) struct Reports {
    pub(super) newest: Vec<ReportFacts>,
    /// There are reports that were not read, because they are too large together.
    pub(super) has_unread: bool,
}

/// What a report has.
#[derive(Clone, Debug, Default)]
pub(super) struct ReportFacts {
    /// When it was stored.
    pub(super) at: Micros,
    pub(super) findings: Vec<FindingFacts>,
}

/// A vulnerability of a package.
#[derive(Clone, Debug, Default)]
pub(super) struct FindingFacts {
    pub(super) id: String,
    pub(super) package: String,
    /// Number of the wire contract's severity.
    pub(super) severity: i32,
    pub(super) has_fix: bool,
    /// Since when there is a fix, as far as the report says.
    pub(super) fix_since: Option<Micros>,
}
