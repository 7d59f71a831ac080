//! A Sigstore instance of the test's own, computed in process: a certificate authority and a transparency log.
//!
//! What it signs verifies by its [`Sigstore::trusted_root`] and by no other. Verifiers compare the time of a log entry
//! with the real time, which no [`TestClock`](crate::TestClock) moves: [`Signer::at`] is never later than that.

use std::str::FromStr as _;
use std::sync::Mutex;
use std::time::Duration;

use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::encoding::AsDer as _;
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, KeyPair as _};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use x509_cert::der::asn1::{BitString, GeneralizedTime, Ia5String, ObjectIdentifier, OctetString, UtcTime};
use x509_cert::der::oid::db::rfc5280::ID_KP_CODE_SIGNING;
use x509_cert::der::oid::db::rfc5912::ECDSA_WITH_SHA_256;
use x509_cert::der::pem::LineEnding;
use x509_cert::der::{DateTime, Decode as _, Encode as _, EncodePem as _};
use x509_cert::ext::pkix::name::GeneralName;
use x509_cert::ext::pkix::{
    AuthorityKeyIdentifier, BasicConstraints, ExtendedKeyUsage, KeyUsage, KeyUsages, SubjectAltName,
    SubjectKeyIdentifier,
};
use x509_cert::ext::{AsExtension, Extension};
use x509_cert::name::Name;
use x509_cert::serial_number::SerialNumber;
use x509_cert::spki::{AlgorithmIdentifierOwned, SubjectPublicKeyInfoOwned};
use x509_cert::time::{Time, Validity};
use x509_cert::{Certificate, TbsCertificate, Version};

/// Media type of the statements that envelopes hold.
const IN_TOTO: &str = "application/vnd.in-toto+json";
/// Extensions with the issuer of the signer's token: a bare string, and its successor in DER.
const ISSUER: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.6.1.4.1.57264.1.1");
const ISSUER_V2: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.6.1.4.1.57264.1.8");
/// Extensions with the repository of a workflow, and with its definition there.
const SOURCE_REPOSITORY: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.6.1.4.1.57264.1.12");
const BUILD_CONFIG: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.6.1.4.1.57264.1.18");
/// The beginning of the trusted root's periods, before anything that a test signs.
const EPOCH: &str = "1970-01-01T00:00:00Z";

/// A certificate authority and a transparency log with keys of their own.
pub struct Sigstore {
    key: EcdsaKeyPair,
    certificate: Certificate,
    log: Log,
}

/// Who signs, and when the log records it.
#[derive(Clone, Copy, Debug)]
pub struct Signer<'a> {
    /// An address with a scheme, or an e-mail address.
    pub identity: &'a str,
    /// The issuer of the token that proved the identity.
    pub issuer: &'a str,
    /// Seconds since the Unix epoch; the certificate is valid from a minute before until ten minutes after.
    pub at: i64,
    /// Of a workflow: the addresses of its repository and of its definition there, with a revision.
    pub source: Option<(&'a str, &'a str)>,
}

/// The kind of statement that says how a file was built.
pub const PROVENANCE: &str = "https://slsa.dev/provenance/v1";
/// The kind of statement that says that a file was published on an index of Python.
pub const PUBLISH: &str = "https://docs.pypi.org/attestations/publish/v1";
/// A workflow that signs what it builds, and its repository.
pub const WORKFLOW: &str = "https://github.com/acme/foo/.github/workflows/release.yml@refs/tags/v1";
pub const REPOSITORY: &str = "https://github.com/acme/foo";
/// A run of that workflow.
pub const SIGNER: Signer<'_> = Signer {
    identity: WORKFLOW,
    issuer: "https://token.actions.githubusercontent.com",
    at: 1_700_000_000,
    source: Some((REPOSITORY, WORKFLOW)),
};

impl Default for Sigstore {
    fn default() -> Sigstore {
        Sigstore::new()
    }
}

impl Sigstore {
    /// An instance with fresh keys and an empty log.
    pub fn new() -> Sigstore {
        let key = new_key();
        let always = Validity {
            not_before: utc(0),
            not_after: Time::GeneralTime(GeneralizedTime::from_date_time(DateTime::INFINITY)),
        };
        let extensions = vec![
            extension(&BasicConstraints { ca: true, path_len_constraint: Some(0) }),
            extension(&KeyUsage(KeyUsages::KeyCertSign | KeyUsages::CRLSign)),
            extension(&SubjectKeyIdentifier(key_identifier(&key))),
        ];
        let certificate = certificate(&key, authority_name(), &key, always, extensions);
        Sigstore { key, certificate, log: Log { key: new_key(), leaves: Mutex::default() } }
    }

