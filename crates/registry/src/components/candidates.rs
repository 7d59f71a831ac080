//! Which documents of a manifest may be SBOMs, and their bytes, before the transaction of the push.

use std::time::Duration;

use bowline_contract::bowline::registry::v1::UnindexedReason;
use bowline_core::{Error, Uidp};
use bowline_store::{ReadTx, Sql, Value};

use super::extract::{ReadSbom, Reading};
use crate::attached::{Documents, Layer};
use crate::content::Manifest;
use crate::sboms::MAX_BYTES;

/// Maximum number of documents of a manifest that are indexed.
const MAX_DOCUMENTS: usize = 50;
/// Maximum bytes of documents that one push reads; others are pending.
const MAX_PUSH_BYTES: u64 = 32 << 20;
/// How long a push waits for others that read documents, before it leaves its own pending.
const LONGEST_WAIT: Duration = Duration::from_secs(2);

/// Digests and media types of layers that may be SBOMs.
pub(super) fn of(manifest: &Manifest) -> Vec<(&str, &str)> {
    let may_be_sbom = manifest.layers().filter(|(_, media_type)| media_type.to_ascii_lowercase().contains("json"));
    may_be_sbom.take(MAX_DOCUMENTS).collect()
}

/// Whether layers of the manifest may be SBOMs.
pub(crate) fn may_have_sboms(manifest: &Manifest) -> bool {
    !of(manifest).is_empty()
}

/// The layers of a push that may be SBOMs, are there, and are not indexed in the repository.
pub(crate) async fn unread(tx: &mut ReadTx, repo: &Uidp, manifest: &Manifest) -> Result<Vec<Layer>, Error> {
    let candidates = of(manifest);
    let mut sql = Sql::new("SELECT b.digest, b.upload, b.size FROM repo_blobs l JOIN blobs b ON b.digest = l.digest");
    sql.bind(" WHERE l.repo = ", repo.as_str());
    sql.bind_list(" AND l.digest IN ", candidates.iter().map(|(digest, _)| Value::from(*digest)));
    sql.push(" AND NOT EXISTS (SELECT 1 FROM repo_sboms s WHERE s.repo = l.repo AND s.digest = l.digest");
    sql.bind(" AND s.state <> ", UnindexedReason::Pending as i64).push(")");
    let read = |row: &bowline_store::Row<'_>| {
        let digest = row.text(0)?;
        let media_type = candidates.iter().find(|(one, _)| *one == digest).map_or("", |(_, media_type)| *media_type);
        let size = u64::try_from(row.int(2)?).unwrap_or(0);
        Ok::<_, Error>(Layer { digest, upload: row.text(1)?, media_type: media_type.into(), size })
    };
    tx.query(&sql.text, &sql.params, read).await
}

impl Documents {
    /// Reads the documents of a push. What cannot be read now is left out, and so pending.
    pub(crate) async fn read_pushed(&self, layers: Vec<Layer>) -> Vec<ReadSbom> {
        if layers.is_empty() {
            return Vec::new();
        }
        let Ok(Ok(_permit)) = tokio::time::timeout(LONGEST_WAIT, self.permit()).await else { return Vec::new() };
        let (mut left, mut read) = (MAX_PUSH_BYTES, Vec::new());
        for layer in layers {
            let needed = if layer.size > MAX_BYTES { 0 } else { layer.size };
            if needed > left {
                continue;
            }
            left -= needed;
            // The task tries again, and logs why it fails.
            if let Ok(sbom) = self.read_sbom(layer).await {
                read.push(sbom);
            }
        }
        read
    }

    /// Reads one document.
    ///
    /// # Errors
    /// Its bytes are not there.
    pub(super) async fn read_sbom(&self, layer: Layer) -> Result<ReadSbom, Error> {
        let Layer { digest, media_type, size, .. } = &layer;
        if *size > MAX_BYTES {
            return Ok(ReadSbom { digest: digest.clone(), reading: Reading::too_large(media_type) });
        }
        let bytes = self.read(&layer).await?;
        let (digest, media_type) = (layer.digest, layer.media_type);
        self.work(move || ReadSbom { digest, reading: Reading::of(&media_type, &bytes) }).await
    }
}
