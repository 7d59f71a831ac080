//! Exports that are one file for many artifacts: a security database, and records in OSV shape.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufWriter, Write as _};

use bowline_feeds::{Advisory, Artifact, Osv, Problems, Secdb, ZipWriter};

use super::tree::Tree;
use crate::error::CliError;

const DATABASE: &str = "security.json";

/// A security database, written as its packages come.
pub(super) struct Database {
    file: BufWriter<File>,
    is_first: bool,
}

impl Database {
    pub(super) fn new(tree: &Tree, head: &Secdb) -> Result<Database, CliError> {
        let mut file = tree.create(DATABASE)?;
        file.write_all(&head.begin()).map_err(|source| tree.failed(DATABASE, source))?;
        Ok(Database { file, is_first: true })
    }

    pub(super) fn add(
        &mut self,
        tree: &Tree,
        artifact: &Artifact,
        advisories: &[Advisory],
        problems: &mut Problems,
    ) -> Result<(), CliError> {
        let Some(entry) = Secdb::entry(&artifact.name, advisories, problems) else {
            return Ok(());
        };
        let before: &[u8] = if std::mem::take(&mut self.is_first) { b"\n" } else { b",\n" };
        let written = self.file.write_all(before).and_then(|()| self.file.write_all(&entry));
        written.map_err(|source| tree.failed(DATABASE, source))
    }

    pub(super) fn finish(mut self, tree: &Tree) -> Result<(), CliError> {
        let written = self.file.write_all(&Secdb::end()).and_then(|()| self.file.flush());
        written.map_err(|source| tree.failed(DATABASE, source))
    }
}

/// Records, in an archive for each ecosystem.
pub(super) struct Records {
    osv: Osv,
    archives: BTreeMap<String, Archive>,
}

struct Archive {
    path: String,
    zip: ZipWriter<BufWriter<File>>,
    /// When each record changed, and its id.
    index: Vec<(String, String)>,
}

/// An ecosystem's name as that of a directory.
fn directory(ecosystem: &str) -> String {
    ecosystem.chars().map(|c| if c.is_alphanumeric() || ".-: ".contains(c) { c } else { '_' }).collect()
}

impl Records {
    pub(super) fn new(osv: Osv) -> Records {
        Records { osv, archives: BTreeMap::new() }
    }

    pub(super) fn add(
        &mut self,
        tree: &Tree,
        advisories: &[Advisory],
        problems: &mut Problems,
    ) -> Result<(), CliError> {
        for advisory in advisories {
            let Some(record) = self.osv.record(advisory, problems) else {
                continue;
            };
            let directory = directory(&record.ecosystem);
            if !self.archives.contains_key(&record.ecosystem) {
                let path = format!("{directory}/all.zip");
                let zip = ZipWriter::new(tree.create(&path)?);
                self.archives.insert(record.ecosystem.clone(), Archive { path, zip, index: Vec::new() });
            }
            let name = format!("{}.json", record.id);
            tree.write(&format!("{directory}/{name}"), &record.bytes)?;
            if let Some(archive) = self.archives.get_mut(&record.ecosystem) {
                archive.zip.add(&name, &record.bytes).map_err(|source| tree.failed(&archive.path, source))?;
                archive.index.push((record.modified, record.id));
            }
        }
        Ok(())
    }

    pub(super) fn finish(self, tree: &Tree) -> Result<(), CliError> {
        let mut ecosystems = String::new();
        for (ecosystem, mut archive) in self.archives {
            archive.zip.finish().map_err(|source| tree.failed(&archive.path, source))?;
            // The newest first, so that a reader stops at the first that it knows.
            archive.index.sort_by(|left, right| right.cmp(left));
            let lines =
                archive.index.iter().fold(String::new(), |text, (modified, id)| text + &format!("{modified},{id}\n"));
            tree.write(&format!("{}/modified_id.csv", directory(&ecosystem)), lines.as_bytes())?;
            ecosystems.push_str(&format!("{ecosystem}\n"));
        }
        tree.write("ecosystems.txt", ecosystems.as_bytes())
    }
}
