//! What is not here yet: pages of packages are requested from upstreams, each once for all who wait. Files: [`crate::file_fetches`].
//!
//! A request continues when the client that began it has gone, so its answer is there for the next one. Clients look again
//! after it: what they may see is decided then.

use std::sync::Arc;
use std::time::Duration;

use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use bowline_authn::guarded::{FetchError, GuardedClient, Opened};
use bowline_core::{Error, Reason};
use bowline_fronts::SingleFlight;
use bowline_libraries::Language;
use bowline_libraries::hosting::{Answer, Ask, HostError, Lookup};
use bowline_pipeline::{Lease, Quota, TtlCache};
use bytes::Bytes;
use tracing::Instrument as _;
use url::Url;

use crate::PackageHosts;
use crate::file_fetches::FileFetches;
use crate::upstreams::UpstreamClient;
use crate::{cargo, go, java, javascript, python, upstream_attestations};

/// Requests to upstreams under way in this process, and for one organization.
const REQUESTS: usize = 512;
const REQUESTS_BY_ORGANIZATION: usize = 64;
/// How long a request waits for others to end, and between two looks whether they have.
const PATIENCE: Duration = Duration::from_secs(20);
const PAUSE: Duration = Duration::from_millis(20);
/// How long clients wait where an old answer can be used.
const BUDGET: Duration = Duration::from_secs(2);
/// Times that a client looks: after the answers of up to 20 upstreams, two of each for Go, and for a file.
pub(crate) const LOOKS: usize = 44;
/// Maximum bytes of a page, and of a text that an upstream says of a file.
const PAGE: usize = 32 << 20;
const TEXT: usize = 512;
/// Registries of Cargo of which it is remembered where their files lie.
const DOWNLOADS: usize = 1000;

/// What is under way.
pub(crate) struct Fetching {
    pub(crate) client: UpstreamClient,
    pub(crate) flights: SingleFlight,
    slots: Arc<Quota<String>>,
    pub(crate) files: FileFetches,
    /// Where files of Cargo's registries lie, by their upstreams.
    pub(crate) downloads: TtlCache<String, Arc<str>>,
}

pub(crate) fn changing() -> HostError {
    HostError::Upstream("the upstreams change faster than they can be read: try again".into())
}

/// Room of a quota for an organization, which is waited for.
pub(crate) async fn waited(quota: &Arc<Quota<String>>, organization: &str) -> Result<Lease<String>, Error> {
    let until = tokio::time::Instant::now() + PATIENCE;
    loop {
        if let Ok(slot) = quota.take(Some(organization.to_owned()), 1) {
            return Ok(slot);
        }
        if tokio::time::Instant::now() >= until {
            let text = "too many packages are on their way from upstreams: try again in a few seconds";
            return Err(Error::new(Reason::RateLimited, text));
        }
        tokio::time::sleep(PAUSE).await;
    }
}

impl Fetching {
    pub(crate) fn new(client: GuardedClient) -> Fetching {
        Fetching {
            client: UpstreamClient::new(client),
            flights: SingleFlight::default(),
            slots: Quota::new(REQUESTS, REQUESTS_BY_ORGANIZATION),
            files: FileFetches::new(),
            downloads: TtlCache::new(DOWNLOADS),
        }
    }
}

impl PackageHosts {
    /// Looks for something until it is here, and asks upstreams for the pages that it takes.
    pub(crate) async fn until_here<T, Look>(self: &Arc<Self>, look: impl Fn() -> Look) -> Result<T, HostError>
    where
        Look: Future<Output = Result<Lookup<T>, HostError>>,
    {
        for _ in 0..LOOKS {
            match look().await? {
                Lookup::Here(found) => return Ok(found),
                Lookup::Ask(ask) => self.ask(*ask).await?,
            }
        }
        Err(changing())
    }

    /// Asks upstreams for pages at once, each once, and waits so long for all of them. A later answer is there for the next
    /// caller; until then an upstream counts as silent.
    ///
    /// # Errors
    /// Those of the database.
    pub(crate) async fn request_once(self: &Arc<Self>, asks: Vec<Ask>, budget: Duration) -> Result<(), Error> {
        let requests = asks.into_iter().map(|ask| self.ask_within(ask, budget));
        futures_util::future::try_join_all(requests).await.map(|_| ())
    }

    async fn ask_within(self: &Arc<Self>, ask: Ask, budget: Duration) -> Result<(), Error> {
        let slow = ask.clone();
        let Ok(outcome) = tokio::time::timeout(budget, self.ask(ask)).await else {
            self.hosting.note_slow(&slow);
            return Ok(());
        };
        outcome
    }

