//! A record as types. Unknown values of enumerations become `Other`: newer schemas have more.

use bowline_core::Micros;

/// A record: one vulnerability as one database describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Identifier, such as `GHSA-xxxx-xxxx-xxxx`.
    pub id: String,
    /// When the record was last changed.
    pub modified: Micros,
    /// When it was published.
    pub published: Option<Micros>,
    /// When it was taken back; such a record affects nothing.
    pub withdrawn: Option<Micros>,
    /// Identifiers of the same vulnerability in other databases.
    pub aliases: Vec<String>,
    /// Identifiers of the vulnerabilities upstream that this one comes from.
    pub upstream: Vec<String>,
    /// Identifiers of vulnerabilities that have to do with this one.
    pub related: Vec<String>,
    pub summary: String,
    pub details: String,
    /// How severe it is, by several scales.
    pub severity: Vec<Severity>,
    pub affected: Vec<Affected>,
    /// Pages about the vulnerability.
    pub references: Vec<Reference>,
}

/// A statement of how severe something is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Severity {
    pub kind: SeverityKind,
    /// A vector of the scale, or its word.
    pub score: String,
}

/// A scale of severity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are those of the schema")]
pub enum SeverityKind {
    CvssV2,
    CvssV3,
    CvssV4,
    Ubuntu,
    Other,
}

impl SeverityKind {
    /// The scale of that name.
    pub fn of(name: &str) -> SeverityKind {
        match name {
            "CVSS_V2" => SeverityKind::CvssV2,
            "CVSS_V3" => SeverityKind::CvssV3,
            "CVSS_V4" => SeverityKind::CvssV4,
            "Ubuntu" => SeverityKind::Ubuntu,
            _ => SeverityKind::Other,
        }
    }
}

/// One package that is affected, or one repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Affected {
    /// The package; absent where only commits are named.
    pub package: Option<Package>,
    /// How severe it is for this package.
    pub severity: Vec<Severity>,
    pub ranges: Vec<Range>,
    pub versions: Vec<String>,
}

/// A package of an ecosystem.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Package {
    /// Such as `PyPI` or `Debian:12`.
    pub ecosystem: String,
    /// The name, as the ecosystem spells it.
    pub name: String,
    /// Package URL, if any.
    pub purl: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Range {
    /// How the versions are ordered.
    pub kind: RangeKind,
    /// The repository of a range of commits.
    pub repo: Option<String>,
    /// What happened at which version.
    pub events: Vec<Event>,
}

/// How the versions of a range are ordered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RangeKind {
    /// As commits of a repository.
    Git,
    /// By semantic versioning 2.0.
    Semver,
    /// As the ecosystem orders them.
    Ecosystem,
}

/// What happened at a version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// This version, and those after it, are affected; `0` is before every version.
    Introduced(String),
    /// This version, and those after it, are not affected.
    Fixed(String),
    /// This version is the last that is affected.
    LastAffected(String),
    /// The range covers only versions before this one.
    Limit(String),
}

/// A page about the vulnerability.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference {
    /// Kind of page, as the schema spells it.
    pub kind: String,
    pub url: String,
}
