//! Reads manifests. What is read follows from the bytes alone, since repositories share what has one digest.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::{RefusalCode, RegistryError};

/// Maximum bytes of a manifest.
pub const MAX_MANIFEST_BYTES: usize = 4 << 20;
/// Maximum number of things that a manifest names.
const MAX_REFERENCES: usize = 4096;

/// The largest blob, and so the largest size in a descriptor: sums of sizes stay far from overflow.
pub(super) const MAX_BLOB_BYTES: i64 = 1 << 40;

const OCI_IMAGE: &str = "application/vnd.oci.image.manifest.v1+json";
const OCI_INDEX: &str = "application/vnd.oci.image.index.v1+json";
const DOCKER_IMAGE: &str = "application/vnd.docker.distribution.manifest.v2+json";
const DOCKER_LIST: &str = "application/vnd.docker.distribution.manifest.list.v2+json";
const ARTIFACT: &str = "application/vnd.oci.artifact.manifest.v1+json";

/// The media types of manifests that are taken.
pub const MEDIA_TYPES: [&str; 5] = [OCI_IMAGE, OCI_INDEX, DOCKER_IMAGE, DOCKER_LIST, ARTIFACT];

/// What a manifest is, by its media type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    Image = 1,
    Index = 2,
    Other = 3,
}

/// What a manifest names something for; the column `kind` of `manifest_references`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Config = 1,
    Layer = 2,
    Child = 3,
}

/// Something that a manifest names.
#[derive(Clone, Debug)]
pub(super) struct ManifestLink {
    pub(super) kind: Kind,
    pub(super) digest: String,
    pub(super) media_type: String,
    pub(super) size: i64,
    pub(super) os: String,
    pub(super) architecture: String,
    pub(super) variant: String,
    /// Its bytes need not be here: they may not be distributed, and lie elsewhere.
    pub(super) lies_elsewhere: bool,
}

