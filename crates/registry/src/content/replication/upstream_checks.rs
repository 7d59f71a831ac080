//! Checks of an upstream on request: one bounded request, whose result is recorded like that of a pull.

use std::sync::Arc;
use std::time::Duration;

use bowline_contract::bowline::registry::v1 as own;
use bowline_contract::bowline::registry::v1::UpstreamOutcome;
use bowline_contract::bowline::registry::v1::rpc::replication::CheckUpstream;
use bowline_core::{Detail, Error, Micros, Reason, Result, Uidp};
use bowline_pipeline::{Authorized, Handlers, Quota, RateLimits, Surface, handler, require_terms};
use bowline_resources::list::timestamp;
use bowline_store::{BoxFuture, Db, ReadTx};

use super::upstream_tags;
use super::upstreams::{self, UpstreamConfig, note_status};
use crate::content::RegistryError;
use crate::repos;

/// Checks per second of one caller, and of one organization; ten seconds' worth may come at once.
const CHECKED_PER_SECOND: u32 = 1;
/// Checks under way in all, and of one organization.
const CHECKED: usize = 8;
const CHECKED_BY_ORGANIZATION: usize = 2;
/// How long one may take, with the requests for a token and the redirects that it needs.
const TIME: Duration = Duration::from_secs(30);
/// The tag of a repository that has fetched none.
const USUAL_TAG: &str = "latest";

/// What asks other registries: the registry host implements it.
pub trait UpstreamRequests: Send + Sync {
    /// Requests the manifest of a tag without its contents.
    fn head<'a>(&'a self, upstream: &'a UpstreamConfig, tag: &'a str) -> BoxFuture<'a, UpstreamAnswer>;
}

/// The response of an upstream, or the reason why no response came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpstreamAnswer {
    /// Whether a request was sent, rather than an earlier failure repeated.
    pub is_new: bool,
    pub result: UpstreamResult,
}

/// What came of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UpstreamResult {
    /// The upstream has the tag, under this digest if it names one.
    Present(String),
    Absent,
    /// Why it failed: public, without an address or a secret.
    Failed(String),
}

/// Sends checks, few at once and at a bounded rate, and records their results.
pub struct UpstreamChecks {
    requests: Arc<dyn UpstreamRequests>,
    db: Db,
    running: Arc<Quota<String>>,
    rates: RateLimits,
}

/// A check that may begin.
pub(crate) struct CheckJob {
    repo: Uidp,
    caller: String,
    upstream: UpstreamConfig,
    tag: String,
    now: Micros,
}

pub(crate) fn register(handlers: Handlers, checks: Option<&Arc<UpstreamChecks>>) -> Handlers {
    let checks = checks.cloned();
    handlers.read_then::<CheckUpstream, _>(handler!(prepare), move |job: CheckJob| {
        let checks = checks.clone();
        Box::pin(async move {
            let checks = checks.ok_or_else(|| Error::internal("the handlers were made without a registry host"))?;
            checks.run(job).await
        })
    })
}

/// The upstream as the repository or the nearest policy has it. Nothing changes before the request, so that a check which
/// the limits refuse takes no turn of the writer; that the terms are accepted, as writes require, is checked here.
async fn prepare(tx: &mut ReadTx, call: &Authorized<own::CheckUpstreamRequest>) -> Result<CheckJob> {
    let repo = call.require_scope()?;
    require_terms(tx, call, repo).await?;
    repos::require(tx, repo).await?;
    let upstream = upstreams::configured(tx, call.vault(), repo, call.now()).await.map_err(failure)?;
    let upstream = upstream.ok_or_else(|| {
        let why = "the repository takes images from no other registry: set a source, or an upstream in its policy";
        Error::precondition("REPOSITORY_WITHOUT_UPSTREAM", repo.as_str(), why)
    })?;
    let tag = upstream_tags::first(tx, repo).await?.unwrap_or_else(|| USUAL_TAG.to_owned());
    let caller = call.principal().subject().to_owned();
    Ok(CheckJob { repo: repo.clone(), caller, upstream, tag, now: call.now() })
}

/// Reading a configuration refuses nothing; what fails is of this server.
fn failure(error: RegistryError) -> Error {
    match error {
        RegistryError::Failed(error) => error,
        RegistryError::Refused(refusal) => Error::internal(refusal.message),
    }
}

impl UpstreamChecks {
    /// Checks that go out through `requests`.
    pub fn new(requests: Arc<dyn UpstreamRequests>, db: Db) -> UpstreamChecks {
        let running = Quota::new(CHECKED, CHECKED_BY_ORGANIZATION);
        UpstreamChecks { requests, db, running, rates: RateLimits::new(CHECKED_PER_SECOND, 0) }
    }

    async fn run(&self, job: CheckJob) -> Result<own::UpstreamCheck> {
        for key in [job.caller.as_str(), job.repo.root_str()] {
            self.rates.count_principal(Surface::Api, key)?;
        }
        let _lease = self.running.take(Some(job.repo.root_str().to_owned()), 1).map_err(|_| {
            let text = "Rate limit reached: too many upstreams are checked at the moment; try again in a few seconds";
            Error::new(Reason::RateLimited, text).with(Detail::RetryAfter(Duration::from_secs(5)))
        })?;
        let answer = tokio::time::timeout(TIME, self.requests.head(&job.upstream, &job.tag)).await;
        let UpstreamAnswer { is_new, result } = answer.unwrap_or_else(|_| {
            let problem = format!("the upstream did not respond within {} s", TIME.as_secs());
            UpstreamAnswer { is_new: true, result: UpstreamResult::Failed(problem) }
        });
        let (outcome, digest, problem) = match result {
            UpstreamResult::Present(digest) => (UpstreamOutcome::Present, digest, String::new()),
            UpstreamResult::Absent => (UpstreamOutcome::Absent, String::new(), String::new()),
            UpstreamResult::Failed(problem) => (UpstreamOutcome::Failed, String::new(), problem),
        };
        if is_new {
            self.record(&job, &problem).await?;
        }
        Ok(own::UpstreamCheck {
            repo_uid: job.repo.as_str().into(),
            outcome: outcome.into(),
            problem,
            tag: job.tag,
            digest,
            check_time: timestamp(job.now),
            repeated_result: !is_new,
        })
    }

    /// Records the result, unless the repository was deleted meanwhile.
    async fn record(&self, job: &CheckJob, problem: &str) -> Result<()> {
        let facts = Arc::new((job.repo.clone(), problem.to_owned(), job.now));
        let written = self.db.write(move |tx| {
            let facts = facts.clone();
            Box::pin(async move {
                let (repo, problem, now) = &*facts;
                if !repos::exists(tx, repo).await? {
                    return Ok(());
                }
                let problem = Some(problem.as_str()).filter(|problem| !problem.is_empty());
                note_status(tx, repo, problem, *now).await
            })
        });
        written.await.map_err(failure)
    }
}
