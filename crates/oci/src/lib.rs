//! The registry host: the distribution protocol over HTTP, and its token service.
//!
//! What is allowed, and what is there, [`bowline_registry::content::Registry`] knows; the bytes of blobs lie in
//! [`bowline_content::Content`]. This crate reads requests, streams bytes between the two, and writes answers.

mod access;
mod answer;
mod blobs;
mod body;
mod credentials;
mod fetched;
mod fetches;
mod lists;
mod manifests;
mod pull_through;
mod route;
mod scopes;
mod token;
mod uploads;
mod upstream;

use std::sync::Arc;

use axum::Router;
use axum::extract::{Extension, Request, State};
use axum::http::{HeaderMap, Method, header};
use axum::response::Response;
use axum::routing::any;
use bowline_content::{Content, ContentError};
use bowline_core::Error;
use bowline_fronts::request::is_shown;
use bowline_fronts::{Count, Front, LogFields};
use bowline_identity::CredentialExchange;
use bowline_pipeline::{Pipeline, RequestOrigin, Surface};
use bowline_registry::content::{RefusalCode, Registry, RegistryClient};

use answer::{Answer, Refused};
use route::Target;
pub use upstream::Upstream;

/// The registry host: the registry with its bytes, its callers and its upstreams.
pub struct Distribution {
    registry: Registry,
    content: Content,
    pipeline: Arc<Pipeline>,
    exchange: CredentialExchange,
    upstream: Arc<Upstream>,
    fetches: fetches::Fetches,
    /// Address of the token service, and the name of this one, as challenges say them.
    realm: String,
    service: String,
}

impl Distribution {
    /// The front to a registry whose blobs lie in `content`, and which asks others through `upstream`.
    pub fn new(registry: Registry, content: Content, pipeline: Arc<Pipeline>, upstream: Arc<Upstream>) -> Distribution {
        let settings = &pipeline.settings;
        let scheme = settings.base_url.split_once("://").map_or("https", |(scheme, _)| scheme);
        let service = settings.registry_audience.clone();
        let realm = format!("{scheme}://{service}/token");
        let exchange = CredentialExchange::new(pipeline.clone(), service.clone(), Surface::Registry);
        let fetches = fetches::Fetches::new();
        Distribution { registry, content, pipeline, exchange, upstream, fetches, realm, service }
    }

    /// Ends the uploads whose time is over, and takes the bytes of all that have ended: by themselves, or together with
    /// their repository.
    ///
    /// # Errors
    /// The database or the storage of blobs does not answer; the rest is done all the same.
    pub async fn expire_uploads(&self) -> Result<(), Error> {
        // Some at a time, so that no transaction is long.
        let expired = loop {
            match self.registry.expire_uploads().await {
                Ok(ended) if ended.is_empty() => break Ok(()),
                Ok(_) => {}
                Err(error) => {
                    tracing::warn!(%error, "expired uploads could not be removed; trying again later");
                    break Err(error);
                }
            }
        };
        if let Err(error) = self.registry.sweep_fetches().await {
            tracing::warn!(%error, "rows of ended fetches stay; trying again later");
        }
        let swept = self.sweep_uploads().await.map_err(|refused| {
            tracing::warn!(error = ?refused.error, "the bytes of ended uploads stay; trying again later");
            Error::internal(format!("the bytes of ended uploads stay: {:?}", refused.error))
        });
        expired.and(swept)
    }

    /// Blobs that are being fetched from upstreams.
    pub fn fetches_under_way(&self) -> usize {
        self.fetches.count()
    }

