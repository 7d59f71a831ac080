//! SBOMs that wait to be read: those of pushes before there was an index, of replicated manifests, and of pushes while
//! many others were read.

use bowline_core::{Error, Result};
use bowline_store::{ReadTx, Row, Value, WriteTx};

use super::write::{self, PENDING};
use crate::attached::Layer;
use crate::content::Registry;

/// Documents that one round reads.
const AT_ONCE: i64 = 20;

/// Place of an SBOM in the order of repositories and SBOMs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SbomPosition {
    pub repo: String,
    pub sbom: Vec<u8>,
}

impl Registry {
    /// Reads and indexes some of the pending SBOMs after a place; returns where to continue, absent at the end. SBOMs whose
    /// bytes are not there, as of images that are fetched on demand, or cannot be read stay pending.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn index_pending(&self, after: SbomPosition) -> Result<Option<SbomPosition>> {
        let db = self.pipeline.db.from_reserve();
        let page = db.read(move |tx| Box::pin(async move { pending(tx, &after).await })).await?;
        let last = page.last().map(|(position, _)| position.clone());
        for (SbomPosition { repo, sbom }, layer) in page {
            let digest = layer.digest.clone();
            let read = {
                let _permit = self.documents.permit().await?;
                self.documents.read_sbom(layer).await
            };
            let read = match read {
                Ok(read) => read,
                // It stays pending, and keeps no other from being read.
                Err(error) => {
                    tracing::warn!(repo, digest, %error, "an SBOM could not be read; `bowline registry verify` checks the blob");
                    continue;
                }
            };
            let written = db.write(move |tx| {
                let (repo, sbom, read) = (repo.clone(), sbom.clone(), read.clone());
                Box::pin(async move {
                    if is_pending(tx, &repo, &sbom).await? {
                        write::put(tx, &repo, &read.digest, &read.reading).await?;
                    }
                    Ok::<_, Error>(())
                })
            });
            written.await?;
        }
        Ok(last)
    }
}

async fn pending(tx: &mut ReadTx, after: &SbomPosition) -> Result<Vec<(SbomPosition, Layer)>> {
    let sql = format!(
        "SELECT s.repo, s.sbom, s.digest, b.upload, b.size,
           coalesce((SELECT min(f.media_type) FROM manifest_references f WHERE f.digest = s.digest AND f.kind = 2), '')
         FROM repo_sboms s {} JOIN repo_blobs l ON l.repo = s.repo AND l.digest = s.digest
         JOIN blobs b ON b.digest = s.digest
         WHERE (s.repo, s.sbom) > ($1, $2) AND s.state <> 0 AND s.state = $3 ORDER BY s.repo, s.sbom LIMIT $4",
        tx.index_hint("repo_sboms_unindexed")
    );
    let params = [Value::from(&after.repo), Value::from(&after.sbom), Value::Int(PENDING), Value::Int(AT_ONCE)];
    let read = |row: &Row<'_>| {
        let position = SbomPosition { repo: row.text(0)?, sbom: row.bytes(1)? };
        let size = u64::try_from(row.int(4)?).unwrap_or(0);
        let layer = Layer { digest: row.text(2)?, upload: row.text(3)?, media_type: row.text(5)?, size };
        Ok::<_, Error>((position, layer))
    };
    tx.query(&sql, &params, read).await
}

/// Whether it still waits: a push may have indexed it meanwhile, or garbage collection deleted it.
async fn is_pending(tx: &mut WriteTx, repo: &str, sbom: &[u8]) -> Result<bool> {
    let sql = "SELECT 1 FROM repo_sboms WHERE repo = $1 AND sbom = $2 AND state = $3";
    let params = [Value::from(repo), Value::from(sbom), Value::Int(PENDING)];
    Ok(tx.query_opt(sql, &params, |row| row.int(0).map_err(Error::from)).await?.is_some())
}
