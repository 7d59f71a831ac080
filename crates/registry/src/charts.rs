//! Helm charts that were pushed: what their metadata say, their best known files, and the images that they use.

mod add;
mod archive;
mod bindings;
mod catalogs;
pub(super) mod images;

use std::collections::BTreeMap;

use bowline_contract::v1::registry as v1;
use bowline_contract::v1::registry::rpc::registry::GetChart;
use bowline_core::{Error, Result, Uidp};
use bowline_pipeline::Handlers;
use bowline_resources::kinds::CHART;
use bowline_store::ReadTx;
use serde::Deserialize;

use super::attached::{self, Documents, Layer};
use super::images::require;

pub(crate) fn register(handlers: Handlers, documents: &Documents) -> Handlers {
    let documents = documents.clone();
    let handlers = catalogs::register(bindings::register(add::register(handlers)));
    handlers.read_then::<GetChart, _>(
        |tx, call| Box::pin(async move { find(tx, call.require_scope()?, &call.request().digest).await }),
        move |files| {
            let documents = documents.clone();
            Box::pin(async move { read(&documents, files).await })
        },
    )
}

/// Media type of a chart's config, which makes a manifest one of a chart.
pub(crate) const METADATA: &str = "application/vnd.cncf.helm.config.v1+json";
const ARCHIVE: &str = "application/vnd.cncf.helm.chart.content.v1.tar+gzip";

/// Maximum bytes of metadata that are looked into.
const METADATA_BYTES: u64 = 1 << 20;
/// Maximum bytes of an archive that is looked into.
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

impl Metadata {
    /// Reads an object: a list would pass for one whose members come in order.
    fn read(bytes: &[u8]) -> Option<Metadata> {
        let object = serde_json::from_slice::<serde_json::Map<_, _>>(bytes).ok()?;
        serde_json::from_value(serde_json::Value::Object(object)).ok()
    }
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Dependency {
    name: String,
    version: String,
    repository: String,
}

/// The blobs of a chart.
struct Files {
    /// Digest of its manifest.
    chart: String,
    metadata: Layer,
    archive: Option<Layer>,
}

async fn find(tx: &mut ReadTx, repo: &Uidp, digest: &str) -> Result<Files> {
    require(tx, repo, digest).await?;
    let metadata = attached::config(tx, repo, digest).await?.filter(|config| config.media_type == METADATA);
    let metadata = metadata.ok_or_else(|| Error::not_found(CHART, digest))?;
    let layers = attached::layers(tx, repo, digest).await?;
    let archive = layers.into_iter().find(|layer| layer.media_type == ARCHIVE);
    for (layer, most) in [(Some(&metadata), METADATA_BYTES), (archive.as_ref(), ARCHIVE_BYTES)] {
        if layer.is_some_and(|layer| layer.size > most) {
            let description = format!("a blob of the chart has more than {most} bytes and is not looked into; pull it");
            return Err(Error::precondition("CHART_UNREADABLE", digest, description));
        }
    }
    Ok(Files { chart: digest.to_owned(), metadata, archive })
}

async fn read(documents: &Documents, files: Files) -> Result<v1::Chart> {
    let _permit = documents.permit().await?;
    let metadata = documents.read(&files.metadata).await?;
    let archive = match &files.archive {
        Some(archive) => documents.read(archive).await?,
        None => Vec::new(),
    };
    documents.work(move || shown(&files.chart, &metadata, &archive)).await?
}

fn shown(chart: &str, metadata: &[u8], archive: &[u8]) -> Result<v1::Chart> {
    let metadata = Metadata::read(metadata).ok_or_else(|| {
        Error::precondition("CHART_UNREADABLE", chart, "the metadata of the chart are not JSON as Helm writes it")
    })?;
    let mut files = archive::files(archive, &["Chart.yaml", "values.yaml", "CHANGELOG.md"]);
    let mut file = |name| files.remove(name).unwrap_or_default();
    let dependency = |Dependency { name, version, repository }| v1::ChartDependency { name, version, repository };
    Ok(v1::Chart {
        name: metadata.name,
        version: metadata.version,
        app_version: metadata.app_version,
        description: metadata.description,
        dependencies: metadata.dependencies.into_iter().map(dependency).collect(),
        images: images::shown(&metadata.annotations),
        annotations: metadata.annotations,
        raw: file("Chart.yaml"),
        values: file("values.yaml"),
        changelog: file("CHANGELOG.md"),
    })
}
