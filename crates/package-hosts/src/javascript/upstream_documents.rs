//! Documents of packages at other registries: requested, and read.
//!
//! Of a document only versions count whose file can be pinned: with a SHA-512, and with an address. They are read one after
//! the other, since all of them together may be large.

use std::fmt;

use axum::http::header;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bowline_core::{hex, rfc3339};
use bowline_libraries::hosting::{
    Answer, Ask, NewDocument, OwnSignature, PackedManifests, SIGNING_KEYS, UpstreamDocument, UpstreamFile,
    UpstreamManifest, UpstreamManifests,
};
use bowline_pipeline::Lease;
use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use url::Url;

use super::objects::Texts;
use super::upstream_keys;
use crate::PackageHosts;
use crate::fetching::{self, line, text_of};

/// Whole documents: the short ones do not say when versions were published, which cooldowns need.
const ACCEPT: &str = "application/json";
/// Maximum number of versions, of times beside them, and of tags of a document; bytes of a version.
const VERSIONS: usize = 100_000;
const TIMES: usize = VERSIONS + 10;
const TAGS: usize = 1000;
const VERSION: usize = 1 << 20;
/// Maximum bytes and versions of a document that is signed without a turn.
const SHORT: usize = 1 << 20;
const FEW: usize = 500;
/// Characters of the kind of a statement.
const PREDICATE_TYPE: usize = 256;
/// How the version ends that the public registry leaves in place of a malicious package.
const HELD: &str = "-security";

/// What the upstream answers.
pub(crate) async fn answer(hosts: &PackageHosts, ask: &Ask) -> Result<Answer, String> {
    if ask.package == SIGNING_KEYS {
        return upstream_keys::answer(hosts, ask).await;
    }
    let base = ask.upstream.url.trim_end_matches('/');
    let address = format!("{base}/{}", ask.package.replace('/', "%2f"));
    let (opened, url) = match fetching::requested_page(hosts, ask, (&address, ACCEPT)).await? {
        Ok(opened) => opened,
        Err(answer) => return Ok(answer),
    };
    let (etag, last_modified) = (text_of(&opened, header::ETAG), text_of(&opened, header::LAST_MODIFIED));
    let body = fetching::page(opened).await?;
    let package = ask.package.clone();
    // Turns for archives, which publishers of all organizations wait for, are for reading alone.
    let mut signing = None;
    if body.len() > SHORT {
        // Before it is read, so that few long ones are in memory.
        signing = Some(turn_to_sign(hosts, ask).await?);
    }
    let turn = hosts.archives.clone().acquire_owned().await.map_err(|error| error.to_string())?;
    let reading = tokio::task::spawn_blocking(move || {
        let _turn = turn;
        read(&body, &url, &package)
    });
    let (read, manifests) = reading.await.map_err(|error| error.to_string())??;
    if signing.is_none() && manifests.len() > FEW {
        signing = Some(turn_to_sign(hosts, ask).await?);
    }
    let signer = hosts.hosting.document_signer(ask).await.map_err(|error| error.to_string())?;
    let packing = tokio::task::spawn_blocking(move || {
        let _signing = signing;
        signed(read, manifests, |version, sha512| signer.sign(version, sha512).map(Some))
    });
    let read = packing.await.map_err(|error| error.to_string())??;
    Ok(Answer::Document(Box::new(NewDocument { etag, last_modified, ..read })))
}

/// A turn to sign a document with many versions: trees of hundreds of packages have short ones, which do not wait for each other.
async fn turn_to_sign(hosts: &PackageHosts, ask: &Ask) -> Result<Lease<String>, String> {
    fetching::waited(hosts.signing_turns(), ask.upstream.organization()).await.map_err(|why| why.to_string())
}

#[derive(Deserialize)]
struct Document {
    #[serde(default)]
    name: String,
    #[serde(default, rename = "dist-tags")]
    tags: Texts<TAGS>,
    #[serde(default)]
    time: Texts<TIMES>,
    #[serde(default)]
    versions: Versions,
}