    /// The trusted root: the authority and the log, without certificate logs and timestamp authorities.
    pub fn trusted_root(&self) -> Value {
        let certificate = json!({ "rawBytes": STANDARD.encode(der(&self.certificate)) });
        let authority = json!({
            "subject": { "organization": "Bowline", "commonName": "Sigstore of tests" },
            "uri": "https://authority.example",
            "certChain": { "certificates": [certificate] },
            "validFor": { "start": EPOCH },
        });
        json!({
            "mediaType": "application/vnd.dev.sigstore.trustedroot+json;version=0.1",
            "tlogs": [self.log.trusted()],
            "certificateAuthorities": [authority],
            "ctlogs": [],
            "timestampAuthorities": [],
        })
    }

    /// A bundle of version 0.3 with the statement in an envelope, signed by a key of its own and logged.
    pub fn bundle(&self, signer: &Signer<'_>, statement: &Value) -> Value {
        let key = new_key();
        let certificate = self.issue(signer, &key);
        let payload = statement.to_string();
        let signed = format!("DSSEv1 {} {IN_TOTO} {} {payload}", IN_TOTO.len(), payload.len());
        let signature = STANDARD.encode(sign(&key, signed.as_bytes()));
        let envelope = json!({
            "payloadType": IN_TOTO,
            "payload": STANDARD.encode(&payload),
            "signatures": [{ "sig": signature }],
        });
        let entry = self.log.append("dsse", &entry_body(&envelope, &payload, &signature, &certificate), signer.at);
        bundle_of(&certificate, &entry, "dsseEnvelope", &envelope)
    }

    /// A bundle of version 0.3 with a signature of the bytes themselves, as plugins of Maven and Gradle make it.
    pub fn file_bundle(&self, signer: &Signer<'_>, bytes: &[u8]) -> Value {
        let key = new_key();
        let (certificate, digest) = (self.issue(signer, &key), hash(&[bytes]));
        let signature = STANDARD.encode(sign(&key, bytes));
        let entry = self.log.append("hashedrekord", &file_entry_body(&digest, &signature, &certificate), signer.at);
        let digest = json!({ "algorithm": "SHA2_256", "digest": STANDARD.encode(digest) });
        let signed = json!({ "messageDigest": digest, "signature": signature });
        bundle_of(&certificate, &entry, "messageSignature", &signed)
    }

    /// The material of a bundle as an attestation object, in which publishers of Python packages send it (PEP 740).
    pub fn attestation(bundle: &Value) -> Value {
        let (material, envelope) = (&bundle["verificationMaterial"], &bundle["dsseEnvelope"]);
        json!({
            "version": 1,
            "verification_material": {
                "certificate": material["certificate"]["rawBytes"],
                "transparency_entries": material["tlogEntries"],
            },
            "envelope": { "statement": envelope["payload"], "signature": envelope["signatures"][0]["sig"] },
        })
    }

    /// The certificate of a signer's key.
    fn issue(&self, signer: &Signer<'_>, key: &EcdsaKeyPair) -> Certificate {
        let identity = Ia5String::new(signer.identity).expect("an identity in ASCII");
        let name = if signer.identity.contains("://") {
            GeneralName::UniformResourceIdentifier(identity)
        } else {
            GeneralName::Rfc822Name(identity)
        };
        let mut extensions = vec![
            extension(&KeyUsage(KeyUsages::DigitalSignature.into())),
            Extension { critical: false, ..extension(&ExtendedKeyUsage(vec![ID_KP_CODE_SIGNING])) },
            extension(&AuthorityKeyIdentifier {
                key_identifier: Some(key_identifier(&self.key)),
                ..Default::default()
            }),
            extension(&SubjectKeyIdentifier(key_identifier(key))),
            extension(&SubjectAltName(vec![name])),
            claim(ISSUER, signer.issuer.as_bytes()),
            text_claim(ISSUER_V2, signer.issuer),
        ];
        if let Some((repository, definition)) = signer.source {
            extensions.extend([text_claim(SOURCE_REPOSITORY, repository), text_claim(BUILD_CONFIG, definition)]);
        }
        let validity = Validity { not_before: utc(signer.at - 60), not_after: utc(signer.at + 600) };
        certificate(&self.key, Name::default(), key, validity, extensions)
    }
}

