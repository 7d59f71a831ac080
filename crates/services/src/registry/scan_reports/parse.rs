//! What is understood of the reports of scanners. Everything that is kept is bounded; what else a report says stays
//! in the report.

use std::collections::{BTreeMap, BTreeSet};

use bowline_contract::v1::registry::vulnerability::{Severity, fix};
use serde::{Deserialize, Serialize};

/// Most findings of one report.
const MOST_FINDINGS: usize = 50_000;
/// Most elements of a list of a finding.
const MOST_ELEMENTS: usize = 50;
/// Most bytes of a name, a version or an address.
const SHORT: usize = 2048;
/// Most bytes of a description.
const LONG: usize = 8192;

/// One vulnerability of one package.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::registry) struct Finding {
    pub(in crate::registry) id: String,
    pub(in crate::registry) aliases: Vec<String>,
    /// Number of the wire contract's severity.
    pub(in crate::registry) severity: i32,
    pub(in crate::registry) package: String,
    pub(in crate::registry) version: String,
    pub(in crate::registry) package_type: String,
    pub(in crate::registry) purl: String,
    pub(in crate::registry) location: String,
    pub(in crate::registry) fixed_versions: Vec<String>,
    /// Number of the wire contract's state of a fix.
    pub(in crate::registry) fix_state: i32,
    pub(in crate::registry) description: String,
    pub(in crate::registry) references: Vec<String>,
}

/// A report, understood.
#[derive(Debug, Default)]
pub(super) struct Report {
    pub(super) scanner_version: String,
    /// As RFC 3339, empty where the report does not say.
    pub(super) database_built: String,
    pub(super) findings: Vec<Finding>,
}

impl Report {
    /// The ids by severity, each once, under its highest.
    pub(super) fn summary(&self) -> BTreeMap<i32, BTreeSet<&str>> {
        let mut highest: BTreeMap<&str, i32> = BTreeMap::new();
        for finding in &self.findings {
            let known = highest.entry(&finding.id).or_insert(finding.severity);
            if rank(finding.severity) > rank(*known) {
                *known = finding.severity;
            }
        }
        let mut summary: BTreeMap<i32, BTreeSet<&str>> = BTreeMap::new();
        for (id, severity) in highest {
            summary.entry(severity).or_default().insert(id);
        }
        summary
    }
}

/// How severe: the numbers of the wire are in no order.
pub(in crate::registry) fn rank(severity: i32) -> i32 {
    match Severity::try_from(severity) {
        Ok(Severity::Critical) => 5,
        Ok(Severity::High) => 4,
        Ok(Severity::Medium) => 3,
        Ok(Severity::Low) => 2,
        Ok(Severity::Negligible) => 1,
        Ok(Severity::Unknown) | Err(_) => 0,
    }
}

fn severity(text: &str) -> i32 {
    let severity = match text.to_ascii_lowercase().as_str() {
        "critical" => Severity::Critical,
        "high" => Severity::High,
        "medium" => Severity::Medium,
        "low" => Severity::Low,
        "negligible" => Severity::Negligible,
        _ => Severity::Unknown,
    };
    severity as i32
}

/// The beginning of a text, whole characters.
fn cut(mut text: String, most: usize) -> String {
    if text.len() > most {
        let end = (0..=most).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
        text.truncate(end);
    }
    text
}

fn few(texts: Vec<String>) -> Vec<String> {
    texts.into_iter().filter(|text| !text.is_empty()).take(MOST_ELEMENTS).map(|text| cut(text, SHORT)).collect()
}

