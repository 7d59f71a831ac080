use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use proptest::prelude::*;
use serde_json::{Value, json};
use sigstore_verify::crypto::KeyPair;
use sigstore_verify::trust_root::SigstoreInstance;
use sigstore_verify::types::dsse;

use super::*;

/// An attestation of a workflow at a public forge, as logged in Sigstore's public instance; of the tests of the crate that
/// verifies it.
const KEYLESS: &str = include_str!("testdata/keyless.sigstore.json");
const KEYLESS_DIGEST: &str = "sha256:54303491a8418fbed24344b513546182c29b43bf282ceb433af65e2299f9271f";
const KEYLESS_TYPE: &str = "https://schemas.conda.org/attestations-publish-1.schema.json";
const IDENTITY: &str = "https://github.com/prefix-dev/sigstore-example/.github/workflows/action.yaml@refs/heads/main";
const ISSUER: &str = "https://token.actions.githubusercontent.com";

fn digest(fill: char) -> String {
    format!("sha256:{}", fill.to_string().repeat(64))
}

fn about(fill: char) -> BTreeSet<String> {
    BTreeSet::from([digest(fill)])
}

fn pem(key: &KeyPair) -> String {
    key.public_key_der().expect("a public key").to_pem()
}

fn signers(keys: &[&KeyPair]) -> Signers {
    let public_keys = keys.iter().map(|key| pem(key)).collect();
    let signers = own::ImageSigners { public_keys, certificates: Vec::new() };
    Signers::parse(&signers).unwrap_or_else(|(_, wrong)| panic!("{wrong}"))
}

fn payload(fill: char) -> Vec<u8> {
    let image = json!({ "docker-manifest-digest": digest(fill) });
    let identity = json!({ "docker-reference": "registry.example.com/app" });
    let kind = "cosign container image signature";
    json!({ "critical": { "identity": identity, "image": image, "type": kind }, "optional": null }).to_string().into()
}

fn plain(key: &KeyPair, payload: Vec<u8>) -> SignedDocument {
    let signature = key.sign(&payload).expect("a signature").to_base64();
    SignedDocument::Payload(payload, signature)
}

fn statement_of(fill: char, predicate_type: &str) -> Value {
    let subject = json!([{ "name": "app", "digest": { "sha256": fill.to_string().repeat(64) } }]);
    json!({ "_type": "https://in-toto.io/Statement/v0.1", "predicateType": predicate_type, "subject": subject,
            "predicate": {} })
}

fn envelope(key: &KeyPair, statement: &Value) -> Value {
    let payload = statement.to_string().into_bytes();
    let signature = key.sign(&dsse::pae(IN_TOTO, &payload)).expect("a signature").to_base64();
    json!({ "payloadType": IN_TOTO, "payload": STANDARD.encode(payload), "signatures": [{ "sig": signature }] })
}

fn bundle(envelope: &Value) -> Vec<u8> {
    let material = json!({ "publicKey": { "hint": "key" } });
    let media_type = "application/vnd.dev.sigstore.bundle.v0.3+json";
    json!({ "mediaType": media_type, "verificationMaterial": material, "dsseEnvelope": envelope }).to_string().into()
}

#[test]
fn a_plain_signature_is_of_an_accepted_key_and_about_the_image() {
    let (key, other) = (KeyPair::generate_ecdsa_p256().expect("a key"), KeyPair::generate_ecdsa_p256().expect("a key"));
    let signed = plain(&key, payload('a'));
    assert_eq!(verify(&signed, &signers(&[&key]), None, &about('a')), Ok(Claim::Signature));
    assert_eq!(verify(&signed, &signers(&[&other, &key]), None, &about('a')), Ok(Claim::Signature));
    assert_eq!(verify(&signed, &signers(&[&other]), None, &about('a')), Err(Flaw::OtherKey));
    assert_eq!(verify(&signed, &signers(&[&key]), None, &about('b')), Err(Flaw::OtherSubject));
    let SignedDocument::Payload(_, signature) = &signed else { panic!("no payload") };
    let moved = SignedDocument::Payload(payload('b'), signature.clone());
    assert_eq!(verify(&moved, &signers(&[&key]), None, &about('b')), Err(Flaw::OtherKey), "the payload was replaced");
    let certified = SignedDocument::Certified(Box::new(signed));
    assert_eq!(verify(&certified, &signers(&[&key]), None, &about('a')), Ok(Claim::Signature));
    assert_eq!(verify(&certified, &signers(&[&other]), None, &about('a')), Err(Flaw::NoBundle));
    let nonsense = SignedDocument::Payload(payload('a'), "no base64".into());
    assert_eq!(verify(&nonsense, &signers(&[&key]), None, &about('a')), Err(Flaw::Malformed));
    assert_eq!(verify(&plain(&key, b"{}".to_vec()), &signers(&[&key]), None, &about('a')), Err(Flaw::Malformed));
}

