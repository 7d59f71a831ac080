//! Signed statements about a file, as publishers send them: attestations of Python's index (PEP 740), and bundles of Sigstore.
//!
//! Whether a signature holds is decided elsewhere. Here a statement is read, and must be about the very file.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bowline_formats::purl::PackageUrl;
use serde_json::{Map, Value, json};

/// Media type of the payload of envelopes that are about software.
const IN_TOTO: &str = "application/vnd.in-toto+json";
const BUNDLE: &str = "application/vnd.dev.sigstore.bundle.v0.3+json";
/// Types of statements; the second is that of older clients of npm.
const STATEMENTS: [&str; 2] = ["https://in-toto.io/Statement/v1", "https://in-toto.io/Statement/v0.1"];
/// Who signed, in one of three forms.
const SIGNERS: [&str; 3] = ["certificate", "x509CertificateChain", "publicKey"];
/// Statements about one file.
const STATEMENTS_OF_FILE: usize = 10;
/// Characters of a predicate type.
const PREDICATE_TYPE: usize = 256;

/// A statement about a file, with its signature.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attestation {
    /// What kind of statement it is, such as `https://slsa.dev/provenance/v1`.
    pub predicate_type: String,
    /// The JSON that was sent, in one spelling: the last of members with one name, without spaces.
    pub document: String,
    /// The same as a bundle of Sigstore, as JSON.
    pub bundle: String,
    /// Whether it has the certificate of its signer, and no key of which readers must know whose it is.
    pub is_certified: bool,
}

/// What a statement must be about.
pub(crate) struct Subject<'a> {
    pub(crate) is_name: &'a dyn Fn(&str) -> bool,
    /// Name of the file or package for people.
    pub(crate) name: &'a str,
    pub(crate) algorithm: &'a str,
    /// Digest in lower-case hex.
    pub(crate) digest: &'a str,
}

/// The attestations that are sent with a file of a Python package, a JSON array: each of another predicate type.
///
/// # Errors
/// What is wrong with them, as a sentence.
pub fn python_attestations(text: &str, file: &str, sha256: &str) -> Result<Vec<Attestation>, String> {
    let documents: Vec<Value> =
        serde_json::from_str(text).map_err(|error| format!("attestations is no array of JSON: {error}"))?;
    if documents.len() > STATEMENTS_OF_FILE {
        return Err(format!("attestations has more than {STATEMENTS_OF_FILE} entries"));
    }
    let is_name = |name: &str| spelled_alike(name) == spelled_alike(file);
    let subject = Subject { is_name: &is_name, name: file, algorithm: "sha256", digest: sha256 };
    let mut read: Vec<Attestation> = Vec::with_capacity(documents.len());
    for (at, document) in documents.iter().enumerate() {
        let attestation =
            python_attestation(document, &subject).map_err(|why| format!("attestation {} {why}", at + 1))?;
        if read.iter().any(|other| other.predicate_type == attestation.predicate_type) {
            return Err(format!("two attestations have the predicate type {}", attestation.predicate_type));
        }
        read.push(attestation);
    }
    Ok(read)
}

/// One attestation of a Python package, which must be about the subject.
fn python_attestation(document: &Value, subject: &Subject<'_>) -> Result<Attestation, String> {
    let bundle = bundle_of(document)?;
    let predicate_type = predicate_type(&bundle, subject)?;
    let (document, bundle) = (document.to_string(), bundle.to_string());
    Ok(Attestation { predicate_type, document, bundle, is_certified: true })
}

/// The provenance of a file of a Python package, as an index serves it (PEP 740).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Provenance {
    /// All of its attestations, in their order.
    pub attestations: Vec<Attestation>,
    /// The same by publishers, as JSON: as the index names them, without claims, which say who was verified.
    pub document: String,
}

