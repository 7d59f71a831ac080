//! Patterns from callers: compiled and matched outside of transactions, and cached.
//!
//! Compiling a pattern takes milliseconds, and matching one may. On the writer every other caller would wait
//! for it, so a transaction only looks results up in the cache. If one is missing, its attempt ends with work
//! for another thread (see [`defer`]), and the next attempt finds the result. Everything here is a function
//! of its arguments, so one cache serves the process.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

use bowline_authn::crypto::sha256;
use bowline_authn::matching::{Regex, whole};
use bowline_core::{Error, Result};
use bowline_pipeline::{Cancelled, defer};
use tokio::sync::Semaphore;

/// Compiled patterns, of which each takes up to 256 KiB and mostly a tenth of that.
static COMPILED: LazyLock<Mutex<BoundedCache<String, Arc<Regex>>>> = LazyLock::new(|| BoundedCache::new(128));
/// Which pattern of a list matches a name first.
static MATCHES: LazyLock<Mutex<BoundedCache<Key, Outcome>>> = LazyLock::new(|| BoundedCache::new(MAX_CACHED_NAMES));
/// The same for lists with more names than the former cache holds: tags of a very large repository.
static LARGE_LISTS: LazyLock<Mutex<BoundedCache<Key, Arc<Outcomes>>>> = LazyLock::new(|| BoundedCache::new(1));
/// What is wrong with a pattern, if anything.
static PROBLEMS: LazyLock<Mutex<BoundedCache<Key, Option<String>>>> = LazyLock::new(|| BoundedCache::new(4096));

/// Permits for matching outside of deferred work.
static MATCHING: Semaphore = Semaphore::const_new(4);

/// Maximum number of cached results over all lists, and of names of one list that are cached with them.
const MAX_CACHED_NAMES: usize = 1 << 17;

/// The first half of a SHA-256 over patterns and names.
type Key = [u8; 16];

/// Outcomes of one list of patterns, by list and name.
type Outcomes = HashMap<Key, Outcome>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    None,
    Pattern(u16),
    /// A pattern of the list does not compile.
    Damaged,
}

/// A bounded cache in two halves. When the newer half is full, the older one is dropped.
struct BoundedCache<K, V> {
    capacity: usize,
    newer: HashMap<K, V>,
    older: HashMap<K, V>,
}

impl<K: Eq + Hash + Clone, V: Clone> BoundedCache<K, V> {
    /// Holds at least the `capacity` entries used last, and twice as many at most.
    fn new(capacity: usize) -> Mutex<BoundedCache<K, V>> {
        Mutex::new(BoundedCache { capacity, newer: HashMap::new(), older: HashMap::new() })
    }

    fn get(&mut self, key: &K) -> Option<V> {
        if let Some(value) = self.newer.get(key) {
            return Some(value.clone());
        }
        let value = self.older.remove(key)?;
        self.insert(key.clone(), value.clone());
        Some(value)
    }

    fn insert(&mut self, key: K, value: V) {
        if self.newer.len() >= self.capacity {
            self.older = std::mem::take(&mut self.newer);
        }
        self.newer.insert(key, value);
    }
}

fn lock<K, V>(cache: &Mutex<BoundedCache<K, V>>) -> MutexGuard<'_, BoundedCache<K, V>> {
    cache.lock().unwrap_or_else(PoisonError::into_inner)
}

fn key(parts: [&[u8]; 2]) -> Key {
    let digest = sha256(&parts.concat());
    std::array::from_fn(|i| digest[i])
}

/// The pattern, compiled once for as long as it is in use.
fn compiled(pattern: &str) -> std::result::Result<Arc<Regex>, String> {
    if let Some(regex) = lock(&COMPILED).get(&pattern.to_owned()) {
        return Ok(regex);
    }
    let regex = Arc::new(whole(pattern)?);
    lock(&COMPILED).insert(pattern.to_owned(), regex.clone());
    Ok(regex)
}

/// For each name, the position of the first pattern that matches all of it.
///
/// # Errors
/// Deferred work, if the result is not cached: the transaction must run by `write_deferring` or
/// `read_deferring`. INTERNAL for a stored pattern that does not compile.
pub fn first_matches(patterns: &[String], names: &[String]) -> Result<Vec<Option<usize>>> {
    first_matches_within(MAX_CACHED_NAMES, patterns, names)
}

