//! All copies that lie somewhere, for those who collect and verify.

use super::{Content, Place, blocking};
use crate::digest::{Algorithm, Digest};
use crate::error::ContentError;

/// Bytes that lie somewhere, be they a blob's or nobody's.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Copy {
    /// The digest, where the place tells it.
    pub digest: Option<Digest>,
    /// What a blob with these bytes says brought them.
    pub upload: String,
    /// The upload under way that they may still belong to.
    pub begun: String,
}

/// A part of what [`Content::shards`] divides all copies into.
#[derive(Clone, Copy, Debug)]
pub struct Shard {
    algorithm: Algorithm,
    first: u8,
}

impl Content {
    /// The parts that copies are listed in, one after the other.
    pub fn shards(&self) -> Vec<Shard> {
        let algorithms: &[Algorithm] = match &self.place {
            Place::Local(_) => &[Algorithm::Sha256, Algorithm::Sha512],
            // Keys there tell no digest: any algorithm stands for all.
            Place::Objects(_) => &[Algorithm::Sha256],
        };
        let of = |algorithm: &Algorithm| {
            let algorithm = *algorithm;
            (0..=255).map(move |first| Shard { algorithm, first })
        };
        algorithms.iter().flat_map(of).collect()
    }

    /// The copies of one part.
    ///
    /// # Errors
    /// The storage refuses.
    pub async fn copies(&self, shard: Shard) -> Result<Vec<Copy>, ContentError> {
        match &self.place {
            Place::Local(local) => {
                let local = local.clone();
                blocking(move || local.copies(shard.algorithm, shard.first)).await
            }
            Place::Objects(objects) => objects.copies(shard.first).await,
        }
    }

    /// Bytes of what a listing named; absent if it is gone.
    ///
    /// # Errors
    /// The storage refuses.
    pub async fn size_of_copy(&self, copy: &Copy) -> Result<Option<u64>, ContentError> {
        match (&self.place, &copy.digest) {
            (Place::Local(local), Some(digest)) => local.size(digest, &copy.upload),
            (Place::Local(_), None) => Ok(None),
            (Place::Objects(objects), _) => objects.size(&copy.upload).await,
        }
    }

    /// Removes what a listing named.
    ///
    /// # Errors
    /// The storage refuses.
    pub async fn delete_copy(&self, copy: &Copy) -> Result<(), ContentError> {
        match (&self.place, &copy.digest) {
            (Place::Local(_), Some(digest)) => self.delete(digest, &copy.upload).await,
            (Place::Local(_), None) => Ok(()),
            (Place::Objects(objects), _) => objects.delete(&copy.upload).await,
        }
    }
}
