//! Bytes of blobs, by digest: in a local directory, or in an object store.
//!
//! An upload grows by [`Content::append`], in any number of calls and across restarts. [`Content::finish`]
//! compares its digest, moves the bytes to their final location, and makes both durable before it returns;
//! a [`Tail`] alone shows an upload before that. What a blob is *for* is not known here: links are in the database.

mod content;
mod digest;
mod error;
mod files;
mod hasher;
mod local;
mod objects;
mod reader;
mod source;
mod tail;
mod under_way;
mod writing;

pub use content::{BlobLocation, Content, Shard, Stored};
pub use digest::{Algorithm, Digest, DigestError};
pub use error::ContentError;
pub use local::FullCheck;
pub use reader::Reader;
pub use source::BlobSource;
pub use tail::{Follower, HELD_BACK, Tail};
