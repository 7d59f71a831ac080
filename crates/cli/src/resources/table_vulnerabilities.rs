//! The commands of `bowline vulns` and `bowline advisories` that are made from the contract.

use super::table::{Column, Does, Kind, Resource, Verb, column};

/// A resource whose one verb is the command itself.
const fn alone(name: &'static str, kind: Kind, verbs: &'static [Verb]) -> Resource {
    Resource { name, about: verbs[0].about, kind, columns: &[], wide: &[], verbs }
}

const DAYS: &[Column] = &[
    column("day", "day"),
    column("critical", "open.critical"),
    column("high", "open.high"),
    column("medium", "open.medium"),
    column("low", "open.low"),
    column("fixed critical", "fixed.critical"),
    column("fixed high", "fixed.high"),
    column("images", "images"),
    column("without report", "unreportedImages"),
];
const FINDINGS: &[Column] = &[
    column("vulnerability", "vulnerability"),
    column("severity", "severity"),
    column("package", "package"),
    column("version", "version"),
    column("fixed in", "fixedVersions"),
    column("status", "status"),
    column("repository", "repoName"),
    column("tags", "tags"),
];
const EVENTS: &[Column] = &[column("uidp", "id"), column("status", "status"), column("reviewer", "reviewer")];

const AFFECTED: &[Column] = &[
    column("repository", "repoName"),
    column("tags", "tags"),
    column("component", "component"),
    column("version", "version"),
    column("vulnerability", "vulnerability"),
    column("severity", "severity"),
    column("fixed in", "fixedVersion"),
    column("status", "status"),
];

/// Of the commands of `bowline registry`.
pub(super) const MATCHES_OF_IMAGES: Resource = Resource {
    columns: AFFECTED,
    ..alone(
        "matches",
        Kind::Scope,
        &[Verb {
            name: "matches",
            method: "bowline.vulnerabilities.v1.Matches.ListMatches",
            about: "List the components of images that imported records of vulnerabilities affect",
            does: Does::List,
            positional: "scope",
            example: "registry matches acme --vulnerability CVE-2021-44228",
        }],
    )
};

pub(super) const VULNS: &[Resource] = &[
    alone(
        "posture",
        Kind::Scope,
        &[Verb {
            name: "posture",
            method: "bowline.vulnerabilities.v1.Posture.GetPosture",
            about: "Count open and fixed findings by day; -o json has their ages and the times until they were fixed",
            does: Does::Rows(DAYS),
            positional: "scope",
            example: "vulns posture acme",
        }],
    ),
    alone(
        "findings",
        Kind::Scope,
        &[Verb {
            name: "findings",
            method: "bowline.vulnerabilities.v1.Posture.ListFindings",
            about: "List the open findings of the images of a scope, with what advisories say about each",
            does: Does::ListOf(FINDINGS),
            positional: "scope",
            example: "vulns findings acme --severities critical,high",
        }],
    ),
];

pub(super) const ADVISORIES: &[Resource] = &[
    alone(
        "publication",
        Kind::Unnamed("event"),
        &[Verb {
            name: "publication",
            method: "bowline.vulnerabilities.v1.Reviews.PreviewPublication",
            about: "Show what everyone reads of an advisory, and what they would read if an event were approved",
            does: Does::Get,
            positional: "uid",
            example: "advisories publication $EVENT",
        }],
    ),
    alone(
        "batch-review",
        Kind::Group,
        &[Verb {
            name: "batch-review",
            method: "bowline.vulnerabilities.v1.Reviews.BatchReviewEvents",
            about: "Review up to 50 events at once, all or none",
            does: Does::Rows(EVENTS),
            positional: "parent",
            example: "advisories batch-review acme --reviews-file reviews.json",
        }],
    ),
];
