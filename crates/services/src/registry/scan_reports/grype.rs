//! The JSON output of Grype.

use serde::Deserialize;

use super::bounds::Few;
use super::parse::{Finding, Findings, Long, MOST_ELEMENTS, Part, Parts, Report, Short, Shorts, few, severity, state};

#[derive(Deserialize)]
struct Document {
    matches: Parts<Match>,
    #[serde(default)]
    descriptor: Descriptor,
}

#[derive(Deserialize)]
struct Match {
    vulnerability: Vulnerability,
    #[serde(default, rename = "relatedVulnerabilities")]
    related: Few<Related, MOST_ELEMENTS>,
    artifact: Artifact,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Vulnerability {
    id: Short,
    severity: Short,
    description: Long,
    #[serde(rename = "dataSource")]
    source: Short,
    urls: Shorts,
    fix: Fix,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Fix {
    versions: Shorts,
    state: Short,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Related {
    id: Short,
    description: Long,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Artifact {
    name: Short,
    version: Short,
    #[serde(rename = "type")]
    kind: Short,
    purl: Short,
    locations: Few<Location, 1>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Location {
    path: Short,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Descriptor {
    version: Short,
    db: Database,
}

/// Two forms: newer releases put a member between.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Database {
    built: Option<Short>,
    status: Option<Status>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Status {
    built: Option<Short>,
}

impl Part for Match {
    fn add_to(self, findings: &mut Findings) -> Result<(), String> {
        let Match { vulnerability, related, artifact } = self;
        let (id, mut description) = (vulnerability.id, vulnerability.description);
        let mut aliases = Vec::new();
        for other in related.0 {
            if aliases.is_empty() && description.0.is_empty() {
                description = other.description;
            }
            aliases.push(other.id);
        }
        let location = artifact.locations.0.into_iter().next().unwrap_or_default();
        findings.add(Finding {
            aliases: few(aliases.into_iter().filter(|alias| *alias != id)),
            id: id.0,
            severity: severity(&vulnerability.severity.0),
            package: artifact.name.0,
            version: artifact.version.0,
            package_type: artifact.kind.0,
            purl: artifact.purl.0,
            location: location.path.0,
            fix_state: state(&vulnerability.fix.state.0),
            fixed_versions: few(vulnerability.fix.versions.0),
            description: description.0,
            references: few([vulnerability.source].into_iter().chain(vulnerability.urls.0)),
        })
    }
}

/// Reads a report.
pub(super) fn report(report: &[u8]) -> Result<Report, String> {
    let document: Document = serde_json::from_slice(report)
        .map_err(|error| format!("cannot be taken as the JSON output of Grype: {error}"))?;
    let Descriptor { version, db } = document.descriptor;
    let built = db.built.or(db.status.and_then(|status| status.built));
    Ok(Report {
        scanner_version: version.0,
        database_built: built.unwrap_or_default().0,
        findings: document.matches.findings,
    })
}
