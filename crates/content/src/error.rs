use crate::digest::Digest;

/// Why bytes could not be stored or read.
#[derive(Debug, thiserror::Error)]
pub enum ContentError {
    /// There is no such upload: never begun, finished, or expired.
    #[error("the upload does not exist")]
    UnknownUpload,
    /// The bytes have another digest.
    #[error("the content has the digest {actual}")]
    Mismatch {
        /// Digest of the bytes that were sent.
        actual: Digest,
    },
    /// More bytes than may be sent.
    #[error("the content is larger than {0} bytes")]
    TooLarge(u64),
    /// A part begins elsewhere than where the upload ends.
    #[error("the upload has {uploaded} bytes, and the part begins elsewhere")]
    OutOfOrder {
        /// Bytes that are there.
        uploaded: u64,
    },
    /// Two requests write to one upload.
    #[error("another request writes to this upload")]
    Busy,
    /// The body ended before its announced length.
    #[error("the request's body broke off")]
    Interrupted,
    /// Two requests wrote to one upload at once, both from the same position.
    #[error("two requests wrote to this upload at once: begin a new one")]
    Torn,
    /// An upload in more bodies than can be put together.
    #[error("the upload has {0} bodies already: begin a new one with larger chunks")]
    TooManyBodies(usize),
    #[error("the content store refuses: {0}")]
    Storage(#[from] std::io::Error),
    /// The object store rejects the request, or does not respond.
    #[error("the object store refuses: {0}")]
    Objects(#[from] object_store::Error),
}

impl ContentError {
    /// Whether there is no room left.
    pub fn is_full(&self) -> bool {
        matches!(self, ContentError::Storage(error)
            if matches!(error.kind(), std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded))
    }
}
