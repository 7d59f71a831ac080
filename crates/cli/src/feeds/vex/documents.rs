//! Exports that are a document for each artifact, and the indexes that readers find them by.

use std::fs::File;
use std::io::BufWriter;

use aws_lc_rs::digest;
use bowline_core::rfc3339::{self, Digits};
use bowline_feeds::{Advisory, Artifact, Document, Problems, Publisher, WriteFormat, ZipWriter};
use serde_json::{Value, json};

use super::tree::Tree;
use crate::error::CliError;

/// Documents that are written, and what their index says.
pub(super) struct Documents {
    format: WriteFormat,
    publisher: Publisher,
    listed: Vec<Listed>,
    archive: Option<ZipWriter<BufWriter<File>>>,
}

struct Listed {
    path: String,
    changed: String,
    purl: String,
}

/// Archive of a repository of statements, as its manifest names it.
const ARCHIVE: &str = "vex-repository.zip";

impl Documents {
    pub(super) fn new(format: WriteFormat, publisher: Publisher) -> Documents {
        Documents { format, publisher, listed: Vec::new(), archive: None }
    }

    pub(super) fn add(
        &mut self,
        tree: &Tree,
        artifact: &Artifact,
        advisories: &[Advisory],
        problems: &mut Problems,
    ) -> Result<(), CliError> {
        let written = bowline_feeds::write(self.format, artifact, advisories, &self.publisher, problems);
        let Some(Document { path, bytes, changed, purl }) = written else {
            return Ok(());
        };
        tree.write(&path, &bytes)?;
        match self.format {
            WriteFormat::Csaf => {
                for (algorithm, extension) in [(&digest::SHA256, "sha256"), (&digest::SHA512, "sha512")] {
                    let name = path.rsplit('/').next().unwrap_or_default();
                    let sum = digest::digest(algorithm, &bytes);
                    let hex = sum.as_ref().iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"));
                    tree.write(&format!("{path}.{extension}"), format!("{hex}  {name}\n").as_bytes())?;
                }
            }
            WriteFormat::OpenVex => self.archive(tree, &path, &bytes)?,
            WriteFormat::CycloneDx | WriteFormat::Yaml => {}
        }
        self.listed.push(Listed { path, changed, purl });
        Ok(())
    }

    fn archive(&mut self, tree: &Tree, path: &str, bytes: &[u8]) -> Result<(), CliError> {
        if self.archive.is_none() {
            self.archive = Some(ZipWriter::new(tree.create(ARCHIVE)?));
        }
        let Some(archive) = &mut self.archive else {
            return Ok(());
        };
        archive.add(path, bytes).map_err(|source| tree.failed(ARCHIVE, source))
    }

    pub(super) fn finish(mut self, tree: &Tree) -> Result<(), CliError> {
        match self.format {
            WriteFormat::Csaf => self.csaf(tree),
            WriteFormat::OpenVex => self.openvex(tree),
            WriteFormat::CycloneDx | WriteFormat::Yaml => Ok(()),
        }
    }

    fn last_change(&self) -> String {
        self.listed.iter().map(|one| one.changed.clone()).max().unwrap_or_else(|| rfc3339::text(0, Digits::Fewest))
    }

    /// The two lists that CSAF consumers request, and the provider's metadata.
    fn csaf(&mut self, tree: &Tree) -> Result<(), CliError> {
        self.listed.sort_by(|left, right| left.path.cmp(&right.path));
        let index = self.listed.iter().fold(String::new(), |text, one| text + &one.path + "\n");
        tree.write("index.txt", index.as_bytes())?;
        // The newest first.
        let mut changes: Vec<&Listed> = self.listed.iter().collect();
        changes.sort_by(|left, right| (&right.changed, &left.path).cmp(&(&left.changed, &right.path)));
        let line = |one: &&Listed| format!("\"{}\",\"{}\"\n", one.path, one.changed);
        let changes = changes.iter().fold(String::new(), |text, one| text + &line(one));
        tree.write("changes.csv", changes.as_bytes())?;
        let namespace = &self.publisher.namespace;
        let provider = json!({
            "canonical_url": format!("{namespace}/provider-metadata.json"),
            "distributions": [{ "directory_url": format!("{namespace}/") }],
            "last_updated": self.last_change(),
            "list_on_CSAF_aggregators": false,
            "metadata_version": "2.0",
            "mirror_on_CSAF_aggregators": false,
            "publisher": { "category": "vendor", "name": self.publisher.name, "namespace": namespace },
            "role": "csaf_publisher",
        });
        write_json(tree, "provider-metadata.json", &provider)
    }

    /// The index that feeds of such documents have, and the manifest and archive that Trivy fetches.
    fn openvex(&mut self, tree: &Tree) -> Result<(), CliError> {
        let listed = &self.listed;
        let entries: Vec<Value> = listed.iter().map(|one| json!({ "id": one.path, "modified": one.changed })).collect();
        write_json(tree, "all.json", &json!({ "version": 1, "entries": entries }))?;
        let packages: Vec<Value> =
            listed.iter().map(|one| json!({ "id": one.purl, "location": one.path, "format": "openvex" })).collect();
        let index = json!({ "updated_at": self.last_change(), "packages": packages });
        write_json(tree, "index.json", &index)?;
        self.archive(tree, "index.json", &to_json(&index)?)?;
        if let Some(archive) = self.archive.take() {
            archive.finish().map_err(|source| tree.failed(ARCHIVE, source))?;
        }
        let namespace = &self.publisher.namespace;
        let version = json!({
            "spec_version": "0.1",
            "locations": [{ "url": format!("{namespace}/{ARCHIVE}") }],
            "update_interval": "24h",
        });
        let manifest = json!({
            "name": self.publisher.name,
            "description": format!("Statements about vulnerabilities, by {}", self.publisher.name),
            "versions": [version],
        });
        write_json(tree, ".well-known/vex-repository.json", &manifest)
    }
}

fn to_json(value: &Value) -> Result<Vec<u8>, CliError> {
    let mut bytes = serde_json::to_vec_pretty(value).map_err(|error| CliError::Defect(error.to_string()))?;
    bytes.push(b'\n');
    Ok(bytes)
}

fn write_json(tree: &Tree, path: &str, value: &Value) -> Result<(), CliError> {
    tree.write(path, &to_json(value)?)
}
