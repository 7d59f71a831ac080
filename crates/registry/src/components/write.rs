//! Writes the components of SBOMs, in the transaction of the push that brings them or in one of the periodic task.

use bowline_contract::bowline::registry::v1::UnindexedReason;
use bowline_core::{Error, Result};
use bowline_store::{ReadTx, Sql, Value, WriteTx};

use super::extract::{Component, ReadSbom, Reading, license_keys};
use super::{candidates, sbom_id, versions, waiting};
use crate::content::Manifest;

/// The state of an SBOM whose components are indexed.
pub(super) const INDEXED: i64 = UnindexedReason::Unspecified as i64;
pub(super) const PENDING: i64 = UnindexedReason::Pending as i64;
/// Rows that one statement inserts.
const AT_ONCE: usize = 100;

/// Indexes what the documents of a manifest list. Documents that were not read are pending, unless another repository has
/// their components.
pub(crate) async fn store(tx: &mut WriteTx, repo: &str, manifest: &Manifest, read: &[ReadSbom]) -> Result<()> {
    for (digest, _) in candidates::of(manifest) {
        let Some(id) = sbom_id(digest) else { continue };
        match state(tx, repo, &id).await? {
            None | Some(PENDING) => {}
            // It may be about another image now.
            Some(INDEXED) => {
                waiting::note_sbom(tx, repo, &id).await?;
                continue;
            }
            Some(_) => continue,
        }
        match read.iter().find(|one| one.digest == digest) {
            Some(one) => put(tx, repo, digest, &one.reading).await?,
            None if is_stored(tx, &id).await? => index(tx, repo, (digest, &id)).await?,
            None => set_state(tx, repo, (digest, &id), PENDING).await?,
        }
    }
    Ok(())
}

/// Stores what a document was read as.
pub(super) async fn put(tx: &mut WriteTx, repo: &str, digest: &str, reading: &Reading) -> Result<()> {
    let Some(id) = sbom_id(digest) else { return Ok(()) };
    match reading {
        Reading::NoSbom => {
            let params = [Value::from(repo), Value::from(&id)];
            tx.execute("DELETE FROM repo_sboms WHERE repo = $1 AND sbom = $2", &params).await?;
            Ok(())
        }
        Reading::Unindexed(reason) => set_state(tx, repo, (digest, &id), *reason as i64).await,
        Reading::Components(components) => {
            if !is_stored(tx, &id).await? {
                insert(tx, &id, components).await?;
            }
            index(tx, repo, (digest, &id)).await
        }
    }
}

async fn state(tx: &mut ReadTx, repo: &str, id: &[u8]) -> Result<Option<i64>> {
    let sql = "SELECT state FROM repo_sboms WHERE repo = $1 AND sbom = $2";
    tx.query_opt(sql, &[Value::from(repo), Value::from(id)], |row| row.int(0).map_err(Error::from)).await
}

/// Whether the components are stored, for whichever repository.
async fn is_stored(tx: &mut ReadTx, id: &[u8]) -> Result<bool> {
    let sql = "SELECT 1 FROM repo_sboms WHERE sbom = $1 AND state = $2 LIMIT 1";
    let params = [Value::from(id), Value::Int(INDEXED)];
    Ok(tx.query_opt(sql, &params, |row| row.int(0).map_err(Error::from)).await?.is_some())
}

async fn set_state(tx: &mut WriteTx, repo: &str, (digest, id): (&str, &[u8]), state: i64) -> Result<()> {
    let sql = "INSERT INTO repo_sboms (repo, sbom, digest, state) VALUES ($1, $2, $3, $4)
               ON CONFLICT (repo, sbom) DO UPDATE SET state = excluded.state";
    tx.execute(sql, &[Value::from(repo), Value::from(id), Value::from(digest), Value::Int(state)]).await?;
    Ok(())
}

async fn insert(tx: &mut WriteTx, id: &[u8], components: &[Component]) -> Result<()> {
    let numbered: Vec<(i64, &Component)> = (0..).zip(components).collect();
    for part in numbered.chunks(AT_ONCE) {
        let mut sql = Sql::new(
            "INSERT INTO components (sbom, number, package, name, version, version_key, purl, license) VALUES ",
        );
        for (at, (number, component)) in part.iter().enumerate() {
            sql.bind(if at == 0 { "(" } else { ", (" }, id).bind(", ", *number).bind(", ", &component.package);
            sql.bind(", ", &component.name).bind(", ", &component.version).bind(", ", &component.version_key);
            sql.bind(", ", &component.purl).bind(", ", &component.license).push(")");
        }
        sql.push(" ON CONFLICT DO NOTHING");
        tx.execute(&sql.text, &sql.params).await?;
    }
    versions::note(tx, id).await
}

