//! Components of images: what SBOMs list, as rows that are searched.
//!
//! An SBOM is read before the transaction of its push (`extract`) and written in it (`write`). What a push could not
//! read, and what was pushed before there were such rows, is noted as pending and read by a periodic task (`pending`).
//! Which image an SBOM is about is decided when it is read (`links`), as everywhere else: by the subject of the manifest,
//! a tag or an index, all of which may change later.

mod candidates;
mod extract;
mod facts;
mod find;
mod findings;
pub mod garbage;
mod licenses;
mod links;
mod pending;
mod unindexed;
mod versions;
mod waiting;
mod write;

use bowline_contract::bowline::registry::v1::rpc::components::{FindImages, ListLicenses, ListUnindexedSboms};
use bowline_core::{UidRange, intersect};
use bowline_pipeline::{Handlers, handler};

pub(crate) use candidates::{may_have_sboms, unread};
pub(crate) use extract::ReadSbom;
pub(crate) use facts::{SbomFacts, sbom_facts};
pub use links::{InRepo, images, repo_names, sboms_of, tags};
pub use pending::SbomPosition;
pub use unindexed::{count as unindexed_sboms, uncompared_components};
pub use versions::{ListedVersion, PackageCondition, PackageVersion, UNCOMPARED};
pub use waiting::{note_images, note_sboms};
pub(crate) use waiting::{note_pushed, note_removed, note_repo, note_tag};
pub(crate) use write::store;
pub use write::store_uncompared;

pub(crate) fn register(handlers: Handlers) -> Handlers {
    handlers
        .heavy_read::<FindImages>(handler!(find::find))
        .heavy_read::<ListLicenses>(handler!(licenses::list))
        .read::<ListUnindexedSboms>(handler!(unindexed::list))
}

/// The visible ranges, cut by the scope of a request if it has one.
pub fn within(visible: Vec<UidRange>, scope: &str) -> Vec<UidRange> {
    if scope.is_empty() { visible } else { intersect(&visible, &[UidRange::subtree(scope)]) }
}

/// Number of an SBOM: the first 16 bytes of the digest of its blob, which is a hash. Absent for what is no digest.
fn sbom_id(digest: &str) -> Option<Vec<u8>> {
    let (_, hex) = digest.split_once(':')?;
    let byte = |at: usize| u8::from_str_radix(hex.get(2 * at..2 * at + 2)?, 16).ok();
    (0..16).map(byte).collect()
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_number_of_an_sbom_is_the_beginning_of_its_digest() {
        let digest = format!("sha256:00ff{}", "1".repeat(60));
        let id = super::sbom_id(&digest).expect("a digest");
        assert_eq!((id.len(), &id[..3]), (16, &[0, 255, 17][..]));
        assert_eq!(super::sbom_id("sha256:00"), None);
        assert_eq!(super::sbom_id("nothing"), None);
    }
}
