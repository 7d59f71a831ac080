//! Pages of packages as they were sent last, kept for as long as all that they show is the same.
//!
//! A page is made of rows that many calls change: files, what upstreams say, policies, malware. No one tells the cache.
//! Each request reads a stamp of those rows, which is much less than the rows, and a page with another stamp is made again.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::{Mutex, PoisonError};

use bowline_authn::crypto::sha256;
use bowline_core::{Error, Micros, Result, Uidp};
use bowline_store::ReadTx;
use prost::bytes::Bytes;
use tokio::sync::MutexGuard;

use super::package::{Location, Revision};
use super::signing_keys::UsableKeys;
use crate::ecosystems::Language;
use crate::policies::StoredInForce;
use crate::policy::decide::{Exception, Freeze, Overrides};
use crate::{in_force, malware, policies, vulnerabilities};

/// Bytes of half of the cache, and of a page that is kept: documents of npm often have some megabytes, compressed.
const HALF: usize = 64 << 20;
const PAGE: usize = 16 << 20;
/// What the table costs for a page, about.
const ENTRY: usize = 1024;
/// Pages that are made at once.
const AT_ONCE: usize = 16;

/// A page as it is sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RenderedPage {
    pub body: PageBody,
    /// Stands for the text.
    pub tag: String,
    /// One sentence for people beside it; absent if there is nothing to say.
    pub notice: Option<String>,
}

/// The text of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PageBody {
    Text(Bytes),
    /// Also compressed, which makes it shorter.
    Both {
        text: Bytes,
        gzip: Bytes,
    },
    /// Compressed alone, since it is long: of so many bytes.
    Gzip {
        gzip: Bytes,
        length: u64,
    },
}

impl PageBody {
    fn bytes(&self) -> usize {
        match self {
            PageBody::Text(text) => text.len(),
            PageBody::Both { text, gzip } => text.len() + gzip.len(),
            PageBody::Gzip { gzip, .. } => gzip.len(),
        }
    }
}

/// Names a page: the groups that see one package in one place see one page, if its links are relative.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct PageKey {
    pub(super) repository: Uidp,
    pub(super) package: String,
    /// Media type of the page.
    pub(super) form: &'static str,
    /// Where links of the page lead, if they are whole addresses.
    pub(super) base: String,
    /// The time that it shows, in microseconds; absent for now.
    pub(super) moment: Option<Micros>,
}

/// What a page depends on, apart from the time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    revision: Revision,
    /// Digest of the policies in force, exceptions, freezes, reports of malware and records of vulnerabilities.
    rules: [u8; 32],
    /// Of npm: the keys that signatures are shown of.
    keys: UsableKeys,
}

impl Stamp {
    pub(super) async fn read(
        tx: &mut ReadTx,
        organization: &Uidp,
        (language, name): (Language, &str),
        location: &Location,
        now: Micros,
    ) -> Result<Stamp> {
        let policies = policies::stored_in_force(tx, organization, language).await?;
        let overrides = in_force::overrides(tx, organization, Some((language, name)), now).await?;
        let reports = malware::listed(tx, language, name).await?;
        let records = if policies.iter().any(|policy| policy.rule.is_some()) {
            vulnerabilities::stamp(tx, language, name).await?
        } else {
            Vec::new()
        };
        let keys = match language {
            Language::JavaScript => {
                UsableKeys::read(tx, &location.repository, location.upstream.is_some(), now).await?
            }
            _ => UsableKeys::default(),
        };
        let (revision, rules) = (location.revision.clone(), digest(&policies, &overrides, &reports, &records));
        Ok(Stamp { revision, rules, keys })
    }
}

/// Each part with its length before it, so that no two lists have the same bytes.
fn digest(
    policies: &[StoredInForce],
    overrides: &Overrides,
    reports: &[(String, String)],
    records: &[i64],
) -> [u8; 32] {
    let mut bytes = Vec::new();
    let mut add = |part: &[u8]| {
        bytes.extend((part.len() as u64).to_be_bytes());
        bytes.extend(part);
    };
    for StoredInForce { mode, uid, name, policy, rule, age_source } in policies {
        let rule = rule.as_deref().unwrap_or_default();
        let (mode, source) = (mode.to_be_bytes(), age_source.to_be_bytes());
        [&mode, uid.as_bytes(), name.as_bytes(), policy, rule, &source].into_iter().for_each(&mut add);
    }
    for number in records {
        [&b"record"[..], &number.to_be_bytes()].into_iter().for_each(&mut add);
    }
    for Exception { pattern, bypass_malware, bypass_freeze, ends_at } in &overrides.exceptions {
        let flags = [u8::from(*bypass_malware), u8::from(*bypass_freeze)];
        [&b"exception"[..], pattern.text().as_bytes(), &flags, &ends_at.to_be_bytes()].into_iter().for_each(&mut add);
    }
    for Freeze { language, cutoff, includes_own } in &overrides.freezes {
        let language = language.number().to_be_bytes();
        let own = [u8::from(*includes_own)];
        [&b"freeze"[..], &language, &cutoff.to_be_bytes(), &own].into_iter().for_each(&mut add);
    }
    for (version, ranges) in reports {
        [&b"malware"[..], version.as_bytes(), ranges.as_bytes()].into_iter().for_each(&mut add);
    }
    sha256(&bytes)
}

