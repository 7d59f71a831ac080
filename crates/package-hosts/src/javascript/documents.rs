//! Documents of packages, whole or with what installers need alone.

use axum::http::{HeaderMap, header};
use bowline_core::rfc3339::{self, Digits};
use bowline_core::{Error, Micros, Result};
use bowline_libraries::hosting::{
    CertifiedSigner, FileAttestation, OwnPackument, Packument, PackumentVersion, RenderedPage,
};
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::answers::Refused;
use crate::pages;

/// The media type of whole documents.
pub(super) const FULL: &str = "application/json";
/// That of short ones, which clients ask for by it.
const ABBREVIATED: &str = "application/vnd.npm.install-v1+json";
/// Members of a version in a short document.
const INSTALLED_BY: &[&str] = &[
    "name",
    "version",
    "deprecated",
    "dependencies",
    "optionalDependencies",
    "peerDependencies",
    "peerDependenciesMeta",
    "bundleDependencies",
    "bundledDependencies",
    "bin",
    "directories",
    "engines",
    "os",
    "cpu",
    "libc",
    "dist",
    "_hasShrinkwrap",
    "hasInstallScript",
];
/// Withheld versions whose reasons a document gives.
const EXPLAINED: usize = 10;

/// A form of documents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Full,
    Abbreviated,
}

impl Form {
    /// The form that a client asks for.
    pub(super) fn of(headers: &HeaderMap) -> Form {
        let mut accepted = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
        if accepted.any(|value| value.contains(ABBREVIATED)) { Form::Abbreviated } else { Form::Full }
    }

    pub(super) fn content_type(self) -> &'static str {
        match self {
            Form::Full => FULL,
            Form::Abbreviated => ABBREVIATED,
        }
    }
}

/// The document in a form, with addresses of files below `base`.
pub(super) fn rendered(package: &Packument, form: Form, base: &str) -> Result<RenderedPage> {
    let notice = package.hidden_latest.as_ref().map(|withheld| {
        let shown = package.tags.get("latest").map_or("no version", String::as_str);
        format!("latest of {} is {shown} here. {}", package.name, withheld.sentence)
    });
    let page = pages::rendered(document(package, form, base, Map::new())?)?;
    Ok(RenderedPage { notice, ..page })
}

/// The whole document for those who change it.
pub(super) fn own(own: &OwnPackument, base: &str) -> Result<String> {
    let revision = Map::from_iter([("_rev".to_owned(), json!(own.revision))]);
    document(&own.packument, Form::Full, base, revision)
}

fn document(package: &Packument, form: Form, base: &str, mut head: Map<String, Value>) -> Result<String> {
    head.insert("name".into(), json!(package.name));
    head.insert("dist-tags".into(), json!(package.tags));
    // Installers that wait until versions have an age need the times in both forms.
    head.insert("time".into(), times(package).into());
    if let Some(modified_at) = package.modified_at {
        head.insert("modified".into(), json!(time(modified_at)));
    }
    if !package.withheld.is_empty() {
        head.insert("policyRestrictions".into(), restrictions(package));
    }
    if form == Form::Full {
        head.insert("_id".into(), json!(package.name));
        if let Some(latest) = package.tags.get("latest").and_then(|tag| package.version(tag).ok()) {
            let manifest = manifest(latest)?;
            let shown = ["author", "bugs", "description", "homepage", "keywords", "license", "repository"];
            let of_latest = manifest.into_iter().filter(|(member, _)| shown.contains(&member.as_str()));
            head.extend(of_latest);
        }
    }
    // One version after the other: all of them together may be large.
    let mut versions = String::from("{");
    for version_of in &package.versions {
        let mut members = version(package, version_of, base)?;
        if form == Form::Abbreviated {
            members.retain(|member, _| INSTALLED_BY.contains(&member.as_str()));
        }
        let separator = if versions.len() > 1 { "," } else { "" };
        let (key, members) = (json!(version_of.version), Value::Object(members));
        versions.push_str(&format!("{separator}{key}:{members}"));
    }
    let mut text = Value::Object(head).to_string();
    text.pop();
    Ok(format!("{text},\"versions\":{versions}}}}}"))
}

/// A version as documents show it.
pub(super) fn version(package: &Packument, version: &PackumentVersion, base: &str) -> Result<Map<String, Value>> {
    let mut members = manifest(version)?;
    let (name, number) = (&package.name, &version.version);
    members.insert("name".into(), json!(name));
    members.insert("version".into(), json!(number));
    members.insert("_id".into(), json!(format!("{name}@{number}")));
    members.remove("deprecated");
    if let Some(deprecated) = &version.deprecated {
        members.insert("deprecated".into(), json!(deprecated));
    }
    let mut dist = json!({
        "tarball": format!("{base}/{name}/-/{}", version.file),
        "integrity": version.integrity,
    });
    if !version.sha1.is_empty() {
        dist["shasum"] = json!(version.sha1);
    }
    for (member, number) in [("fileCount", version.file_count), ("unpackedSize", version.unpacked_bytes)] {
        if number > 0 {
            dist[member] = json!(number);
        }
    }
    if !version.signatures.is_empty() {
        let damaged = |error| Error::internal(format!("the signatures of {} are damaged: {error}", version.file));
        dist["signatures"] = serde_json::from_str(&version.signatures).map_err(damaged)?;
    }
    if !version.provenance.is_empty() {
        dist["attestations"] = json!({
            "url": format!("{base}/-/npm/v1/attestations/{name}@{number}"),
            "provenance": { "predicateType": version.provenance },
        });
    }
    members.insert("dist".into(), dist);
    Ok(members)
}

