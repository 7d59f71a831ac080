use sigstore_verify::trust_root::TrustedRoot;
use sigstore_verify::types::{Bundle, Sha256Hash};
use sigstore_verify::{Error, VerificationPolicy, Verifier};

use super::*;
use crate::TestClock;

const IDENTITY: &str = "https://forge.example/acme/app/release.yml@refs/heads/main";
const TOKENS: &str = "https://tokens.example";
const PREDICATE: &str = "https://slsa.dev/provenance/v1";
const SHA256: &str = "b94d27b9934d3e08a52e52d7da7dabfac484efe37a5380ee9088f7ace2efcde9";

fn signer(identity: &str) -> Signer<'_> {
    Signer { identity, issuer: TOKENS, at: TestClock::default().seconds(), source: None }
}

fn signed(sigstore: &Sigstore, identity: &str) -> Value {
    sigstore.bundle(&signer(identity), &statement("app-1.0.whl", &[("sha256", SHA256)], PREDICATE))
}

fn verify_as(sigstore: &Sigstore, bundle: &Value, policy: &VerificationPolicy, sha256: &str) -> Result<(), Error> {
    let root = TrustedRoot::from_json(&sigstore.trusted_root().to_string()).expect("a trusted root");
    let bundle = Bundle::from_json(&bundle.to_string()).expect("a bundle");
    let artifact = Sha256Hash::from_hex(sha256).expect("a digest");
    let result = Verifier::new(&root)?.verify(artifact, &bundle, &policy.clone().skip_sct())?;
    assert!(result.certificate_verified() && result.tlog_verified() && result.identity_policy_checked());
    assert_eq!(result.integrated_time().as_slice(), result.verified_timestamps());
    Ok(())
}

fn verify(sigstore: &Sigstore, bundle: &Value, identity: &str) -> Result<(), Error> {
    verify_as(sigstore, bundle, &VerificationPolicy::new(identity, TOKENS), SHA256)
}

/// The bundle that an attestation object stands for.
fn from_attestation(attestation: &Value) -> Value {
    let (material, envelope) = (&attestation["verification_material"], &attestation["envelope"]);
    json!({
        "mediaType": "application/vnd.dev.sigstore.bundle.v0.3+json",
        "verificationMaterial": {
            "certificate": { "rawBytes": material["certificate"] },
            "tlogEntries": material["transparency_entries"],
        },
        "dsseEnvelope": {
            "payloadType": IN_TOTO,
            "payload": envelope["statement"],
            "signatures": [{ "sig": envelope["signature"] }],
        },
    })
}

#[test]
fn what_it_signs_verifies_by_its_root_at_any_size_of_the_log() {
    let sigstore = Sigstore::new();
    for index in 0..12 {
        let identity = if index % 2 == 0 { IDENTITY } else { "release@acme.example" };
        let bundle = signed(&sigstore, identity);
        assert_eq!(bundle.pointer("/verificationMaterial/tlogEntries/0/logIndex"), Some(&json!(index.to_string())));
        verify(&sigstore, &bundle, identity).unwrap_or_else(|error| panic!("entry {index}: {error}"));
    }
}

#[test]
fn an_attestation_object_has_all_that_a_bundle_has() {
    let sigstore = Sigstore::new();
    let bundle = signed(&sigstore, IDENTITY);
    let attestation = Sigstore::attestation(&bundle);
    assert_eq!(attestation["version"], json!(1));
    assert_eq!(from_attestation(&attestation), bundle);
    verify(&sigstore, &from_attestation(&attestation), IDENTITY).expect("a verified attestation");
}