/// Lets searches of the repository find the stored components of an SBOM.
async fn index(tx: &mut WriteTx, repo: &str, (digest, id): (&str, &[u8])) -> Result<()> {
    let sql = "INSERT INTO component_packages (package, repo, sbom, number)
               SELECT package, $1, sbom, number FROM components WHERE sbom = $2 AND package <> ''
               ON CONFLICT DO NOTHING";
    tx.execute(sql, &[Value::from(repo), Value::from(id)]).await?;
    let keys = stored_license_keys(tx, id).await?;
    for part in keys.chunks(AT_ONCE) {
        let mut sql = Sql::new("INSERT INTO component_licenses (license, repo, sbom) VALUES ");
        for (at, key) in part.iter().enumerate() {
            sql.bind(if at == 0 { "(" } else { ", (" }, key).bind(", ", repo).bind(", ", id).push(")");
        }
        sql.push(" ON CONFLICT DO NOTHING");
        tx.execute(&sql.text, &sql.params).await?;
    }
    set_state(tx, repo, (digest, id), INDEXED).await?;
    // Of new components the task that matches finds out later.
    let uncompared = uncompared(tx, id).await?;
    let sql = "UPDATE repo_sboms SET uncompared = $3 WHERE repo = $1 AND sbom = $2 AND uncompared <> $3";
    tx.execute(sql, &[Value::from(repo), Value::from(id), Value::Int(uncompared)]).await?;
    waiting::note_sbom(tx, repo, id).await
}

/// Stores how many components of an SBOM no record can be compared with, for all repositories that have it.
///
/// # Errors
/// Those of the database.
pub async fn store_uncompared(tx: &mut WriteTx, id: &[u8]) -> Result<()> {
    let uncompared = uncompared(tx, id).await?;
    let sql = "UPDATE repo_sboms SET uncompared = $2 WHERE sbom = $1 AND uncompared <> $2";
    tx.execute(sql, &[Value::from(id), Value::Int(uncompared)]).await?;
    Ok(())
}

async fn uncompared(tx: &mut ReadTx, id: &[u8]) -> Result<i64> {
    let sql = "SELECT count(*) FROM components WHERE sbom = $1 AND origin = $2";
    let params = [Value::from(id), Value::from(versions::UNCOMPARED)];
    Ok(tx.query_opt(sql, &params, |row| row.int(0).map_err(Error::from)).await?.unwrap_or_default())
}

/// What the licenses of an SBOM are searched by.
async fn stored_license_keys(tx: &mut ReadTx, id: &[u8]) -> Result<Vec<String>> {
    let sql = "SELECT DISTINCT license FROM components WHERE sbom = $1";
    let licenses = tx.query(sql, &[Value::from(id)], |row| row.text(0).map_err(Error::from)).await?;
    let mut keys: Vec<String> = licenses.iter().flat_map(|license| license_keys(license)).collect();
    keys.sort_unstable();
    keys.dedup();
    Ok(keys)
}

/// Deletes an SBOM of a repository, and its components with the last repository that has it.
pub(super) async fn remove(tx: &mut WriteTx, repo: &str, id: &[u8]) -> Result<()> {
    let params = [Value::from(repo), Value::from(id)];
    let packages = "DELETE FROM component_packages WHERE repo = $1 AND sbom = $2
                    AND package IN (SELECT c.package FROM components c WHERE c.sbom = $2)";
    tx.execute(packages, &params).await?;
    for part in stored_license_keys(tx, id).await?.chunks(AT_ONCE) {
        let mut sql = Sql::new("DELETE FROM component_licenses");
        sql.bind(" WHERE repo = ", repo).bind(" AND sbom = ", id);
        sql.bind_list(" AND license IN ", part.iter().map(Value::from));
        tx.execute(&sql.text, &sql.params).await?;
    }
    tx.execute("DELETE FROM repo_sboms WHERE repo = $1 AND sbom = $2", &params).await?;
    let others = "SELECT 1 FROM repo_sboms WHERE sbom = $1 LIMIT 1";
    let others = tx.query_opt(others, &[Value::from(id)], |row| row.int(0).map_err(Error::from)).await?;
    if others.is_none() {
        versions::leave(tx, id).await?;
        tx.execute("DELETE FROM components WHERE sbom = $1", &[Value::from(id)]).await?;
    }
    Ok(())
}
