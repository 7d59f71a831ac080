//! Whether a document that is attached to an image is signed by accepted signers, and what it claims then.

use std::collections::BTreeSet;

use serde::Deserialize;
use sigstore_verify::crypto::VerificationKey;
use sigstore_verify::types::{
    Artifact, Bundle, DerPublicKey, DsseEnvelope, Sha256Hash, SignatureBytes, SignatureContent,
};
use sigstore_verify::{Error, VerificationPolicy};

use bowline_contract::bowline::registry::v1 as own;

use crate::trusted_root::TrustedRoot;

/// Media type of the payload of envelopes that are about software.
const IN_TOTO: &str = "application/vnd.in-toto+json";
/// Predicate types of the statements that cosign makes for plain signatures.
const COSIGN_SIGNATURES: [&str; 2] = ["https://sigstore.dev/cosign/sign/v1", "https://cosign.sigstore.dev/sign/v1"];

/// A document that may be a signature or a signed attestation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum SignedDocument {
    /// The payload of a plain signature, and the signature in base64.
    Payload(Vec<u8>, String),
    /// An envelope with a statement.
    Envelope(Vec<u8>),
    /// A bundle of Sigstore.
    Bundle(Vec<u8>),
    /// One with a certificate beside it, which proves nothing outside of a bundle: the key may be accepted all the same.
    Certified(Box<SignedDocument>),
}

/// What a verified document claims about an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Claim {
    Signature,
    /// Predicate type of the statement.
    Attestation(String),
}

/// Why a document proves nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Flaw {
    /// It cannot be read.
    Malformed,
    /// It is about another digest.
    OtherSubject,
    /// Its signature verifies with none of the accepted keys, and it has no certificate.
    OtherKey,
    /// The same, and its certificate is not in a bundle.
    NoBundle,
    /// Its certificate names another identity or issuer.
    OtherIdentity,
    /// Its certificate, or the proof of its time, does not verify by the trusted root.
    Untrusted,
}

impl Flaw {
    pub(super) fn sentence(self) -> &'static str {
        match self {
            Flaw::Malformed => "cannot be read",
            Flaw::OtherSubject => "is about another digest",
            Flaw::OtherKey => "is not by an accepted key",
            Flaw::NoBundle => {
                "has a certificate outside of a bundle, which proves nothing: sign with cosign 3, or 2 with --new-bundle-format"
            }
            Flaw::OtherIdentity => "has a certificate with another identity or issuer",
            Flaw::Untrusted => "has a certificate or time that does not verify by the trusted root",
        }
    }
}

/// Accepted signers, ready to verify.
pub(super) struct Signers {
    keys: Vec<VerificationKey>,
    identities: Vec<own::CertificateIdentity>,
}

impl Signers {
    /// Reads the accepted keys.
    ///
    /// # Errors
    /// The position of the first wrong key, and what is wrong with it.
    pub(super) fn parse(signers: &own::ImageSigners) -> Result<Signers, (usize, String)> {
        let keys = signers.public_keys.iter().enumerate().map(|(at, pem)| key(pem).map_err(|wrong| (at, wrong)));
        Ok(Signers { keys: keys.collect::<Result<_, _>>()?, identities: signers.certificates.clone() })
    }
}

fn key(pem: &str) -> Result<VerificationKey, String> {
    let der = DerPublicKey::from_pem(pem).map_err(|error| format!("is no public key in PEM: {error}"))?;
    VerificationKey::from_spki(&der).map_err(|error| format!("is no key that signatures can be verified with: {error}"))
}

/// What a document claims about one of the digests, if an accepted signer signed it.
///
/// # Errors
/// Why it proves nothing.
pub(super) fn verify(
    document: &SignedDocument,
    signers: &Signers,
    root: Option<&TrustedRoot>,
    about: &BTreeSet<String>,
) -> Result<Claim, Flaw> {
    match document {
        SignedDocument::Payload(payload, signature) => {
            let claim = payload_claim(payload, about);
            let signature = SignatureBytes::from_base64(signature.trim()).map_err(|_| Flaw::Malformed)?;
            by_key(signers, payload, &signature)?;
            claim
        }
        SignedDocument::Envelope(bytes) => {
            let envelope: DsseEnvelope = serde_json::from_slice(bytes).map_err(|_| Flaw::Malformed)?;
            envelope_claim(&envelope, signers, about)
        }
        SignedDocument::Bundle(bytes) => bundle_claim(bytes, signers, root, about),
        SignedDocument::Certified(document) => verify(document, signers, root, about).map_err(|flaw| match flaw {
            Flaw::OtherKey => Flaw::NoBundle,
            other => other,
        }),
    }
}