/// Reads the provenance of a file, of which every attestation must be about the very file.
///
/// # Errors
/// What is wrong with it, as a sentence without its beginning.
pub fn python_provenance(text: &str, file: &str, sha256: &str) -> Result<Provenance, String> {
    let provenance: Value = serde_json::from_str(text).map_err(|error| format!("it is no JSON: {error}"))?;
    let (1, Value::Array(bundles)) = (provenance["version"].as_u64().unwrap_or(0), &provenance["attestation_bundles"])
    else {
        return Err("it is no provenance of version 1 with attestation_bundles".into());
    };
    let is_name = |name: &str| spelled_alike(name) == spelled_alike(file);
    let subject = Subject { is_name: &is_name, name: file, algorithm: "sha256", digest: sha256 };
    let (mut attestations, mut shown) = (Vec::new(), Vec::new());
    for bundle in bundles {
        let Value::Array(documents) = &bundle["attestations"] else {
            return Err("one of its attestation_bundles has no attestations".into());
        };
        for document in documents {
            let number = attestations.len() + 1;
            if number > STATEMENTS_OF_FILE {
                return Err(format!("it has more than {STATEMENTS_OF_FILE} attestations"));
            }
            let read = python_attestation(document, &subject);
            attestations.push(read.map_err(|why| format!("attestation {number} {why}"))?);
        }
        let mut publisher = bundle["publisher"].as_object().cloned().unwrap_or_default();
        publisher.insert("claims".into(), Value::Null);
        shown.push(json!({ "publisher": publisher, "attestations": documents }));
    }
    if attestations.is_empty() {
        return Err("it has no attestation".into());
    }
    let document = json!({ "version": 1, "attestation_bundles": shown }).to_string();
    Ok(Provenance { attestations, document })
}

/// The bundle that an attestation of a Python package is.
///
/// # Errors
/// It is no attestation.
pub fn python_bundle(document: &str) -> Result<String, String> {
    let document: Value = serde_json::from_str(document).map_err(|error| error.to_string())?;
    bundle_of(&document).map(|bundle| bundle.to_string())
}

/// The bundle that is sent beside a version of an npm package.
///
/// # Errors
/// What is wrong with it, as a sentence.
pub fn npm_attestation(text: &str, package: &str, version: &str, sha512: &str) -> Result<Attestation, String> {
    let refused = |why: String| format!("the statement beside the file {why}");
    let bundle: Value = serde_json::from_str(text).map_err(|error| refused(format!("is no JSON: {error}")))?;
    npm_bundle(&bundle, (package, version), sha512).map_err(refused)
}

/// The statements about a version of an npm package, as a registry serves them: each must be about this very version.
///
/// # Errors
/// What is wrong with them, as a sentence without its beginning.
pub fn npm_attestations(text: &str, package: &str, version: &str, sha512: &str) -> Result<Vec<Attestation>, String> {
    let document: Value = serde_json::from_str(text).map_err(|error| format!("it is no JSON: {error}"))?;
    let attestations = document["attestations"].as_array().map_or(&[][..], Vec::as_slice);
    if attestations.is_empty() || attestations.len() > STATEMENTS_OF_FILE {
        return Err(format!("it has not between 1 and {STATEMENTS_OF_FILE} attestations"));
    }
    let read = attestations.iter().enumerate().map(|(at, attestation)| {
        npm_bundle(&attestation["bundle"], (package, version), sha512)
            .map_err(|why| format!("attestation {} {why}", at + 1))
    });
    read.collect()
}

/// A bundle about a version of an npm package.
fn npm_bundle(bundle: &Value, (package, version): (&str, &str), sha512: &str) -> Result<Attestation, String> {
    let purl = format!("pkg:npm/{package}@{version}");
    let parsed = |text: &str| PackageUrl::parse(text).ok();
    let is_name = |name: &str| parsed(name).is_some_and(|named| Some(named) == parsed(&purl));
    let subject = Subject { is_name: &is_name, name: &purl, algorithm: "sha512", digest: sha512 };
    require_one_reading(bundle, "dsseEnvelope")?;
    let predicate_type = predicate_type(bundle, &subject)?;
    let (document, is_certified) = (bundle.to_string(), bundle["verificationMaterial"]["publicKey"].is_null());
    Ok(Attestation { predicate_type, bundle: document.clone(), document, is_certified })
}

/// Names of files that differ in case or separators alone are taken for one: tools write either. The digest is compared anyway.
fn spelled_alike(name: &str) -> String {
    name.to_ascii_lowercase().split(['-', '_', '.']).filter(|part| !part.is_empty()).collect::<Vec<_>>().join("-")
}

