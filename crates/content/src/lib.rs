//! Bytes of blobs, by digest: a local directory.
//!
//! An upload is a file of its own that grows by [`Content::append`], in any number of calls and across
//! restarts. [`Content::finish`] compares its digest, makes the bytes durable, and only then gives them
//! their place; nothing is ever visible in part. What a blob is *for* is not known here: links live in
//! the database.

mod digest;
mod error;
mod files;
mod hasher;
mod local;
mod reader;
mod writing;

pub use digest::{Algorithm, Digest, DigestError};
pub use error::ContentError;
pub use local::Content;
pub use reader::Reader;