#[derive(Clone)]
struct CachedPage {
    stamp: Stamp,
    /// When time changes it.
    until: Option<Micros>,
    page: RenderedPage,
}

impl CachedPage {
    fn bytes(&self) -> usize {
        ENTRY + self.page.body.bytes()
    }
}

/// The pages that are kept in memory.
pub(super) struct PageCache {
    cached: Mutex<Halves>,
    /// Held while a page is made, so that those who wait for the same one find it.
    making: [tokio::sync::Mutex<()>; AT_ONCE],
    hasher: RandomState,
}

impl Default for PageCache {
    fn default() -> PageCache {
        let making = std::array::from_fn(|_| tokio::sync::Mutex::default());
        PageCache { cached: Mutex::default(), making, hasher: RandomState::new() }
    }
}

/// Pages in two halves: one is filled, and dropped once the other is full.
#[derive(Default)]
struct Halves {
    newer: HashMap<PageKey, CachedPage>,
    older: HashMap<PageKey, CachedPage>,
    /// Of the newer half.
    bytes: usize,
}

impl Halves {
    fn insert(&mut self, key: PageKey, cached: CachedPage) {
        if self.bytes + cached.bytes() > HALF {
            self.older = std::mem::take(&mut self.newer);
            self.bytes = 0;
        }
        self.bytes += cached.bytes();
        if let Some(before) = self.newer.insert(key, cached) {
            self.bytes -= before.bytes();
        }
    }
}

impl PageCache {
    /// The page, if one of that stamp is kept and time has not changed it.
    pub(super) fn find(&self, key: &PageKey, stamp: &Stamp, now: Micros) -> Option<RenderedPage> {
        let mut halves = self.cached.lock().unwrap_or_else(PoisonError::into_inner);
        if !halves.newer.contains_key(key) {
            let cached = halves.older.remove(key)?;
            halves.insert(key.clone(), cached);
        }
        let cached = halves.newer.get(key)?;
        (cached.stamp == *stamp && cached.until.is_none_or(|until| now < until)).then(|| cached.page.clone())
    }

