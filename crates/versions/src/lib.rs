//! Versions of packages, ordered as their ecosystems order them.
//!
//! Every scheme makes an order key of a version: bytes whose `memcmp` order is the order of versions, and that are equal
//! when the ecosystem calls two spellings the same version (`1.0` and `1.0.0` on PyPI). There is no second implementation
//! that compares: databases sort and search by the key, [`Version`] compares by it, and tests hold it against the plain
//! definitions. Keys are stored, so a change of an encoding needs a migration.

mod key;
mod scheme;
mod schemes;
mod version;

pub use scheme::Scheme;
pub use version::{MAX_LENGTH, Version, VersionError, order_key};