/// The versions that can be used, read one by one.
#[derive(Default)]
struct Versions(Vec<(UpstreamFile, UpstreamManifest)>);

impl<'de> Deserialize<'de> for Versions {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Versions, D::Error> {
        struct Reader;

        impl<'de> Visitor<'de> for Reader {
            type Value = Versions;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("versions by their numbers")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Versions, A::Error> {
                let mut versions = Vec::new();
                while let Some(version) = map.next_key::<String>()? {
                    if versions.len() >= VERSIONS {
                        map.next_value::<IgnoredAny>()?;
                        continue;
                    }
                    let manifest = map.next_value::<&RawValue>()?.get();
                    if manifest.len() <= VERSION
                        && let Ok(manifest) = serde_json::from_str(manifest)
                    {
                        versions.extend(usable(&version, &manifest));
                    }
                }
                Ok(Versions(versions))
            }
        }

        deserializer.deserialize_map(Reader)
    }
}

/// A version with its file, whose name is not set yet; absent if it cannot be pinned.
fn usable(version: &str, manifest: &Map<String, Value>) -> Option<(UpstreamFile, UpstreamManifest)> {
    let dist = manifest.get("dist")?;
    let text = |member: &str| dist.get(member).and_then(Value::as_str).unwrap_or_default();
    let number =
        |member: &str| dist.get(member).and_then(Value::as_i64).filter(|number| *number > 0).unwrap_or_default();
    let is_version = version.len() <= 128 && semver::Version::parse(version).is_ok();
    let sha512 = sha512(text("integrity")).filter(|_| is_version && !text("tarball").is_empty())?;
    let (json, license) = match bowline_packages::described(manifest) {
        Ok(described) => described,
        Err(refusal) => {
            tracing::info!(version, %refusal, "a version of an upstream is left out");
            return None;
        }
    };
    let (is_deprecated, warning) = match manifest.get("deprecated") {
        Some(Value::String(warning)) => (!warning.is_empty(), line(warning)),
        Some(Value::Bool(true)) => (true, "This version is deprecated.".into()),
        _ => (false, String::new()),
    };
    let file = UpstreamFile {
        version: version.to_owned(),
        url: text("tarball").to_owned(),
        sha512: hex(&sha512),
        license,
        yanked: is_deprecated,
        yanked_reason: warning,
        provenance_type: provenance_type(dist),
        ..UpstreamFile::default()
    };
    let manifest = UpstreamManifest {
        version: version.to_owned(),
        manifest: json,
        sha1: Some(text("shasum")).filter(|text| is_sha1(text)).unwrap_or_default().to_owned(),
        file_count: number("fileCount"),
        unpacked_bytes: number("unpackedSize"),
        signatures: signatures(dist, &sha512),
        own_signature: None,
    };
    Some((file, manifest))
}

/// The kind of provenance that an upstream says to have; empty if it says nothing that names a kind.
fn provenance_type(dist: &Value) -> String {
    let attestations = &dist["attestations"];
    let kind = attestations["provenance"]["predicateType"].as_str().unwrap_or_default();
    let is_plain = kind.len() <= PREDICATE_TYPE && kind.bytes().all(|byte| byte.is_ascii_graphic());
    if is_plain && attestations["url"].is_string() { kind.to_owned() } else { String::new() }
}

