//! Reports of scanners: what each finding says in its own words, and what follows for statements.

mod grype;
mod trivy;

use bowline_core::rfc3339;
use bowline_formats::purl::PackageUrl;
use serde::Deserialize;
use serde_json::value::RawValue;

pub use grype::grype;
pub use trivy::trivy;

use crate::cursor::SHORT;
use crate::model::{Advisory, Artifact, Assessment, Component, Detection, Event, Provenance, Scan};
use crate::problem::{Problems, Unreadable};
use crate::subject::{Subject, is_system};
use crate::tree::{Limits, too_long};

/// One vulnerability of one package, in the scanner's words.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say what scanners write there")]
pub struct Finding {
    pub id: String,
    pub aliases: Vec<String>,
    pub severity: String,
    pub package: String,
    pub version: String,
    pub package_type: String,
    pub purl: String,
    pub location: String,
    pub fixed_versions: Vec<String>,
    pub fix_state: String,
    pub description: String,
    pub references: Vec<String>,
    /// Where in the report it stands.
    pub position: String,
}

#[derive(Clone, Debug, Default)]
pub struct Report {
    pub scanner: &'static str,
    pub scanner_version: String,
    /// When its database was built, as RFC 3339; empty where the report does not say.
    pub database_built: String,
    /// Checksum of the database.
    pub database_checksum: String,
    /// When the report was made, as RFC 3339; empty where it does not say.
    pub made: String,
    /// The image that was scanned, as it was named; empty where it was something else.
    pub image: String,
    pub findings: Vec<Finding>,
    /// Findings that cannot be read: where, and why.
    pub unreadable: Vec<(String, String)>,
}

/// Reads an element of a list, or why it cannot be.
fn element<'a, T: Deserialize<'a>>(raw: &'a RawValue) -> Result<T, String> {
    serde_json::from_str(raw.get()).map_err(|error| error.to_string())
}

fn reason(scanner: &str, error: &serde_json::Error) -> String {
    format!("is not the JSON output of {scanner}: {error}")
}

/// Reads a report of that scanner as statements: each finding is a detection that no one reviewed. `scanned`
/// is the artifact of the findings, if the report does not name it or names it differently.
///
/// # Errors
/// It is no report of that scanner, or no one says what was scanned.
pub fn detections(
    read: fn(&[u8]) -> Result<Report, String>,
    bytes: &[u8],
    scanned: Option<&Artifact>,
    limits: &Limits,
) -> Result<crate::Reading, Unreadable> {
    if bytes.len() > limits.bytes {
        return Err(too_long(bytes.len(), limits));
    }
    let report = read(bytes).map_err(|reason| Unreadable(format!("the document {reason}")))?;
    if report.findings.len() > limits.advisories {
        return Err(Unreadable(format!("the document has more than {} findings", limits.advisories)));
    }
    let (name, version) = reference(&report.image);
    let artifact = match scanned {
        Some(artifact) => artifact.clone(),
        None if name.is_empty() => {
            return Err(Unreadable("the report is not of an image; say what was scanned".into()));
        }
        None => Artifact { kind: "image".into(), name: name.into(), architecture: String::new() },
    };
    let mut problems = Problems::default();
    for (position, reason) in &report.unreadable {
        problems.skip(position, reason);
    }
    let mut advisories: Vec<Advisory> = Vec::new();
    for finding in &report.findings {
        match detected(finding, &report, &artifact, version) {
            Ok(advisory) => advisories.push(advisory),
            Err(reason) => problems.skip(&finding.position, reason),
        }
    }
    advisories.sort();
    advisories.dedup();
    Ok(crate::Reading { advisories, problems })
}

/// An image's name without tag and digest, and the rest.
fn reference(image: &str) -> (&str, &str) {
    let (named, digest) = image.split_once('@').unwrap_or((image, ""));
    let last = named.rfind('/').map_or(0, |slash| slash + 1);
    let (name, tag) = match named[last..].find(':') {
        Some(colon) => (&named[..last + colon], &named[last + colon + 1..]),
        None => (named, ""),
    };
    (name, if tag.is_empty() { digest } else { tag })
}

