//! What wheels require. Versions that groups publish have it where those of npm and Cargo have their manifests.

use std::collections::HashMap;

use bowline_core::{Error, Result, Uidp};
use bowline_store::{ReadTx, Row, Sql, Value, WriteTx};
use serde_json::json;

use super::stored_packages::padded;
use crate::ecosystems::Language;

/// Stores what a new file requires, for its version; that of the first file of a version counts.
pub(super) async fn insert(
    tx: &mut WriteTx,
    repository: &Uidp,
    (package, sort_key): (&str, &[u8]),
    requirements: &[String],
) -> Result<()> {
    // Only what has a row without a signature is signed.
    let sql = "INSERT INTO hosted_manifests (repository, package, sort_key, manifest, sha1, sha512, file_count, unpacked_bytes,
                                             signature_keyid, signature)
               VALUES ($1, $2, $3, $4, '', '', 0, 0, '', $5) ON CONFLICT (repository, package, sort_key) DO NOTHING";
    let manifest = manifest(requirements);
    let params = [
        Value::from(repository.as_str()),
        Value::from(package),
        Value::from(sort_key),
        Value::from(&manifest),
        Value::Bytes(b""),
    ];
    tx.execute(sql, &params).await?;
    Ok(())
}

/// Keeps what a version of an upstream requires; that of its first file counts.
pub(super) async fn keep(
    tx: &mut WriteTx,
    upstream: &Uidp,
    (package, version): (&str, &str),
    requirements: &[String],
) -> Result<()> {
    let sql = "INSERT INTO upstream_requirements (upstream, package, sort_key, manifest) VALUES ($1, $2, $3, $4)
               ON CONFLICT (upstream, package, sort_key) DO NOTHING";
    let (sort_key, manifest) = (key(version), manifest(requirements));
    let params =
        [Value::from(upstream.as_str()), Value::from(package), Value::Bytes(&sort_key), Value::from(&manifest)];
    tx.execute(sql, &params).await?;
    Ok(())
}

/// What some versions of an upstream require, as [`insert`] writes it, without those of which that is not known: by package and
/// version.
pub(super) async fn of_versions(
    tx: &mut ReadTx,
    upstream: &Uidp,
    versions: &[(&str, &str)],
) -> Result<HashMap<(String, String), String>> {
    let keys: Vec<(&str, Vec<u8>)> = versions.iter().map(|(package, version)| (*package, key(version))).collect();
    let mut sql = Sql::new("SELECT package, sort_key, manifest FROM upstream_requirements");
    sql.bind(" WHERE upstream = ", upstream.as_str());
    for (at, (package, key)) in padded(&keys).enumerate() {
        sql.bind(if at == 0 { " AND ((package = " } else { " OR (package = " }, *package);
        sql.bind(" AND sort_key = ", key.as_slice()).push(")");
    }
    sql.push(")");
    let read = |row: &Row<'_>| Ok::<_, Error>(((row.text(0)?, row.bytes(1)?), row.text(2)?));
    let rows: HashMap<_, _> = tx.query(&sql.text, &sql.params, read).await?.into_iter().collect();
    let of = |((package, version), (_, key)): (&(&str, &str), &(&str, Vec<u8>))| {
        let manifest = rows.get(&((*package).to_owned(), key.clone()))?;
        Some((((*package).to_owned(), (*version).to_owned()), manifest.clone()))
    };
    Ok(versions.iter().zip(&keys).filter_map(of).collect())
}

/// What orders the versions of Python, in which two spellings are one version.
fn key(version: &str) -> Vec<u8> {
    Language::Python.order_key(version)
}

/// The JSON of a version's manifest.
fn manifest(requirements: &[String]) -> String {
    json!({ "requires_dist": requirements }).to_string()
}
