use bowline_libraries::hosting::{Manifests, PageBody, VersionSigning, Withheld};

use super::*;

fn sample() -> Packument {
    let version = |version: &str, deprecated: Option<&str>| PackumentVersion {
        version: version.into(),
        file: format!("b-{version}.tgz"),
        integrity: "sha512-x".into(),
        is_as_described: version != "1.1.0",
        published_at: None,
        deprecated: deprecated.map(str::to_owned),
        provenance: deprecated.map(|_| "https://slsa.dev/provenance/v1".to_owned()).unwrap_or_default(),
    };
    let manifest = |version: &str| UpstreamManifest {
        version: version.into(),
        manifest: json!({
            "name": "@a/b", "version": version, "license": "MIT", "description": "A package.", "homepage": "h",
            "dependencies": { "c": "^1.0.0" }, "bin": { "b": "b.js" }, "deprecated": "no longer", "dist": 7,
        })
        .to_string(),
        sha1: "ab".into(),
        file_count: 2,
        unpacked_bytes: 0,
        signatures: "[{\"keyid\":\"k\",\"sig\":\"x\"}]".into(),
        own_signature: None,
    };
    let withheld = Withheld {
        purl: "pkg:npm/%40a/b@2.0.0".into(),
        policy: "p".into(),
        reason: "BLOCK_LIST",
        sentence: "Blocked by policy p: b 2".into(),
    };
    Packument {
        name: "@a/b".into(),
        versions: vec![version("1.0.0", Some("use 1.1.0")), version("1.1.0", None)],
        withheld: vec![("2.0.0".into(), withheld.clone())],
        tags: [("latest".to_owned(), "1.1.0".to_owned())].into(),
        times: vec![("1.0.0".into(), 1_700_000_000_000_000), ("2.0.0".into(), 1_700_000_001_000_000)],
        modified_at: Some(1_700_000_001_000_000),
        hidden_latest: Some(withheld),
        changes_at: None,
        manifests: Manifests::Hosted(["2.0.0", "1.0.0", "1.1.0"].map(manifest).into()),
        signing: VersionSigning::default(),
    }
}

fn parsed(form: Form) -> Value {
    let mut text = Vec::new();
    write(&mut text, &sample(), form, "https://x/javascript", Map::new()).expect("a document");
    serde_json::from_slice(&text).expect("JSON")
}

#[test]
fn a_whole_document() {
    let document = parsed(Form::Full);
    let version = &document["versions"]["1.0.0"];
    assert_eq!(
        (&document["_id"], &document["name"], &document["license"]),
        (&json!("@a/b"), &json!("@a/b"), &json!("MIT"))
    );
    assert_eq!(document["dist-tags"], json!({ "latest": "1.1.0" }));
    assert_eq!(document["time"]["created"], "2023-11-14T22:13:20Z");
    assert_eq!(
        (&document["time"]["2.0.0"], &document["modified"]),
        (&json!("2023-11-14T22:13:21Z"), &json!("2023-11-14T22:13:21Z"))
    );
    assert_eq!(version["dist"]["tarball"], "https://x/javascript/@a/b/-/b-1.0.0.tgz");
    assert_eq!((&version["dist"]["integrity"], &version["dist"]["shasum"]), (&json!("sha512-x"), &json!("ab")));
    assert_eq!(version["dist"].get("signatures"), None, "no list has the key");
    assert_eq!((&version["deprecated"], &version["_id"]), (&json!("use 1.1.0"), &json!("@a/b@1.0.0")));
    let attestations = json!({ "url": "https://x/javascript/-/npm/v1/attestations/@a/b@1.0.0",
                               "provenance": { "predicateType": "https://slsa.dev/provenance/v1" } });
    assert_eq!(version["dist"]["attestations"], attestations);
    assert_eq!((&version["dist"]["fileCount"], version["dist"].get("unpackedSize")), (&json!(2), None));
    let other = &document["versions"]["1.1.0"];
    let of_other_bytes = [other["dist"].get("shasum"), other["dist"].get("signatures")];
    assert_eq!(of_other_bytes, [None, None], "of a file that is not the one of the manifest");
    assert_eq!((other.get("deprecated"), other["dist"].get("attestations")), (None, None));
    assert_eq!(document["versions"].get("2.0.0"), None);
    assert_eq!(document["policyRestrictions"]["message"], "Blocked by policy p: b 2");
    assert_eq!(document["policyRestrictions"]["versions"]["2.0.0"]["version"], "2.0.0");
}

#[test]
fn a_version_alone() {
    let package = sample();
    let text = version(&package, package.version("latest").expect("a version"), "https://x/javascript");
    let shown: Value = serde_json::from_str(&text.expect("JSON")).expect("JSON");
    assert_eq!(shown, parsed(Form::Full)["versions"]["1.1.0"]);
}

#[test]
fn a_version_without_a_manifest_is_no_document() {
    let mut package = sample();
    package.manifests = Manifests::default();
    assert!(rendered(&package, Form::Full, "https://x").is_err());
    package.versions.clear();
    let page = rendered(&package, Form::Full, "https://x").expect("a page");
    let PageBody::Text(text) = page.body else { panic!("it is short") };
    assert_eq!(serde_json::from_slice::<Value>(&text).expect("JSON")["versions"], json!({}));
}

#[test]
fn a_short_document() {
    let document = parsed(Form::Abbreviated);
    let version = &document["versions"]["1.0.0"];
    assert_eq!((document.get("_id"), version.get("homepage"), version.get("license")), (None, None, None));
    assert_eq!(version.get("_id"), None);
    assert_eq!((&version["dependencies"], &version["bin"]), (&json!({ "c": "^1.0.0" }), &json!({ "b": "b.js" })));
    assert!(document["time"]["1.0.0"].is_string() && document["policyRestrictions"].is_object());
    let page = rendered(&sample(), Form::Abbreviated, "https://x").expect("a page");
    assert_eq!(page.notice.as_deref(), Some("latest of @a/b is 1.1.0 here. Blocked by policy p: b 2"));
}

#[test]
fn the_form_is_the_one_that_is_asked_for() {
    let npm = "application/vnd.npm.install-v1+json; q=1.0, application/json; q=0.8, */*";
    for (accept, form) in [(npm, Form::Abbreviated), ("application/json", Form::Full), ("*/*", Form::Full)] {
        let headers = HeaderMap::from_iter([(header::ACCEPT, accept.parse().expect("a value"))]);
        assert_eq!(Form::of(&headers), form, "{accept}");
    }
    assert_eq!(Form::of(&HeaderMap::new()), Form::Full);
}
