//! What no rule is about: signatures, attestations and the like, which must be readable so that images can be verified.
//!
//! Pushers choose media types and subjects. So an exemption requires that nothing in the manifest could be unpacked as the
//! file system of a container.

use bowline_core::{Error, Result, Uidp};
use bowline_store::{ReadTx, Row, Value};

use crate::attached::{self, Layer};
use crate::images::{self, Shape};
use crate::tags::Hidden;

/// Media types of the configs of images, which runtimes run.
const IMAGE_CONFIGS: [&str; 2] =
    ["application/vnd.oci.image.config.v1+json", "application/vnd.docker.container.image.v1+json"];
/// Layers of attached documents whose manifests have the config of an image. They must be JSON documents.
const DOCUMENTS: [&str; 6] = [
    "application/vnd.dev.cosign.simplesigning.v1+json",
    "application/vnd.dsse.envelope.v1+json",
    "application/vnd.in-toto+json",
    "application/spdx+json",
    "text/spdx+json",
    "application/vnd.cyclonedx+json",
];
/// Parts of the media types of layers that are unpacked.
const UNPACKED: [&str; 6] = ["layer", "rootfs", "tar", "gzip", "zstd", "octet-stream"];

/// The layers that must be JSON documents for the manifest to be exempt; absent if it is not exempt in any case.
pub(super) async fn probes(tx: &mut ReadTx, repo: &Uidp, digest: &str) -> Result<Option<Vec<Layer>>> {
    if images::require(tx, repo, digest).await?.shape == Shape::Index || !is_attached(tx, repo, digest).await? {
        return Ok(None);
    }
    let sql = "SELECT kind, media_type, digest FROM manifest_references WHERE manifest = $1 ORDER BY place";
    let read = |row: &Row<'_>| Ok::<_, Error>((row.int(0)?, row.text(1)?, row.text(2)?));
    let named = tx.query(sql, &[Value::from(digest)], read).await?;
    let is_image = named.iter().any(|(kind, media_type, _)| *kind == 1 && IMAGE_CONFIGS.contains(&media_type.as_str()));
    let mut layers = named.iter().filter(|(kind, ..)| *kind != 1).map(|(_, media_type, _)| media_type.as_str());
    let is_harmless =
        if is_image { layers.all(|one| DOCUMENTS.contains(&one)) } else { layers.all(|one| !is_unpacked(one)) };
    if !is_harmless {
        return Ok(None);
    }
    let probes = if is_image { attached::layers(tx, repo, digest).await? } else { Vec::new() };
    // Layers that are not here, or too many, cannot be looked into.
    let count = named.iter().filter(|(kind, ..)| *kind == 2).count();
    Ok((!is_image || probes.len() == count).then_some(probes))
}

fn is_unpacked(media_type: &str) -> bool {
    let media_type = media_type.to_ascii_lowercase();
    media_type.is_empty() || UNPACKED.iter().any(|part| media_type.contains(part))
}

/// Whether the manifest refers to another one: by its subject, by a tag of referrers, or beside it in an index.
async fn is_attached(tx: &mut ReadTx, repo: &Uidp, digest: &str) -> Result<bool> {
    let sql = format!(
        "SELECT 1 FROM repo_manifests r WHERE r.repo = $1 AND r.digest = $2 AND r.subject <> ''
         UNION ALL
         SELECT 1 FROM tags t {} WHERE t.parent = $1 AND t.digest = $2 AND t.hidden = $3 LIMIT 1",
        tx.index_hint("tags_by_digest")
    );
    let params = [Value::from(repo.as_str()), Value::from(digest), Value::Int(Hidden::Referrer as i64)];
    if tx.query_opt(&sql, &params, |row| row.int(0).map_err(Error::from)).await?.is_some() {
        return Ok(true);
    }
    let sql = "SELECT m.content FROM manifest_references f
               JOIN repo_manifests r ON r.repo = $1 AND r.digest = f.manifest
               JOIN manifests m ON m.digest = f.manifest
               WHERE f.digest = $2 AND f.kind = 3 AND length(m.content) <= 65536 LIMIT 5";
    let params = [Value::from(repo.as_str()), Value::from(digest)];
    let indexes: Vec<Vec<u8>> = tx.query(sql, &params, |row| row.bytes(0).map_err(Error::from)).await?;
    Ok(indexes.iter().any(|index| attached::subjects_in(index).iter().any(|(member, _)| member == digest)))
}

/// Whether the bytes begin as a JSON object does, which no archive or compressed file does.
pub(super) fn is_json(bytes: &[u8]) -> bool {
    bytes.first() == Some(&b'{')
}
