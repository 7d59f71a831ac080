//! SBOMs of images, out of what is attached to them.

mod cyclonedx;
mod parse;
mod spdx;

use std::collections::BTreeSet;

use bowline_contract::v1::registry as v1;
use bowline_contract::v1::registry::rpc::registry::{GetRawSbom, GetSbom};
use bowline_contract::v1::tenant::component_graph::node::TypedNode;
use bowline_contract::v1::tenant::{Package2, Sbom2, sbom2::Source};
use bowline_core::{Error, Reason, Result, Uidp};
use bowline_pipeline::Handlers;
use bowline_resources::kinds::SBOM;
use bowline_store::ReadTx;

use self::parse::{Document, Format};
use super::attached::{self, Documents, Layer};
use super::images;

pub(crate) fn register(handlers: Handlers, documents: &Documents) -> Handlers {
    let (for_raw, for_read) = (documents.clone(), documents.clone());
    handlers
        .read_then::<GetRawSbom, _>(
            |tx, call| {
                Box::pin(async move {
                    let v1::RawSbomRequest { digest, arch, .. } = call.request();
                    candidates(tx, call.require_scope()?, (digest, arch)).await
                })
            },
            move |candidates| {
                let documents = for_raw.clone();
                Box::pin(async move {
                    let raw_sbom = documents.first(candidates, |found| Ok(found.document.text)).await?;
                    Ok(v1::RawSbom { raw_sbom })
                })
            },
        )
        .read_then::<GetSbom, _>(
            |tx, call| {
                Box::pin(async move {
                    let v1::SbomRequest { digest, arch, .. } = call.request();
                    candidates(tx, call.require_scope()?, (digest, arch)).await
                })
            },
            move |candidates| {
                let documents = for_read.clone();
                Box::pin(async move { documents.first(candidates, LocatedSbom::read).await })
            },
        )
}

/// Maximum bytes of an attached document that is looked into.
pub(crate) const MAX_BYTES: u64 = 16 << 20;
/// Maximum bytes that are parsed for one response.
const MAX_TOTAL_BYTES: u64 = 64 << 20;

/// Maximum number of layers that are parsed for one response.
const MAX_LAYERS: usize = 200;

/// What may be the SBOM of an image.
pub struct Candidates {
    /// The requested digest, and that of the image that it stands for.
    requested: String,
    image: String,
    layers: Vec<Layer>,
}

/// An SBOM, and where it was.
struct LocatedSbom {
    document: Document,
    /// Digest of the blob that it was in.
    blob: String,
    /// Digest of the image that it is about.
    image: String,
}

/// What is attached to the image for this architecture, the newest first, or else to the index.
pub(crate) async fn candidates(tx: &mut ReadTx, repo: &Uidp, (digest, arch): (&str, &str)) -> Result<Candidates> {
    let (image, _) = images::for_architecture(tx, repo, digest, arch).await?;
    let mut about = vec![image.digest.as_str()];
    if image.digest != digest {
        about.push(digest);
    }
    let mut left = MAX_TOTAL_BYTES;
    let mut layers = Vec::new();
    for subject in about {
        for manifest in attached::manifests(tx, repo, subject).await? {
            for layer in attached::layers(tx, repo, &manifest).await? {
                let is_one = layer.media_type.contains("json") && layer.size <= MAX_BYTES.min(left);
                if is_one && layers.len() < MAX_LAYERS {
                    left -= layer.size;
                    layers.push(layer);
                }
            }
        }
    }
    Ok(Candidates { requested: digest.to_owned(), image: image.digest, layers })
}

impl Documents {
    /// What `read` makes of the first of the candidates that is an SBOM.
    async fn first<T: Send + 'static>(
        &self,
        candidates: Candidates,
        read: impl FnOnce(LocatedSbom) -> Result<T> + Send + Copy + 'static,
    ) -> Result<T> {
        let _permit = self.permit().await?;
        for layer in candidates.layers {
            let bytes = self.read(&layer).await?;
            let image = candidates.image.clone();
            let found = move || {
                let document = parse::document(&bytes)?;
                Some(read(LocatedSbom { document, blob: layer.digest, image }))
            };
            if let Some(read) = self.work(found).await? {
                return read;
            }
        }
        Err(Error::not_found(SBOM, candidates.requested))
    }
}

