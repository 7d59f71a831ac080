//! One image: layers, images of an index, referrers from the database; its history from the bytes of its config.

use bowline_contract::bowline::registry::v1 as own;
use bowline_contract::chainguard::capabilities::Capability;
use bowline_core::{Error, Reason, Result, UidRange, Uidp};
use bowline_pipeline::Authorized;
use bowline_resources::kinds::MANIFEST;
use bowline_resources::list::timestamp;
use bowline_store::{ReadTx, Row, Value};
use serde::Deserialize;

use super::summaries;
use crate::attached::{self, Documents, Layer};
use crate::images;

/// Layers and members that are shown.
const MAX_PARTS: i64 = 1000;
/// Referrers that are shown.
const MAX_REFERRERS: i64 = 200;
/// Repositories that are counted as sharing an image.
const MAX_SHARING: i64 = 1000;
/// Bytes of the largest config that is read.
const MAX_CONFIG_BYTES: u64 = 4 << 20;
/// Steps of the history that are shown.
const MAX_STEPS: usize = 1000;

/// An image without its history, and where that is read from.
pub(super) struct Detail {
    shown: own::ImageDetail,
    config: Option<Layer>,
}

pub(super) async fn find(tx: &mut ReadTx, call: &Authorized<own::GetImageRequest>) -> Result<Detail> {
    let (repo, digest) = (call.require_scope()?, &call.request().digest);
    let absent = || Error::not_found(MANIFEST, digest);
    let summary = summaries::summaries(tx, repo, std::slice::from_ref(digest)).await?.pop().ok_or_else(absent)?;
    // What other methods show of a config needs these, and the history is read from the blob.
    let reads_config = call.holds(repo.as_str(), Capability::CapManifestMetadataList);
    let reads_history = reads_config && call.holds(repo.as_str(), Capability::CapRepoBlobsGet);
    let run_config = if reads_config { run_config(tx, digest).await? } else { String::new() };
    let shown = own::ImageDetail {
        summary: Some(summary),
        layers: layers(tx, digest).await?,
        history: Vec::new(),
        members: members(tx, repo, digest).await?,
        referrers: referrers(tx, repo, digest).await?,
        shared_with: shared_with(tx, call, repo, digest).await?,
        run_config,
    };
    let config = attached::config(tx, repo, digest).await?;
    Ok(Detail { shown, config: config.filter(|config| reads_history && config.size <= MAX_CONFIG_BYTES) })
}

/// The configuration that a container starts with; empty where the manifest has none.
async fn run_config(tx: &mut ReadTx, digest: &str) -> Result<String> {
    match images::run_config(tx, digest).await {
        Ok(config) => Ok(config.to_string()),
        Err(error) if error.reason() == Reason::NotFound => Ok(String::new()),
        Err(error) => Err(error),
    }
}

async fn layers(tx: &mut ReadTx, digest: &str) -> Result<Vec<own::ImageLayer>> {
    // Kind 2 is `Kind::Layer`.
    let sql = "SELECT digest, media_type, size FROM manifest_references WHERE manifest = $1 AND kind = 2
               ORDER BY place LIMIT $2";
    let read = |row: &Row<'_>| {
        Ok::<_, Error>(own::ImageLayer { digest: row.text(0)?, media_type: row.text(1)?, size: row.int(2)? })
    };
    tx.query(sql, &[Value::from(digest), Value::Int(MAX_PARTS)], read).await
}

async fn members(tx: &mut ReadTx, repo: &Uidp, digest: &str) -> Result<Vec<own::IndexMember>> {
    // Kind 3 is `Kind::Child`.
    let sql = "SELECT f.digest, f.os, f.architecture, f.variant, m.total_size FROM manifest_references f
               LEFT JOIN repo_manifests r ON r.repo = $1 AND r.digest = f.digest
               LEFT JOIN manifests m ON m.digest = r.digest
               WHERE f.manifest = $2 AND f.kind = 3 ORDER BY f.place LIMIT $3";
    let params = [Value::from(repo.as_str()), Value::from(digest), Value::Int(MAX_PARTS)];
    let read = |row: &Row<'_>| {
        let size = row.opt_int(4)?;
        Ok::<_, Error>(own::IndexMember {
            digest: row.text(0)?,
            platform: summaries::platform(&[row.text(1)?, row.text(2)?, row.text(3)?]).unwrap_or_default(),
            size: size.unwrap_or(0),
            present: size.is_some(),
        })
    };
    tx.query(sql, &params, read).await
}

