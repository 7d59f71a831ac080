//! SBOMs that go: those of repositories in which no manifest names them any more.

use bowline_core::{Error, Result};
use bowline_store::{Db, ReadTx, Row, Value};

use super::pending::SbomPosition;
use super::write::remove;

/// Rows that one statement looks at.
const PAGE: i64 = 500;

const IS_NAMED: &str = "EXISTS (SELECT 1 FROM manifest_references f
  JOIN repo_manifests m ON m.digest = f.manifest AND m.repo = s.repo WHERE f.digest = s.digest AND f.kind = 2)";

/// SBOMs of repositories after that one, in order, each with whether a manifest of its repository names it; none at the
/// end.
///
/// # Errors
/// Those of the database.
pub async fn sboms(db: &Db, after: &SbomPosition) -> Result<Vec<(SbomPosition, bool)>> {
    let after = after.clone();
    let read = db.read(move |tx| {
        Box::pin(async move {
            let sql = format!(
                "SELECT s.repo, s.sbom, {IS_NAMED} FROM repo_sboms s WHERE (s.repo, s.sbom) > ($1, $2)
                 ORDER BY s.repo, s.sbom LIMIT $3"
            );
            let params = [Value::from(&after.repo), Value::from(&after.sbom), Value::Int(PAGE)];
            let read = |row: &Row<'_>| {
                Ok::<_, Error>((SbomPosition { repo: row.text(0)?, sbom: row.bytes(1)? }, row.bool(2)?))
            };
            tx.query(&sql, &params, read).await
        })
    });
    read.await
}

/// Deletes those of these that are still not named, each in a transaction of its own: an SBOM may have many components.
///
/// # Errors
/// Those of the database; what was deleted by then is gone.
pub async fn drop_sboms(db: &Db, positions: &[SbomPosition]) -> Result<()> {
    for position in positions {
        let position = position.clone();
        let written = db.write(move |tx| {
            let position = position.clone();
            Box::pin(async move {
                if !is_named(tx, &position).await? {
                    remove(tx, &position.repo, &position.sbom).await?;
                }
                Ok::<_, Error>(())
            })
        });
        written.await?;
    }
    Ok(())
}

async fn is_named(tx: &mut ReadTx, position: &SbomPosition) -> Result<bool> {
    let sql = format!("SELECT s.state FROM repo_sboms s WHERE s.repo = $1 AND s.sbom = $2 AND {IS_NAMED}");
    let params = [Value::from(&position.repo), Value::from(&position.sbom)];
    Ok(tx.query_opt(&sql, &params, |row| row.int(0).map_err(Error::from)).await?.is_some())
}
