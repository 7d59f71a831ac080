//! The gate at pulls: image policies refuse manifests, or log what they have against them.
//!
//! A decision is kept with the revision of what it depends on: the policies that apply, and the manifests, referrer tags,
//! reports and SBOMs of the repository. The look-up of a manifest reads both revisions, so that a pull of an image that is
//! known costs no further statement.

use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasher as _, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use bowline_contract::bowline::registry::v1::rpc::content::PushManifest;
use bowline_core::{Error, Micros, Uidp};
use bowline_store::{ReadTx, Row, Value, WriteTx, placeholders};
use serde_json::json;

use super::pull_spill::Pull;
use super::{Name, Reference, RefusalCode, Registry, RegistryClient, RegistryError, StoredManifest};
use crate::image_policies::{self, Decision, FindingBytes};

const HOUR: Micros = 3_600_000_000;
/// How long a pull is remembered: longer than the longest grace.
const LONGEST_GRACE: Micros = 366 * 24 * HOUR;
/// Decisions that are kept in each half of the cache; the older half is dropped when the newer one is full.
const CACHED: usize = 10_000;
/// Decisions that are made at a time: one of an organization, so that its images hold up no pulls of others, and pulls of
/// the same image wait for one decision.
const AT_ONCE: usize = 64;

/// What decisions about an image depend on: numbers that change with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct EvidenceRevision {
    policies: i64,
    repo: i64,
}

/// A manifest that was found.
#[derive(Clone, Debug)]
pub struct PulledManifest {
    pub(super) repo: Uidp,
    pub manifest: StoredManifest,
    /// Of what decisions about it depend on; absent if no image policy applies.
    pub(super) evidence: Option<EvidenceRevision>,
    /// Image policies let it pass, and shall remember that.
    pub(super) is_recorded: bool,
    /// It was found by a tag of a repository that has a source or an upstream, where the tag may have moved.
    pub is_replicated: bool,
}

/// A repository, and the digest of an image in it.
type Key = (String, String);

#[derive(Clone)]
struct CachedDecision {
    revision: EvidenceRevision,
    made_at: Micros,
    decision: Arc<Decision>,
}

/// Decisions that still hold, in two halves.
#[derive(Default)]
struct Decisions {
    newer: HashMap<Key, CachedDecision>,
    older: HashMap<Key, CachedDecision>,
}

impl Decisions {
    fn get(&mut self, key: &Key) -> Option<CachedDecision> {
        if let Some(cached) = self.newer.get(key) {
            return Some(cached.clone());
        }
        let cached = self.older.remove(key)?;
        self.put(key.clone(), cached.clone());
        Some(cached)
    }

    fn put(&mut self, key: Key, cached: CachedDecision) {
        if self.newer.len() >= CACHED {
            self.older = std::mem::take(&mut self.newer);
        }
        self.newer.insert(key, cached);
    }
}

/// Pulls that image policies had something against, since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GateCounts {
    /// Let through, because the rules only log.
    pub logged: u64,
    pub refused: u64,
    /// Let through, because the caller may push, or had pulled the image before.
    pub spared: u64,
}

/// What the gate remembers.
pub(super) struct ImageGate {
    decisions: Mutex<Decisions>,
    /// Held while a decision is made.
    making: [tokio::sync::Mutex<()>; AT_ONCE],
    hasher: RandomState,
    logged: AtomicU64,
    refused: AtomicU64,
    spared: AtomicU64,
}

impl Default for ImageGate {
    fn default() -> ImageGate {
        ImageGate {
            decisions: Mutex::default(),
            making: std::array::from_fn(|_| tokio::sync::Mutex::default()),
            hasher: RandomState::new(),
            logged: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            spared: AtomicU64::new(0),
        }
    }
}

impl ImageGate {
    pub(super) fn counts(&self) -> GateCounts {
        GateCounts {
            logged: self.logged.load(Ordering::Relaxed),
            refused: self.refused.load(Ordering::Relaxed),
            spared: self.spared.load(Ordering::Relaxed),
        }
    }

