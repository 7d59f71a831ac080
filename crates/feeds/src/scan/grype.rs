//! The JSON output of Grype.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::{Finding, Report, element, reason};

#[derive(Deserialize)]
struct Document<'a> {
    #[serde(borrow)]
    matches: Vec<&'a RawValue>,
    source: Option<Source>,
    #[serde(default)]
    descriptor: Descriptor,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Source {
    #[serde(rename = "type")]
    kind: String,
    target: Target,
}

/// An object for images, a path for what else there is.
#[derive(Default, Deserialize)]
#[serde(untagged)]
enum Target {
    Image {
        #[serde(rename = "userInput")]
        user_input: String,
    },
    Other(serde::de::IgnoredAny),
    #[default]
    Absent,
}

#[derive(Deserialize)]
struct Match {
    vulnerability: Vulnerability,
    #[serde(default, rename = "relatedVulnerabilities")]
    related: Vec<Related>,
    artifact: Artifact,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Vulnerability {
    id: String,
    severity: String,
    description: String,
    #[serde(rename = "dataSource")]
    source: String,
    urls: Option<Vec<String>>,
    fix: Fix,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Fix {
    versions: Option<Vec<String>>,
    state: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Related {
    id: String,
    description: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Artifact {
    name: String,
    version: String,
    #[serde(rename = "type")]
    kind: String,
    purl: String,
    locations: Option<Vec<Location>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Location {
    path: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Descriptor {
    version: String,
    timestamp: String,
    db: Database,
}

/// Two forms: newer releases put a member between.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Database {
    built: Option<String>,
    checksum: Option<String>,
    status: Option<Status>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Status {
    built: Option<String>,
    from: String,
}

/// Reads a report.
///
/// # Errors
/// Why the text is not a report.
pub fn grype(report: &[u8]) -> Result<Report, String> {
    let document: Document<'_> = serde_json::from_slice(report).map_err(|error| reason("Grype", &error))?;
    let database = document.descriptor.db;
    let status = database.status.unwrap_or_default();
    let source = document.source.unwrap_or_default();
    let image = match source.target {
        Target::Image { user_input } if source.kind == "image" => user_input,
        _ => String::new(),
    };
    let mut read = Report {
        scanner: "grype",
        scanner_version: document.descriptor.version,
        database_built: database.built.or(status.built).unwrap_or_default(),
        database_checksum: database.checksum.unwrap_or_default(),
        made: document.descriptor.timestamp,
        image,
        ..Report::default()
    };
    // Newer releases say the checksum in the address that the database came from.
    if let Some((_, checksum)) = status.from.split_once("checksum=") {
        read.database_checksum = checksum.split('&').next().unwrap_or_default().replace("%3A", ":");
    }
    for (at, raw) in document.matches.into_iter().enumerate() {
        let position = format!("matches[{at}]");
        match element::<Match>(raw) {
            Ok(found) => read.findings.push(finding(found, position)),
            Err(reason) => read.unreadable.push((position, reason)),
        }
    }
    Ok(read)
}

fn finding(found: Match, position: String) -> Finding {
    let Match { vulnerability, related, artifact } = found;
    let description = match related.first() {
        Some(first) if vulnerability.description.is_empty() => first.description.clone(),
        _ => vulnerability.description,
    };
    let references = [vulnerability.source].into_iter().chain(vulnerability.urls.unwrap_or_default());
    let locations = artifact.locations.unwrap_or_default();
    Finding {
        aliases: related.into_iter().map(|other| other.id).filter(|id| *id != vulnerability.id).collect(),
        id: vulnerability.id,
        severity: vulnerability.severity,
        package: artifact.name,
        version: artifact.version,
        package_type: artifact.kind,
        purl: artifact.purl,
        location: locations.into_iter().next().unwrap_or_default().path,
        fix_state: vulnerability.fix.state,
        fixed_versions: vulnerability.fix.versions.unwrap_or_default(),
        description,
        references: references.collect(),
        position,
    }
}
