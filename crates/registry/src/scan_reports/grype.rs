//! The JSON output of Grype.

use std::fmt;

use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, MapAccess, Visitor};

use super::bounds::Few;
use super::parse::{
    Finding, Findings, Long, MAX_ELEMENTS, Part, Parts, Report, Short, Shorts, digests, few, ratings, severity, state,
    time,
};

#[derive(Deserialize)]
struct Document {
    matches: Parts<Match>,
    source: Option<Source>,
    #[serde(default)]
    descriptor: Descriptor,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Source {
    target: Target,
}

/// What was scanned: an image, or a path, of which nothing is read.
#[derive(Default)]
struct Target(ScannedImage);

#[derive(Default, Deserialize)]
#[serde(default)]
struct ScannedImage {
    #[serde(rename = "manifestDigest")]
    manifest: Short,
    #[serde(rename = "imageID")]
    config: Short,
    #[serde(rename = "repoDigests")]
    named: Shorts,
}

impl<'de> Deserialize<'de> for Target {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Target, D::Error> {
        deserializer.deserialize_any(TargetVisitor)
    }
}

struct TargetVisitor;

impl<'de> Visitor<'de> for TargetVisitor {
    type Value = Target;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an image or a path")
    }

    fn visit_str<E>(self, _path: &str) -> Result<Target, E> {
        Ok(Target::default())
    }

    fn visit_unit<E>(self) -> Result<Target, E> {
        Ok(Target::default())
    }

    fn visit_map<A: MapAccess<'de>>(self, image: A) -> Result<Target, A::Error> {
        ScannedImage::deserialize(MapAccessDeserializer::new(image)).map(Target)
    }
}

#[derive(Deserialize)]
struct Match {
    vulnerability: Vulnerability,
    #[serde(default, rename = "relatedVulnerabilities")]
    related: Few<Related, MAX_ELEMENTS>,
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
    cvss: Few<Cvss, MAX_ELEMENTS>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Cvss {
    version: Short,
    metrics: Option<Metrics>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Metrics {
    #[serde(rename = "baseScore")]
    score: Option<f64>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Fix {
    versions: Shorts,
    state: Short,
    available: Few<Release, MAX_ELEMENTS>,
}

/// A version with a fix, and the date when it came or was first seen.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Release {
    date: Short,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Related {
    id: Short,
    description: Long,
    cvss: Few<Cvss, MAX_ELEMENTS>,
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

/// Two forms: newer releases nest `built` in `status`.
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

impl Cvss {
    fn score(&self) -> Option<f64> {
        self.metrics.as_ref().and_then(|metrics| metrics.score)
    }
}

impl Part for Match {
    fn add_to(self, findings: &mut Findings) -> Result<(), String> {
        let Match { vulnerability, related, artifact } = self;
        let (id, mut description) = (vulnerability.id, vulnerability.description);
        let mut aliases = Vec::new();
        // Records of distributions have no scores: those of the first related record that has some are used.
        let rated = if vulnerability.cvss.0.is_empty() {
            related.0.iter().find(|other| !other.cvss.0.is_empty()).map_or([].as_slice(), |other| &other.cvss.0)
        } else {
            &vulnerability.cvss.0
        };
        let ratings = ratings(rated.iter().map(|cvss| (cvss.score(), cvss.version.0.as_str())));
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
            fix_since: vulnerability.fix.available.0.iter().filter_map(|release| time(&release.date.0)).min(),
            description: description.0,
            references: few([vulnerability.source].into_iter().chain(vulnerability.urls.0)),
            ratings,
        })
    }
}

pub(super) fn report(report: &[u8]) -> Result<Report, String> {
    let document: Document = serde_json::from_slice(report)
        .map_err(|error| format!("cannot be taken as the JSON output of Grype: {error}"))?;
    let Descriptor { version, db } = document.descriptor;
    let built = db.built.or(db.status.and_then(|status| status.built));
    let Target(ScannedImage { manifest, config, named }) = document.source.unwrap_or_default().target;
    Ok(Report {
        scanner_version: version.0,
        database_built: built.unwrap_or_default().0,
        scanned: digests([manifest, config].into_iter().chain(named.0)),
        findings: document.matches.findings,
    })
}