    /// The decision of this revision, if it still holds. The clock of another server may be behind.
    fn cached(&self, key: &Key, revision: EvidenceRevision, now: Micros) -> Option<Arc<Decision>> {
        let cached = self.decisions.lock().unwrap_or_else(PoisonError::into_inner).get(key)?;
        let holds =
            cached.revision == revision && (cached.made_at..cached.decision.until).contains(&now.max(cached.made_at));
        holds.then_some(cached.decision)
    }

    fn keep(&self, key: Key, cached: CachedDecision) {
        self.decisions.lock().unwrap_or_else(PoisonError::into_inner).put(key, cached);
    }
}

/// The manifest of this reference in a repository, with the revision of what decisions about it depend on, if image
/// policies apply. Where no organization has any, the look-up costs nothing more.
pub(super) async fn find(
    tx: &mut ReadTx,
    repo: &Uidp,
    reference: &Reference,
) -> Result<Option<(StoredManifest, Option<EvidenceRevision>)>, RegistryError> {
    let scopes: Vec<Value<'_>> = repo.self_and_ancestors().map(Value::from).collect();
    let (from, key) = match reference {
        Reference::Digest(digest) => {
            ("repo_manifests r JOIN manifests m ON m.digest = r.digest WHERE r.repo = $1 AND r.digest = $2", digest)
        }
        Reference::Tag(tag) => (
            "tags t JOIN repo_manifests r ON r.repo = t.parent AND r.digest = t.digest
             JOIN manifests m ON m.digest = r.digest WHERE t.parent = $1 AND t.name = $2",
            tag,
        ),
    };
    let sql = format!(
        "SELECT m.digest, m.media_type, m.content,
           CASE WHEN EXISTS (SELECT 1 FROM image_policies) THEN
             (SELECT CAST(sum(p.revision) AS BIGINT) FROM image_policies p WHERE p.scope IN ({})) END,
           CASE WHEN EXISTS (SELECT 1 FROM image_policies) THEN
             (SELECT v.revision FROM image_revisions v WHERE v.repo = $1) END
         FROM {from}",
        placeholders(3, scopes.len())
    );
    let params: Vec<Value<'_>> = [Value::from(repo.as_str()), Value::from(key)].into_iter().chain(scopes).collect();
    let read = |row: &Row<'_>| {
        let manifest = StoredManifest { digest: row.text(0)?, media_type: row.text(1)?, content: row.bytes(2)? };
        let repo = row.opt_int(4)?.unwrap_or_default();
        let revision = row.opt_int(3)?.map(|policies| EvidenceRevision { policies, repo });
        Ok::<_, Error>((manifest, revision))
    };
    Ok(tx.query_opt(&sql, &params, read).await?)
}

impl Registry {
    /// Refuses a pull if an image policy enforces a rule that the image does not satisfy. Callers who may push, and those
    /// in a grace, pull it all the same.
    ///
    /// # Errors
    /// DENIED with the rules, and what they have against the image.
    pub async fn require_allowed(
        &self,
        client: &RegistryClient,
        name: &Name,
        pulled: &mut PulledManifest,
    ) -> Result<(), RegistryError> {
        let Some(revision) = pulled.evidence else { return Ok(()) };
        let digest = pulled.manifest.digest.clone();
        let decision = self.decision(client, &pulled.repo, &digest, revision).await?;
        if decision.warning().is_some() {
            self.gate.logged.fetch_add(1, Ordering::Relaxed);
        }
        let Some(sentence) = decision.refusal() else {
            pulled.is_recorded = decision.has_grace && !decision.is_exempt && !client.is_anonymous();
            return Ok(());
        };
        if self.is_spared(client, &pulled.repo, &digest, &decision).await? {
            self.gate.spared.fetch_add(1, Ordering::Relaxed);
            return Ok(());
        }
        self.gate.refused.fetch_add(1, Ordering::Relaxed);
        tracing::info!(%name, digest, caller = client.subject(), sentence, "image policy refused a pull");
        let message = format!("image refused by {sentence}; have the image corrected, or ask for an exception");
        Err(RegistryError::about(RefusalCode::Denied, message, json!({ "name": name.as_str(), "digest": digest })))
    }

