//! Compiled claim matches of identities in use: compiling patterns costs more than the signature.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use bowline_authn::matching::{ClaimMatch, Compiled, Expect};
use bowline_core::{Error, Result};

/// Maximum number of patterns in the cache, of all identities together; above it the cache is cleared. Each may hold a
/// quarter of a megabyte of automata, and what callers store must not fill the memory.
const MAX_PATTERNS: usize = 256;

/// The cache: by identity, valid for as long as the stored claim match is the same.
#[derive(Default)]
pub(super) struct Matchers {
    compiled: Mutex<HashMap<String, Arc<(ClaimMatch, Compiled)>>>,
}

impl Matchers {
    /// The claim match of an identity, ready for use.
    ///
    /// # Errors
    /// INTERNAL if what is stored does not compile: writing it should have been refused.
    pub(super) fn get(&self, uid: &str, expected: &ClaimMatch) -> Result<Compiled> {
        if patterns(expected) == 0 {
            return expected.compile().map_err(Error::internal);
        }
        let known = self.lock().get(uid).cloned();
        if let Some(known) = known.filter(|known| known.0 == *expected) {
            return Ok(known.1.clone());
        }
        let compiled = expected.compile().map_err(Error::internal)?;
        let mut entries = self.lock();
        if entries.values().map(|known| patterns(&known.0)).sum::<usize>() + patterns(expected) > MAX_PATTERNS {
            entries.clear();
        }
        entries.insert(uid.into(), Arc::new((expected.clone(), compiled.clone())));
        Ok(compiled)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<String, Arc<(ClaimMatch, Compiled)>>> {
        self.compiled.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How many patterns a claim match has.
pub(super) fn patterns(expected: &ClaimMatch) -> usize {
    let expectations = [Some(&expected.issuer), Some(&expected.subject), expected.audience.as_ref()];
    let is_pattern = |expect: &&Expect| matches!(expect, Expect::Pattern(_));
    expectations.into_iter().flatten().filter(is_pattern).count() + expected.claim_patterns.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_claim_match_is_compiled_again() {
        let matchers = Matchers::default();
        let mut expected = ClaimMatch {
            issuer: Expect::Pattern(r"https://a\.example/.+".into()),
            subject: Expect::Exact("me".into()),
            audience: None,
            claims: Default::default(),
            claim_patterns: Default::default(),
        };
        assert!(matchers.get("x", &expected).unwrap().trusts_issuer("https://a.example/1"));
        expected.issuer = Expect::Pattern(r"https://b\.example/.+".into());
        let changed = matchers.get("x", &expected).unwrap();
        assert!(!changed.trusts_issuer("https://a.example/1") && changed.trusts_issuer("https://b.example/1"));
    }
}