/// The statements about a version.
#[derive(Serialize)]
struct Attestations {
    attestations: Vec<ShownAttestation>,
}

/// A statement about a version, as npm shows it, with who signed it where that was verified.
#[derive(Serialize)]
struct ShownAttestation {
    #[serde(rename = "predicateType")]
    predicate_type: String,
    bundle: Box<RawValue>,
    signer: Option<Value>,
}

/// The document of the statements about a version.
pub(super) fn attestations(stored: &[FileAttestation]) -> std::result::Result<String, Refused> {
    let shown = stored.iter().map(|attestation| {
        let signer = attestation.signer.as_ref().map(|CertifiedSigner { identity, issuer, source_repository, .. }| {
            json!({ "identity": identity, "issuer": issuer, "source_repository": source_repository })
        });
        let (predicate_type, bundle) =
            (attestation.predicate_type.clone(), crate::attestations::document(attestation)?);
        Ok(ShownAttestation { predicate_type, bundle, signer })
    });
    let attestations = shown.collect::<std::result::Result<_, Refused>>()?;
    Ok(serde_json::to_string(&Attestations { attestations }).map_err(Error::internal)?)
}

fn manifest(version: &PackumentVersion) -> Result<Map<String, Value>> {
    let damaged = |error| Error::internal(format!("the manifest of {} is damaged: {error}", version.file));
    serde_json::from_str(&version.manifest).map_err(damaged)
}

fn times(package: &Packument) -> Map<String, Value> {
    let mut times: Map<String, Value> =
        package.times.iter().map(|(version, at)| (version.clone(), json!(time(*at)))).collect();
    if let Some(created_at) = package.times.iter().map(|(_, at)| *at).min() {
        times.insert("created".into(), json!(time(created_at)));
    }
    if let Some(modified_at) = package.modified_at {
        times.insert("modified".into(), json!(time(modified_at)));
    }
    times
}

fn time(at: Micros) -> String {
    rfc3339::text(at, Digits::Fewest)
}

/// What npm prints to those for whom no other version is left.
fn restrictions(package: &Packument) -> Value {
    let newest = package.withheld.iter().rev().take(EXPLAINED);
    let mut lines: Vec<&str> = newest.map(|(_, withheld)| withheld.sentence.as_str()).collect();
    let more = package.withheld.len() - lines.len();
    let rest = format!("and {more} more");
    if more > 0 {
        lines.push(&rest);
    }
    let of = |version: &String| (version.clone(), json!({ "name": package.name, "version": version }));
    let versions: Map<String, Value> = package.withheld.iter().map(|(version, _)| of(version)).collect();
    json!({ "message": lines.join("\n"), "versions": versions })
}

#[cfg(test)]
mod tests {
    use bowline_libraries::hosting::Withheld;

    use super::*;

    fn sample() -> Packument {
        let version = |version: &str, deprecated: Option<&str>| PackumentVersion {
            version: version.into(),
            file: format!("b-{version}.tgz"),
            manifest: json!({
                "name": "@a/b", "version": version, "license": "MIT", "description": "A package.", "homepage": "h",
                "dependencies": { "c": "^1.0.0" }, "bin": { "b": "b.js" },
            })
            .to_string(),
            sha1: "ab".into(),
            integrity: "sha512-x".into(),
            file_count: 2,
            unpacked_bytes: 7,
            signatures: "[{\"keyid\":\"k\"}]".into(),
            deprecated: deprecated.map(str::to_owned),
            provenance: deprecated.map(|_| "https://slsa.dev/provenance/v1".to_owned()).unwrap_or_default(),
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
        }
    }

    fn parsed(form: Form) -> Value {
        serde_json::from_str(&document(&sample(), form, "https://x/javascript", Map::new()).expect("a document"))
            .expect("JSON")
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
        assert_eq!(version["dist"]["signatures"], json!([{ "keyid": "k" }]));
        assert_eq!((&version["deprecated"], &version["_id"]), (&json!("use 1.1.0"), &json!("@a/b@1.0.0")));
        let attestations = json!({ "url": "https://x/javascript/-/npm/v1/attestations/@a/b@1.0.0",
                                   "provenance": { "predicateType": "https://slsa.dev/provenance/v1" } });
        assert_eq!(version["dist"]["attestations"], attestations);
        let other = &document["versions"]["1.1.0"];
        assert_eq!((other.get("deprecated"), other["dist"].get("attestations")), (None, None));
        assert_eq!(document["versions"].get("2.0.0"), None);
        assert_eq!(document["policyRestrictions"]["message"], "Blocked by policy p: b 2");
        assert_eq!(document["policyRestrictions"]["versions"]["2.0.0"]["version"], "2.0.0");
    }

    #[test]
    fn a_short_document() {
        let document = parsed(Form::Abbreviated);
        let version = &document["versions"]["1.0.0"];
        assert_eq!((document.get("_id"), version.get("homepage"), version.get("license")), (None, None, None));
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
}
