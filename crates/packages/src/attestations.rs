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
}

/// What a statement must be about.
struct Subject<'a> {
    is_name: &'a dyn Fn(&str) -> bool,
    /// Name of the file or package for people.
    name: &'a str,
    algorithm: &'a str,
    /// Digest in lower-case hex.
    digest: &'a str,
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
        let refused = |why: String| format!("attestation {} {why}", at + 1);
        let bundle = bundle_of(document).map_err(refused)?;
        let predicate_type = predicate_type(&bundle, &subject).map_err(refused)?;
        if read.iter().any(|other| other.predicate_type == predicate_type) {
            return Err(format!("two attestations have the predicate type {predicate_type}"));
        }
        read.push(Attestation { predicate_type, document: document.to_string(), bundle: bundle.to_string() });
    }
    Ok(read)
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
    let purl = format!("pkg:npm/{package}@{version}");
    let parsed = |text: &str| PackageUrl::parse(text).ok();
    let is_name = |name: &str| parsed(name).is_some_and(|named| Some(named) == parsed(&purl));
    let subject = Subject { is_name: &is_name, name: &purl, algorithm: "sha512", digest: sha512 };
    require_one_reading(&bundle).map_err(refused)?;
    let predicate_type = predicate_type(&bundle, &subject).map_err(refused)?;
    let document = bundle.to_string();
    Ok(Attestation { predicate_type, bundle: document.clone(), document })
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
fn require_one_reading(bundle: &Value) -> Result<(), String> {
    require_members(bundle, "the bundle", &["mediaType", "verificationMaterial", "dsseEnvelope"])?;
    let (material, envelope) = (&bundle["verificationMaterial"], &bundle["dsseEnvelope"]);
    let proofs = ["tlogEntries", "timestampVerificationData"];
    require_members(material, "verificationMaterial", &[&SIGNERS[..], &proofs].concat())?;
    require_members(envelope, "dsseEnvelope", &["payload", "payloadType", "signatures"])?;
    let signers: Vec<&Value> = SIGNERS.iter().map(|name| &material[*name]).filter(|signer| !signer.is_null()).collect();
    if signers.len() == 1 && signers[0].is_object() {
        return Ok(());
    }
    Err(format!("must have one of {} in verificationMaterial, as an object", SIGNERS.join(", ")))
}

fn require_members(object: &Value, what: &str, known: &[&str]) -> Result<(), String> {
    let members = object.as_object().ok_or_else(|| format!("must have {what} as an object"))?;
    match members.keys().find(|name| !known.contains(&name.as_str())) {
        None => Ok(()),
        Some(name) => Err(format!("has an unknown member {name} in {what}")),
    }
}