/// A manifest as far as the registry looks into it.
#[derive(Clone, Debug)]
pub struct Manifest {
    pub(super) media_type: &'static str,
    pub(super) shape: Shape,
    /// Its own, or the config's media type; empty for none.
    pub(super) artifact_type: String,
    pub(super) subject: String,
    pub(super) named: Vec<ManifestLink>,
    pub(super) annotations: BTreeMap<String, String>,
    pub(super) total_size: i64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Document {
    schema_version: Option<i64>,
    media_type: Option<String>,
    artifact_type: Option<String>,
    config: Option<Descriptor>,
    layers: Option<Vec<Descriptor>>,
    blobs: Option<Vec<Descriptor>>,
    manifests: Option<Vec<Descriptor>>,
    subject: Option<Descriptor>,
    annotations: Option<BTreeMap<String, String>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Descriptor {
    media_type: Option<String>,
    digest: String,
    size: i64,
    urls: Option<Vec<String>>,
    platform: Option<Platform>,
}

#[derive(Deserialize, Default)]
struct Platform {
    #[serde(default)]
    os: String,
    #[serde(default)]
    architecture: String,
    #[serde(default)]
    variant: String,
}

impl Manifest {
    /// Reads a manifest that was sent with this content type, absent if it came without one.
    ///
    /// # Errors
    /// MANIFEST_INVALID saying what is wrong.
    pub fn read(bytes: &[u8], content_type: Option<&str>) -> Result<Manifest, RegistryError> {
        // The depth is bounded by the reader, and a member that comes twice is an error.
        let document: Document =
            serde_json::from_slice(bytes).map_err(|error| invalid(format!("the manifest does not parse: {error}")))?;
        let media_type = media_type(&document, content_type)?;
        let shape = shape(media_type);
        require_members(&document, shape)?;
        let Document { artifact_type, config, layers, blobs, manifests, subject, annotations, .. } = document;
        let config_type = config.as_ref().and_then(|config| config.media_type.clone());
        let parts = [
            (Kind::Config, Vec::from_iter(config)),
            (Kind::Layer, layers.or(blobs).unwrap_or_default()),
            (Kind::Child, manifests.unwrap_or_default()),
        ];
        let named = named(parts)?;
        let subject = match subject {
            None => String::new(),
            Some(subject) => checked("subject", subject)?.digest,
        };
        let artifact_type = artifact_type.filter(|text| !text.is_empty()).or(config_type).unwrap_or_default();
        require_media_type("artifactType", &artifact_type)?;
        let total_size = named.iter().fold(bytes.len() as i64, |sum, one| sum.saturating_add(one.size));
        let annotations = annotations.unwrap_or_default();
        Ok(Manifest { media_type, shape, artifact_type, subject, named, annotations, total_size })
    }

    /// Whether it is an index: it names other manifests.
    pub(crate) fn is_index(&self) -> bool {
        self.shape == Shape::Index
    }

    /// Digest of the config of an image.
    pub fn config(&self) -> Option<&str> {
        let config = self.named.iter().find(|named| named.kind == Kind::Config);
        config.filter(|_| self.shape == Shape::Image).map(|config| config.digest.as_str())
    }

    /// Digests and media types of its layers.
    pub(crate) fn layers(&self) -> impl Iterator<Item = (&str, &str)> {
        let layers = self.named.iter().filter(|named| named.kind == Kind::Layer);
        layers.map(|layer| (layer.digest.as_str(), layer.media_type.as_str()))
    }

    /// Digest of the manifest that it refers to; empty for none.
    pub fn subject(&self) -> &str {
        &self.subject
    }
}

/// The media type that the bytes themselves say. Without one they are the protocol's own image or index.
fn media_type(document: &Document, content_type: Option<&str>) -> Result<&'static str, RegistryError> {
    let known = |text: &str| MEDIA_TYPES.into_iter().find(|known| *known == text);
    let sent = content_type.map(|text| text.split(';').next().unwrap_or(text).trim());
    let own = match document.media_type.as_deref().filter(|text| !text.is_empty()) {
        Some(text) => known(text).ok_or_else(|| invalid(format!("{text:?} is no media type of a manifest")))?,
        None if document.manifests.is_some() => OCI_INDEX,
        None => OCI_IMAGE,
    };
    match sent {
        Some(sent) if sent != own => {
            Err(invalid(format!("the Content-Type is {sent:?}, and the manifest says it is {own}")))
        }
        _ => Ok(own),
    }
}

fn shape(media_type: &str) -> Shape {
    match media_type {
        OCI_IMAGE | DOCKER_IMAGE => Shape::Image,
        OCI_INDEX | DOCKER_LIST => Shape::Index,
        _ => Shape::Other,
    }
}

/// Members of another kind of manifest would be read by some clients and not by others.
fn require_members(document: &Document, shape: Shape) -> Result<(), RegistryError> {
    if shape != Shape::Other && document.schema_version != Some(2) {
        return Err(invalid("schemaVersion must be 2"));
    }
    let present = [
        ("config", document.config.is_some()),
        ("layers", document.layers.is_some()),
        ("manifests", document.manifests.is_some()),
        ("blobs", document.blobs.is_some()),
    ];
    let (needed, may): (&[&str], &[&str]) = match shape {
        Shape::Image => (&["config", "layers"], &["config", "layers"]),
        Shape::Index => (&["manifests"], &["manifests"]),
        Shape::Other => (&[], &["blobs"]),
    };
    for (member, is_present) in present {
        if needed.contains(&member) && !is_present {
            return Err(invalid(format!("the manifest has no {member}")));
        }
        if is_present && !may.contains(&member) {
            return Err(invalid(format!("a manifest of this media type has no {member}")));
        }
    }
    Ok(())
}

fn named(parts: [(Kind, Vec<Descriptor>); 3]) -> Result<Vec<ManifestLink>, RegistryError> {
    let mut all = Vec::new();
    for (kind, descriptors) in parts {
        for descriptor in descriptors {
            let named = checked("descriptor", descriptor)?;
            all.push(ManifestLink { kind, lies_elsewhere: kind == Kind::Layer && named.lies_elsewhere, ..named });
        }
    }
    if all.len() > MAX_REFERENCES {
        return Err(invalid(format!("the manifest names {} things; {MAX_REFERENCES} is the most", all.len())));
    }
    Ok(all)
}

fn checked(what: &str, descriptor: Descriptor) -> Result<ManifestLink, RegistryError> {
    let Descriptor { media_type, digest, size, urls, platform } = descriptor;
    if !is_digest(&digest) {
        return Err(invalid(format!("the digest of a {what} is not sha256:<64 hex> or sha512:<128 hex>")));
    }
    if size < 0 {
        return Err(invalid(format!("the size of the {what} {digest} is negative")));
    }
    if size > MAX_BLOB_BYTES {
        let message = format!("the size of the {what} {digest} is above {MAX_BLOB_BYTES}, the largest size of a blob");
        return Err(invalid(message));
    }
    let media_type = media_type.unwrap_or_default();
    require_media_type("mediaType", &media_type)?;
    let Platform { os, architecture, variant } = platform.unwrap_or_default();
    for text in [&os, &architecture, &variant] {
        if text.len() > 255 || text.contains('\0') {
            return Err(invalid(format!("the platform of {digest} is not a sensible one")));
        }
    }
    let is_foreign = media_type.contains(".foreign.") || media_type.contains(".nondistributable.");
    let lies_elsewhere = is_foreign && urls.is_some_and(|urls| !urls.is_empty());
    Ok(ManifestLink { kind: Kind::Child, digest, media_type, size, os, architecture, variant, lies_elsewhere })
}

fn require_media_type(what: &str, text: &str) -> Result<(), RegistryError> {
    let is_plain = text.len() <= 255 && text.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' ');
    if is_plain { Ok(()) } else { Err(invalid(format!("the {what} {text:?} is not a media type"))) }
}

fn invalid(message: impl Into<String>) -> RegistryError {
    RegistryError::refused(RefusalCode::ManifestInvalid, message)
}

/// Whether the text is a digest in its one spelling.
pub fn is_digest(text: &str) -> bool {
    let is_hex = |hex: &str| hex.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    match text.split_once(':') {
        Some(("sha256", hex)) => hex.len() == 64 && is_hex(hex),
        Some(("sha512", hex)) => hex.len() == 128 && is_hex(hex),
        _ => false,
    }
}

/// Whether the text may be a tag.
pub fn is_tag(text: &str) -> bool {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let mut bytes = text.bytes();
    text.len() <= 128
        && bytes.next().is_some_and(is_word)
        && bytes.all(|byte| is_word(byte) || matches!(byte, b'.' | b'-'))
}

#[cfg(test)]
#[path = "manifest_tests.rs"]
mod tests;