/// A bundle with what an attestation of PEP 740 has.
fn bundle_of(document: &Value) -> Result<Value, String> {
    if document["version"] != 1 {
        return Err("has no version 1".into());
    }
    let (material, envelope) = (&document["verification_material"], &document["envelope"]);
    // Some clients wrap base64 into lines.
    let text = |value: &Value, name: &str| match value {
        Value::String(text) => Ok(text.split_ascii_whitespace().collect::<String>()),
        _ => Err(format!("has no {name}")),
    };
    let certificate = text(&material["certificate"], "verification_material.certificate")?;
    let Value::Array(entries) = &material["transparency_entries"] else {
        return Err("has no verification_material.transparency_entries".into());
    };
    let statement = text(&envelope["statement"], "envelope.statement")?;
    let signature = text(&envelope["signature"], "envelope.signature")?;
    Ok(json!({
        "mediaType": BUNDLE,
        "verificationMaterial": { "certificate": { "rawBytes": certificate }, "tlogEntries": entries },
        "dsseEnvelope": { "payload": statement, "payloadType": IN_TOTO, "signatures": [{ "sig": signature }] },
    }))
}

/// Refuses a bundle with members of which each reader might take another one, and such as other readers know by another name.
/// `content` names the member that is signed.
pub(crate) fn require_one_reading(bundle: &Value, content: &str) -> Result<(), String> {
    require_members(bundle, "the bundle", &["mediaType", "verificationMaterial", content])?;
    let material = &bundle["verificationMaterial"];
    let proofs = ["tlogEntries", "timestampVerificationData"];
    require_members(material, "verificationMaterial", &[&SIGNERS[..], &proofs].concat())?;
    let known: &[&str] = if content == "dsseEnvelope" {
        &["payload", "payloadType", "signatures"]
    } else {
        &["messageDigest", "signature"]
    };
    require_members(&bundle[content], content, known)?;
    let signers: Vec<&Value> = SIGNERS.iter().map(|name| &material[*name]).filter(|signer| !signer.is_null()).collect();
    if signers.len() == 1 && signers[0].is_object() {
        return Ok(());
    }
    Err(format!("must have one of {} in verificationMaterial, as an object", SIGNERS.join(", ")))
}

pub(crate) fn require_members(object: &Value, what: &str, known: &[&str]) -> Result<(), String> {
    let members = object.as_object().ok_or_else(|| format!("must have {what} as an object"))?;
    match members.keys().find(|name| !known.contains(&name.as_str())) {
        None => Ok(()),
        Some(name) => Err(format!("has an unknown member {name} in {what}")),
    }
}

/// The predicate type of the statement of a bundle, which must be about the subject alone.
pub(crate) fn predicate_type(bundle: &Value, subject: &Subject<'_>) -> Result<String, String> {
    let statement = statement(bundle)?;
    let text = |name: &str| statement.get(name).and_then(Value::as_str).unwrap_or_default();
    let about = only_subject(&statement).ok_or_else(|| format!("must have one subject, {}", subject.name))?;
    if !about["name"].as_str().is_some_and(subject.is_name) {
        return Err(format!("is not about {}", subject.name));
    }
    let digest = about["digest"][subject.algorithm].as_str().unwrap_or_default();
    if !digest.eq_ignore_ascii_case(subject.digest) {
        return Err(format!("is about other bytes than those of the file: its {} differs", subject.algorithm));
    }
    let predicate_type = text("predicateType");
    let is_plain = predicate_type.bytes().all(|byte| byte.is_ascii_graphic());
    if predicate_type.is_empty() || predicate_type.len() > PREDICATE_TYPE || !is_plain {
        return Err(format!("must have a predicateType of at most {PREDICATE_TYPE} printable characters"));
    }
    Ok(predicate_type.to_owned())
}

/// What a statement is about, if that is one thing.
pub(crate) fn only_subject(statement: &Map<String, Value>) -> Option<&Value> {
    match statement.get("subject").and_then(Value::as_array).map_or(&[][..], Vec::as_slice) {
        [about] => Some(about),
        _ => None,
    }
}

/// The statement of a bundle with an envelope.
pub(crate) fn statement(bundle: &Value) -> Result<Map<String, Value>, String> {
    let envelope = &bundle["dsseEnvelope"];
    if envelope["payloadType"] != IN_TOTO {
        return Err(format!("has no envelope of the type {IN_TOTO}"));
    }
    let payload = envelope["payload"].as_str().and_then(|payload| STANDARD.decode(payload).ok());
    let payload = payload.ok_or("has no statement in base64")?;
    let statement: Map<String, Value> =
        serde_json::from_slice(&payload).map_err(|error| format!("has a statement that does not parse: {error}"))?;
    if !statement.get("_type").and_then(Value::as_str).is_some_and(|kind| STATEMENTS.contains(&kind)) {
        return Err("has no statement of in-toto".into());
    }
    Ok(statement)
}

#[cfg(test)]
#[path = "attestations_tests.rs"]
mod tests;