/// Cuts everything to its bounds, and refuses what has no id or too many findings.
fn bounded(findings: Vec<Finding>) -> Result<Vec<Finding>, String> {
    if findings.len() > MOST_FINDINGS {
        return Err(format!("has {} findings; at most {MOST_FINDINGS} are stored", findings.len()));
    }
    if findings.iter().any(|finding| finding.id.is_empty()) {
        return Err("has a finding without an id".into());
    }
    let bounded = |finding: Finding| Finding {
        id: cut(finding.id, SHORT),
        aliases: few(finding.aliases),
        package: cut(finding.package, SHORT),
        version: cut(finding.version, SHORT),
        package_type: cut(finding.package_type, SHORT),
        purl: cut(finding.purl, SHORT),
        location: cut(finding.location, SHORT),
        fixed_versions: few(finding.fixed_versions),
        description: cut(finding.description, LONG),
        references: few(finding.references),
        ..finding
    };
    Ok(findings.into_iter().map(bounded).collect())
}

mod grype {
    use serde::Deserialize;

    #[derive(Deserialize)]
    pub(super) struct Document {
        pub(super) matches: Vec<Match>,
        #[serde(default)]
        pub(super) descriptor: Descriptor,
    }

    #[derive(Deserialize)]
    pub(super) struct Match {
        pub(super) vulnerability: Vulnerability,
        #[serde(default, rename = "relatedVulnerabilities")]
        pub(super) related: Vec<Related>,
        pub(super) artifact: Artifact,
    }

    #[derive(Deserialize)]
    #[serde(default)]
    #[derive(Default)]
    pub(super) struct Vulnerability {
        pub(super) id: String,
        pub(super) severity: String,
        pub(super) description: String,
        #[serde(rename = "dataSource")]
        pub(super) source: String,
        pub(super) urls: Option<Vec<String>>,
        pub(super) fix: Fix,
    }

    #[derive(Default, Deserialize)]
    #[serde(default)]
    pub(super) struct Fix {
        pub(super) versions: Option<Vec<String>>,
        pub(super) state: String,
    }

    #[derive(Default, Deserialize)]
    #[serde(default)]
    pub(super) struct Related {
        pub(super) id: String,
        pub(super) description: String,
    }

    #[derive(Default, Deserialize)]
    #[serde(default)]
    pub(super) struct Artifact {
        pub(super) name: String,
        pub(super) version: String,
        #[serde(rename = "type")]
        pub(super) kind: String,
        pub(super) purl: String,
        pub(super) locations: Option<Vec<Location>>,
    }

    #[derive(Default, Deserialize)]
    #[serde(default)]
    pub(super) struct Location {
        pub(super) path: String,
    }

    #[derive(Default, Deserialize)]
    #[serde(default)]
    pub(super) struct Descriptor {
        pub(super) version: String,
        pub(super) db: Database,
    }

    /// Two forms: newer releases put a member between.
    #[derive(Default, Deserialize)]
    #[serde(default)]
    pub(super) struct Database {
        pub(super) built: Option<String>,
        pub(super) status: Option<Status>,
    }

    #[derive(Default, Deserialize)]
    #[serde(default)]
    pub(super) struct Status {
        pub(super) built: Option<String>,
    }
}

/// The JSON output of Grype.
pub(super) fn grype(report: &[u8]) -> Result<Report, String> {
    let document: grype::Document = serde_json::from_slice(report).map_err(|error| reason("Grype", &error))?;
    let finding = |found: grype::Match| {
        let grype::Match { vulnerability, related, artifact } = found;
        let description = match related.first() {
            Some(first) if vulnerability.description.is_empty() => first.description.clone(),
            _ => vulnerability.description,
        };
        let references = [vulnerability.source].into_iter().chain(vulnerability.urls.unwrap_or_default());
        let aliases = related.into_iter().map(|other| other.id).filter(|id| *id != vulnerability.id).collect();
        let locations = artifact.locations.unwrap_or_default();
        Finding {
            id: vulnerability.id,
            aliases,
            severity: severity(&vulnerability.severity),
            package: artifact.name,
            version: artifact.version,
            package_type: artifact.kind,
            purl: artifact.purl,
            location: locations.into_iter().next().unwrap_or_default().path,
            fix_state: state(&vulnerability.fix.state),
            fixed_versions: vulnerability.fix.versions.unwrap_or_default(),
            description,
            references: references.collect(),
        }
    };
    let database = document.descriptor.db;
    Ok(Report {
        scanner_version: cut(document.descriptor.version, SHORT),
        database_built: database.built.or(database.status.and_then(|status| status.built)).unwrap_or_default(),
        findings: bounded(document.matches.into_iter().map(finding).collect())?,
    })
}

