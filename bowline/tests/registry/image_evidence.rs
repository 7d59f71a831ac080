//! What image policies are about: signatures, attestations, SBOMs and reports of images, and the policies.

use std::collections::BTreeMap;

use aws_lc_rs::encoding::{AsDer, PublicKeyX509Der};
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, KeyPair as _};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bowline_testkit::{Actor, RestReply};
use serde_json::{Value, json};

use crate::documents::{artifact, push};
use crate::support::*;

pub(crate) const PROVENANCE: &str = "https://slsa.dev/provenance/v1";
pub(crate) const PLAIN_SIGNATURE: &str = "application/vnd.dev.cosign.simplesigning.v1+json";
const BUNDLE: &str = "application/vnd.dev.sigstore.bundle.v0.3+json";
const IN_TOTO: &str = "application/vnd.in-toto+json";

/// A key that signs as cosign does.
pub(crate) struct Signer(EcdsaKeyPair);

impl Signer {
    pub(crate) fn new() -> Signer {
        Signer(EcdsaKeyPair::generate(&ECDSA_P256_SHA256_ASN1_SIGNING).expect("a key"))
    }

    pub(crate) fn pem(&self) -> String {
        let der: PublicKeyX509Der<'_> = self.0.public_key().as_der().expect("a public key");
        format!("-----BEGIN PUBLIC KEY-----\n{}\n-----END PUBLIC KEY-----\n", STANDARD.encode(der.as_ref()))
    }

    pub(crate) fn sign(&self, bytes: &[u8]) -> String {
        STANDARD.encode(self.0.sign(&SystemRandom::new(), bytes).expect("a signature").as_ref())
    }

    /// Pushes a plain signature of an image under the tag that cosign gives it.
    pub(crate) async fn sign_image(&self, client: &Client, name: &str, image: &str) -> String {
        let critical = json!({ "identity": { "docker-reference": name }, "image": { "docker-manifest-digest": image },
                               "type": "cosign container image signature" });
        let payload = json!({ "critical": critical, "optional": null }).to_string();
        let mut manifest = artifact(PLAIN_SIGNATURE, payload.as_bytes());
        manifest["layers"][0]["annotations"] =
            json!({ "dev.cosignproject.cosign/signature": self.sign(payload.as_bytes()) });
        let tag = format!("{}.sig", image.replace(':', "-"));
        push(client, name, Some(&tag), &manifest, payload.as_bytes()).await
    }

    /// Pushes a bundle with a statement about an image, as a referrer.
    pub(crate) async fn attest(&self, client: &Client, name: &str, image: &str, predicate_type: &str) -> String {
        let subject = json!([{ "name": name, "digest": { "sha256": image.trim_start_matches("sha256:") } }]);
        let statement = json!({ "_type": "https://in-toto.io/Statement/v1", "subject": subject,
                                "predicateType": predicate_type, "predicate": {} })
        .to_string();
        let signed = format!("DSSEv1 {} {IN_TOTO} {} {statement}", IN_TOTO.len(), statement.len());
        let envelope = json!({ "payloadType": IN_TOTO, "payload": STANDARD.encode(&statement),
                               "signatures": [{ "sig": self.sign(signed.as_bytes()) }] });
        let material = json!({ "publicKey": { "hint": "a key" } });
        let bundle =
            json!({ "mediaType": BUNDLE, "verificationMaterial": material, "dsseEnvelope": envelope }).to_string();
        let mut manifest = artifact(BUNDLE, bundle.as_bytes());
        manifest["config"] = descriptor("application/vnd.oci.empty.v1+json", CONFIG_BYTES);
        manifest["artifactType"] = json!(BUNDLE);
        manifest["subject"] = json!({ "mediaType": IMAGE, "digest": image, "size": 1 });
        push(client, name, None, &manifest, bundle.as_bytes()).await
    }
}

pub(crate) async fn attach_sbom(client: &Client, name: &str, image: &str, license: &str) {
    let component =
        json!({ "type": "library", "name": "thing", "version": "1", "licenses": [{ "expression": license }] });
    let sbom = json!({ "bomFormat": "CycloneDX", "components": [component] }).to_string();
    let mut referrer = artifact("application/vnd.cyclonedx+json", sbom.as_bytes());
    referrer["subject"] = json!({ "mediaType": IMAGE, "digest": image, "size": 1 });
    push(client, name, None, &referrer, sbom.as_bytes()).await;
}

/// Stores a report of Grype with one vulnerability, if a severity is given, that has been fixed since a date.
pub(crate) async fn report(actor: &Actor, repo: &str, image: &str, severity: Option<&str>, since: &str) {
    let found = severity.map(|severity| {
        let fix = json!({ "versions": ["2"], "state": "fixed", "available": [{ "version": "2", "date": since }] });
        json!({ "vulnerability": { "id": "CVE-2026-1", "severity": severity, "fix": fix },
                "artifact": { "name": "openssl", "version": "1", "type": "deb" } })
    });
    let report = json!({ "matches": Vec::from_iter(found) }).to_string();
    let body = json!({ "digest": image, "scanner": "SCANNER_NAME_GRYPE", "report": STANDARD.encode(report) });
    let reply = actor.rest("POST", &format!("/scans/v1/repos/{repo}/reports"), Some(body)).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
}

pub(crate) fn rule(name: &str, mode: &str, requirement: &Value) -> Value {
    let mut rule = json!({ "name": name, "mode": format!("IMAGE_POLICY_MODE_{mode}") });
    rule.as_object_mut().unwrap().extend(requirement.as_object().unwrap().clone());
    rule
}

/// One rule of each kind.
pub(crate) fn all_rules(signer: &Signer) -> Value {
    let signers = json!({ "publicKeys": [signer.pem()] });
    json!([
        rule("signed", "ENFORCE", &json!({ "signature": { "signers": signers } })),
        rule("built", "ENFORCE", &json!({ "attestation": { "predicateType": PROVENANCE, "signers": signers } })),
        rule("fixed", "ENFORCE", &json!({ "vulnerability": { "greatest": "MEDIUM", "fixDays": 7 } })),
        rule("free", "ENFORCE", &json!({ "license": { "denied": ["GPL-3.0-only"] } })),
        rule("fresh", "ENFORCE", &json!({ "age": { "maxDays": 30 } })),
        rule("listed", "LOG", &json!({ "sbom": {} })),
    ])
}

pub(crate) async fn set(actor: &Actor, scope: &str, policy: &Value) -> RestReply {
    actor.rest("PATCH", &format!("/imagepolicies/v1/scopes/{scope}"), Some(policy.clone())).await
}

pub(crate) async fn set_rules(actor: &Actor, scope: &str, rules: &Value) {
    let reply = set(actor, scope, &json!({ "rules": rules })).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
}

/// The results of `CheckPolicies` by rule: mode, result and reason.
pub(crate) async fn check(actor: &Actor, repo: &str, image: &str) -> BTreeMap<String, [String; 3]> {
    let path = format!("/registry/v1/repos/{repo}:checkPolicies");
    let reply = actor.rest("POST", &path, Some(json!({ "digest": image }))).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    let json = reply.json();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let results = json["results"].as_array().cloned().unwrap_or_default();
    let named = results.iter().map(|result| {
        assert_eq!(result["policyId"], result["bindingId"]);
        (
            text(&result["policyName"]),
            ["mode", "result"].map(|member| text(&result[member])),
            text(&result["parameters"]["reason"]),
        )
    });
    named.map(|(name, [mode, result], reason)| (name, [mode, result, reason])).collect()
}