fn is_sha1(text: &str) -> bool {
    text.len() == 40 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// The SHA-512 of an integrity, which may list several digests.
fn sha512(integrity: &str) -> Option<Vec<u8>> {
    let digest = integrity.split_ascii_whitespace().find_map(|digest| digest.strip_prefix("sha512-"))?;
    STANDARD.decode(digest.split('?').next()?).ok().filter(|bytes| bytes.len() == 64)
}

/// The signatures of a version as JSON; empty without. They are of the whole integrity: clients see the SHA-512 alone, so of
/// one with more they cannot be verified here.
fn signatures(dist: &Value, sha512: &[u8]) -> String {
    let is_of_it = dist.get("integrity").is_some_and(|text| *text == format!("sha512-{}", STANDARD.encode(sha512)));
    let signatures = dist.get("signatures").filter(|value| is_of_it && value.is_array());
    signatures.map(Value::to_string).unwrap_or_default()
}

/// What a document says of a package, and of its versions one for each file.
fn read(body: &[u8], base: &Url, package: &str) -> Result<(NewDocument, Vec<UpstreamManifest>), String> {
    let document: Document =
        serde_json::from_slice(body).map_err(|error| format!("the document does not parse: {error}"))?;
    if document.name != package {
        return Err(format!("the document is of {}", line(&document.name)));
    }
    let time = |member: &str| document.time.0.get(member).and_then(|at| rfc3339::parse_micros(at)).unwrap_or_default();
    let is_held = matches!(document.versions.0.as_slice(), [(only, _)] if only.version.ends_with(HELD));
    let mut new = NewDocument {
        serial: time("modified"),
        is_quarantined: is_held || document.time.0.contains_key("unpublished"),
        ..NewDocument::default()
    };
    let unscoped = package.rsplit('/').next().unwrap_or(package);
    let tags = document.tags.0.into_iter().filter(|(_, version)| !version.is_empty()).collect();
    let (mut files, mut manifests) = (Vec::new(), Vec::new());
    for (file, manifest) in document.versions.0 {
        let Some(url) = address(&file.url, base) else { continue };
        let upload_micros = time(&file.version).max(0);
        let name = format!("{unscoped}-{}.tgz", file.version);
        manifests.push(manifest);
        files.push(UpstreamFile { name, url, upload_micros, ..file });
    }
    new.document = UpstreamDocument { files, tags, ..UpstreamDocument::default() };
    Ok((new, manifests))
}

/// A document with what is said of its versions, each of which is signed by its SHA-512 in hex.
fn signed(
    mut new: NewDocument,
    mut manifests: Vec<UpstreamManifest>,
    sign: impl Fn(&str, &str) -> bowline_core::Result<Option<OwnSignature>>,
) -> Result<NewDocument, String> {
    for (manifest, file) in manifests.iter_mut().zip(&new.document.files) {
        manifest.own_signature = sign(&manifest.version, &file.sha512).map_err(|error| error.to_string())?;
    }
    new.manifests = PackedManifests::pack(&UpstreamManifests { manifests }).map_err(|error| error.to_string())?;
    Ok(new)
}

/// The whole address of a file. Registries behind a proxy often write their own with the scheme of the other side.
fn address(text: &str, base: &Url) -> Option<String> {
    let mut url = base.join(text).ok().filter(|url| matches!(url.scheme(), "https" | "http"))?;
    let is_other_scheme = url.host_str() == base.host_str() && url.scheme() == "http" && base.scheme() == "https";
    if is_other_scheme {
        url.set_scheme("https").ok()?;
        url.set_port(base.port()).ok()?;
    }
    Some(url.into())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn base() -> Url {
        Url::parse("https://a.example/npm/@a%2fb").expect("an address")
    }

    fn integrity() -> String {
        format!("sha512-{}", STANDARD.encode([7; 64]))
    }

    fn version(more: Value) -> Value {
        let mut version = json!({
            "name": "@a/b", "license": "MIT", "scripts": { "install": "x" }, "readme": "long", "devDependencies": {},
            "dist": { "tarball": "http://a.example/@a/b/-/odd.tgz", "integrity": integrity(), "fileCount": 3 },
        });
        for (member, value) in more.as_object().expect("an object") {
            version[member] = value.clone();
        }
        version
    }

    #[test]
    fn a_document_has_the_versions_that_can_be_pinned() {
        let of = |dist: Value| version(json!({ "dist": dist }));
        let attestations = json!({ "url": "https://b.example/x", "provenance": { "predicateType": "https://x/v1" } });
        let mut attested = version(json!({}))["dist"].clone();
        attested["attestations"] = attestations.clone();
        let document = json!({
            "name": "@a/b",
            "dist-tags": { "latest": "1.0.0", "bad": 7 },
            "time": { "modified": "2023-11-14T22:13:21Z", "1.0.0": "2023-11-14T22:13:20.000Z", "1.1.0": "x" },
            "versions": {
                "1.0.0": version(json!({ "deprecated": "it\nbroke" })),
                "1.1.0": version(json!({ "dist": attested })),
                "1.2.0": of(json!({ "tarball": "x.tgz", "shasum": "ab" })),
                "1.3.0": of(json!({ "integrity": integrity() })),
                "1.4.0": of(json!({ "tarball": "file:///etc/passwd", "integrity": integrity() })),
                "1.5.0": of(json!({ "tarball": "x.tgz", "integrity": "sha512-YWI=" })),
                "../1": version(json!({})),
                "1.6.0": {},
                "1.7.0": "x",
                "v1.8.0": version(json!({})),
                "1.9": version(json!({})),
            },
        });
        let (new, manifests) = read(document.to_string().as_bytes(), &base(), "@a/b").expect("a document");
        let new = signed(new, manifests, |_, _| Ok(None)).expect("a document");
        let names: Vec<&str> = new.document.files.iter().map(|file| file.name.as_str()).collect();
        assert_eq!(names, ["b-1.0.0.tgz", "b-1.1.0.tgz"]);
        let first = &new.document.files[0];
        assert_eq!((first.url.as_str(), first.license.as_str()), ("https://a.example/@a/b/-/odd.tgz", "MIT"));
        assert_eq!((first.yanked, first.yanked_reason.as_str()), (true, "it broke"));
        assert_eq!((first.upload_micros, new.document.files[1].upload_micros), (1_700_000_000_000_000, 0));
        assert_eq!(first.sha512, hex(&[7; 64]));
        let kinds: Vec<&str> = new.document.files.iter().map(|file| file.provenance_type.as_str()).collect();
        assert_eq!(kinds, ["", "https://x/v1"]);
        for (member, value) in
            [("url", json!(null)), ("provenance", json!(1)), ("provenance", json!({ "predicateType": "a b" }))]
        {
            let mut other = attestations.clone();
            other[member] = value;
            assert_eq!(provenance_type(&json!({ "attestations": other })), "", "{other}");
        }
        let mut manifests = Vec::new();
        let read = new.manifests.each(|manifest| {
            manifests.push(manifest);
            Ok(())
        });
        read.expect("manifests");
        let told: Value = serde_json::from_str(&manifests[0].manifest).expect("JSON");
        assert_eq!(
            (&told["hasInstallScript"], told.get("readme"), told.get("devDependencies")),
            (&json!(true), None, None)
        );
        assert_eq!(new.document.tags, std::collections::BTreeMap::from([("latest".to_owned(), "1.0.0".to_owned())]));
        assert_eq!((new.serial, new.is_quarantined), (1_700_000_001_000_000, false));
    }

    #[test]
    fn what_is_no_document_is_refused() {
        for text in ["{", "[]", "{\"name\":\"other\"}", "{\"name\":\"@a/b\",\"versions\":[]}", "{}"] {
            assert!(read(text.as_bytes(), &base(), "@a/b").is_err(), "{text}");
        }
    }

    #[test]
    fn a_registry_says_what_it_withholds() {
        for (document, wanted) in [
            (json!({ "name": "@a/b", "versions": { "0.0.1-security": version(json!({})) } }), true),
            (json!({ "name": "@a/b", "time": { "unpublished": {} } }), true),
            (json!({ "name": "@a/b", "versions": { "1.0.0": version(json!({})) } }), false),
        ] {
            let (new, _) = read(document.to_string().as_bytes(), &base(), "@a/b").expect("a document");
            assert_eq!(new.is_quarantined, wanted, "{document}");
        }
    }
}
