use aws_lc_rs::digest::{Context, SHA256, SHA512};

use crate::digest::{Algorithm, Digest};

/// A digest under way.
#[derive(Clone)]
pub(crate) struct Hasher {
    algorithm: Algorithm,
    context: Context,
}

impl Hasher {
    pub(crate) fn new(algorithm: Algorithm) -> Hasher {
        let context = Context::new(match algorithm {
            Algorithm::Sha256 => &SHA256,
            Algorithm::Sha512 => &SHA512,
        });
        Hasher { algorithm, context }
    }

    pub(crate) fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    pub(crate) fn update(&mut self, data: &[u8]) {
        self.context.update(data);
    }

    pub(crate) fn finish(self) -> Digest {
        Digest::of_bytes(self.algorithm, self.context.finish().as_ref())
    }
}