    /// The files are listed first: one without a row after that is no one's, since the row of an upload is there before
    /// its file.
    async fn sweep_uploads(&self) -> Result<(), Refused> {
        let ids = self.content.uploads().await?;
        for id in self.registry.ended_uploads(&ids).await? {
            match self.content.cancel(&id) {
                // A request still writes to it, in vain.
                Ok(()) | Err(ContentError::Busy) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}

impl Distribution {
    /// The target of a request, which `ns` may name as an image of another registry.
    async fn selected(&self, request: &DistributionRequest, target: &Target) -> Result<Target, Refused> {
        let (Some(namespace), Some(name)) = (request.parameter("ns"), target.name()) else { return Ok(target.clone()) };
        let selected = self.registry.in_namespace(&request.client, name, namespace).await?;
        if selected != *name && !matches!(request.method, Method::GET | Method::HEAD) {
            let message = format!("\"ns\" selects an upstream for pulls: push to \"{selected}\" without it");
            return Err(Refused::new(RefusalCode::Unsupported, message));
        }
        Ok(target.of(selected))
    }
}

/// The refusal of what a browser would show, whether it exists or not: pages of this server may share the host.
fn not_shown() -> Refused {
    let text = "browsers do not show what the registry stores; pull it with a container client, such as `docker pull`";
    Refused::new(RefusalCode::Denied, text)
}

type Shared = State<Arc<Distribution>>;

/// The routes of the registry host. `count` is called for each request.
pub fn router(distribution: Arc<Distribution>, count: Count) -> Router {
    // Everyone is admitted here: `credentials` applies the rate limit, whose key (identity or address) depends on the
    // credential.
    let admit = Arc::new(|_: &str, _: &RequestOrigin| Ok(()));
    let render_rejection = |_: &str, error| answer::response_of(Refused::from(error));
    let front = Front { transport: "oci", name: access::name, admit, render_rejection, count };
    let routes = Router::new()
        .route("/token", any(token::serve))
        .route("/v2", any(serve))
        .route("/v2/", any(serve))
        .route("/v2/{*rest}", any(serve))
        .with_state(distribution);
    front.wrap(routes)
}

/// A request that was read as far as its path, by someone who is known.
struct DistributionRequest {
    client: RegistryClient,
    method: Method,
    headers: HeaderMap,
    query: Vec<(String, String)>,
}

impl DistributionRequest {
    fn parameter(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    fn header(&self, name: header::HeaderName) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }
}

async fn serve(State(distribution): Shared, Extension(origin): Extension<RequestOrigin>, request: Request) -> Response {
    let method = request.method().clone();
    let target = route::parse(request.uri().path());
    let request_id = origin.request_id.clone();
    let mut subject = String::new();
    let result = match &target {
        _ if is_shown(request.headers()) => Err(not_shown()),
        Ok(target) => answer(&distribution, request, target, origin, &mut subject).await,
        Err(refusal) => Err(Refused::from(refusal.clone())),
    };
    let target = target.ok();
    let mut response = result.unwrap_or_else(|refused| distribution.refusal(refused, target.as_ref(), &method));
    let fields = response.extensions_mut().get_or_insert_default::<LogFields>();
    fields.principal = subject;
    fields.scope = target.as_ref().and_then(Target::name).map(ToString::to_string).unwrap_or_default();
    answer::finished(response, &request_id)
}

async fn answer(
    distribution: &Arc<Distribution>,
    request: Request,
    target: &Target,
    origin: RequestOrigin,
    subject: &mut String,
) -> Answer {
    let (head, body) = request.into_parts();
    let known = distribution.principal(&head.headers, &origin).await?;
    known.principal.subject().clone_into(subject);
    let user_agent = head.headers.get(header::USER_AGENT).map(|value| String::from_utf8_lossy(value.as_bytes()));
    let client = distribution.registry.client(
        known.principal,
        origin.address,
        origin.request_id,
        head.method.as_str(),
        &user_agent.unwrap_or_default(),
    );
    let query = route::query(head.uri.query().unwrap_or(""))?;
    let request = DistributionRequest { client, method: head.method, headers: head.headers, query };
    let target = &distribution.selected(&request, target).await?;
    match target {
        Target::Base => lists::base(&request, known.has_credential),
        Target::Catalog => distribution.catalog(&request).await,
        Target::Manifest(name, reference) => distribution.manifest(&request, body, name, reference).await,
        Target::Blob(name, digest) => distribution.blob(&request, name, digest).await,
        Target::Uploads(name) => distribution.uploads(&request, body, name).await,
        Target::Upload(name, id) => distribution.upload(&request, body, name, id).await,
        Target::Tags(name) => distribution.tags(&request, name).await,
        Target::Referrers(name, digest) => distribution.referrers(&request, name, digest).await,
        Target::History(name, tag) => distribution.history(&request, name, tag).await,
    }
}
