//! What the database has of the versions that are taken in, and how it gets the rest.

use std::collections::BTreeMap;

use bowline_contract::bowline::libraries::v1::{ImportOutcome, PackageFile, PackageVersion};
use bowline_core::{Micros, Result};
use bowline_resources::list;
use bowline_store::{ReadTx, Row, Sql, Value, WriteTx};
use bowline_versions::{Version, order_key};

use super::Given;

type Key = (String, String, i32);

/// The versions that are known, of those that are given.
pub(super) struct Stored {
    versions: BTreeMap<Key, VersionFacts>,
    files: BTreeMap<Key, BTreeMap<String, PackageFile>>,
}

/// What a version says of itself besides its files.
#[derive(PartialEq)]
struct VersionFacts {
    description: String,
    license: String,
    published_at: Option<Micros>,
    file_count: i64,
    metadata: String,
}

impl VersionFacts {
    fn given(version: &PackageVersion) -> VersionFacts {
        VersionFacts {
            description: version.description.clone(),
            license: version.license.clone(),
            published_at: version.publish_time.map(list::micros),
            file_count: version.npm_file_count,
            metadata: version.npm_manifest.clone(),
        }
    }

    /// What is known, where the import does not say.
    fn joined(&self, known: Option<&VersionFacts>) -> VersionFacts {
        let text = |given: &str, known: Option<&String>| match known {
            Some(known) if given.is_empty() => known.clone(),
            _ => given.to_owned(),
        };
        VersionFacts {
            description: text(&self.description, known.map(|known| &known.description)),
            license: text(&self.license, known.map(|known| &known.license)),
            published_at: self.published_at.or(known.and_then(|known| known.published_at)),
            file_count: if self.file_count == 0 { known.map_or(0, |known| known.file_count) } else { self.file_count },
            metadata: text(&self.metadata, known.map(|known| &known.metadata)),
        }
    }
}

impl Stored {
    /// Two statements for the whole batch.
    pub(super) async fn load(tx: &mut ReadTx, given: &[Given<'_>]) -> Result<Stored> {
        let mut stored = Stored { versions: BTreeMap::new(), files: BTreeMap::new() };
        if given.is_empty() {
            return Ok(stored);
        }
        let sql = among(
            "artifact, version, source, description, license, published_at, file_count, metadata",
            "library_versions",
            given,
        );
        let facts = |row: &Row<'_>| {
            let (published_at, file_count) = (row.opt_int(5)?, row.int(6)?);
            let facts = VersionFacts {
                description: row.text(3)?,
                license: row.text(4)?,
                published_at,
                file_count,
                metadata: row.text(7)?,
            };
            Ok::<_, bowline_core::Error>((key(row)?, facts))
        };
        stored.versions = tx.query(&sql.text, &sql.params, facts).await?.into_iter().collect();
        let sql = among("artifact, version, source, name, size_bytes, sha256, sha512", "library_files", given);
        let file = |row: &Row<'_>| {
            let file =
                PackageFile { name: row.text(3)?, size_bytes: row.int(4)?, sha256: row.text(5)?, sha512: row.text(6)? };
            Ok::<_, bowline_core::Error>((key(row)?, file))
        };
        for (key, file) in tx.query(&sql.text, &sql.params, file).await? {
            stored.files.entry(key).or_default().insert(file.name.clone(), file);
        }
        Ok(stored)
    }

    /// What an import makes of a version.
    pub(super) fn outcome(&self, given: &Given<'_>) -> ImportOutcome {
        let key = owned(given);
        let Some(known) = self.versions.get(&key) else {
            return ImportOutcome::Created;
        };
        let facts = VersionFacts::given(given.version).joined(Some(known));
        let files = self.files.get(&key);
        let is_known =
            |file: &PackageFile| files.and_then(|files| files.get(&file.name)).is_some_and(|known| same(known, file));
        if facts == *known && given.version.files.iter().all(is_known) {
            ImportOutcome::Unchanged
        } else {
            ImportOutcome::Updated
        }
    }

    /// Writes a version and its files. Files that it has and that are not given stay.
    pub(super) async fn write(&self, tx: &mut WriteTx, given: &Given<'_>, now: Micros) -> Result<()> {
        let key = owned(given);
        let mut files = self.files.get(&key).cloned().unwrap_or_default();
        for file in &given.version.files {
            let known = files.get(&file.name);
            if known.is_some_and(|known| same(known, file)) {
                continue;
            }
            write_file(tx, given, file).await?;
            files.insert(file.name.clone(), file.clone());
        }
        let facts = VersionFacts::given(given.version).joined(self.versions.get(&key));
        let size: i64 = files.values().map(|file| file.size_bytes).sum();
        let scheme = given.language.scheme();
        let sort_key = order_key(scheme, &given.version.version);
        let is_prerelease = Version::parse(scheme, &given.version.version).is_ok_and(|version| version.is_prerelease());
        let sql =
            "INSERT INTO library_versions (artifact, sort_key, version, source, description, license, is_prerelease,
                     size_bytes, published_at, file_count, metadata, created_at, updated_at)
                   VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $12)
                   ON CONFLICT (artifact, version, source) DO UPDATE SET description = excluded.description,
                     license = excluded.license, size_bytes = excluded.size_bytes, published_at = excluded.published_at,
                     file_count = excluded.file_count, metadata = excluded.metadata, updated_at = excluded.updated_at";
        let params = [
            Value::from(&given.artifact),
            Value::from(&sort_key),
            Value::from(&given.version.version),
            Value::from(given.version.source),
            Value::from(&facts.description),
            Value::from(&facts.license),
            Value::Bool(is_prerelease),
            Value::Int(size),
            Value::OptInt(facts.published_at),
            Value::Int(facts.file_count),
            Value::from(&facts.metadata),
            Value::Int(now),
        ];
        tx.execute(sql, &params).await?;
        Ok(())
    }
}

