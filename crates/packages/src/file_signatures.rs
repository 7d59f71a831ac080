//! Signatures that lie beside a file as bundles of Sigstore, as plugins of Maven and Gradle publish them: of its bytes, or of a
//! statement about them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use crate::attestations::{Subject, only_subject, predicate_type, require_members, require_one_reading, statement};
use crate::digest::hex;

/// The members of a bundle of which one is signed, and the algorithm of digests.
const OF_BYTES: &str = "messageSignature";
const OF_STATEMENT: &str = "dsseEnvelope";
const ALGORITHM: &str = "SHA2_256";

/// The signature of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileSignature {
    /// Predicate type of its statement; `messageSignature` where the bytes themselves are signed.
    pub predicate_type: String,
    /// The bundle in one spelling: the last of members with one name, without spaces.
    pub document: String,
    /// SHA-256 of the bytes that it is about, in lower-case hex; absent where it does not say.
    pub sha256: Option<String>,
}

/// Reads the bundle that lies beside a file. Whether the signature holds is decided elsewhere.
///
/// # Errors
/// What is wrong with it, as a sentence without its beginning.
pub fn file_signature(text: &[u8]) -> Result<FileSignature, String> {
    let bundle: Value = serde_json::from_slice(text).map_err(|error| format!("is no JSON: {error}"))?;
    let document = bundle.to_string();
    if bundle.get(OF_BYTES).is_some() {
        require_one_reading(&bundle, OF_BYTES)?;
        let sha256 = message_digest(&bundle[OF_BYTES]["messageDigest"])?;
        return Ok(FileSignature { predicate_type: OF_BYTES.into(), document, sha256 });
    }
    require_one_reading(&bundle, OF_STATEMENT)?;
    let statement = statement(&bundle)?;
    let digest = only_subject(&statement).and_then(|about| about["digest"]["sha256"].as_str()).unwrap_or_default();
    let sha256 = digest.to_ascii_lowercase();
    if sha256.len() != 64 || !sha256.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err("must have one subject with a sha256, which is that of the file beside it".into());
    }
    // Tools name files as they please: the digest says which one is meant.
    let is_name = |_: &str| true;
    let subject = Subject { is_name: &is_name, name: "the file beside it", algorithm: "sha256", digest: &sha256 };
    let predicate_type = predicate_type(&bundle, &subject)?;
    Ok(FileSignature { predicate_type, document, sha256: Some(sha256) })
}

/// The digest of the signed bytes in hex; absent without.
fn message_digest(digest: &Value) -> Result<Option<String>, String> {
    if digest.is_null() {
        return Ok(None);
    }
    require_members(digest, "messageDigest", &["algorithm", "digest"])?;
    let bytes = digest["digest"].as_str().and_then(|text| STANDARD.decode(text).ok());
    match bytes.filter(|bytes| digest["algorithm"] == ALGORITHM && bytes.len() == 32) {
        Some(bytes) => Ok(Some(hex(&bytes))),
        None => Err(format!("must have a messageDigest of the algorithm {ALGORITHM} in base64")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of(content: &str, signed: Value) -> Value {
        json!({ "mediaType": "application/vnd.dev.sigstore.bundle.v0.3+json",
                "verificationMaterial": { "certificate": { "rawBytes": "AAAA" } }, content: signed })
    }

    fn read(bundle: &Value) -> Result<FileSignature, String> {
        file_signature(bundle.to_string().as_bytes())
    }

    fn envelope(statement: &Value) -> Value {
        json!({ "payload": STANDARD.encode(statement.to_string()), "payloadType": "application/vnd.in-toto+json",
                "signatures": [{ "sig": "AAAA" }] })
    }

    #[test]
    fn a_signature_says_which_bytes_it_is_about() {
        let digest = json!({ "algorithm": "SHA2_256", "digest": STANDARD.encode([7; 32]) });
        let signed = of(OF_BYTES, json!({ "messageDigest": digest, "signature": "AAAA" }));
        let signature = read(&signed).expect("a signature");
        assert_eq!((signature.predicate_type.as_str(), signature.sha256), (OF_BYTES, Some(hex(&[7; 32]))));
        assert_eq!(serde_json::from_str::<Value>(&signature.document).expect("JSON"), signed);
        let silent = read(&of(OF_BYTES, json!({ "signature": "AAAA" }))).expect("a signature");
        assert_eq!(silent.sha256, None);
        let statement = |subject: Value| json!({ "_type": "https://in-toto.io/Statement/v1", "subject": subject, "predicateType": "https://x/v1" });
        let about = |sha256: &str| json!([{ "name": "any", "digest": { "sha256": sha256 } }]);
        let stated = of(OF_STATEMENT, envelope(&statement(about(&"AB".repeat(32)))));
        let signature = read(&stated).expect("a statement");
        assert_eq!((signature.predicate_type.as_str(), signature.sha256), ("https://x/v1", Some("ab".repeat(32))));
        for subject in [json!([]), about("ab"), about(&"zz".repeat(32)), json!([{ "digest": {} }]), json!({})] {
            let refused = read(&of(OF_STATEMENT, envelope(&statement(subject))));
            assert!(refused.as_ref().is_err_and(|error| error.contains("one subject")), "{refused:?}");
        }
    }

    #[test]
    fn what_readers_might_read_otherwise_is_refused() {
        let with = |change: &dyn Fn(&mut Value)| {
            let digest = json!({ "algorithm": "SHA2_256", "digest": STANDARD.encode([7; 32]) });
            let mut bundle = of(OF_BYTES, json!({ "messageDigest": digest, "signature": "AAAA" }));
            change(&mut bundle);
            read(&bundle)
        };
        for (refused, why) in [
            (with(&|b| b["dsseEnvelope"] = json!({})), "unknown member dsseEnvelope"),
            (with(&|b| b["messageSignature"]["message_digest"] = json!({})), "unknown member message_digest"),
            (with(&|b| b["messageSignature"]["messageDigest"]["more"] = json!(1)), "unknown member more"),
            (with(&|b| b["messageSignature"]["messageDigest"]["algorithm"] = json!("SHA2_512")), "SHA2_256"),
            (with(&|b| b["messageSignature"]["messageDigest"]["digest"] = json!("AAAA")), "SHA2_256"),
            (with(&|b| b["verificationMaterial"] = json!({})), "must have one of"),
            (with(&|b| b["messageSignature"] = json!(null)), "messageSignature as an object"),
            (read(&json!({})), "must have verificationMaterial as an object"),
            (read(&json!([])), "must have the bundle as an object"),
            (file_signature(b"{"), "is no JSON"),
            (file_signature(b"\xff"), "is no JSON"),
        ] {
            assert!(refused.as_ref().is_err_and(|error| error.contains(why)), "{why}: {refused:?}");
        }
    }
}
