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
    let good: Value = serde_json::from_str(&of_npm(&statement("pkg:npm/a@1.0.0", "sha512", &sha512))).expect("JSON");
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

fn provenance(bundles: Value) -> Result<Provenance, String> {
    python_provenance(&json!({ "version": 1, "attestation_bundles": bundles }).to_string(), FILE, &sha256())
}

#[test]
fn the_provenance_of_an_index_is_about_the_very_file_and_its_publishers_claim_nothing() {
    let good = of_python(&statement(FILE, "sha256", &sha256()));
    let publisher = json!({ "kind": "GitHub", "repository": "acme/app", "claims": { "identity": "forged" } });
    let read = provenance(json!([
        { "publisher": publisher, "attestations": [good] },
        { "publisher": "none", "attestations": [good] },
    ]));
    let read = read.expect("a provenance");
    assert_eq!(read.attestations.len(), 2, "two publishers may attest the same");
    let document: Value = serde_json::from_str(&read.document).expect("JSON");
    let bundles = &document["attestation_bundles"];
    assert_eq!(bundles[0]["publisher"], json!({ "kind": "GitHub", "repository": "acme/app", "claims": null }));
    assert_eq!((&bundles[1]["publisher"], &bundles[0]["attestations"]), (&json!({ "claims": null }), &json!([good])));
    let other = of_python(&statement(FILE, "sha256", &"cd".repeat(32)));
    let of = |attestations: Value| provenance(json!([{ "publisher": {}, "attestations": attestations }]));
    for (refused, why) in [
        (of(json!([good, other])), "attestation 2 is about other bytes"),
        (of(json!(vec![&good; 11])), "more than 10"),
        (of(json!([])), "has no attestation"),
        (of(json!({})), "has no attestations"),
        (provenance(json!([])), "has no attestation"),
        (provenance(json!({})), "no provenance of version 1"),
        (python_provenance("{", FILE, &sha256()), "is no JSON"),
        (python_provenance("[]", FILE, &sha256()), "no provenance of version 1"),
        (python_provenance("{\"version\":2,\"attestation_bundles\":[]}", FILE, &sha256()), "version 1"),
    ] {
        assert!(refused.as_ref().is_err_and(|error| error.contains(why)), "{why}: {refused:?}");
    }
}

#[test]
fn the_statements_of_a_registry_are_about_the_very_version() {
    let sha512 = "ef".repeat(64);
    let bundle =
        |name: &str| -> Value { serde_json::from_str(&of_npm(&statement(name, "sha512", &sha512))).expect("JSON") };
    let of = |bundles: &[Value]| {
        let attestations: Vec<Value> = bundles.iter().map(|bundle| json!({ "bundle": bundle })).collect();
        npm_attestations(&json!({ "attestations": attestations }).to_string(), "@acme/app", "1.0.0", &sha512)
    };
    let (good, mut by_key) = (bundle("pkg:npm/%40acme/app@1.0.0"), bundle("pkg:npm/%40acme/app@1.0.0"));
    by_key["verificationMaterial"] = json!({ "publicKey": { "hint": "SHA256:x" } });
    let read = of(&[good.clone(), by_key]).expect("statements");
    assert_eq!(read.iter().map(|one| one.is_certified).collect::<Vec<_>>(), [true, false]);
    assert_eq!(read[0].predicate_type, PROVENANCE);
    for (refused, why) in [
        (of(&[good.clone(), bundle("pkg:npm/%40acme/app@1.0.1")]), "attestation 2 is not about"),
        (of(&[]), "not between 1 and 10"),
        (of(&vec![good; 11]), "not between 1 and 10"),
        (of(&[json!(null)]), "attestation 1 must have the bundle as an object"),
        (npm_attestations("<html>", "a", "1.0.0", &sha512), "is no JSON"),
        (npm_attestations("[]", "a", "1.0.0", &sha512), "not between 1 and 10"),
    ] {
        assert!(refused.as_ref().is_err_and(|error| error.contains(why)), "{why}: {refused:?}");
    }
}