#[test]
fn an_envelope_and_a_bundle_claim_what_their_statement_says_about_the_image() {
    let (key, other) = (KeyPair::generate_ecdsa_p256().expect("a key"), KeyPair::generate_ecdsa_p256().expect("a key"));
    let provenance = "https://slsa.dev/provenance/v1";
    let signed = envelope(&key, &statement_of('a', provenance));
    for document in [SignedDocument::Envelope(signed.to_string().into()), SignedDocument::Bundle(bundle(&signed))] {
        let by = |keys: &[&KeyPair], fill| verify(&document, &signers(keys), None, &about(fill));
        assert_eq!(by(&[&key], 'a'), Ok(Claim::Attestation(provenance.into())));
        assert_eq!(by(&[&other], 'a'), Err(Flaw::OtherKey));
        assert_eq!(by(&[&key], 'b'), Err(Flaw::OtherSubject));
    }
    let signature = envelope(&key, &statement_of('a', COSIGN_SIGNATURES[0]));
    let signature = SignedDocument::Bundle(bundle(&signature));
    assert_eq!(verify(&signature, &signers(&[&key]), None, &about('a')), Ok(Claim::Signature));
    let mut forged = signed;
    forged["payload"] = STANDARD.encode(statement_of('b', provenance).to_string()).into();
    let forged = SignedDocument::Bundle(bundle(&forged));
    assert_eq!(verify(&forged, &signers(&[&key]), None, &about('b')), Err(Flaw::OtherKey));
}

fn keyless() -> (own::ImageSigners, TrustedRoot) {
    let certificates = vec![own::CertificateIdentity { identity: IDENTITY.into(), issuer: ISSUER.into() }];
    let root = TrustedRoot::parse(SigstoreInstance::PublicGood.embedded_trusted_root_json());
    (own::ImageSigners { public_keys: Vec::new(), certificates }, root.unwrap_or_else(|wrong| panic!("{wrong}")))
}

fn parsed(signers: &own::ImageSigners) -> Signers {
    Signers::parse(signers).unwrap_or_else(|(_, wrong)| panic!("{wrong}"))
}

#[test]
fn a_certificate_is_of_the_identity_and_issuer_and_was_valid_at_a_proven_time() {
    let (signers, root) = keyless();
    let document = SignedDocument::Bundle(KEYLESS.into());
    let about_it = BTreeSet::from([KEYLESS_DIGEST.to_owned()]);
    let by =
        |signers: &own::ImageSigners, root: Option<&TrustedRoot>| verify(&document, &parsed(signers), root, &about_it);
    assert_eq!(by(&signers, Some(&root)), Ok(Claim::Attestation(KEYLESS_TYPE.into())));
    assert_eq!(by(&signers, None), Err(Flaw::OtherKey), "without a root");
    let replaced = TrustedRoot::parse(SigstoreInstance::Staging.embedded_trusted_root_json());
    assert_eq!(by(&signers, replaced.ok().as_ref()), Err(Flaw::Untrusted), "a root that was replaced");
    let with = |identity: &str, issuer: &str| {
        let certificates = vec![own::CertificateIdentity { identity: identity.into(), issuer: issuer.into() }];
        by(&own::ImageSigners { public_keys: Vec::new(), certificates }, Some(&root))
    };
    assert_eq!(with("https://github.com/other", ISSUER), Err(Flaw::OtherIdentity));
    assert_eq!(with(IDENTITY, "https://accounts.example.com"), Err(Flaw::OtherIdentity));
    assert_eq!(verify(&document, &parsed(&signers), Some(&root), &about('a')), Err(Flaw::OtherSubject));
}

