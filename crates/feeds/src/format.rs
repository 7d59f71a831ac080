//! The formats by name.

use bowline_core::rfc3339::{self, Digits};
use bowline_formats::percent::{self, NOT_UNRESERVED};

use crate::model::{Advisory, Artifact};
use crate::problem::{Problems, Unreadable};
use crate::secdb::Secdb;
use crate::tree::{self, Limits};
use crate::vex::Publisher;
use crate::{csaf, cyclonedx, native, openvex, scan, secdb, yaml};

/// A format that statements are read from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadFormat {
    /// Alpine's security databases, as JSON or YAML.
    Secdb,
    OpenVex,
    /// CSAF 2.0 and 2.1.
    Csaf,
    /// CycloneDX 1.4 to 1.7.
    CycloneDx,
    /// The JSON output of Grype.
    Grype,
    /// The JSON output of Trivy.
    Trivy,
    Yaml,
}

/// A format of documents about one artifact each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteFormat {
    OpenVex,
    /// CSAF 2.0, profile `csaf_vex`.
    Csaf,
    CycloneDx,
    Yaml,
}

/// What was read, and what was not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reading {
    pub advisories: Vec<Advisory>,
    /// What was not, or not wholly.
    pub problems: Problems,
}

/// Reads a document.
///
/// # Errors
/// It is no document of that format at all, or beyond the limits.
pub fn read(format: ReadFormat, bytes: &[u8], limits: &Limits) -> Result<Reading, Unreadable> {
    read_of(format, bytes, None, limits)
}

/// Reads a document. `scanned` is the artifact of a scanner's report, if the report does not name it or names
/// it differently.
///
/// # Errors
/// It is no document of that format at all, or beyond the limits; or no one says what was scanned.
pub fn read_of(
    format: ReadFormat,
    bytes: &[u8],
    scanned: Option<&Artifact>,
    limits: &Limits,
) -> Result<Reading, Unreadable> {
    let mut problems = Problems::default();
    let advisories = match format {
        ReadFormat::Secdb => {
            let is_json = bytes.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'{');
            let tree = if is_json { tree::from_json(bytes, limits)? } else { yaml::from_yaml(bytes, limits)? };
            secdb::read(&tree, limits, &mut problems)?
        }
        ReadFormat::OpenVex => openvex::read(bytes, limits, &mut problems)?,
        ReadFormat::Csaf => csaf::read(bytes, limits, &mut problems)?,
        ReadFormat::CycloneDx => cyclonedx::read(bytes, limits, &mut problems)?,
        ReadFormat::Grype => return scan::detections(scan::grype, bytes, scanned, limits),
        ReadFormat::Trivy => return scan::detections(scan::trivy, bytes, scanned, limits),
        ReadFormat::Yaml => native::read(bytes, limits, &mut problems)?,
    };
    if advisories.len() > limits.advisories {
        return Err(Unreadable(format!("the document has more than {} advisories", limits.advisories)));
    }
    Ok(Reading { advisories, problems })
}

/// A document as it is to be published.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Document {
    /// Where it lies below the directory of an export; each artifact has its own.
    pub path: String,
    pub bytes: Vec<u8>,
    /// When what it says last changed, as RFC 3339.
    pub changed: String,
    /// Package URL of the artifact, without a version; empty where it has none.
    pub purl: String,
}

/// Writes the document of one artifact, all architectures of it; none where the format has nothing to say.
pub fn write(
    format: WriteFormat,
    artifact: &Artifact,
    advisories: &[Advisory],
    publisher: &Publisher,
    problems: &mut Problems,
) -> Option<Document> {
    let written = match format {
        WriteFormat::OpenVex => openvex::write(advisories, publisher, problems),
        WriteFormat::Csaf => csaf::write(advisories, publisher, problems),
        WriteFormat::CycloneDx => cyclonedx::write(advisories, publisher, problems),
        WriteFormat::Yaml => native::write(artifact, advisories, problems),
    }?;
    let folder = || format!("{}/{}", segment(&artifact.kind), segment(&artifact.name));
    let path = match format {
        WriteFormat::OpenVex => format!("{}.openvex.json", folder()),
        WriteFormat::Csaf => csaf::file_name(artifact, written.first),
        WriteFormat::CycloneDx => format!("{}.cdx.json", folder()),
        WriteFormat::Yaml => format!("{}.yaml", folder()),
    };
    let subject = advisories.first().map(Advisory::subject).unwrap_or_default();
    let purl = subject.artifact_purl("", &publisher.distribution).map(|mut purl| {
        purl.qualifiers.remove("arch");
        purl.to_string()
    });
    Some(Document {
        path,
        bytes: written.bytes,
        changed: rfc3339::text(written.changed, Digits::Fewest),
        purl: purl.unwrap_or_default(),
    })
}

/// A name that is one segment of a path on every file system, and no name of a directory.
fn segment(text: &str) -> String {
    let encoded = percent::encode(text, NOT_UNRESERVED).replace('~', "%7E");
    match encoded.strip_prefix('.') {
        Some(rest) => format!("%2E{rest}"),
        None => encoded,
    }
}

impl Secdb {
    /// What a database begins with; entries of packages follow, separated by commas.
    pub fn begin(&self) -> Vec<u8> {
        self.head()
    }

    /// The entry of one package; none where nothing can be said.
    pub fn entry(package: &str, advisories: &[Advisory], problems: &mut Problems) -> Option<Vec<u8>> {
        secdb::package(package, advisories, problems)
    }

    /// What a database ends with.
    pub fn end() -> Vec<u8> {
        Secdb::tail()
    }
}
