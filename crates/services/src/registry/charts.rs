//! Helm charts that were pushed: what their metadata say, and their best known files.

mod archive;

use std::collections::BTreeMap;

use bowline_contract::v1::registry as v1;
use bowline_contract::v1::registry::rpc::registry::GetChart;
use bowline_core::{Error, Result, Uidp};
use bowline_feeds::{Limits, objects_of_yaml};
use bowline_pipeline::Handlers;
use bowline_store::ReadTx;
use serde::Deserialize;

use super::attached::{self, Documents, Layer};
use super::images;
use crate::kinds::CHART;

pub(crate) fn register(handlers: Handlers, documents: &Documents) -> Handlers {
    let documents = documents.clone();
    handlers.read_then::<GetChart, _>(
        |tx, call| Box::pin(async move { find(tx, call.place()?, &call.request().digest).await }),
        move |files| {
            let documents = documents.clone();
            Box::pin(async move { read(&documents, files).await })
        },
    )
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

/// The blobs of a chart.
struct Files {
    /// Digest of its manifest.
    chart: String,
    metadata: Layer,
    archive: Option<Layer>,
}

async fn find(tx: &mut ReadTx, repo: &Uidp, digest: &str) -> Result<Files> {
    images::require(tx, repo, digest).await?;
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
    let _place = documents.place().await?;
    let metadata = documents.read(&files.metadata).await?;
    let archive = match &files.archive {
        Some(archive) => documents.read(archive).await?,
        None => Vec::new(),
    };
    documents.work(move || shown(&files.chart, &metadata, &archive)).await?
}

fn shown(chart: &str, metadata: &[u8], archive: &[u8]) -> Result<v1::Chart> {
    let metadata: Metadata = serde_json::from_slice(metadata).map_err(|_| {
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
        images: images(&metadata.annotations),
        annotations: metadata.annotations,
        raw: file("Chart.yaml"),
        values: file("values.yaml"),
        changelog: file("CHANGELOG.md"),
    })
}

/// Where the makers of a chart list the images that it uses: a chart itself has them in templates alone.
const IMAGES: &str = "artifacthub.io/images";

/// The images of a chart's list; none where the list is not as its readers want it, which the annotation itself shows.
fn images(annotations: &BTreeMap<String, String>) -> Vec<v1::ChartImage> {
    let limits = Limits { bytes: METADATA_BYTES as usize, values: 10_000, depth: 8, ..Limits::default() };
    let Some(Ok(listed)) = annotations.get(IMAGES).map(|list| objects_of_yaml(list, &limits)) else {
        return Vec::new();
    };
    let image = |mut listed: BTreeMap<String, String>| {
        let image = listed.remove("image")?;
        Some(v1::ChartImage { name: listed.remove("name").unwrap_or_default(), image, ..v1::ChartImage::default() })
    };
    listed.into_iter().filter_map(image).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_that_nobody_can_read_names_no_images() {
        let named = |list: &str| {
            let annotations = BTreeMap::from([(IMAGES.to_owned(), list.to_owned())]);
            images(&annotations).into_iter().map(|image| (image.name, image.image)).collect::<Vec<_>>()
        };
        let one = vec![("a".to_owned(), "r.example/a".to_owned())];
        assert_eq!(named("- {name: a, image: r.example/a}\n- {name: without}\n- image: [1]\n"), one);
        let deep = "[".repeat(100_000);
        for list in ["", "r.example/a", "image: r.example/a", "- &a [*a]", "- {image: x", &deep] {
            assert_eq!(named(list), [], "{list:.20}");
        }
        assert_eq!(images(&BTreeMap::new()), []);
    }
}
