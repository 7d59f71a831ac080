//! SBOMs of images, out of what is attached to them.

mod cyclonedx;
mod parse;
mod spdx;

use std::sync::Arc;

use bowline_contract::v1::registry as v1;
use bowline_contract::v1::registry::rpc::registry::{GetRawSbom, GetSbom};
use bowline_contract::v1::tenant::{Sbom2, sbom2::Source};
use bowline_core::{Error, Result, Uidp};
use bowline_pipeline::Handlers;
use bowline_store::ReadTx;

use self::parse::{Document, Format};
use super::attached::{self, BlobBytes};
use super::images;
use crate::kinds::SBOM;

pub(crate) fn register(handlers: Handlers, blobs: &Arc<dyn BlobBytes>) -> Handlers {
    let (for_raw, for_read) = (blobs.clone(), blobs.clone());
    handlers
        .read::<GetRawSbom>(move |tx, call| {
            let blobs = for_raw.clone();
            Box::pin(async move {
                let v1::RawSbomRequest { digest, arch, .. } = call.request();
                let found = find(tx, &*blobs, call.place()?, (digest, arch)).await?;
                Ok(v1::RawSbom { raw_sbom: found.document.text })
            })
        })
        .read::<GetSbom>(move |tx, call| {
            let blobs = for_read.clone();
            Box::pin(async move {
                let v1::SbomRequest { digest, arch, .. } = call.request();
                find(tx, &*blobs, call.place()?, (digest, arch)).await?.read()
            })
        })
}

/// Most bytes of an attached document that is looked into.
const MOST_BYTES: u64 = 16 << 20;
/// Most bytes that are looked into for one answer.
const MOST_BYTES_IN_ALL: u64 = 64 << 20;

/// An SBOM, and where it was.
struct Found {
    document: Document,
    /// Digest of the blob that it was in.
    blob: String,
    /// Digest of the image that it is about.
    image: String,
}

/// The newest SBOM that is attached to the image for this architecture, or else to the index.
async fn find(tx: &mut ReadTx, blobs: &dyn BlobBytes, repo: &Uidp, (digest, arch): (&str, &str)) -> Result<Found> {
    let (image, _) = images::for_architecture(tx, repo, digest, arch).await?;
    let mut about = vec![image.digest.as_str()];
    if image.digest != digest {
        about.push(digest);
    }
    let mut left = MOST_BYTES_IN_ALL;
    for subject in about {
        for manifest in attached::manifests(tx, repo, subject).await? {
            for layer in attached::layers(tx, repo, &manifest).await? {
                if !layer.media_type.contains("json") || layer.size > MOST_BYTES.min(left) {
                    continue;
                }
                left -= layer.size;
                let bytes = blobs.read(&layer.digest, &layer.upload, MOST_BYTES)?;
                if let Some(document) = bytes.as_deref().and_then(parse::document) {
                    return Ok(Found { document, blob: layer.digest, image: image.digest });
                }
            }
        }
    }
    Err(Error::not_found(SBOM, digest))
}

impl Found {
    fn read(self) -> Result<Sbom2> {
        let sbom = match self.document.format {
            Format::Spdx => spdx::sbom(&self.document.text),
            Format::CycloneDx => cyclonedx::sbom(&self.document.text),
        };
        let sbom = sbom.ok_or_else(|| {
            let description = "the attached SBOM is neither SPDX 2 nor CycloneDX in JSON; ask for the raw one";
            Error::precondition("SBOM_UNREADABLE", &self.blob, description)
        })?;
        Ok(Sbom2 { id: self.blob, digest: Some(self.image), source: Source::Ingested as i32, ..sbom })
    }
}