fn first_matches_within(most: usize, patterns: &[String], names: &[String]) -> Result<Vec<Option<usize>>> {
    if patterns.is_empty() {
        return Ok(vec![None; names.len()]);
    }
    let list = list_key(patterns);
    let large = if names.len() > most { lock(&LARGE_LISTS).get(&list) } else { None };
    let (mut found, mut missing) = (Vec::with_capacity(names.len()), Vec::new());
    let mut cache = lock(&MATCHES);
    for name in names {
        let key = key([&list, name.as_bytes()]);
        match large.as_ref().and_then(|large| large.get(&key).copied()).or_else(|| cache.get(&key)) {
            Some(outcome) => found.push(outcome),
            None => missing.push((key, name.clone())),
        }
    }
    drop(cache);
    if missing.is_empty() {
        return found.into_iter().map(position).collect();
    }
    let (patterns, names) = (patterns.to_vec(), names.to_vec());
    if missing.len() > most {
        return Err(defer(move |cancelled| cache_large(list, &patterns, &names, cancelled)));
    }
    Err(defer(move |cancelled| cache_matches(&patterns, missing, cancelled)))
}

fn list_key(patterns: &[String]) -> Key {
    let list: Vec<u8> = patterns.iter().flat_map(|p| [&p.len().to_be_bytes(), p.as_bytes()].concat()).collect();
    key([&list, b""])
}

/// Caches the results of all names of one list, until two more lists of that size are cached.
fn cache_large(list: Key, patterns: &[String], names: &[String], cancelled: &Cancelled) {
    let mut outcomes = HashMap::with_capacity(names.len());
    for name in names {
        if cancelled.is_set() {
            return;
        }
        outcomes.insert(key([&list, name.as_bytes()]), first_match(patterns, name));
    }
    lock(&LARGE_LISTS).insert(list, Arc::new(outcomes));
}

fn cache_matches(patterns: &[String], names: Vec<(Key, String)>, cancelled: &Cancelled) {
    for (key, name) in names {
        if cancelled.is_set() {
            return;
        }
        let outcome = first_match(patterns, &name);
        lock(&MATCHES).insert(key, outcome);
    }
}

fn first_match(patterns: &[String], name: &str) -> Outcome {
    for (at, pattern) in patterns.iter().enumerate() {
        match (compiled(pattern), u16::try_from(at)) {
            (Ok(regex), Ok(at)) if regex.is_match(name) => return Outcome::Pattern(at),
            (Ok(_), Ok(_)) => {}
            _ => return Outcome::Damaged,
        }
    }
    Outcome::None
}

fn position(outcome: Outcome) -> Result<Option<usize>> {
    match outcome {
        Outcome::None => Ok(None),
        Outcome::Pattern(at) => Ok(Some(usize::from(at))),
        Outcome::Damaged => Err(Error::internal("a stored pattern does not compile")),
    }
}

/// Whether one of these patterns matches the whole name: from the cache, or computed on a thread of its own,
/// a few at a time.
pub async fn any_matches(patterns: &[String], name: &str) -> Result<bool> {
    let key = key([&list_key(patterns), name.as_bytes()]);
    let known = lock(&MATCHES).get(&key);
    if let Some(outcome) = known {
        return position(outcome).map(|at| at.is_some());
    }
    let permit = MATCHING.acquire().await.map_err(Error::internal)?;
    let (patterns, name) = (patterns.to_vec(), name.to_owned());
    let matching = move || {
        let _permit = permit;
        let outcome = first_match(&patterns, &name);
        lock(&MATCHES).insert(key, outcome);
        position(outcome).map(|at| at.is_some())
    };
    tokio::task::spawn_blocking(matching).await.map_err(Error::internal)?
}

/// What is wrong with a pattern, if anything. It compiles the pattern, and so runs in no transaction.
pub fn problem(pattern: &str) -> Option<String> {
    let key = key([pattern.as_bytes(), b""]);
    if let Some(problem) = lock(&PROBLEMS).get(&key) {
        return problem;
    }
    let problem = compiled(pattern).err();
    lock(&PROBLEMS).insert(key, problem.clone());
    problem
}

/// Whether patterns are validated before or in a transaction.
#[derive(Debug)]
pub enum Validation {
    /// Before a transaction: they are compiled.
    BeforeTransaction,
    /// In a transaction: cached results are used, and patterns without one are collected.
    InTransaction(Vec<String>),
}

