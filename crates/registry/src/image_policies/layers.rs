//! The layers of attached manifests that may be signatures or attestations.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::signing::SignedDocument;
use crate::attached::Layer;

/// Media types of the layers of signatures and attestations.
const PLAIN_SIGNATURE: &str = "application/vnd.dev.cosign.simplesigning.v1+json";
const ENVELOPE: &str = "application/vnd.dsse.envelope.v1+json";
const BUNDLE: &str = "application/vnd.dev.sigstore.bundle";
/// The annotation with a plain signature.
const SIGNATURE: &str = "dev.cosignproject.cosign/signature";
/// Annotation of a layer that was signed with a certificate before there were bundles.
const CERTIFICATE: &str = "dev.sigstore.cosign/certificate";

/// What a layer may be.
pub(super) enum Kind {
    /// A payload, with its signature.
    Payload(String),
    Envelope,
    Bundle,
    /// Signed with a certificate that lies beside it.
    Certified(Box<Kind>),
}

impl Kind {
    /// The document in the bytes of the layer.
    pub(super) fn of(self, bytes: Vec<u8>) -> SignedDocument {
        match self {
            Kind::Payload(signature) => SignedDocument::Payload(bytes, signature),
            Kind::Envelope => SignedDocument::Envelope(bytes),
            Kind::Bundle => SignedDocument::Bundle(bytes),
            Kind::Certified(kind) => SignedDocument::Certified(Box::new(kind.of(bytes))),
        }
    }
}

/// The annotations of the layers of an attached manifest.
#[derive(Default, Deserialize)]
pub(super) struct Annotated {
    #[serde(default)]
    layers: Vec<AnnotatedLayer>,
}

#[derive(Deserialize)]
struct AnnotatedLayer {
    digest: String,
    #[serde(default)]
    annotations: BTreeMap<String, String>,
}

impl Annotated {
    /// Reads a manifest; one without such annotations has none.
    pub(super) fn read(manifest: &[u8]) -> Annotated {
        serde_json::from_slice(manifest).unwrap_or_default()
    }

    /// The documents that a layer may be: a payload may have several signatures.
    pub(super) fn kinds(&self, layer: &Layer) -> Vec<Kind> {
        let mut of_layer = self.layers.iter().filter(|one| one.digest == layer.digest).map(|one| &one.annotations);
        match layer.media_type.as_str() {
            PLAIN_SIGNATURE => {
                let signed = of_layer.filter_map(|found| Some((found.get(SIGNATURE)?.clone(), found)));
                signed.map(|(signature, found)| certified(Kind::Payload(signature), found)).collect()
            }
            ENVELOPE => vec![of_layer.next().map_or(Kind::Envelope, |found| certified(Kind::Envelope, found))],
            other if other.starts_with(BUNDLE) => vec![Kind::Bundle],
            _ => Vec::new(),
        }
    }
}

fn certified(kind: Kind, annotations: &BTreeMap<String, String>) -> Kind {
    if annotations.contains_key(CERTIFICATE) { Kind::Certified(Box::new(kind)) } else { kind }
}