    /// Asks an upstream for a page, unless that is under way; the answer is noted.
    async fn ask(self: &Arc<Self>, ask: Ask) -> Result<(), Error> {
        let flight = self.fetching.flights.lock(&format!("{} {}", ask.upstream.key(), ask.package));
        let (is_answered, slow) = (ask.is_answered, ask.clone());
        let waiting = async {
            let Ok(turn) = flight.clone().try_lock_owned() else {
                drop(flight.lock().await);
                return Ok(());
            };
            let slot = self.slot(ask.upstream.organization()).await?;
            let hosts = self.clone();
            let asking = async move {
                let _held = (turn, slot);
                let answer = requested(&hosts, &ask).await;
                hosts.hosting.note_answer(&ask, answer).await
            };
            tokio::spawn(asking.in_current_span()).await.map_err(Error::internal)?
        };
        if !is_answered {
            return waiting.await;
        }
        let Ok(outcome) = tokio::time::timeout(BUDGET, waiting).await else {
            self.hosting.note_slow(&slow);
            return Ok(());
        };
        outcome
    }

    /// Room for a request to an upstream, which is waited for: installers do not try again after a 429.
    pub(crate) async fn slot(&self, organization: &str) -> Result<Lease<String>, Error> {
        waited(&self.fetching.slots, organization).await
    }
}

/// What an upstream answers for a package. A failure is logged.
async fn requested(hosts: &PackageHosts, ask: &Ask) -> Answer {
    let answered = match ask.language {
        _ if ask.statements.is_some() => {
            upstream_attestations::answer(hosts, ask, ask.statements.as_deref().unwrap_or_default()).await
        }
        Language::Python => python::documents::answer(hosts, ask).await,
        Language::JavaScript => javascript::upstream_documents::answer(hosts, ask).await,
        Language::Java => java::upstream_lists::answer(hosts, ask).await,
        Language::Go => go::upstream_documents::answer(hosts, ask).await,
        Language::Cargo => cargo::upstream_documents::answer(hosts, ask).await,
        Language::Generic => Err("generic files have no upstreams".into()),
    };
    answered.unwrap_or_else(|problem| {
        let (upstream, package) = (&ask.upstream.name, &ask.package);
        tracing::warn!(upstream, package, problem, "an upstream did not answer for a package");
        Answer::Failed
    })
}

/// The response to a request for a page at an address, and where it came from; or what a refusal of it means.
pub(crate) async fn requested_page(
    hosts: &PackageHosts,
    ask: &Ask,
    (address, accepted): (&str, &'static str),
) -> Result<Result<(Opened, Url), Answer>, String> {
    let url = Url::parse(address).map_err(|_| in_log(FetchError::InvalidUrl))?;
    let headers = conditions(ask, accepted)?;
    let (opened, url) = hosts.fetching.client.get(&ask.upstream, &url, &headers).await.map_err(in_log)?;
    if opened.status() == StatusCode::OK {
        return Ok(Ok((opened, url)));
    }
    match of_status(opened.status()) {
        Answer::Failed => Err(in_log(FetchError::Status(opened.status().as_u16()))),
        answer => Ok(Err(answer)),
    }
}

/// Why an upstream gave no page, for the log.
pub(crate) fn in_log(error: FetchError) -> String {
    format!("{error} ({})", error.reason())
}

/// Headers of a request, which is conditional on what was answered before.
fn conditions(ask: &Ask, accepted: &'static str) -> Result<HeaderMap, String> {
    let mut headers = HeaderMap::new();
    headers.insert(header::ACCEPT, HeaderValue::from_static(accepted));
    for (name, value) in [(header::IF_NONE_MATCH, &ask.etag), (header::IF_MODIFIED_SINCE, &ask.last_modified)] {
        if !value.is_empty() {
            headers.insert(name, HeaderValue::from_str(value).map_err(|error| error.to_string())?);
        }
    }
    Ok(headers)
}

/// One line of text of an upstream, bounded.
pub(crate) fn line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(TEXT).collect()
}

/// A header of a response, if it is not too long to be stored.
pub(crate) fn text_of(opened: &Opened, name: HeaderName) -> String {
    let value = opened.headers().get(name).and_then(|value| value.to_str().ok());
    value.filter(|value| value.len() <= TEXT).unwrap_or_default().to_owned()
}

/// The whole body of a page.
pub(crate) async fn page(opened: Opened) -> Result<Bytes, String> {
    opened.whole(PAGE).await.map_err(in_log)
}

/// What an upstream's refusal of a page means.
fn of_status(status: StatusCode) -> Answer {
    match status {
        StatusCode::NOT_FOUND | StatusCode::GONE => Answer::Absent,
        StatusCode::NOT_MODIFIED => Answer::Same,
        _ => Answer::Failed,
    }
}
