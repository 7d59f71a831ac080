//! Hosts of packages: the protocols that installers and publishers of language ecosystems speak, below the libraries URL.
//!
//! What is allowed, what is there and what policies withhold, [`bowline_libraries::hosting`] knows; bytes lie in
//! [`bowline_content::Content`]. This crate reads requests and writes answers in the form that each client shows to people,
//! and requests from upstreams what is not here.
//! To add a protocol, write a module beside `python` with its paths and answers, whose `Target` is named in [`router`], and
//! its word in `rpc/src/hosts.rs`.

mod answers;
mod attestations;
mod callers;
mod cargo;
mod checksums;
mod fetched;
mod fetching;
mod file_fetches;
mod files;
mod forms;
mod generic;
mod go;
mod java;
mod javascript;
mod pages;
mod python;
mod storing;
mod targets;
mod trusted_publishing;
mod upstream_attestations;
mod upstreams;

use std::sync::Arc;

use axum::Router;
use axum::extract::{Extension, Request, State};
use axum::http::{StatusCode, header};
use axum::response::Response;
use axum::routing::any;
use bowline_authn::guarded::GuardedClient;
use bowline_content::Content;
use bowline_fronts::{Count, Front, LogFields};
use bowline_identity::{CredentialExchange, Exchange};
use bowline_libraries::hosting::{self, HostClient, Hosting, TrustedRoot};
use bowline_pipeline::{Pipeline, Quota, RequestOrigin, Surface};
use tokio::sync::Semaphore;

use answers::Refused;
use callers::Caller;
use fetching::Fetching;
use targets::Target;

/// Archives that are read at the same time: they are unpacked on blocking threads, which others need too.
const ARCHIVES: usize = 2;
/// Statements about files of upstreams that are verified for readers at the same time.
const STATEMENTS: usize = 2;
/// Documents of npm's upstreams that are signed at the same time if they are long or have many versions, and those of one
/// organization: some have 100,000 versions.
const SIGNED: usize = 4;
const SIGNED_BY_ORGANIZATION: usize = 2;

/// Whole packages that are read at the same time without being kept: they may have thousands of versions.
const WHOLE: usize = 8;
/// Bytes of documents that are published at the same time, and of those of one caller.
const DOCUMENTS: usize = 256 << 20;
const DOCUMENTS_BY_CALLER: usize = 64 << 20;

/// The hosts of packages: what groups publish, with its bytes and its callers.
pub struct PackageHosts {
    hosting: Hosting,
    content: Content,
    pipeline: Arc<Pipeline>,
    exchange: CredentialExchange,
    issuing: Arc<Exchange>,
    archives: Arc<Semaphore>,
    statements: Arc<Semaphore>,
    signing: Arc<Quota<String>>,
    whole: Semaphore,
    documents: Arc<Quota<String>>,
    fetching: Fetching,
    /// What statements about files are verified by.
    trusted_root: Option<Arc<TrustedRoot>>,
    /// The public address, without a slash at its end.
    url: String,
}

impl PackageHosts {
    /// The hosts of packages whose bytes lie in `content`; `client` requests those of upstreams, and `issuing` verifies the
    /// tokens of CI systems that publish. Statements about files are verified by the trusted root, if there is one.
    pub fn new(
        hosting: Hosting,
        content: Content,
        pipeline: Arc<Pipeline>,
        client: GuardedClient,
        issuing: Arc<Exchange>,
        trusted_root: Option<Arc<TrustedRoot>>,
    ) -> PackageHosts {
        let url = pipeline.settings.libraries_audience.trim_end_matches('/').to_owned();
        let exchange =
            CredentialExchange::new(pipeline.clone(), pipeline.settings.libraries_audience.clone(), Surface::Packages);
        let (archives, fetching) = (Arc::new(Semaphore::new(ARCHIVES)), Fetching::new(client));
        let (statements, signing) = (Arc::new(Semaphore::new(STATEMENTS)), Quota::new(SIGNED, SIGNED_BY_ORGANIZATION));
        let (whole, documents) = (Semaphore::new(WHOLE), Quota::new(DOCUMENTS, DOCUMENTS_BY_CALLER));
        PackageHosts {
            hosting,
            content,
            pipeline,
            exchange,
            issuing,
            archives,
            statements,
            signing,
            whole,
            documents,
            fetching,
            trusted_root,
            url,
        }
    }

    /// Files that are on their way from upstreams.
    pub fn fetches_under_way(&self) -> usize {
        self.fetching.files.count()
    }

    /// The turns in which documents of upstreams with many versions are signed, by organization. Tests take them.
    pub fn signing_turns(&self) -> &Arc<Quota<String>> {
        &self.signing
    }

