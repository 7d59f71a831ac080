//! Helm charts that were pushed: what their metadata say, and their best known files.

mod archive;

use std::collections::BTreeMap;
use std::sync::Arc;

use bowline_contract::v1::registry as v1;
use bowline_contract::v1::registry::rpc::registry::GetChart;
use bowline_core::{Error, Result, Uidp};
use bowline_pipeline::Handlers;
use bowline_store::ReadTx;
use serde::Deserialize;

use super::attached::{self, BlobBytes};
use super::images;
use crate::kinds::CHART;

pub(crate) fn register(handlers: Handlers, blobs: &Arc<dyn BlobBytes>) -> Handlers {
    let blobs = blobs.clone();
    handlers.read::<GetChart>(move |tx, call| {
        let blobs = blobs.clone();
        Box::pin(async move { get(tx, &*blobs, call.place()?, &call.request().digest).await })
    })
}

const METADATA: &str = "application/vnd.cncf.helm.config.v1+json";
const ARCHIVE: &str = "application/vnd.cncf.helm.chart.content.v1.tar+gzip";

/// Most bytes of metadata that are looked into.
const METADATA_BYTES: u64 = 1 << 20;
/// Most bytes of an archive that is looked into.
const ARCHIVE_BYTES: u64 = 16 << 20;

/// The members of `Chart.yaml` that are shown.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Metadata {
    name: String,
    version: String,
    app_version: String,
    description: String,
    dependencies: Vec<Dependency>,
    annotations: BTreeMap<String, String>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Dependency {
    name: String,
    version: String,
    repository: String,
}

async fn get(tx: &mut ReadTx, blobs: &dyn BlobBytes, repo: &Uidp, digest: &str) -> Result<v1::Chart> {
    images::require(tx, repo, digest).await?;
    let config = attached::config(tx, repo, digest).await?.filter(|config| config.media_type == METADATA);
    let config = config.ok_or_else(|| Error::not_found(CHART, digest))?;
    let metadata = blobs.read(&config.digest, &config.upload, METADATA_BYTES)?;
    let metadata: Option<Metadata> = metadata.and_then(|bytes| serde_json::from_slice(&bytes).ok());
    let metadata = metadata.ok_or_else(|| {
        Error::precondition("CHART_UNREADABLE", digest, "the metadata of the chart are not JSON as Helm writes it")
    })?;
    let layers = attached::layers(tx, repo, digest).await?;
    let archive = match layers.into_iter().find(|layer| layer.media_type == ARCHIVE) {
        Some(layer) => blobs.read(&layer.digest, &layer.upload, ARCHIVE_BYTES)?.unwrap_or_default(),
        None => Vec::new(),
    };
    let mut files = archive::files(&archive, &["Chart.yaml", "values.yaml", "CHANGELOG.md"]);
    let mut file = |name| files.remove(name).unwrap_or_default();
    let dependency = |Dependency { name, version, repository }| v1::ChartDependency { name, version, repository };
    Ok(v1::Chart {
        name: metadata.name,
        version: metadata.version,
        app_version: metadata.app_version,
        description: metadata.description,
        dependencies: metadata.dependencies.into_iter().map(dependency).collect(),
        annotations: metadata.annotations,
        images: Vec::new(),
        raw: file("Chart.yaml"),
        values: file("values.yaml"),
        changelog: file("CHANGELOG.md"),
    })
}
