//! The JSON output of Trivy.

use serde::Deserialize;

use super::bounds::{Few, Text};
use super::parse::{
    Finding, Findings, Long, MAX_FINDINGS, Part, Parts, Rating, Report, Short, Shorts, digests, few, ratings, severity,
    state, time,
};

#[derive(Deserialize)]
struct Document {
    #[serde(rename = "SchemaVersion")]
    _schema: u32,
    #[serde(rename = "Metadata")]
    metadata: Option<Metadata>,
    #[serde(default, rename = "Results")]
    results: Parts<Outcome>,
    #[serde(default, rename = "Trivy")]
    program: Program,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct Metadata {
    #[serde(rename = "ImageID")]
    config: Short,
    repo_digests: Shorts,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct Program {
    version: Short,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct Outcome {
    target: Short,
    r#type: Short,
    /// One more than are stored, so that too many are noticed.
    vulnerabilities: Few<Vulnerability, { MAX_FINDINGS + 1 }>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct Vulnerability {
    #[serde(rename = "VulnerabilityID")]
    id: Short,
    #[serde(rename = "VendorIDs")]
    vendor_ids: Shorts,
    pkg_name: Short,
    pkg_path: Short,
    pkg_identifier: Identifier,
    installed_version: Short,
    fixed_version: Short,
    status: Short,
    severity: Short,
    title: Long,
    description: Long,
    #[serde(rename = "PrimaryURL")]
    primary_url: Short,
    references: Shorts,
    published_date: Short,
    #[serde(rename = "CVSS")]
    cvss: Option<Cvss>,
}

/// Sources of scores, the preferred one first.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Cvss {
    nvd: Option<Scores>,
    ghsa: Option<Scores>,
    redhat: Option<Scores>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Scores {
    #[serde(rename = "V40Score")]
    fourth: Option<f64>,
    #[serde(rename = "V3Score")]
    third: Option<f64>,
    /// Begins with `CVSS:3.0/` or `CVSS:3.1/`.
    #[serde(rename = "V3Vector")]
    third_vector: Short,
    #[serde(rename = "V2Score")]
    second: Option<f64>,
}

impl Scores {
    fn given(&self) -> [(Option<f64>, &str); 3] {
        let third = self.third_vector.0.strip_prefix("CVSS:").and_then(|vector| vector.split('/').next());
        [(self.fourth, "4.0"), (self.third, third.unwrap_or("3.0")), (self.second, "2.0")]
    }
}

fn rated(cvss: Option<&Cvss>) -> Vec<Rating> {
    let sources = cvss.map_or([None; 3], |cvss| [cvss.nvd.as_ref(), cvss.ghsa.as_ref(), cvss.redhat.as_ref()]);
    ratings(sources.into_iter().flatten().flat_map(Scores::given))
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Identifier {
    #[serde(rename = "PURL")]
    purl: Short,
}

impl Part for Outcome {
    fn add_to(self, findings: &mut Findings) -> Result<(), String> {
        let Outcome { target, r#type, vulnerabilities } = self;
        for found in vulnerabilities.0 {
            let fixed = found.fixed_version.0.split(',').map(|text| Text(text.trim().to_owned()));
            let location = if found.pkg_path.0.is_empty() { target.clone() } else { found.pkg_path };
            let description = if found.description.0.is_empty() { found.title } else { found.description };
            let ratings = rated(found.cvss.as_ref());
            findings.add(Finding {
                ratings,
                id: found.id.0,
                aliases: few(found.vendor_ids.0),
                severity: severity(&found.severity.0),
                package: found.pkg_name.0,
                version: found.installed_version.0,
                package_type: r#type.0.clone(),
                purl: found.pkg_identifier.purl.0,
                location: location.0,
                fixed_versions: few(fixed),
                // When the fix came, such a report does not say.
                fix_since: time(&found.published_date.0),
                fix_state: state(&found.status.0),
                description: description.0,
                references: few([found.primary_url].into_iter().chain(found.references.0)),
            })?;
        }
        Ok(())
    }
}

pub(super) fn report(report: &[u8]) -> Result<Report, String> {
    let document: Document = serde_json::from_slice(report)
        .map_err(|error| format!("cannot be taken as the JSON output of Trivy: {error}"))?;
    let Metadata { config, repo_digests } = document.metadata.unwrap_or_default();
    Ok(Report {
        scanned: digests([config].into_iter().chain(repo_digests.0)),
        scanner_version: document.program.version.0,
        database_built: String::new(),
        findings: document.results.findings,
    })
}