/// A bundle whose signed member has this name.
fn bundle_of(certificate: &Certificate, entry: &Value, name: &str, signed: &Value) -> Value {
    let certificate = json!({ "rawBytes": STANDARD.encode(der(certificate)) });
    json!({
        "mediaType": "application/vnd.dev.sigstore.bundle.v0.3+json",
        "verificationMaterial": { "certificate": certificate, "tlogEntries": [entry] },
        name: signed,
    })
}

/// An in-toto statement about one subject, with an empty predicate.
pub fn statement(name: &str, digests: &[(&str, &str)], predicate_type: &str) -> Value {
    let digests: serde_json::Map<_, _> = digests.iter().map(|(name, hex)| ((*name).into(), json!(hex))).collect();
    json!({
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [{ "name": name, "digest": digests }],
        "predicateType": predicate_type,
        "predicate": {},
    })
}

/// What the log records about an envelope: an entry of kind dsse 0.0.1 in canonical JSON, whose names are in order.
fn entry_body(envelope: &Value, payload: &str, signature: &str, certificate: &Certificate) -> String {
    let sha256 = |text: &str| json!({ "algorithm": "sha256", "value": bowline_core::hex(&hash(&[text.as_bytes()])) });
    let pem = certificate.to_pem(LineEnding::LF).expect("a certificate encodes");
    let signatures = json!([{ "signature": signature, "verifier": STANDARD.encode(pem) }]);
    let hashes = (sha256(&envelope.to_string()), sha256(payload));
    let spec = json!({ "envelopeHash": hashes.0, "payloadHash": hashes.1, "signatures": signatures });
    json!({ "apiVersion": "0.0.1", "kind": "dsse", "spec": spec }).to_string()
}

/// What the log records about a signature of bytes: an entry of kind hashedrekord 0.0.1 in canonical JSON.
fn file_entry_body(digest: &Hash, signature: &str, certificate: &Certificate) -> String {
    let pem = certificate.to_pem(LineEnding::LF).expect("a certificate encodes");
    let data = json!({ "hash": { "algorithm": "sha256", "value": bowline_core::hex(digest) } });
    let signature = json!({ "content": signature, "publicKey": { "content": STANDARD.encode(pem) } });
    json!({ "apiVersion": "0.0.1", "kind": "hashedrekord", "spec": { "data": data, "signature": signature } })
        .to_string()
}

type Hash = [u8; 32];

/// A transparency log: its key, and the hashes of its entries.
struct Log {
    key: EcdsaKeyPair,
    leaves: Mutex<Vec<Hash>>,
}

impl Log {
    fn id(&self) -> Hash {
        hash(&[&public_key(&self.key)])
    }

    fn trusted(&self) -> Value {
        json!({
            "baseUrl": "https://log.example",
            "hashAlgorithm": "SHA2_256",
            "publicKey": {
                "rawBytes": STANDARD.encode(public_key(&self.key)),
                "keyDetails": "PKIX_ECDSA_P256_SHA_256",
                "validFor": { "start": EPOCH },
            },
            "logId": { "keyId": STANDARD.encode(self.id()) },
        })
    }

    /// Appends an entry of a kind and returns it with its promise and its proof.
    fn append(&self, kind: &str, body: &str, at: i64) -> Value {
        let mut leaves = self.leaves.lock().expect("no panic while the log is locked");
        let index = leaves.len();
        leaves.push(hash(&[&[0], body.as_bytes()]));
        let body = STANDARD.encode(body);
        // Canonical JSON: the names are in order.
        let promised = json!({ "body": body, "integratedTime": at, "logID": bowline_core::hex(&self.id()),
                               "logIndex": index });
        let promise = STANDARD.encode(sign(&self.key, promised.to_string().as_bytes()));
        let hashes: Vec<_> = proof_of_last(&leaves).iter().map(|hash| STANDARD.encode(hash)).collect();
        json!({
            "logIndex": index.to_string(),
            "logId": { "keyId": STANDARD.encode(self.id()) },
            "kindVersion": { "kind": kind, "version": "0.0.1" },
            "integratedTime": at.to_string(),
            "inclusionPromise": { "signedEntryTimestamp": promise },
            "inclusionProof": {
                "logIndex": index.to_string(),
                "rootHash": STANDARD.encode(tree_head(&leaves)),
                "treeSize": leaves.len().to_string(),
                "hashes": hashes,
                "checkpoint": { "envelope": self.checkpoint(&leaves) },
            },
            "canonicalizedBody": body,
        })
    }