fn state(text: &str) -> i32 {
    let state = match text.replace('_', "-").as_str() {
        "fixed" => fix::State::Fixed,
        "not-fixed" | "affected" | "fix-deferred" => fix::State::NotFixed,
        "wont-fix" | "will-not-fix" | "end-of-life" => fix::State::WontFix,
        _ => fix::State::Unknown,
    };
    state as i32
}

mod trivy {
    use serde::Deserialize;

    #[derive(Deserialize)]
    pub(super) struct Document {
        #[serde(rename = "SchemaVersion")]
        pub(super) _schema: u32,
        #[serde(default, rename = "Results")]
        pub(super) results: Option<Vec<Outcome>>,
        #[serde(default, rename = "Trivy")]
        pub(super) program: Program,
    }

    #[derive(Default, Deserialize)]
    #[serde(default, rename_all = "PascalCase")]
    pub(super) struct Program {
        pub(super) version: String,
    }

    #[derive(Default, Deserialize)]
    #[serde(default, rename_all = "PascalCase")]
    pub(super) struct Outcome {
        pub(super) target: String,
        pub(super) r#type: String,
        pub(super) vulnerabilities: Option<Vec<Vulnerability>>,
    }

    #[derive(Default, Deserialize)]
    #[serde(default, rename_all = "PascalCase")]
    pub(super) struct Vulnerability {
        #[serde(rename = "VulnerabilityID")]
        pub(super) id: String,
        #[serde(rename = "VendorIDs")]
        pub(super) vendor_ids: Option<Vec<String>>,
        pub(super) pkg_name: String,
        pub(super) pkg_path: String,
        pub(super) pkg_identifier: Identifier,
        pub(super) installed_version: String,
        pub(super) fixed_version: String,
        pub(super) status: String,
        pub(super) severity: String,
        pub(super) title: String,
        pub(super) description: String,
        #[serde(rename = "PrimaryURL")]
        pub(super) primary_url: String,
        pub(super) references: Option<Vec<String>>,
    }

    #[derive(Default, Deserialize)]
    #[serde(default)]
    pub(super) struct Identifier {
        #[serde(rename = "PURL")]
        pub(super) purl: String,
    }
}

/// The JSON output of Trivy.
pub(super) fn trivy(report: &[u8]) -> Result<Report, String> {
    let document: trivy::Document = serde_json::from_slice(report).map_err(|error| reason("Trivy", &error))?;
    let mut findings = Vec::new();
    for outcome in document.results.unwrap_or_default() {
        for found in outcome.vulnerabilities.unwrap_or_default() {
            let fixed: Vec<String> = found.fixed_version.split(',').map(|text| text.trim().to_owned()).collect();
            let references = [found.primary_url].into_iter().chain(found.references.unwrap_or_default());
            findings.push(Finding {
                id: found.id,
                aliases: found.vendor_ids.unwrap_or_default(),
                severity: severity(&found.severity),
                package: found.pkg_name,
                version: found.installed_version,
                package_type: outcome.r#type.clone(),
                purl: found.pkg_identifier.purl,
                location: if found.pkg_path.is_empty() { outcome.target.clone() } else { found.pkg_path },
                fixed_versions: fixed,
                fix_state: state(&found.status),
                description: if found.description.is_empty() { found.title } else { found.description },
                references: references.collect(),
            });
        }
    }
    Ok(Report {
        scanner_version: cut(document.program.version, SHORT),
        database_built: String::new(),
        findings: bounded(findings)?,
    })
}

fn reason(scanner: &str, error: &serde_json::Error) -> String {
    format!("is not the JSON output of {scanner}: {error}")
}

#[cfg(test)]
#[path = "parse_tests.rs"]
mod tests;
