//! All limits on the size of packages.

/// Maximum bytes of a file.
pub(crate) const MAX_FILE: u64 = 16 << 30;
/// Maximum bytes of metadata.
pub const MAX_METADATA: u64 = 1 << 20;
/// Deepest directory below the one that is walked.
pub(crate) const MAX_DEPTH: usize = 64;