fn detected(finding: &Finding, report: &Report, artifact: &Artifact, version: &str) -> Result<Advisory, String> {
    if finding.id.is_empty() || finding.package.is_empty() {
        return Err("it has no id or no package".into());
    }
    let texts = [&finding.id, &finding.package, &finding.version, &finding.location, &finding.purl];
    let is_bad = |text: &String| text.len() > SHORT || text.chars().any(char::is_control);
    if texts.into_iter().chain(&finding.aliases).any(is_bad) {
        return Err(format!("a text has a control character or more than {SHORT} bytes"));
    }
    let component = component(finding);
    let scan = Scan {
        scanner: report.scanner.into(),
        scanner_version: report.scanner_version.clone(),
        subpackage: String::new(),
        component_id: finding.purl.clone(),
        component_name: finding.package.clone(),
        component_version: finding.version.clone(),
        component_kind: finding.package_type.clone(),
        component_location: finding.location.clone(),
        artifact_version: version.into(),
        database_built: report.database_built.clone(),
        database_checksum: report.database_checksum.clone(),
    };
    let event = Event {
        at: rfc3339::parse_micros(&report.made),
        author: String::new(),
        assessment: Assessment::Detection(Detection::Scan(Box::new(scan))),
        provenance: Provenance::default(),
    };
    let mut aliases = finding.aliases.clone();
    aliases.push(finding.id.clone());
    let mut advisory =
        Advisory { artifact: artifact.clone(), component, aliases, events: vec![event], ..Advisory::default() };
    advisory.sort();
    Ok(advisory)
}

/// Packages of the operating system lie in its database, which says nothing about where.
fn component(finding: &Finding) -> Component {
    let mut component = match PackageUrl::parse(&finding.purl) {
        Ok(purl) => {
            let nowhere = PackageUrl { kind: "oci".into(), name: "scanned".into(), ..PackageUrl::default() };
            Subject::read(&nowhere, Some(&purl.unversioned())).0.component
        }
        Err(_) => {
            Component { kind: finding.package_type.clone(), name: finding.package.clone(), location: String::new() }
        }
    };
    if is_system(&component.kind) {
        component.name.clone_from(&finding.package);
    } else {
        component.location.clone_from(&finding.location);
    }
    component
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn findings_become_detections_of_components() {
        let grype_report = br#"{"matches":[
            {"vulnerability":{"id":"GHSA-1","severity":"High"},"relatedVulnerabilities":[{"id":"CVE-1"}],
             "artifact":{"name":"a","version":"1.0","type":"python","purl":"pkg:pypi/a@1.0","locations":[{"path":"/a"}]}},
            {"vulnerability":3},
            {"vulnerability":{"id":"CVE-2"},"artifact":{"name":"busybox","version":"1","type":"apk","purl":"pkg:apk/wolfi/busybox@1?arch=x86_64",
             "locations":[{"path":"/lib/apk/db/installed"}]}}],
            "source":{"type":"image","target":{"userInput":"example.com:5000/acme/nginx:1.2"}},
            "descriptor":{"version":"0.80.0","timestamp":"2026-01-02T03:04:05.123456789Z","db":{"built":"2026-01-01T00:00:00Z"}}}"#;
        let reading = detections(grype, grype_report, None, &Limits::default()).expect("a report");
        assert_eq!(reading.advisories.len(), 2);
        let [system, python] = &reading.advisories[..] else { panic!("two") };
        assert_eq!(system.artifact.name, "example.com:5000/acme/nginx");
        assert_eq!(system.component, Component { kind: "apk".into(), name: "busybox".into(), location: String::new() });
        assert_eq!(python.component, Component { kind: "python".into(), name: "a".into(), location: "/a".into() });
        assert_eq!(python.aliases, ["CVE-1", "GHSA-1"]);
        assert_eq!(python.events[0].at, Some(1_767_323_045_123_456));
        let problems: Vec<String> = reading.problems.iter().map(ToString::to_string).collect();
        assert!(problems[0].starts_with("skipped matches[1]: "), "{problems:?}");

        let trivy_report = br#"{"SchemaVersion":2,"ArtifactName":"nginx@sha256:aa","ArtifactType":"container_image",
            "CreatedAt":"2026-01-02T03:04:05Z","Results":[{"Target":"os","Type":"alpine","Vulnerabilities":[
            {"VulnerabilityID":"CVE-2","PkgName":"b","InstalledVersion":"1","PkgIdentifier":{"PURL":"pkg:apk/alpine/b@1"}}]}]}"#;
        let reading = detections(trivy, trivy_report, None, &Limits::default()).expect("a report");
        assert_eq!(reading.advisories[0].artifact.name, "nginx");
        let directory = br#"{"SchemaVersion":2,"ArtifactName":"src","ArtifactType":"filesystem","Results":[]}"#;
        assert!(detections(trivy, directory, None, &Limits::default()).is_err());
    }

    #[test]
    fn references_are_taken_apart() {
        assert_eq!(reference("nginx"), ("nginx", ""));
        assert_eq!(reference("h:5000/a/b:1@sha256:c"), ("h:5000/a/b", "1"));
        assert_eq!(reference("a@sha256:c"), ("a", "sha256:c"));
    }
}
