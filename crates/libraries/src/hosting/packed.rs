//! Manifests of the versions of a package, as they are stored beside the document of an upstream.

use std::io::{BufRead, BufReader, Read as _, Write as _};

use bowline_contract::bowline::libraries::v1::{UpstreamManifest, UpstreamManifests};
use bowline_core::{Error, Result};
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use prost::Message as _;
use prost::encoding::{WireType, message};

/// Bytes of the manifests of a package: documents have 32 MiB at most.
const UNPACKED: u64 = 128 << 20;
/// Number of the field of `UpstreamManifests` that holds them, and what stands before each in its encoding.
const FIELD: u32 = 1;
const BEFORE_EACH: u64 = ((FIELD << 3) | WireType::LengthDelimited as u32) as u64;

/// Manifests as they are stored: compressed, since versions repeat each other. Empty without any.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PackedManifests(pub(super) Vec<u8>);

impl PackedManifests {
    /// Compresses manifests, which takes long enough for a thread that may wait.
    ///
    /// # Errors
    /// INTERNAL: the encoder failed, which it does not in memory.
    pub fn pack(manifests: &UpstreamManifests) -> Result<PackedManifests> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        let mut one = Vec::new();
        for manifest in &manifests.manifests {
            one.clear();
            message::encode(FIELD, manifest, &mut one);
            encoder.write_all(&one).map_err(Error::internal)?;
        }
        Ok(PackedManifests(encoder.finish().map_err(Error::internal)?))
    }

    /// The manifests themselves, one after the other: all of them together may be large.
    ///
    /// # Errors
    /// INTERNAL: they are damaged. Those of `visit`.
    pub fn each(&self, mut visit: impl FnMut(UpstreamManifest) -> Result<()>) -> Result<()> {
        if self.0.is_empty() {
            return Ok(());
        }
        let mut reader = BufReader::new(GzDecoder::new(self.0.as_slice()).take(UNPACKED));
        let mut one = Vec::new();
        while !reader.fill_buf().map_err(Error::internal)?.is_empty() {
            if varint(&mut reader)? != BEFORE_EACH {
                return Err(Error::internal("the manifests of a package have another form"));
            }
            let length = varint(&mut reader)?;
            one.clear();
            let read = reader.by_ref().take(length).read_to_end(&mut one).map_err(Error::internal)?;
            if read as u64 != length {
                return Err(Error::internal("the manifests of a package end too early"));
            }
            visit(UpstreamManifest::decode(one.as_slice()).map_err(Error::internal)?)?;
        }
        Ok(())
    }
}

/// A number of variable length.
fn varint(reader: &mut impl BufRead) -> Result<u64> {
    let mut number = 0;
    for shift in (0..u64::BITS).step_by(7) {
        let mut byte = [0];
        reader.read_exact(&mut byte).map_err(Error::internal)?;
        number |= u64::from(byte[0] & 0x7f) << shift;
        if byte[0] < 0x80 {
            return Ok(number);
        }
    }
    Err(Error::internal("a number in the manifests of a package has no end"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> UpstreamManifests {
        let manifest = |length: usize| UpstreamManifest {
            version: format!("1.{length}.0"),
            manifest: "x".repeat(length),
            file_count: length as i64,
            ..UpstreamManifest::default()
        };
        UpstreamManifests { manifests: [0, 1, 127, 128, 20_000, 70_000].map(manifest).into() }
    }

    fn read(packed: &PackedManifests) -> Result<Vec<UpstreamManifest>> {
        let mut read = Vec::new();
        packed.each(|manifest| {
            read.push(manifest);
            Ok(())
        })?;
        Ok(read)
    }

    fn compressed(bytes: &[u8]) -> PackedManifests {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(bytes).expect("memory");
        PackedManifests(encoder.finish().expect("memory"))
    }

    #[test]
    fn manifests_are_read_as_they_were_packed() {
        assert_eq!(read(&PackedManifests::pack(&sample()).expect("packed")).expect("manifests"), sample().manifests);
        assert_eq!(read(&PackedManifests::default()).expect("manifests"), []);
        // As they were stored first: as one message.
        let whole = compressed(&sample().encode_to_vec());
        assert_eq!(read(&whole).expect("manifests"), sample().manifests);
    }

    #[test]
    fn damaged_ones_are_refused() {
        let whole = sample().encode_to_vec();
        for bytes in [&whole[..whole.len() - 1], &[0x12, 0], &[0x0a], &[0x0a, 3, 1], &[0xff; 12]] {
            assert!(read(&compressed(bytes)).is_err(), "{bytes:?}");
        }
        let packed = PackedManifests::pack(&sample()).expect("packed").0;
        assert!(read(&PackedManifests(packed[..packed.len() / 2].to_vec())).is_err());
    }
}