/// A statement over the versions of a batch, from all their sources. The batch is joined to the table, and not the other
/// way round: each of its versions is one look-up.
fn among<'a>(columns: &str, table: &str, given: &'a [Given<'_>]) -> Sql<'a> {
    let mut sql = Sql::new("WITH wanted (wanted_artifact, wanted_version) AS (VALUES ");
    for (index, given) in given.iter().enumerate() {
        sql.bind(if index == 0 { "(" } else { ", (" }, &given.artifact);
        sql.bind(", ", &given.version.version).push(")");
    }
    sql.push(&format!(") SELECT {columns} FROM wanted CROSS JOIN {table}"));
    sql.push(" WHERE artifact = wanted_artifact AND version = wanted_version");
    sql
}

fn key(row: &Row<'_>) -> Result<Key> {
    Ok((row.text(0)?, row.text(1)?, row.int(2)? as i32))
}

fn owned(given: &Given<'_>) -> Key {
    let (artifact, version, source) = given.key();
    (artifact.into(), version.into(), source)
}

/// Whether nothing is new about a file; a digest that is not given says nothing.
fn same(known: &PackageFile, given: &PackageFile) -> bool {
    let sha512 = given.sha512.is_empty() || known.sha512 == given.sha512;
    known.size_bytes == given.size_bytes && known.sha256 == given.sha256 && sha512
}

async fn write_file(tx: &mut WriteTx, given: &Given<'_>, file: &PackageFile) -> Result<()> {
    let sql = "INSERT INTO library_files (artifact, version, source, name, size_bytes, sha256, sha512)
               VALUES ($1, $2, $3, $4, $5, $6, $7)
               ON CONFLICT (artifact, version, source, name) DO UPDATE SET size_bytes = excluded.size_bytes,
                 sha256 = excluded.sha256, sha512 = excluded.sha512";
    let params = [
        Value::from(&given.artifact),
        Value::from(&given.version.version),
        Value::from(given.version.source),
        Value::from(&file.name),
        Value::Int(file.size_bytes),
        Value::from(&file.sha256),
        Value::from(&file.sha512),
    ];
    tx.execute(sql, &params).await?;
    Ok(())
}
