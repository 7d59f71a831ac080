//! The JSON output of Trivy.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::{Finding, Report, element, reason};

#[derive(Deserialize)]
struct Document<'a> {
    #[serde(rename = "SchemaVersion")]
    _schema: u32,
    #[serde(default, rename = "CreatedAt")]
    created: String,
    #[serde(default, rename = "ArtifactName")]
    artifact_name: String,
    #[serde(default, rename = "ArtifactType")]
    artifact_type: String,
    #[serde(default, borrow, rename = "Results")]
    results: Option<Vec<Outcome<'a>>>,
    #[serde(default, rename = "Trivy")]
    program: Program,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct Program {
    version: String,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct Outcome<'a> {
    target: String,
    r#type: String,
    #[serde(borrow)]
    vulnerabilities: Option<Vec<&'a RawValue>>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct Vulnerability {
    #[serde(rename = "VulnerabilityID")]
    id: String,
    #[serde(rename = "VendorIDs")]
    vendor_ids: Option<Vec<String>>,
    pkg_name: String,
    pkg_path: String,
    pkg_identifier: Identifier,
    installed_version: String,
    fixed_version: String,
    status: String,
    severity: String,
    title: String,
    description: String,
    #[serde(rename = "PrimaryURL")]
    primary_url: String,
    references: Option<Vec<String>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Identifier {
    #[serde(rename = "PURL")]
    purl: String,
}

/// Reads a report.
///
/// # Errors
/// Why the text is not a report.
pub fn trivy(report: &[u8]) -> Result<Report, String> {
    let document: Document<'_> = serde_json::from_slice(report).map_err(|error| reason("Trivy", &error))?;
    let is_image = document.artifact_type == "container_image";
    let mut read = Report {
        scanner: "trivy",
        scanner_version: document.program.version,
        made: document.created,
        image: if is_image { document.artifact_name } else { String::new() },
        ..Report::default()
    };
    for (at, outcome) in document.results.unwrap_or_default().into_iter().enumerate() {
        for (within, raw) in outcome.vulnerabilities.unwrap_or_default().into_iter().enumerate() {
            let position = format!("Results[{at}].Vulnerabilities[{within}]");
            match element::<Vulnerability>(raw) {
                Ok(found) => read.findings.push(finding(found, (&outcome.target, &outcome.r#type), position)),
                Err(reason) => read.unreadable.push((position, reason)),
            }
        }
    }
    Ok(read)
}

fn finding(found: Vulnerability, (target, kind): (&str, &str), position: String) -> Finding {
    let fixed = found.fixed_version.split(',').map(|text| text.trim().to_owned());
    let references = [found.primary_url].into_iter().chain(found.references.unwrap_or_default());
    Finding {
        id: found.id,
        aliases: found.vendor_ids.unwrap_or_default(),
        severity: found.severity,
        package: found.pkg_name,
        version: found.installed_version,
        package_type: kind.into(),
        purl: found.pkg_identifier.purl,
        location: if found.pkg_path.is_empty() { target.into() } else { found.pkg_path },
        fixed_versions: fixed.collect(),
        fix_state: found.status,
        description: if found.description.is_empty() { found.title } else { found.description },
        references: references.collect(),
        position,
    }
}
