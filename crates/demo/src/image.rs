//! Images of a few KiB in the formats of OCI: the same bytes in every run.

use aws_lc_rs::digest::{SHA256, digest};
use bowline_core::{Micros, hex, rfc3339};
use bowline_server::StartError;
use flate2::{Compression, GzBuilder};
use serde_json::{Value, json};
use std::io::Write as _;

use crate::catalog::{Installed, Repository};
use crate::random::Random;

pub(crate) const INDEX: &str = "application/vnd.oci.image.index.v1+json";
pub(crate) const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
const LAYER: &str = "application/vnd.oci.image.layer.v1.tar+gzip";
const SPDX: &str = "application/spdx+json";
const EMPTY: &str = "application/vnd.oci.empty.v1+json";
const BLOCK: usize = 512;

/// Bytes with their media type.
#[derive(Clone, Debug)]
pub(crate) struct Content {
    pub(crate) media_type: &'static str,
    pub(crate) digest: String,
    pub(crate) bytes: Vec<u8>,
}

/// Everything that one release pushes, in an order in which a registry accepts it.
pub(crate) struct Release {
    pub(crate) blobs: Vec<Content>,
    /// Manifests of the platforms.
    pub(crate) manifests: Vec<Content>,
    /// What the tags of the release name.
    pub(crate) index: Content,
    /// The manifest that attaches the SBOM to the index.
    pub(crate) sbom: Content,
}

impl Content {
    fn new(media_type: &'static str, bytes: Vec<u8>) -> Content {
        let digest = format!("sha256:{}", hex(digest(&SHA256, &bytes).as_ref()));
        Content { media_type, digest, bytes }
    }

    fn json(media_type: &'static str, document: &Value) -> Content {
        Content::new(media_type, document.to_string().into_bytes())
    }

    fn descriptor(&self) -> Value {
        json!({ "mediaType": self.media_type, "digest": self.digest, "size": self.bytes.len() })
    }
}

impl Release {
    /// The release of a repository at that time, with these packages.
    pub(crate) fn new(
        repository: &Repository,
        version: &str,
        packages: &[Installed],
        time: Micros,
    ) -> Result<Release, StartError> {
        let created = rfc3339::text(time, rfc3339::Digits::Fewest);
        let (mut blobs, mut manifests, mut entries) = (Vec::new(), Vec::new(), Vec::new());
        for architecture in ["amd64", "arm64"] {
            let base = layer(&base_files(packages, architecture))?;
            let app = layer(&app_files(repository, version, architecture))?;
            let config = config(repository, version, architecture, &created, [&base, &app]);
            let layers = [&base.compressed, &app.compressed].map(Content::descriptor);
            let manifest = Content::json(
                MANIFEST,
                &json!({ "schemaVersion": 2, "mediaType": MANIFEST, "config": config.descriptor(), "layers": layers }),
            );
            let mut entry = manifest.descriptor();
            entry["platform"] = json!({ "architecture": architecture, "os": "linux" });
            entries.push(entry);
            blobs.extend([base.compressed, app.compressed, config]);
            manifests.push(manifest);
        }
        let annotations = json!({
            "org.opencontainers.image.created": created,
            "org.opencontainers.image.version": version,
            "org.opencontainers.image.source": format!("https://github.com/acme/{}", repository.name),
            "org.opencontainers.image.description": repository.description,
        });
        let index = Content::json(
            INDEX,
            &json!({ "schemaVersion": 2, "mediaType": INDEX, "manifests": entries, "annotations": annotations }),
        );
        let document = spdx(repository, version, packages, &created);
        let empty = Content::json(EMPTY, &json!({}));
        let sbom = Content::json(
            MANIFEST,
            &json!({ "schemaVersion": 2, "mediaType": MANIFEST, "artifactType": SPDX, "config": empty.descriptor(),
                "layers": [document.descriptor()], "subject": index.descriptor() }),
        );
        blobs.extend([document, empty]);
        Ok(Release { blobs, manifests, index, sbom })
    }
}

struct Layer {
    compressed: Content,
    /// Digest of the archive as it is before compression.
    diff_id: String,
}

fn layer(files: &[(String, Vec<u8>)]) -> Result<Layer, StartError> {
    let archive = tar(files);
    let diff_id = Content::new(LAYER, archive.clone()).digest;
    let mut encoder = GzBuilder::new().mtime(0).write(Vec::new(), Compression::default());
    let failed = |error: std::io::Error| StartError::Defect(error.to_string());
    encoder.write_all(&archive).map_err(failed)?;
    Ok(Layer { compressed: Content::new(LAYER, encoder.finish().map_err(failed)?), diff_id })
}

fn base_files(packages: &[Installed], architecture: &str) -> Vec<(String, Vec<u8>)> {
    let line = |package: &Installed| format!("P:{}\nV:{}\nA:{architecture}\n\n", package.name, package.version);
    let installed: String = packages.iter().map(line).collect();
    let system = "ID=demo\nNAME=\"Demonstration Linux\"\nVERSION_ID=1\n";
    vec![("etc/os-release".into(), system.as_bytes().to_vec()), ("lib/apk/db/installed".into(), installed.into_bytes())]
}

/// A program that does nothing: bytes that do not compress, so that sizes differ.
fn app_files(repository: &Repository, version: &str, architecture: &str) -> Vec<(String, Vec<u8>)> {
    let mut random = Random::of(&format!("{}/{} {version} {architecture}", repository.group, repository.name));
    let size = random.between(2_000, 12_000) as usize;
    vec![(format!("usr/bin/{}", repository.name), random.bytes(size))]
}

