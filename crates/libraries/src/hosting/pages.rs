//! Pages of packages as they were sent last, kept for as long as all that they show is the same.
//!
//! A page is made of rows that many calls change: files, what upstreams say, policies, malware. No one tells the cache.
//! Each request reads a stamp of those rows, which is much less than the rows, and a page with another stamp is made again.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use bowline_authn::crypto::sha256;
use bowline_core::{Micros, Result, Uidp, hex};
use bowline_store::ReadTx;
use prost::bytes::Bytes;

use super::package::{Place, Revision};
use crate::ecosystems::Language;
use crate::{malware, policies};

/// Bytes of half of the cache, and of a page that is kept.
const HALF: usize = 32 << 20;
const PAGE: usize = 4 << 20;
/// What the table costs for a page, about.
const ENTRY: usize = 1024;

/// A page as it is sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RenderedPage {
    pub text: Bytes,
    /// Stands for the text: 32 hex digits.
    pub tag: String,
    /// Microseconds since the upstream confirmed the package, if that cannot be asked.
    pub stale: Option<Micros>,
}

/// Names a page: the groups that see one package in one place see one page.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct PageKey {
    pub(super) repository: Uidp,
    pub(super) package: String,
    /// Media type.
    pub(super) form: &'static str,
}

/// What a page depends on, apart from the time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    revision: Revision,
    policies: [u8; 32],
    malware: Vec<(String, String)>,
}

impl Stamp {
    pub(super) async fn read(
        tx: &mut ReadTx,
        organization: &Uidp,
        (language, name): (Language, &str),
        place: &Place,
    ) -> Result<Stamp> {
        Ok(Stamp {
            revision: place.revision.clone(),
            policies: policies::digest_in_force(tx, organization, language).await?,
            malware: malware::listed(tx, language, name).await?,
        })
    }
}

#[derive(Clone)]
struct Kept {
    stamp: Stamp,
    /// When time changes it.
    until: Option<Micros>,
    page: RenderedPage,
}

impl Kept {
    fn bytes(&self) -> usize {
        ENTRY + self.page.text.len()
    }
}

/// The pages, in two halves: one is filled, and dropped once the other is full.
#[derive(Default)]
pub(super) struct Pages(Mutex<Halves>);

#[derive(Default)]
struct Halves {
    newer: HashMap<PageKey, Kept>,
    older: HashMap<PageKey, Kept>,
    /// Of the newer half.
    bytes: usize,
}

impl Halves {
    fn insert(&mut self, key: PageKey, kept: Kept) {
        if self.bytes + kept.bytes() > HALF {
            self.older = std::mem::take(&mut self.newer);
            self.bytes = 0;
        }
        self.bytes += kept.bytes();
        if let Some(before) = self.newer.insert(key, kept) {
            self.bytes -= before.bytes();
        }
    }
}

impl Pages {
    /// The page, if one of that stamp is kept and time has not changed it.
    pub(super) fn find(&self, key: &PageKey, stamp: &Stamp, now: Micros) -> Option<RenderedPage> {
        let mut halves = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !halves.newer.contains_key(key) {
            let kept = halves.older.remove(key)?;
            halves.insert(key.clone(), kept);
        }
        let kept = halves.newer.get(key)?;
        (kept.stamp == *stamp && kept.until.is_none_or(|until| now < until)).then(|| kept.page.clone())
    }

    /// Keeps a page that was made of what the stamp stands for, and that time changes at `until`.
    pub(super) fn keep(&self, key: PageKey, stamp: Stamp, text: String, until: Option<Micros>) -> RenderedPage {
        let tag = hex(&sha256(text.as_bytes())[..16]);
        let page = RenderedPage { text: text.into(), tag, stale: None };
        if page.text.len() <= PAGE {
            let kept = Kept { stamp, until, page: page.clone() };
            self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(key, kept);
        }
        page
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(package: &str) -> PageKey {
        let repository = Uidp::parse("0123456789abcdef0123456789abcdef01234567").expect("a uid");
        PageKey { repository, package: package.into(), form: "text/html" }
    }

    fn stamp(revision: i64) -> Stamp {
        Stamp { revision: Revision::OfRepository(revision), policies: [0; 32], malware: Vec::new() }
    }

    #[test]
    fn a_page_is_found_while_its_stamp_and_time_hold() {
        let pages = Pages::default();
        let made = pages.keep(key("a"), stamp(1), "one".into(), Some(10));
        assert_eq!(pages.find(&key("a"), &stamp(1), 9), Some(made));
        assert_eq!(pages.find(&key("a"), &stamp(1), 10), None, "time has changed it");
        assert_eq!(pages.find(&key("a"), &stamp(2), 9), None, "something has changed it");
        assert_eq!(pages.find(&key("b"), &stamp(1), 9), None, "another package");
        assert_eq!(pages.find(&PageKey { form: "application/json", ..key("a") }, &stamp(1), 9), None, "another form");
        let other = Stamp { policies: [1; 32], ..stamp(1) };
        assert_eq!(pages.find(&key("a"), &other, 9), None, "another policy");
        let other = Stamp { malware: vec![("1.0".into(), String::new())], ..stamp(1) };
        assert_eq!(pages.find(&key("a"), &other, 9), None, "a report of malware");
    }

    #[test]
    fn memory_is_bounded_and_what_is_used_stays() {
        let pages = Pages::default();
        let text = "x".repeat(1 << 20);
        for number in 0..200 {
            pages.keep(key(&number.to_string()), stamp(0), text.clone(), None);
            pages.keep(key("used"), stamp(number), "small".into(), None);
            assert!(pages.find(&key("used"), &stamp(number), 0).is_some());
            let halves = pages.0.lock().expect("a lock");
            let held: usize = halves.newer.values().map(Kept::bytes).sum();
            assert_eq!(held, halves.bytes);
            assert!(held + halves.older.values().map(Kept::bytes).sum::<usize>() <= 2 * HALF);
        }
        pages.keep(key("huge"), stamp(0), "x".repeat(PAGE + 1), None);
        assert_eq!(pages.find(&key("huge"), &stamp(0), 0), None, "too large to keep");
    }
}