    /// The decision about an image that the repository has.
    async fn decision(
        &self,
        client: &RegistryClient,
        repo: &Uidp,
        digest: &str,
        revision: EvidenceRevision,
    ) -> Result<Arc<Decision>, RegistryError> {
        let (key, now) = ((repo.as_str().to_owned(), digest.to_owned()), client.now());
        if let Some(decision) = self.gate.cached(&key, revision, now) {
            return Ok(decision);
        }
        let lock = &self.gate.making[(self.gate.hasher.hash_one(repo.root_str()) % AT_ONCE as u64) as usize];
        let _only = lock.lock().await;
        // Another pull may have made it meanwhile.
        if let Some(decision) = self.gate.cached(&key, revision, now) {
            return Ok(decision);
        }
        let (at, image) = (repo.clone(), digest.to_owned());
        let read = self.pipeline.db.read(move |tx| {
            Box::pin(async move {
                let policies = image_policies::policies(tx, &at).await?;
                let by_digest = Reference::Digest(image.clone());
                let revision = find(tx, &at, &by_digest).await?.and_then(|(_, revision)| revision);
                let gathered = image_policies::gather(tx, &at, &image, policies, &mut FindingBytes::new()).await?;
                Ok::<_, RegistryError>((gathered, revision))
            })
        });
        let (gathered, read_at) = read.await?;
        let decision = Arc::new(self.documents.decide(gathered, now).await?);
        if let Some(sentence) = decision.warning() {
            tracing::warn!(repo = repo.as_str(), digest, sentence, "an image violates rules that only log");
        }
        if let Some(revision) = read_at {
            self.gate.keep(key, CachedDecision { revision, made_at: now, decision: decision.clone() });
        }
        Ok(decision)
    }

    /// Whether the caller may pull an image that is refused: to push a better one, or because it was let through before.
    async fn is_spared(
        &self,
        client: &RegistryClient,
        repo: &Uidp,
        digest: &str,
        decision: &Decision,
    ) -> Result<bool, RegistryError> {
        let since = decision.spared_since(client.now());
        let (client, repo, digest) = (client.clone(), repo.clone(), digest.to_owned());
        let read = self.pipeline.db.read(move |tx| {
            Box::pin(async move {
                let grants = client.visit.grants(tx).await?;
                if client.visit.allows::<PushManifest>(&grants, repo.as_str())? {
                    return Ok(true);
                }
                if client.is_anonymous() {
                    return Ok(false);
                }
                let sql =
                    "SELECT 1 FROM passed_pulls WHERE repo = $1 AND digest = $2 AND caller = $3 AND passed_at > $4";
                let key = [Value::from(repo.as_str()), Value::from(&digest), Value::from(client.subject())];
                let params: Vec<Value<'_>> = key.into_iter().chain([Value::Int(since)]).collect();
                let found = tx.query_opt(sql, &params, |row| row.int(0).map_err(Error::from)).await?;
                Ok::<_, RegistryError>(found.is_some())
            })
        });
        read.await
    }
}

/// Remembers pulls that image policies let pass, for their grace, and forgets old ones.
pub(super) async fn record_passed(tx: &mut WriteTx, batch: &[Pull]) -> Result<(), Error> {
    // One row once, and in one order everywhere, so that replicas do not wait for each other in a circle.
    let mut passed: BTreeMap<(&str, &str, &str), Micros> = BTreeMap::new();
    for pull in batch.iter().filter(|pull| pull.is_recorded) {
        let at = passed.entry((&pull.repo, &pull.interaction.digest, &pull.actor)).or_default();
        // To the end of the hour: a grace is not shorter than it says.
        *at = (*at).max(pull.at - pull.at.rem_euclid(HOUR) + HOUR);
    }
    let Some(newest) = passed.values().max().copied() else { return Ok(()) };
    for ((repo, digest, caller), at) in passed {
        let sql = "INSERT INTO passed_pulls (repo, digest, caller, passed_at) VALUES ($1, $2, $3, $4)
                   ON CONFLICT (repo, digest, caller) DO UPDATE SET passed_at = excluded.passed_at
                   WHERE passed_pulls.passed_at < excluded.passed_at";
        let params = [Value::from(repo), Value::from(digest), Value::from(caller), Value::Int(at)];
        tx.execute(sql, &params).await?;
    }
    tx.execute("DELETE FROM passed_pulls WHERE passed_at < $1", &[Value::Int(newest - LONGEST_GRACE)]).await?;
    Ok(())
}