fn by_key(signers: &Signers, signed: &[u8], signature: &SignatureBytes) -> Result<(), Flaw> {
    let is_signed = signers.keys.iter().any(|key| key.verify(signed, signature).is_ok());
    is_signed.then_some(()).ok_or(Flaw::OtherKey)
}

fn envelope_claim(envelope: &DsseEnvelope, signers: &Signers, about: &BTreeSet<String>) -> Result<Claim, Flaw> {
    by_key(signers, &envelope.pae(), &envelope.signature.sig)?;
    Ok(statement(envelope, about)?.0)
}

fn bundle_claim(
    bytes: &[u8],
    signers: &Signers,
    root: Option<&TrustedRoot>,
    about: &BTreeSet<String>,
) -> Result<Claim, Flaw> {
    let text = std::str::from_utf8(bytes).map_err(|_| Flaw::Malformed)?;
    let bundle = Bundle::from_json(text).map_err(|_| Flaw::Malformed)?;
    let SignatureContent::DsseEnvelope(envelope) = &bundle.content else {
        // A bundle of a plain signature over the manifest itself: cosign makes none for images.
        return Err(Flaw::Malformed);
    };
    if bundle.signing_certificate().is_none() {
        // What a key signs needs no proof of its time.
        return envelope_claim(envelope, signers, about);
    }
    let root = root.filter(|_| !signers.identities.is_empty()).ok_or(Flaw::OtherKey)?;
    let (claim, digest) = statement(envelope, about)?;
    let hex = digest.strip_prefix("sha256:").ok_or(Flaw::OtherSubject)?;
    let digest = Sha256Hash::from_hex(hex).map_err(|_| Flaw::OtherSubject)?;
    let verified = signers.identities.iter().map(|signer| {
        let policy = VerificationPolicy::new(signer.identity.as_str(), signer.issuer.as_str());
        root.verify(Artifact::from(&digest), &bundle, policy).map(drop).map_err(|error| flaw(&error))
    });
    let mut flaws = Vec::new();
    for result in verified {
        match result {
            Ok(()) => return Ok(claim),
            Err(flaw) => flaws.push(flaw),
        }
    }
    Err(flaws.into_iter().max().unwrap_or(Flaw::OtherKey))
}

fn flaw(error: &Error) -> Flaw {
    match error {
        Error::IdentityMismatch { .. } | Error::IssuerMismatch { .. } => Flaw::OtherIdentity,
        Error::ArtifactMismatch(_) => Flaw::OtherSubject,
        _ => Flaw::Untrusted,
    }
}

#[derive(Deserialize)]
struct Payload {
    critical: Critical,
}

#[derive(Deserialize)]
struct Critical {
    image: SignedImage,
    #[serde(rename = "type")]
    kind: String,
}

#[derive(Deserialize)]
struct SignedImage {
    #[serde(rename = "docker-manifest-digest")]
    digest: String,
}

/// The claim of the payload of a plain signature.
fn payload_claim(payload: &[u8], about: &BTreeSet<String>) -> Result<Claim, Flaw> {
    let Payload { critical } = serde_json::from_slice(payload).map_err(|_| Flaw::Malformed)?;
    match critical.kind.as_str() {
        "cosign container image signature" | "atomic container signature" if about.contains(&critical.image.digest) => {
            Ok(Claim::Signature)
        }
        "cosign container image signature" | "atomic container signature" => Err(Flaw::OtherSubject),
        _ => Err(Flaw::Malformed),
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Statement {
    subject: Vec<Subject>,
    predicate_type: String,
}

#[derive(Deserialize)]
struct Subject {
    digest: std::collections::BTreeMap<String, String>,
}

/// The claim of a statement in an envelope, and which of the digests it is about.
fn statement(envelope: &DsseEnvelope, about: &BTreeSet<String>) -> Result<(Claim, String), Flaw> {
    if envelope.payload_type != IN_TOTO {
        return Err(Flaw::Malformed);
    }
    let statement: Statement = serde_json::from_slice(envelope.payload.as_bytes()).map_err(|_| Flaw::Malformed)?;
    let mut digests = statement.subject.iter().flat_map(|subject| &subject.digest);
    let named = digests.find_map(|(algorithm, hex)| about.get(&format!("{algorithm}:{hex}"))).cloned();
    let claim = if COSIGN_SIGNATURES.contains(&statement.predicate_type.as_str()) {
        Claim::Signature
    } else {
        Claim::Attestation(statement.predicate_type)
    };
    Ok((claim, named.ok_or(Flaw::OtherSubject)?))
}

#[cfg(test)]
#[path = "signing_tests.rs"]
mod tests;