/// What may be the SBOM of an image: see `Documents::packages`.
pub async fn sources(tx: &mut ReadTx, repo: &Uidp, digest: &str) -> Result<Option<Candidates>> {
    match candidates(tx, repo, (digest, "")).await {
        Ok(candidates) => Ok(Some(candidates)),
        Err(error) if error.reason() == Reason::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

impl Documents {
    /// Packages of an image, from its SBOM.
    ///
    /// # Errors
    /// It has none, or none that can be read.
    pub(crate) async fn read_packages(&self, sources: Candidates) -> Result<Vec<Package2>> {
        self.first(sources, |found| Ok(packages(found.read()?))).await
    }

    /// The same; empty without a readable SBOM.
    pub(crate) async fn packages(&self, sources: Candidates) -> Result<Vec<Package2>> {
        match self.read_packages(sources).await {
            Err(error) if matches!(error.reason(), Reason::NotFound | Reason::FailedPrecondition) => Ok(Vec::new()),
            packages => packages,
        }
    }

    /// Names of the packages of an image, and of the packages that those are built from.
    pub async fn package_names(&self, sources: Candidates) -> Result<BTreeSet<String>> {
        let packages = self.packages(sources).await?.into_iter();
        Ok(packages.flat_map(|package| origin(&package.purl).into_iter().chain([package.name])).collect())
    }
}

/// What is in a document that may be an SBOM.
pub(crate) enum Listed {
    /// It is no SBOM.
    NoSbom,
    /// It is an SBOM of another version, damaged, or nested too deep.
    Unreadable,
    /// Its lists have too many elements.
    TooLarge,
    Packages(Vec<Package2>),
}

/// The packages that a document lists.
pub(crate) fn listed(bytes: &[u8]) -> Listed {
    let Some(document) = parse::document(bytes) else { return Listed::NoSbom };
    if !parse::is_bounded(&document.text) {
        return Listed::TooLarge;
    }
    document.sbom().map_or(Listed::Unreadable, |sbom| Listed::Packages(packages(sbom)))
}

fn packages(sbom: Sbom2) -> Vec<Package2> {
    let nodes = sbom.graph.into_iter().flat_map(|graph| graph.nodes);
    let packages = nodes.filter_map(|node| match node.typed_node {
        Some(TypedNode::Package(package)) => Some(package),
        _ => None,
    });
    packages.collect()
}

/// The origin package that a purl of an operating system's package names.
pub fn origin(purl: &str) -> Option<String> {
    let (_, qualifiers) = purl.split_once('?')?;
    let qualifiers = qualifiers.split('#').next().unwrap_or(qualifiers);
    let origin = qualifiers.split('&').find_map(|qualifier| qualifier.strip_prefix("origin="))?;
    (!origin.is_empty()).then(|| origin.to_owned())
}

impl Document {
    /// The document in the words of the contract; absent if it cannot be read.
    fn sbom(&self) -> Option<Sbom2> {
        match self.format {
            Format::Spdx => spdx::sbom(&self.text),
            Format::CycloneDx => cyclonedx::sbom(&self.text),
        }
    }
}

impl LocatedSbom {
    fn read(self) -> Result<Sbom2> {
        let sbom = self.document.sbom().ok_or_else(|| {
            let description = "the attached SBOM is neither SPDX 2 nor CycloneDX in JSON, or too large to be taken \
                               apart; ask for the raw one";
            Error::precondition("SBOM_UNREADABLE", &self.blob, description)
        })?;
        Ok(Sbom2 { id: self.blob, digest: Some(self.image), source: Source::Ingested as i32, ..sbom })
    }
}
