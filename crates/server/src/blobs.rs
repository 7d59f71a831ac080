//! Where the bytes of blobs lie, and small ones of them for what the API tells of attached documents.

use bowline_content::{Content, Digest};
use bowline_core::Error;
use bowline_services::BlobBytes;

use crate::error::StartError;
use crate::options::Options;
use crate::storage::create_private_directory;

/// Where the bytes of blobs lie.
pub(crate) fn content(options: &Options) -> Result<Content, StartError> {
    create_private_directory(&options.data_dir())?;
    let directory = options.data_dir().join("blobs");
    Content::open(&directory).map_err(|error| {
        StartError::Option(format!("blobs cannot be kept in {}: {error}; make it writable", directory.display()))
    })
}

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