async fn referrers(tx: &mut ReadTx, repo: &Uidp, digest: &str) -> Result<Vec<own::ImageReferrer>> {
    let sql = format!(
        "SELECT r.digest, r.artifact_type, m.total_size, r.pushed_at FROM repo_manifests r {}
         JOIN manifests m ON m.digest = r.digest
         WHERE r.repo = $1 AND r.subject = $2 AND r.subject <> '' ORDER BY r.pushed_at DESC, r.digest LIMIT $3",
        tx.index_hint("repo_manifests_by_subject")
    );
    let params = [Value::from(repo.as_str()), Value::from(digest), Value::Int(MAX_REFERRERS)];
    let read = |row: &Row<'_>| {
        Ok::<_, Error>(own::ImageReferrer {
            digest: row.text(0)?,
            artifact_type: row.text(1)?,
            size: row.int(2)?,
            push_time: timestamp(row.int(3)?),
        })
    };
    tx.query(&sql, &params, read).await
}

/// Other repositories with the image where the caller may see images: what is hidden is not counted.
async fn shared_with<T>(tx: &mut ReadTx, call: &Authorized<T>, repo: &Uidp, digest: &str) -> Result<i32> {
    let sql = "SELECT count(*) FROM (SELECT 1 FROM repo_manifests
               WHERE digest = $1 AND repo >= $2 AND repo < $3 AND repo <> $4 LIMIT $5) AS bounded";
    let mut count = 0;
    for UidRange { lower, upper } in call.visible() {
        let params = [
            Value::from(digest),
            Value::from(&lower),
            Value::from(&upper),
            Value::from(repo.as_str()),
            Value::Int(MAX_SHARING - count),
        ];
        count += tx.query_opt(sql, &params, |row| row.int(0).map_err(Error::from)).await?.unwrap_or(0);
        if count >= MAX_SHARING {
            break;
        }
    }
    Ok(i32::try_from(count).unwrap_or(i32::MAX))
}

#[derive(Deserialize)]
struct Config {
    #[serde(default)]
    history: Vec<Step>,
}

#[derive(Deserialize)]
#[serde(default)]
#[derive(Default)]
struct Step {
    created: String,
    created_by: String,
    comment: String,
    empty_layer: bool,
}

impl Detail {
    /// Adds the history, where the config can be read: it is what a client pushed.
    pub(super) async fn with_history(mut self, documents: &Documents) -> Result<own::ImageDetail> {
        let Some(config) = self.config else { return Ok(self.shown) };
        let _permit = documents.permit().await?;
        let bytes = documents.read(&config).await?;
        let steps = documents.work(move || history(&bytes)).await?;
        self.shown.history = steps;
        Ok(self.shown)
    }
}

fn history(config: &[u8]) -> Vec<own::HistoryStep> {
    let Ok(Config { history }) = serde_json::from_slice(config) else { return Vec::new() };
    let step = |Step { created, created_by, comment, empty_layer }| own::HistoryStep {
        created,
        created_by,
        comment,
        empty_layer,
    };
    history.into_iter().take(MAX_STEPS).map(step).collect()
}

#[cfg(test)]
mod tests {
    use super::history;

    #[test]
    fn a_history_is_read_as_far_as_it_is_one() {
        let config = br#"{"history":[{"created_by":"RUN a","empty_layer":true},{"comment":"b"}],"rootfs":{}}"#;
        let steps = history(config);
        assert_eq!((steps.len(), &*steps[0].created_by, steps[0].empty_layer), (2, "RUN a", true));
        for odd in [&b"{}"[..], b"[]", b"\xff", br#"{"history":5}"#] {
            assert!(history(odd).is_empty());
        }
    }
}
