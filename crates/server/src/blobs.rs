//! Small blobs, for what the API tells of attached documents.

use bowline_content::{Content, Digest};
use bowline_core::Error;
use bowline_services::BlobBytes;

/// Reads where the registry host stores.
pub(crate) struct Blobs(pub(crate) Content);

impl BlobBytes for Blobs {
    fn read(&self, digest: &str, upload: &str, most: u64) -> Result<Option<Vec<u8>>, Error> {
        let digest = Digest::parse(digest).map_err(Error::internal)?;
        let Some(reader) =
            self.0.read(&digest, upload).map_err(Error::internal)?.filter(|reader| reader.size() <= most)
        else {
            return Ok(None);
        };
        let bytes = reader.read_small(0, reader.size()).map_err(Error::internal)?;
        Ok(Some(bytes.into()))
    }
}