fn config(repository: &Repository, version: &str, architecture: &str, created: &str, layers: [&Layer; 2]) -> Content {
    let program = format!("/usr/bin/{}", repository.name);
    let step = |by: &str| json!({ "created": created, "created_by": by });
    Content::json(
        CONFIG,
        &json!({
            "architecture": architecture,
            "os": "linux",
            "created": created,
            "config": {
                "User": "65532",
                "Entrypoint": [program],
                "Env": ["PATH=/usr/sbin:/usr/bin:/sbin:/bin", "SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt"],
                "ExposedPorts": { "8080/tcp": {} },
                "Labels": {
                    "org.opencontainers.image.title": repository.name,
                    "org.opencontainers.image.version": version,
                },
            },
            "rootfs": { "type": "layers", "diff_ids": layers.map(|layer| layer.diff_id.as_str()) },
            "history": [step("base packages"), step(&format!("COPY {} {program}", repository.name))],
        }),
    )
}

fn spdx(repository: &Repository, version: &str, packages: &[Installed], created: &str) -> Content {
    let name = format!("{}-{version}", repository.name);
    let id = |name: &str| format!("SPDXRef-Package-{name}");
    let listed: Vec<Value> = packages
        .iter()
        .map(|package| {
            json!({
                "SPDXID": id(package.name), "name": package.name, "versionInfo": package.version,
                "licenseDeclared": package.license, "licenseConcluded": package.license,
                "downloadLocation": "NOASSERTION",
                "externalRefs": [{ "referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl",
                    "referenceLocator": package.purl() }],
            })
        })
        .collect();
    let relationships: Vec<Value> = packages
        .iter()
        .map(|package| {
            json!({ "spdxElementId": "SPDXRef-DOCUMENT", "relationshipType": "DESCRIBES",
                "relatedSpdxElement": id(package.name) })
        })
        .collect();
    Content::json(
        SPDX,
        &json!({
            "spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT", "name": name,
            "documentNamespace": format!("https://acme.example/spdx/{}/{name}", repository.group),
            "creationInfo": { "created": created, "creators": ["Tool: bowline-demo", "Organization: Acme"] },
            "packages": listed, "relationships": relationships,
        }),
    )
}

/// A tar archive in the ustar format, whose files have no times.
fn tar(files: &[(String, Vec<u8>)]) -> Vec<u8> {
    let mut archive = Vec::new();
    for (path, bytes) in files {
        let mut header = [0; BLOCK];
        let mut put = |at: usize, text: &str| header[at..at + text.len()].copy_from_slice(text.as_bytes());
        put(0, path);
        put(100, "0000755\0");
        put(108, "0000000\0");
        put(116, "0000000\0");
        put(124, &format!("{:011o}\0", bytes.len()));
        put(136, "00000000000\0");
        // The checksum counts its own field as spaces.
        put(148, "        ");
        put(156, "0");
        put(257, "ustar\x0000");
        let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
        header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        archive.extend_from_slice(&header);
        archive.extend_from_slice(bytes);
        archive.resize(archive.len().next_multiple_of(BLOCK), 0);
    }
    archive.resize(archive.len() + 2 * BLOCK, 0);
    archive
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::REPOSITORIES;

    fn release() -> Release {
        let repository = &REPOSITORIES[0];
        Release::new(repository, "1.0.0", &repository.installed(0), 1_700_000_000_000_000).expect("an image is made")
    }

    #[test]
    fn a_release_has_the_same_bytes_every_time_and_names_only_what_it_pushes() {
        let (one, other) = (release(), release());
        assert_eq!(one.sbom.digest, other.sbom.digest);
        let index: Value = serde_json::from_slice(&one.index.bytes).expect("JSON");
        let named: Vec<&str> = index["manifests"]
            .as_array()
            .expect("a list")
            .iter()
            .filter_map(|manifest| manifest["digest"].as_str())
            .collect();
        assert_eq!(named, one.manifests.iter().map(|manifest| manifest.digest.as_str()).collect::<Vec<_>>());
        for manifest in one.manifests.iter().chain([&one.sbom]) {
            let manifest: Value = serde_json::from_slice(&manifest.bytes).expect("JSON");
            let layers = manifest["layers"].as_array().expect("a list");
            for blob in layers.iter().chain([&manifest["config"]]) {
                let pushed = one.blobs.iter().find(|pushed| blob["digest"] == pushed.digest.as_str());
                assert_eq!(blob["size"], pushed.expect("a blob that is pushed").bytes.len());
            }
        }
        let sbom: Value = serde_json::from_slice(&one.sbom.bytes).expect("JSON");
        assert_eq!(sbom["subject"]["digest"], one.index.digest.as_str());
    }

    #[test]
    fn an_archive_has_whole_blocks_and_right_checksums() {
        let archive = tar(&[("a/b".into(), b"text".to_vec())]);
        assert_eq!(archive.len(), 4 * BLOCK, "a header, a file, and two blocks at the end");
        let field = std::str::from_utf8(&archive[148..154]).expect("digits");
        let stored = u32::from_str_radix(field, 8).expect("octal digits");
        let sum: u32 = archive[..BLOCK].iter().map(|byte| u32::from(*byte)).sum();
        let of_field: u32 = archive[148..156].iter().map(|byte| u32::from(*byte)).sum();
        assert_eq!(stored, sum - of_field + 8 * u32::from(b' '));
        assert_eq!(&archive[BLOCK..BLOCK + 4], b"text");
    }
}