    /// The turn to make a page: look again then, someone else may have made it. Those who wait hold no package in memory.
    pub(super) async fn turn(&self, key: &PageKey) -> MutexGuard<'_, ()> {
        let turn = self.hasher.hash_one(key) as usize % AT_ONCE;
        self.making[turn].lock().await
    }

    /// The page that `make` makes of what the stamp stands for, on a thread for such work. Time changes it at `until`.
    ///
    /// # Errors
    /// Those of `make`.
    pub(super) async fn make(
        &self,
        (key, stamp): (PageKey, Stamp),
        until: Option<Micros>,
        make: impl FnOnce() -> Result<RenderedPage> + Send + 'static,
    ) -> Result<RenderedPage> {
        let page = tokio::task::spawn_blocking(make).await.map_err(Error::internal)??;
        // Anyone chooses times: kept, their pages would take the room of all others.
        if page.body.bytes() <= PAGE && key.moment.is_none() {
            let cached = CachedPage { stamp, until, page: page.clone() };
            self.cached.lock().unwrap_or_else(PoisonError::into_inner).insert(key, cached);
        }
        Ok(page)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::purl::Pattern;

    fn key(package: &str) -> PageKey {
        let repository = Uidp::parse("0123456789abcdef0123456789abcdef01234567").expect("a uid");
        PageKey { repository, package: package.into(), form: "text/html", base: String::new(), moment: None }
    }

    fn stamp(revision: i64) -> Stamp {
        Stamp { revision: Revision::OfRepository(revision), rules: [0; 32], keys: UsableKeys::default() }
    }

    fn page(text: &str) -> RenderedPage {
        RenderedPage { body: PageBody::Text(text.to_owned().into()), tag: text.len().to_string(), notice: None }
    }

    async fn keep(pages: &PageCache, key: PageKey, stamp: Stamp, text: &str, until: Option<Micros>) {
        let made = page(text);
        pages.make((key, stamp), until, move || Ok(made)).await.expect("a page");
    }

    #[tokio::test]
    async fn a_page_is_found_while_its_stamp_and_time_hold() {
        let pages = PageCache::default();
        keep(&pages, key("a"), stamp(1), "one", Some(10)).await;
        assert_eq!(pages.find(&key("a"), &stamp(1), 9), Some(page("one")));
        assert_eq!(pages.find(&key("a"), &stamp(1), 10), None, "time has changed it");
        assert_eq!(pages.find(&key("a"), &stamp(2), 9), None, "something has changed it");
        assert_eq!(pages.find(&key("b"), &stamp(1), 9), None, "another package");
        assert_eq!(pages.find(&PageKey { form: "application/json", ..key("a") }, &stamp(1), 9), None, "another form");
        let dated = PageKey { moment: Some(1), ..key("a") };
        assert_eq!(pages.find(&dated, &stamp(1), 9), None, "another time");
        keep(&pages, dated.clone(), stamp(1), "then", None).await;
        assert_eq!(pages.find(&dated, &stamp(1), 9), None, "times are not kept");
        let other = Stamp { rules: [1; 32], ..stamp(1) };
        assert_eq!(pages.find(&key("a"), &other, 9), None, "another policy");
        keep(&pages, key("a"), stamp(2), "three", None).await;
        assert_eq!(pages.find(&key("a"), &stamp(2), 9), Some(page("three")));
        assert_eq!(pages.find(&key("a"), &stamp(1), 9), None, "it took the place of the old one");
    }

    #[test]
    fn each_part_of_the_rules_is_in_their_digest() {
        let policy = |mode, uid: &str, name: &str, policy: &str| StoredInForce {
            mode,
            uid: uid.into(),
            name: name.into(),
            policy: policy.into(),
            rule: None,
            age_source: 0,
        };
        let ruled = |rule: &str| StoredInForce { rule: Some(rule.into()), ..policy(1, "a", "b", "c") };
        let aged = |age_source| StoredInForce { age_source, ..policy(1, "a", "b", "c") };
        let known = |numbers: &[i64]| digest(&[], &Overrides::default(), &[], numbers);
        let report = |version: &str, ranges: &str| (version.to_owned(), ranges.to_owned());
        let by = |policies: &[StoredInForce], reports: &[(String, String)]| {
            digest(policies, &Overrides::default(), reports, &[])
        };
        let excepted = |bypass_malware, bypass_freeze, ends_at| {
            let pattern = Pattern::parse("pkg:pypi/foo@1.0").expect("a package URL");
            let exceptions = vec![Exception { pattern, bypass_malware, bypass_freeze, ends_at }];
            digest(&[], &Overrides { exceptions, freezes: Vec::new() }, &[], &[])
        };
        let frozen = |language, cutoff, includes_own| {
            let freezes = vec![Freeze { language, cutoff, includes_own }];
            digest(&[], &Overrides { exceptions: Vec::new(), freezes }, &[], &[])
        };
        let all = [
            by(&[], &[]),
            by(&[policy(1, "a", "b", "c")], &[]),
            by(&[policy(2, "a", "b", "c")], &[]),
            by(&[policy(1, "ab", "", "c")], &[]),
            by(&[policy(1, "a", "bc", "")], &[]),
            by(&[policy(1, "a", "b", "d")], &[]),
            by(&[policy(1, "a", "b", "c"), policy(2, "a", "b", "c")], &[]),
            by(&[ruled("d")], &[]),
            by(&[ruled("e")], &[]),
            by(&[aged(2)], &[]),
            by(&[aged(3)], &[]),
            known(&[1]),
            known(&[2]),
            known(&[1, 2]),
            by(&[], &[report("1", "")]),
            by(&[], &[report("", "1")]),
            by(&[policy(1, "a", "b", "c")], &[report("1", "")]),
            excepted(false, false, 1),
            excepted(true, false, 1),
            excepted(false, true, 1),
            excepted(false, false, 2),
            frozen(Language::Python, 1, false),
            frozen(Language::Python, 2, false),
            frozen(Language::Python, 1, true),
            frozen(Language::Java, 1, false),
        ];
        for (at, one) in all.iter().enumerate() {
            assert!(!all[..at].contains(one), "{at}");
        }
    }

    #[tokio::test]
    async fn memory_is_bounded_and_what_is_used_stays() {
        let pages = PageCache::default();
        let text = "x".repeat(1 << 20);
        for number in 0..200 {
            keep(&pages, key(&number.to_string()), stamp(0), &text, None).await;
            keep(&pages, key("used"), stamp(number), "small", None).await;
            assert!(pages.find(&key("used"), &stamp(number), 0).is_some());
            let halves = pages.cached.lock().expect("a lock");
            let held: usize = halves.newer.values().map(CachedPage::bytes).sum();
            assert_eq!(held, halves.bytes);
            assert!(held + halves.older.values().map(CachedPage::bytes).sum::<usize>() <= 2 * HALF);
        }
        keep(&pages, key("huge"), stamp(0), &"x".repeat(PAGE + 1), None).await;
        assert_eq!(pages.find(&key("huge"), &stamp(0), 0), None, "too large to keep");
    }
}
