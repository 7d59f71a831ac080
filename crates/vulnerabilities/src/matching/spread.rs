//! What changes reach: from versions of packages to the SBOMs that list them, and from SBOMs to their images.

use std::collections::BTreeSet;

use bowline_core::{Error, Result};
use bowline_registry::components::{InRepo, PackageVersion, images, note_images, note_sboms};
use bowline_store::{ReadTx, Row, Sql, Value, WriteTx};

/// Versions that one step looks at, and SBOMs that it notes.
const MAX_VERSIONS: i64 = 200;
const SBOMS_OF_VERSIONS: usize = 200;
/// SBOMs that one step looks at.
const MAX_SBOMS: i64 = 100;
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

/// The next SBOMs that list versions whose matches changed.
pub(super) struct SbomsOfVersions {
    sboms: BTreeSet<Vec<u8>>,
    /// Versions of which all SBOMs are noted.
    done: Vec<PackageVersion>,
    /// The one that continues after an SBOM.
    rest: Option<(PackageVersion, Vec<u8>)>,
}

pub(super) async fn next_versions(tx: &mut ReadTx) -> Result<Option<SbomsOfVersions>> {
    let sql = "SELECT package, version, after FROM changed_versions ORDER BY package, version LIMIT $1";
    let read = |row: &Row<'_>| Ok::<_, Error>((PackageVersion::read(row)?, row.bytes(2)?));
    let versions = tx.query(sql, &[Value::Int(MAX_VERSIONS)], read).await?;
    let mut noted = SbomsOfVersions { sboms: BTreeSet::new(), done: Vec::new(), rest: None };
    let mut left = SBOMS_OF_VERSIONS;
    for (version, after) in versions {
        let sql =
            "SELECT sbom FROM version_sboms WHERE package = $1 AND version = $2 AND sbom > $3 ORDER BY sbom LIMIT $4";
        let most = Value::Int(left as i64);
        let params = [Value::from(&version.package), Value::from(&version.version), Value::from(&after), most];
        let sboms = tx.query(sql, &params, |row| row.bytes(0).map_err(Error::from)).await?;
        let last = sboms.last().filter(|_| sboms.len() == left).cloned();
        left -= sboms.len();
        noted.sboms.extend(sboms);
        if let Some(last) = last {
            noted.rest = Some((version, last));
            break;
        }
        noted.done.push(version);
    }
    Ok(Some(noted).filter(|noted| !noted.done.is_empty() || noted.rest.is_some()))
}

impl SbomsOfVersions {
    pub(super) async fn write(&self, tx: &mut WriteTx) -> Result<()> {
        note_sboms(tx, &self.sboms.iter().cloned().collect::<Vec<_>>()).await?;
        PackageVersion::for_each(tx, "DELETE FROM changed_versions WHERE", &self.done).await?;
        if let Some((PackageVersion { package, version }, last)) = &self.rest {
            let sql = "UPDATE changed_versions SET after = $3 WHERE package = $1 AND version = $2";
            tx.execute(sql, &[Value::from(package), Value::from(version), Value::from(last)]).await?;
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