    /// The signed note that vouches for the whole tree.
    fn checkpoint(&self, leaves: &[Hash]) -> String {
        let note = format!("log.example - 1\n{}\n{}\n", leaves.len(), STANDARD.encode(tree_head(leaves)));
        let signature = [&self.id()[..4], &sign(&self.key, note.as_bytes())].concat();
        format!("{note}\n\u{2014} log.example {}\n", STANDARD.encode(signature))
    }
}

/// The root of the Merkle tree over at least one leaf (RFC 6962).
fn tree_head(leaves: &[Hash]) -> Hash {
    if let [leaf] = leaves {
        return *leaf;
    }
    let (left, right) = leaves.split_at(split(leaves));
    hash(&[&[1], &tree_head(left), &tree_head(right)])
}

/// The hashes that lead from the last leaf to the root, from the leaf on.
fn proof_of_last(leaves: &[Hash]) -> Vec<Hash> {
    if leaves.len() == 1 {
        return Vec::new();
    }
    let (left, right) = leaves.split_at(split(leaves));
    let mut path = proof_of_last(right);
    path.push(tree_head(left));
    path
}

/// The largest power of two below the number of leaves.
fn split(leaves: &[Hash]) -> usize {
    leaves.len().next_power_of_two() / 2
}

/// A certificate that the authority's key signs.
fn certificate(
    authority: &EcdsaKeyPair,
    subject: Name,
    key: &EcdsaKeyPair,
    validity: Validity,
    extensions: Vec<Extension>,
) -> Certificate {
    let mut serial = [0; 16];
    aws_lc_rs::rand::fill(&mut serial).expect("random bytes");
    let algorithm = AlgorithmIdentifierOwned { oid: ECDSA_WITH_SHA_256, parameters: None };
    let unsigned = TbsCertificate {
        version: Version::V3,
        serial_number: SerialNumber::new(&serial).expect("a short serial number"),
        signature: algorithm.clone(),
        issuer: authority_name(),
        validity,
        subject,
        subject_public_key_info: SubjectPublicKeyInfoOwned::from_der(&public_key(key)).expect("a public key"),
        issuer_unique_id: None,
        subject_unique_id: None,
        extensions: Some(extensions),
    };
    let signature = sign(authority, &unsigned.to_der().expect("a certificate encodes"));
    let signature = BitString::from_bytes(&signature).expect("a short signature");
    Certificate { tbs_certificate: unsigned, signature_algorithm: algorithm, signature }
}

fn authority_name() -> Name {
    Name::from_str("CN=Sigstore of tests,O=Bowline").expect("a name")
}

fn extension(extension: &impl AsExtension) -> Extension {
    extension.to_extension(&Name::default(), &[]).expect("an extension encodes")
}

fn claim(extn_id: ObjectIdentifier, value: &[u8]) -> Extension {
    Extension { extn_id, critical: false, extn_value: OctetString::new(value).expect("a short claim") }
}

fn text_claim(extn_id: ObjectIdentifier, text: &str) -> Extension {
    claim(extn_id, &text.to_owned().to_der().expect("a text encodes"))
}

fn utc(seconds: i64) -> Time {
    let since = Duration::from_secs(seconds.try_into().expect("a time since the Unix epoch"));
    Time::UtcTime(UtcTime::from_unix_duration(since).expect("a time before 2050"))
}

fn der(certificate: &Certificate) -> Vec<u8> {
    certificate.to_der().expect("a certificate encodes")
}

fn new_key() -> EcdsaKeyPair {
    EcdsaKeyPair::generate(&ECDSA_P256_SHA256_ASN1_SIGNING).expect("an ECDSA key is made")
}

fn public_key(key: &EcdsaKeyPair) -> Vec<u8> {
    key.public_key().as_der().expect("a public key encodes").as_ref().to_vec()
}

fn key_identifier(key: &EcdsaKeyPair) -> OctetString {
    OctetString::new(&hash(&[&public_key(key)])[..20]).expect("a short identifier")
}

fn sign(key: &EcdsaKeyPair, message: &[u8]) -> Vec<u8> {
    key.sign(&SystemRandom::new(), message).expect("an ECDSA key signs").as_ref().to_vec()
}

fn hash(parts: &[&[u8]]) -> Hash {
    digest(&SHA256, &parts.concat()).as_ref().try_into().expect("32 bytes")
}

#[cfg(test)]
#[path = "sigstore_tests.rs"]
mod tests;