    /// Writes the refused downloads that wait. Call it every few seconds, and once at the end; `draw` draws UIDPs at random.
    pub async fn flush_notes(&self, draw: fn() -> [u8; 8]) {
        hosting::flush_notes(&self.hosting, draw).await;
    }

    /// Removes what deleted upstreams left, in short steps. Call it every few seconds.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn remove_deleted_upstreams(&self) -> bowline_core::Result<()> {
        while self.hosting.remove_some_of_deleted_upstreams().await? {}
        Ok(())
    }

    /// Signs the versions that groups published before versions were signed, or that a removed key signed, in short steps. Call it
    /// every few seconds.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn sign_unsigned(&self) -> bowline_core::Result<()> {
        self.hosting.forget_removed_keys().await?;
        while self.hosting.sign_some().await? {}
        Ok(())
    }

    /// The path of the public address, below which the hosts are; empty if they have a host of their own.
    fn prefix(&self) -> &str {
        let rest = self.url.split_once("://").map_or(self.url.as_str(), |(_, rest)| rest);
        rest.find('/').map_or("", |at| &rest[at..])
    }
}

/// The routes of all protocols. `count` is called for each request.
pub fn router(hosts: Arc<PackageHosts>, count: Count) -> Router {
    let python = routes::<python::Target>(&hosts, count.clone());
    let javascript = routes::<javascript::Target>(&hosts, count.clone());
    let java = routes::<java::Target>(&hosts, count.clone());
    let go = routes::<go::Target>(&hosts, count.clone());
    let cargo = routes::<cargo::Target>(&hosts, count.clone());
    let generic = routes::<generic::Target>(&hosts, count.clone());
    let all = python.merge(javascript).merge(java).merge(go).merge(cargo).merge(generic);
    all.merge(trusted_publishing::routes(hosts, count))
}

/// The routes of a protocol.
fn routes<T: Target>(hosts: &Arc<PackageHosts>, count: Count) -> Router {
    // Everyone is admitted here: `callers` applies the rate limit, whose key depends on the credential.
    let admit = Arc::new(|_: &str, _: &RequestOrigin| Ok(()));
    let render_rejection = |path: &str, error| T::shown(path, Refused::from(error)).response();
    let front = Front { transport: "packages", name: T::name, admit, render_rejection, count };
    let base = format!("{}/{}", hosts.prefix(), T::WORD);
    let routes = Router::new()
        .route(&base, any(serve::<T>))
        .route(&format!("{base}/"), any(serve::<T>))
        .route(&format!("{base}/{{*rest}}"), any(serve::<T>))
        .with_state(hosts.clone());
    front.wrap(routes)
}

async fn serve<T: Target>(
    State(hosts): State<Arc<PackageHosts>>,
    Extension(origin): Extension<RequestOrigin>,
    mut request: Request,
) -> Response {
    let headers = std::mem::take(request.headers_mut());
    *request.headers_mut() = T::headers(headers);
    let path = request.uri().path().to_owned();
    let below = path.strip_prefix(hosts.prefix()).and_then(|path| path.strip_prefix('/'));
    let target = targets::parse::<T>(below.and_then(|path| path.strip_prefix(T::WORD)).unwrap_or_default());
    let request_id = origin.request_id.clone();
    let mut fields = LogFields::default();
    let answered = match target {
        Ok((scope, target)) => {
            fields.scope = scope.clone().unwrap_or_default();
            answer(&hosts, request, &origin, scope.as_deref(), target, &mut fields.principal).await
        }
        Err(refused) => Err(refused),
    };
    let mut response = answered.unwrap_or_else(|refused| T::shown(below.unwrap_or(&path), refused).response());
    let challenge =
        (response.status() == StatusCode::UNAUTHORIZED).then(|| T::challenge(&hosts.pipeline.settings.base_url));
    if let Some(challenge) = challenge.flatten() {
        answers::set(&mut response, header::WWW_AUTHENTICATE, &challenge);
    }
    let of_response = response.extensions_mut().get_or_insert_default::<LogFields>();
    (of_response.principal, of_response.scope) = (fields.principal, fields.scope);
    answers::finished(response, &request_id)
}

async fn answer<T: Target>(
    hosts: &Arc<PackageHosts>,
    request: Request,
    origin: &RequestOrigin,
    scope: Option<&str>,
    target: T,
    subject: &mut String,
) -> Result<Response, Refused> {
    targets::require_no_encoding(request.headers(), target.takes_gzip())?;
    let Caller { principal, is_publisher } = hosts.caller(request.headers(), origin, scope).await?;
    principal.subject().clone_into(subject);
    let client: HostClient = hosts.hosting.client(principal, origin.address, origin.request_id.clone());
    let client = if is_publisher { client.publishing_alone() } else { client };
    target.answer(hosts, &client, request, scope).await
}