/// The predicate type of the statement of a bundle, which must be about the subject alone.
fn predicate_type(bundle: &Value, subject: &Subject<'_>) -> Result<String, String> {
    let envelope = &bundle["dsseEnvelope"];
    if envelope["payloadType"] != IN_TOTO {
        return Err(format!("has no envelope of the type {IN_TOTO}"));
    }
    let payload = envelope["payload"].as_str().and_then(|payload| STANDARD.decode(payload).ok());
    let payload = payload.ok_or("has no statement in base64")?;
    let statement: Map<String, Value> =
        serde_json::from_slice(&payload).map_err(|error| format!("has a statement that does not parse: {error}"))?;
    let text = |name: &str| statement.get(name).and_then(Value::as_str).unwrap_or_default();
    if !STATEMENTS.contains(&text("_type")) {
        return Err("has no statement of in-toto".into());
    }
    let [about] = statement.get("subject").and_then(Value::as_array).map_or(&[][..], Vec::as_slice) else {
        return Err(format!("must have one subject, {}", subject.name));
    };
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

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "acme_app-1.0-py3-none-any.whl";
    const PROVENANCE: &str = "https://slsa.dev/provenance/v1";

    fn sha256() -> String {
        "ab".repeat(32)
    }

    fn statement(name: &str, algorithm: &str, digest: &str) -> Value {
        json!({ "_type": STATEMENTS[0], "subject": [{ "name": name, "digest": { algorithm: digest } }],
                "predicateType": PROVENANCE, "predicate": {} })
    }

    fn of_python(statement: &Value) -> Value {
        json!({
            "version": 1,
            "verification_material": { "certificate": "AAAA", "transparency_entries": [{ "logIndex": "1" }] },
            "envelope": { "statement": STANDARD.encode(statement.to_string()), "signature": "AAAA" },
        })
    }

    fn of_npm(statement: &Value) -> String {
        json!({ "mediaType": BUNDLE, "verificationMaterial": { "certificate": { "rawBytes": "AAAA" } },
                "dsseEnvelope": { "payload": STANDARD.encode(statement.to_string()), "payloadType": IN_TOTO,
                                  "signatures": [{ "sig": "AAAA" }] } })
        .to_string()
    }

    fn read(documents: &[Value]) -> Result<Vec<Attestation>, String> {
        python_attestations(&json!(documents).to_string(), FILE, &sha256())
    }

    #[test]
    fn attestations_of_python_are_read_with_their_bundles() {
        let document = of_python(&statement(FILE, "sha256", &sha256()));
        let read = read(std::slice::from_ref(&document)).expect("an attestation");
        assert_eq!((read.len(), read[0].predicate_type.as_str()), (1, PROVENANCE));
        assert_eq!(serde_json::from_str::<Value>(&read[0].document).expect("JSON"), document);
        let bundle: Value = serde_json::from_str(&read[0].bundle).expect("JSON");
        assert_eq!(bundle["verificationMaterial"]["certificate"]["rawBytes"], "AAAA");
        assert_eq!(bundle["verificationMaterial"]["tlogEntries"], json!([{ "logIndex": "1" }]));
        assert_eq!(bundle["dsseEnvelope"]["signatures"], json!([{ "sig": "AAAA" }]));
        assert_eq!(python_bundle(&read[0].document).as_ref(), Ok(&read[0].bundle));
        let mut wrapped = document.clone();
        wrapped["verification_material"]["certificate"] = json!("AA\nAA\n");
        let wrapped = python_attestations(&json!([wrapped]).to_string(), FILE, &sha256()).expect("an attestation");
        assert_eq!(wrapped[0].bundle, read[0].bundle);
        let other_spelling = of_python(&statement("Acme.App-1.0-py3-none-any.whl", "sha256", &sha256().to_uppercase()));
        assert!(python_attestations(&json!([other_spelling]).to_string(), FILE, &sha256()).is_ok());
    }

    #[test]
    fn attestations_that_are_not_about_the_file_are_refused() {
        let good = statement(FILE, "sha256", &sha256());
        let with = |change: &dyn Fn(&mut Value)| {
            let mut statement = good.clone();
            change(&mut statement);
            read(&[of_python(&statement)])
        };
        for (wrong, why) in [
            (with(&|s| s["subject"][0]["digest"]["sha256"] = json!("cd".repeat(32))), "other bytes"),
            (with(&|s| s["subject"][0]["digest"] = json!({ "sha512": "cd" })), "other bytes"),
            (with(&|s| s["subject"][0]["name"] = json!("acme_app-1.1-py3-none-any.whl")), "is not about"),
            (with(&|s| s["subject"] = json!([])), "must have one subject"),
            (with(&|s| s["subject"] = json!([good["subject"][0], good["subject"][0]])), "must have one subject"),
            (with(&|s| s["_type"] = json!("other")), "no statement of in-toto"),
            (with(&|s| s["predicateType"] = json!("a b")), "predicateType"),
            (with(&|s| s["predicateType"] = json!("x".repeat(257))), "predicateType"),
            (with(&|s| s["predicateType"] = json!(null)), "predicateType"),
            (read(&vec![of_python(&good); 2]), "two attestations"),
            (read(&vec![of_python(&good); 11]), "more than 10"),
            (read(&[json!({ "version": 2 })]), "attestation 1 has no version 1"),
            (read(&[json!([])]), "attestation 1 has no version 1"),
            (read(&[json!({ "version": 1 })]), "verification_material.certificate"),
        ] {
            assert!(wrong.as_ref().is_err_and(|error| error.contains(why)), "{why}: {wrong:?}");
        }
        for text in ["", "{}", "[", "[1]"] {
            assert!(python_attestations(text, FILE, &sha256()).is_err(), "{text}");
        }
        assert_eq!(python_attestations("[]", FILE, &sha256()), Ok(Vec::new()));
        let mut forged = of_python(&good);
        forged["envelope"]["statement"] = json!("no base64!");
        assert!(read(&[forged]).is_err_and(|error| error.contains("base64")));
    }

    #[test]
    fn a_bundle_of_npm_names_the_version_by_its_package_url() {
        let sha512 = "ef".repeat(64);
        let read = |name: &str, digest: &str| {
            npm_attestation(&of_npm(&statement(name, "sha512", digest)), "@acme/app", "1.0.0", &sha512)
        };
        for name in ["pkg:npm/%40acme/app@1.0.0", "pkg:npm/@acme/app@1.0.0"] {
            assert_eq!(read(name, &sha512).expect(name).predicate_type, PROVENANCE);
        }
        for name in ["pkg:npm/%40acme/app@1.0.1", "pkg:npm/acme/app@1.0.0", "@acme/app@1.0.0", "pkg:npm/%40acme/app"] {
            assert!(read(name, &sha512).is_err_and(|error| error.contains("is not about")), "{name}");
        }
        assert!(read("pkg:npm/%40acme/app@1.0.0", &"aa".repeat(64)).is_err_and(|error| error.contains("other bytes")));
        let good: Value =
            serde_json::from_str(&of_npm(&statement("pkg:npm/a@1.0.0", "sha512", &sha512))).expect("JSON");
        let with = |change: &dyn Fn(&mut Value)| {
            let mut bundle = good.clone();
            change(&mut bundle);
            npm_attestation(&bundle.to_string(), "a", "1.0.0", &sha512)
        };
        assert!(with(&|_| ()).is_ok());
        for (refused, why) in [
            (with(&|b| b["messageSignature"] = json!({ "signature": "AAAA" })), "unknown member messageSignature"),
            (with(&|b| b["dsse_envelope"] = b["dsseEnvelope"].clone()), "unknown member dsse_envelope"),
            (with(&|b| b["verificationMaterial"]["x509_certificate_chain"] = json!({})), "unknown member x509"),
            (with(&|b| b["verificationMaterial"]["certificate"] = json!(["AAAA"])), "as an object"),
            (with(&|b| b["dsseEnvelope"]["payload_type"] = json!("a")), "unknown member payload_type"),
            (with(&|b| b["verificationMaterial"]["publicKey"] = json!({ "hint": "k" })), "must have one of"),
            (with(&|b| b["verificationMaterial"] = json!({})), "must have one of"),
            (with(&|b| b["dsseEnvelope"] = json!(null)), "dsseEnvelope as an object"),
            (with(&|b| b["dsseEnvelope"]["payloadType"] = json!("text/plain")), "no envelope"),
        ] {
            assert!(refused.as_ref().is_err_and(|error| error.contains(why)), "{why}: {refused:?}");
        }
        assert!(npm_attestation("[", "a", "1.0.0", &sha512).is_err_and(|error| error.contains("no JSON")));
    }
}
