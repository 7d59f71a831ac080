//! What changes reach: from versions of packages to the SBOMs that list them, and from SBOMs to their images.

use std::collections::BTreeSet;

use bowline_core::{Error, Result};
use bowline_registry::components::{InRepo, PackageVersion, images, note_images, note_sboms};
use bowline_store::{ReadTx, Row, Sql, Value, WriteTx};

/// SBOMs that one step looks at.
const SBOMS_OF_VERSION: usize = 500;
const MAX_SBOMS: i64 = 50;
/// Rows that one statement writes.
const AT_ONCE: usize = 100;

/// Notes that the matches of these versions changed, so that the images that have them are compared again.
pub(super) async fn note_versions(tx: &mut WriteTx, versions: &BTreeSet<&PackageVersion>) -> Result<()> {
    let versions: Vec<&&PackageVersion> = versions.iter().collect();
    for part in versions.chunks(AT_ONCE) {
        let mut sql = Sql::new("INSERT INTO changed_versions (package, version, after) VALUES ");
        for (at, version) in part.iter().enumerate() {
            sql.bind(if at == 0 { "(" } else { ", (" }, &version.package).bind(", ", &version.version);
            sql.bind(", ", Value::Bytes(&[])).push(")");
        }
        sql.push(" ON CONFLICT (package, version) DO UPDATE SET after = excluded.after");
        tx.execute(&sql.text, &sql.params).await?;
    }
    Ok(())
}

/// The next SBOMs that list a version whose matches changed.
pub(super) struct SbomsOfVersion {
    version: PackageVersion,
    sboms: Vec<Vec<u8>>,
}

pub(super) async fn next_version(tx: &mut ReadTx) -> Result<Option<SbomsOfVersion>> {
    let sql = "SELECT package, version, after FROM changed_versions ORDER BY package, version LIMIT 1";
    let read = |row: &Row<'_>| Ok::<_, Error>((PackageVersion::read(row)?, row.bytes(2)?));
    let Some((version, after)) = tx.query_opt(sql, &[], read).await? else { return Ok(None) };
    let sql = "SELECT sbom FROM version_sboms WHERE package = $1 AND version = $2 AND sbom > $3 ORDER BY sbom LIMIT $4";
    let most = Value::Int(SBOMS_OF_VERSION as i64);
    let params = [Value::from(&version.package), Value::from(&version.version), Value::from(&after), most];
    let sboms = tx.query(sql, &params, |row| row.bytes(0).map_err(Error::from)).await?;
    Ok(Some(SbomsOfVersion { version, sboms }))
}

impl SbomsOfVersion {
    pub(super) async fn write(&self, tx: &mut WriteTx) -> Result<()> {
        note_sboms(tx, &self.sboms).await?;
        let PackageVersion { package, version } = &self.version;
        let (package, version) = (Value::from(package), Value::from(version));
        if let Some(last) = self.sboms.last().filter(|_| self.sboms.len() == SBOMS_OF_VERSION) {
            let sql = "UPDATE changed_versions SET after = $3 WHERE package = $1 AND version = $2";
            tx.execute(sql, &[package, version, Value::from(last)]).await?;
        } else {
            let sql = "DELETE FROM changed_versions WHERE package = $1 AND version = $2";
            tx.execute(sql, &[package, version]).await?;
        }
        Ok(())
    }
}

/// An SBOM that waits.
struct WaitingSbom {
    repo: String,
    sbom: Vec<u8>,
    noted: i64,
}

/// The images that some waiting SBOMs are about.
pub(super) struct ImagesOfSboms {
    sboms: Vec<WaitingSbom>,
    images: BTreeSet<InRepo>,
}

pub(super) async fn next_sboms(tx: &mut ReadTx) -> Result<Option<ImagesOfSboms>> {
    // An SBOM whose versions are not all known is noted again when they are.
    let sql = "SELECT w.repo, w.sbom, w.noted,
                 CASE WHEN EXISTS (SELECT 1 FROM unmatched_sboms u WHERE u.sbom = w.sbom) THEN ''
                      ELSE coalesce(s.digest, '') END
               FROM waiting_sboms w LEFT JOIN repo_sboms s ON s.repo = w.repo AND s.sbom = w.sbom
               ORDER BY w.repo, w.sbom LIMIT $1";
    let read = |row: &Row<'_>| {
        let waiting = WaitingSbom { repo: row.text(0)?, sbom: row.bytes(1)?, noted: row.int(2)? };
        Ok::<_, Error>((waiting, row.text(3)?))
    };
    let rows = tx.query(sql, &[Value::Int(MAX_SBOMS)], read).await?;
    if rows.is_empty() {
        return Ok(None);
    }
    let known = rows.iter().filter(|(_, digest)| !digest.is_empty());
    let known: BTreeSet<InRepo> = known.map(|(waiting, digest)| (waiting.repo.clone(), digest.clone())).collect();
    let mut about = BTreeSet::new();
    for ((repo, _), images) in images(tx, &known).await? {
        about.extend(images.into_iter().map(|image| (repo.clone(), image)));
    }
    Ok(Some(ImagesOfSboms { sboms: rows.into_iter().map(|(waiting, _)| waiting).collect(), images: about }))
}

impl ImagesOfSboms {
    pub(super) async fn write(&self, tx: &mut WriteTx) -> Result<()> {
        note_images(tx, &self.images).await?;
        for WaitingSbom { repo, sbom, noted } in &self.sboms {
            let sql = "DELETE FROM waiting_sboms WHERE repo = $1 AND sbom = $2 AND noted = $3";
            tx.execute(sql, &[Value::from(repo), Value::from(sbom), Value::Int(*noted)]).await?;
        }
        Ok(())
    }
}