impl Validation {
    pub fn in_transaction() -> Validation {
        Validation::InTransaction(Vec::new())
    }

    /// The problem of a pattern, if it is known to have one.
    pub fn problem(&mut self, pattern: &str) -> Option<String> {
        match self {
            Validation::BeforeTransaction => problem(pattern),
            Validation::InTransaction(unknown) => {
                let known = lock(&PROBLEMS).get(&key([pattern.as_bytes(), b""]));
                if known.is_none() {
                    unknown.push(pattern.to_owned());
                }
                known.flatten()
            }
        }
    }

    /// Ends the attempt if there were unknown patterns.
    ///
    /// # Errors
    /// Deferred work that compiles the unknown patterns.
    pub fn finish(self) -> Result<()> {
        match self {
            Validation::InTransaction(unknown) if !unknown.is_empty() => Err(defer(move |_| {
                for pattern in unknown {
                    problem(&pattern);
                }
            })),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|text| (*text).to_owned()).collect()
    }

    #[test]
    fn a_cache_is_bounded_and_retains_what_is_used() {
        let cache = BoundedCache::new(10);
        let mut cache = lock(&cache);
        for n in 0..1000 {
            cache.insert(n, n);
            assert_eq!(cache.get(&0), Some(0), "{n}");
            assert!(cache.newer.len() + cache.older.len() <= 20);
        }
        assert_eq!((cache.get(&999), cache.get(&500)), (Some(999), None));
    }

    #[test]
    fn a_pattern_is_compiled_once() {
        let first = compiled("compiled-once-[0-9]+").unwrap();
        assert!(Arc::ptr_eq(&first, &compiled("compiled-once-[0-9]+").unwrap()));
        assert!(compiled("(").is_err());
    }

    #[test]
    fn transactions_look_matches_up_and_never_compute_them() {
        let (patterns, names) = (texts(&["v[0-9]+", "latest-.*"]), texts(&["v1", "latest-2", "other", "v1x"]));
        assert!(first_matches(&patterns, &names).is_err(), "nothing is known yet");
        let list = list_key(&patterns);
        let asked = names.iter().map(|name| (key([&list, name.as_bytes()]), name.clone())).collect();
        cache_matches(&patterns, asked, &Cancelled::default());
        assert_eq!(first_matches(&patterns, &names).unwrap(), [Some(0), Some(1), None, None]);
        assert!(first_matches(&texts(&["v[0-9]+"]), &names).is_err(), "another list is another question");
        assert_eq!(first_matches(&[], &names).unwrap(), [None; 4]);
    }

    #[test]
    fn more_names_than_the_cache_holds_are_matched_too() {
        let patterns = texts(&["large-v[0-9]+"]);
        let mut names: Vec<String> = (0..5).map(|n| format!("large-v{n}")).collect();
        assert!(first_matches_within(3, &patterns, &names).is_err(), "nothing is known yet");
        cache_large(list_key(&patterns), &patterns, &names, &Cancelled::default());
        assert_eq!(first_matches_within(3, &patterns, &names).unwrap(), [Some(0); 5]);
        names.push("another".into());
        assert!(first_matches_within(3, &patterns, &names).is_err(), "one of them is new");
        let new = (key([&list_key(&patterns), b"another"]), "another".to_owned());
        cache_matches(&patterns, vec![new], &Cancelled::default());
        assert_eq!(first_matches_within(3, &patterns, &names).unwrap()[5], None);
    }

    #[test]
    fn a_damaged_list_is_no_list_that_matches_nothing() {
        assert_eq!(first_match(&texts(&["("]), "x"), Outcome::Damaged);
        assert!(position(Outcome::Damaged).is_err());
    }

    #[test]
    fn patterns_are_validated_before_a_transaction_and_cached_for_it() {
        let mut within = Validation::InTransaction(Vec::new());
        assert_eq!(within.problem("validated-["), None);
        assert!(within.finish().is_err(), "nothing is known yet");
        assert!(Validation::BeforeTransaction.problem("validated-[").is_some());
        let mut within = Validation::InTransaction(Vec::new());
        assert!(within.problem("validated-[").is_some());
        assert!(within.finish().is_ok());
    }
}
