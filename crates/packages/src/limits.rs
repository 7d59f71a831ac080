//! All limits on the size of packages.

/// Most bytes of a file.
pub(crate) const MOST_FILE: u64 = 16 << 30;
/// Most bytes of metadata.
pub(crate) const MOST_METADATA: u64 = 1 << 20;
/// Deepest directory below the one that is walked.
pub(crate) const MOST_DEPTH: usize = 64;