#[test]
fn a_tampered_bundle_or_one_without_a_proven_time_is_not_trusted() {
    let (signers, root) = keyless();
    let about_it = BTreeSet::from([KEYLESS_DIGEST.to_owned()]);
    let changed = |change: fn(&mut Value)| {
        let mut bundle: Value = serde_json::from_str(KEYLESS).expect("JSON");
        change(&mut bundle);
        verify(&SignedDocument::Bundle(bundle.to_string().into()), &parsed(&signers), Some(&root), &about_it)
    };
    assert!(changed(|_| ()).is_ok());
    let entry = "/verificationMaterial/tlogEntries/0";
    let changes: [fn(&mut Value); 5] = [
        |bundle| bundle["verificationMaterial"]["tlogEntries"] = json!([]),
        |bundle| bundle["verificationMaterial"]["tlogEntries"][0]["integratedTime"] = json!("1600000000"),
        |bundle| {
            let signature = &mut bundle["dsseEnvelope"]["signatures"][0]["sig"];
            let text = signature.as_str().unwrap_or_default().replacen("ME", "MF", 1);
            *signature = text.into();
        },
        |bundle| {
            let proof = &mut bundle["verificationMaterial"]["tlogEntries"][0]["inclusionProof"]["hashes"];
            *proof = json!([]);
        },
        |bundle| {
            let payload = STANDARD.decode(bundle["dsseEnvelope"]["payload"].as_str().unwrap_or_default());
            let mut statement: Value = serde_json::from_slice(&payload.unwrap_or_default()).unwrap_or_default();
            statement["predicateType"] = "https://slsa.dev/provenance/v1".into();
            bundle["dsseEnvelope"]["payload"] = STANDARD.encode(statement.to_string()).into();
        },
    ];
    for (at, change) in changes.into_iter().enumerate() {
        assert!(
            matches!(changed(change), Err(Flaw::Untrusted | Flaw::Malformed)),
            "change {at}: {:?}",
            changed(change)
        );
    }
    assert!(serde_json::from_str::<Value>(KEYLESS).is_ok_and(|bundle| bundle.pointer(entry).is_some()));
}

#[test]
fn keys_and_roots_that_verify_nothing_are_refused() {
    for wrong in ["", "no PEM", "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n"] {
        let signers = own::ImageSigners { public_keys: vec![wrong.into()], certificates: Vec::new() };
        assert!(Signers::parse(&signers).is_err(), "{wrong}");
    }
    let mut root: Value =
        serde_json::from_str(SigstoreInstance::PublicGood.embedded_trusted_root_json()).expect("JSON");
    assert!(TrustedRoot::parse("{}").is_err() && TrustedRoot::parse("no JSON").is_err());
    root["tlogs"] = json!([]);
    root["timestampAuthorities"] = json!([]);
    assert!(TrustedRoot::parse(&root.to_string()).is_err_and(|wrong| wrong.contains("transparency log")));
    root["certificateAuthorities"] = json!([]);
    assert!(TrustedRoot::parse(&root.to_string()).is_err_and(|wrong| wrong.contains("certificate authority")));
}

proptest! {
    #[test]
    fn noise_proves_nothing(noise in prop::collection::vec(any::<u8>(), 0..200), cut in 0..KEYLESS.trim_end().len()) {
        let (signers, root) = keyless();
        let signers = parsed(&signers);
        let about_it = BTreeSet::from([KEYLESS_DIGEST.to_owned()]);
        for document in [
            SignedDocument::Envelope(noise.clone()),
            SignedDocument::Bundle(noise.clone()),
            SignedDocument::Payload(noise.clone(), STANDARD.encode(&noise)),
            SignedDocument::Bundle(KEYLESS.as_bytes()[..cut].to_vec()),
        ] {
            prop_assert!(verify(&document, &signers, Some(&root), &about_it).is_err());
        }
    }
}