#[test]
fn other_signers_artifacts_and_roots_do_not_verify() {
    let sigstore = Sigstore::new();
    let bundle = signed(&sigstore, IDENTITY);
    let by = |identity: &str, issuer: &str, sha256: &str| {
        verify_as(&sigstore, &bundle, &VerificationPolicy::new(identity, issuer), sha256)
    };
    assert!(by(IDENTITY, TOKENS, SHA256).is_ok());
    assert!(matches!(by("https://forge.example/other", TOKENS, SHA256), Err(Error::IdentityMismatch { .. })));
    assert!(matches!(by(IDENTITY, "https://other.example", SHA256), Err(Error::IssuerMismatch { .. })));
    assert!(matches!(by(IDENTITY, TOKENS, &"0".repeat(64)), Err(Error::ArtifactMismatch(_))));
    let other = verify(&Sigstore::new(), &bundle, IDENTITY).expect_err("another root");
    assert!(!matches!(other, Error::IdentityMismatch { .. } | Error::ArtifactMismatch(_)), "{other}");
}

#[test]
fn signatures_of_bytes_verify_by_their_digest() {
    let sigstore = Sigstore::new();
    let bundle = sigstore.file_bundle(&signer(IDENTITY), b"bytes");
    let sha256 = bowline_core::hex(&hash(&[b"bytes"]));
    verify_as(&sigstore, &bundle, &VerificationPolicy::new(IDENTITY, TOKENS), &sha256).expect("a verified signature");
    let other = verify_as(&sigstore, &bundle, &VerificationPolicy::new(IDENTITY, TOKENS), SHA256);
    assert!(matches!(other, Err(Error::ArtifactMismatch(_))), "{other:?}");
    let mut forged = bundle.clone();
    forged["messageSignature"]["signature"] =
        sigstore.file_bundle(&signer(IDENTITY), b"bytes")["messageSignature"]["signature"].clone();
    assert!(verify_as(&sigstore, &forged, &VerificationPolicy::new(IDENTITY, TOKENS), &sha256).is_err());
}

#[test]
fn tampered_bundles_do_not_verify() {
    let sigstore = Sigstore::new();
    let entry = "/verificationMaterial/tlogEntries/0";
    let checkpoint = format!("{entry}/inclusionProof/checkpoint");
    let payload = STANDARD.encode(statement("other.whl", &[("sha256", SHA256)], PREDICATE).to_string());
    let other = signed(&sigstore, IDENTITY);
    let changes = [
        ("/dsseEnvelope/payload".to_owned(), json!(payload)),
        ("/dsseEnvelope/signatures/0/sig".into(), other["dsseEnvelope"]["signatures"][0]["sig"].clone()),
        ("/verificationMaterial/certificate".into(), other["verificationMaterial"]["certificate"].clone()),
        ("/verificationMaterial/tlogEntries".into(), other["verificationMaterial"]["tlogEntries"].clone()),
        ("/verificationMaterial/tlogEntries".into(), json!([])),
        (format!("{entry}/integratedTime"), json!("1600000000")),
        (format!("{entry}/logIndex"), json!("0")),
        (format!("{entry}/inclusionProof/hashes"), json!([])),
        (checkpoint.clone(), json!(other.pointer(&checkpoint))),
        (format!("{entry}/inclusionPromise"), Value::Null),
        (format!("{entry}/inclusionProof"), Value::Null),
    ];
    for (pointer, value) in changes {
        let mut bundle = signed(&sigstore, IDENTITY);
        verify(&sigstore, &bundle, IDENTITY).expect("as it was signed");
        *bundle.pointer_mut(&pointer).expect("a member") = value;
        assert!(verify(&sigstore, &bundle, IDENTITY).is_err(), "{pointer}");
    }
}

#[test]
fn the_time_of_signing_is_not_later_than_the_real_time() {
    let sigstore = Sigstore::new();
    let now = TestClock::default().seconds();
    for (at, is_past) in [(1_000_000_000, true), (now, true), (now + 3600, false)] {
        let signer = Signer { at, ..signer(IDENTITY) };
        let bundle = sigstore.bundle(&signer, &statement("app-1.0.whl", &[("sha256", SHA256)], PREDICATE));
        let result = verify(&sigstore, &bundle, IDENTITY);
        assert_eq!(result.is_ok(), is_past, "{at}: {result:?}");
    }
}
