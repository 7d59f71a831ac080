//! Manifests of the versions of a package, as they are stored beside the document of an upstream.

use std::io::{Read as _, Write as _};

use bowline_contract::bowline::libraries::v1::UpstreamManifests;
use bowline_core::{Error, Result};
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use prost::Message as _;

/// Bytes of the manifests of a package: documents have 32 MiB at most.
const UNPACKED: u64 = 128 << 20;

/// Manifests as they are stored: compressed, since versions repeat each other. Empty without any.
#[derive(Debug, Default)]
pub struct PackedManifests(pub(super) Vec<u8>);

impl PackedManifests {
    /// Compresses manifests, which takes long enough for a thread that may wait.
    ///
    /// # Errors
    /// INTERNAL: the encoder failed, which it does not in memory.
    pub fn pack(manifests: &UpstreamManifests) -> Result<PackedManifests> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(&manifests.encode_to_vec()).map_err(Error::internal)?;
        Ok(PackedManifests(encoder.finish().map_err(Error::internal)?))
    }

    /// The manifests themselves.
    ///
    /// # Errors
    /// INTERNAL: they are damaged.
    pub fn unpack(&self) -> Result<UpstreamManifests> {
        let mut bytes = Vec::new();
        if !self.0.is_empty() {
            let mut decoder = GzDecoder::new(self.0.as_slice()).take(UNPACKED);
            decoder.read_to_end(&mut bytes).map_err(Error::internal)?;
        }
        UpstreamManifests::decode(bytes.as_slice()).map_err(Error::internal)
    }
}
