//! Documents of packages, whole or with what installers need alone.

use std::collections::BTreeMap;
use std::io::Write;

use axum::http::{HeaderMap, header};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bowline_core::rfc3339::{self, Digits};
use bowline_core::{Error, Micros, Result};
use bowline_libraries::hosting::{
    CertifiedSigner, FileAttestation, ListedKey, OwnPackument, Packument, PackumentVersion, RenderedPage,
    UpstreamManifest, VersionSignature,
};
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::answers::Refused;
use crate::pages::PageWriter;

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
    let mut writer = PageWriter::new();
    write(&mut writer, package, form, base, Map::new())?;
    Ok(RenderedPage { notice, ..writer.page()? })
}

/// The whole document for those who change it.
pub(super) fn own(own: &OwnPackument, base: &str) -> Result<Vec<u8>> {
    let revision = Map::from_iter([("_rev".to_owned(), json!(own.revision))]);
    let mut text = Vec::new();
    write(&mut text, &own.packument, Form::Full, base, revision)?;
    Ok(text)
}

/// Writes a document: one version after the other, since all of them together may be large.
fn write(
    writer: &mut impl Write,
    package: &Packument,
    form: Form,
    base: &str,
    mut head: Map<String, Value>,
) -> Result<()> {
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
    }
    let mut part = Value::Object(head).to_string().into_bytes();
    part.pop();
    part.extend(b",\"versions\":{");
    let latest = package.tags.get("latest").map(String::as_str).filter(|_| form == Form::Full);
    let (mut of_latest, mut is_first) = (Map::new(), true);
    package.each_version(|version, manifest| {
        if !std::mem::take(&mut is_first) {
            part.push(b',');
        }
        serde_json::to_writer(&mut part, &version.version).map_err(Error::internal)?;
        part.push(b':');
        let shown = shown(package, (version, manifest), form, base)?;
        serde_json::to_writer(&mut part, &shown).map_err(Error::internal)?;
        writer.write_all(&part).map_err(Error::internal)?;
        part.clear();
        if latest == Some(&version.version) {
            of_latest = about_package(manifest)?;
        }
        Ok(())
    })?;
    part.push(b'}');
    let about = Value::Object(of_latest).to_string();
    match about.strip_prefix('{') {
        Some(members) if members != "}" => part.extend(format!(",{members}").bytes()),
        _ => part.push(b'}'),
    }
    writer.write_all(&part).map_err(Error::internal)
}

/// What a whole document says of the package itself, as its latest version does.
fn about_package(latest: &UpstreamManifest) -> Result<Map<String, Value>> {
    let members: Map<String, Value> = serde_json::from_str(&latest.manifest).map_err(|error| damaged(latest, error))?;
    let about = ["author", "bugs", "description", "homepage", "keywords", "license", "repository"];
    Ok(members.into_iter().filter(|(member, _)| about.contains(&member.as_str())).collect())
}

/// A version as documents show it: members of its manifest as they were written, and what this host says of it.
#[derive(Serialize)]
struct ShownVersion<'a> {
    #[serde(flatten)]
    members: BTreeMap<&'a str, &'a RawValue>,
    name: &'a str,
    version: &'a str,
    #[serde(rename = "_id", skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    deprecated: Option<&'a str>,
    dist: Dist<'a>,
}

/// What is said of the file of a version.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Dist<'a> {
    tarball: String,
    integrity: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    shasum: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    file_count: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    unpacked_size: Option<i64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    signatures: Vec<ShownSignature>,
    #[serde(skip_serializing_if = "Option::is_none")]
    attestations: Option<Value>,
}

/// A signature of name, version and integrity.
#[derive(Serialize)]
struct ShownSignature {
    keyid: String,
    sig: String,
}

fn shown<'a>(
    package: &'a Packument,
    (version, manifest): (&'a PackumentVersion, &'a UpstreamManifest),
    form: Form,
    base: &str,
) -> Result<ShownVersion<'a>> {
    let parsed = serde_json::from_str(&manifest.manifest);
    let mut members: BTreeMap<&str, &RawValue> = parsed.map_err(|error| damaged(manifest, error))?;
    members.retain(|member, _| {
        let is_said_here = ["name", "version", "_id", "deprecated", "dist"].contains(member);
        !is_said_here && (form == Form::Full || INSTALLED_BY.contains(member))
    });
    let (name, number) = (&package.name, &version.version);
    let signatures = package.signatures(version, manifest)?.into_iter();
    let attestations = (!version.provenance.is_empty()).then(|| {
        json!({
            "url": format!("{base}/-/npm/v1/attestations/{name}@{number}"),
            "provenance": { "predicateType": version.provenance },
        })
    });
    let known = |number: i64| Some(number).filter(|number| *number > 0);
    let dist = Dist {
        tarball: format!("{base}/{name}/-/{}", version.file),
        integrity: &version.integrity,
        shasum: if version.is_as_described { &manifest.sha1 } else { "" },
        file_count: known(manifest.file_count),
        unpacked_size: known(manifest.unpacked_bytes),
        signatures: signatures.map(|VersionSignature { keyid, sig }| ShownSignature { keyid, sig }).collect(),
        attestations,
    };
    let id = (form == Form::Full).then(|| format!("{name}@{number}"));
    Ok(ShownVersion { members, name, version: number, id, deprecated: version.deprecated.as_deref(), dist })
}

/// A version as documents show it, alone.
pub(super) fn version(package: &Packument, named: &PackumentVersion, base: &str) -> Result<String> {
    let mut text = None;
    package.each_version(|version, manifest| {
        if version.version == named.version {
            let shown = shown(package, (version, manifest), Form::Full, base)?;
            text = Some(serde_json::to_string(&shown).map_err(Error::internal)?);
        }
        Ok(())
    })?;
    text.ok_or_else(|| Error::internal(format!("{}@{} was not visited", package.name, named.version)))
}

fn damaged(manifest: &UpstreamManifest, error: serde_json::Error) -> Error {
    Error::internal(format!("the manifest of version {} is damaged: {error}", manifest.version))
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

/// The keys that signatures of versions are verified with.
#[derive(Serialize)]
struct ShownKeys {
    keys: Vec<ShownKey>,
}

/// A key as npm's clients read it.
#[derive(Serialize)]
struct ShownKey {
    expires: Option<String>,
    keyid: String,
    keytype: &'static str,
    scheme: &'static str,
    key: String,
}

/// The type and the scheme of all keys.
pub(super) const KEY_TYPE: &str = "ecdsa-sha2-nistp256";

/// The document of the keys that signatures of versions are verified with.
pub(super) fn keys(keys: Vec<ListedKey>) -> Result<String> {
    let shown = keys.into_iter().map(|ListedKey { keyid, public_key, expires_at }| ShownKey {
        expires: expires_at.map(time),
        keyid,
        keytype: KEY_TYPE,
        scheme: KEY_TYPE,
        key: STANDARD.encode(public_key),
    });
    serde_json::to_string(&ShownKeys { keys: shown.collect() }).map_err(Error::internal)
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
#[path = "documents_tests.rs"]
mod tests;
