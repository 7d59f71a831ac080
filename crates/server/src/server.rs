//! The server: from options to running listeners, and its shutdown.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bowline_authn::crypto::random_bytes;
use bowline_authn::guarded::GuardedClient;
use bowline_content::Content;
use bowline_contract::Contract;
use bowline_core::Clock;
use bowline_identity::{Exchange, People};
use bowline_oci::Distribution;
use bowline_package_hosts::PackageHosts;
use bowline_pipeline::{Authenticator, Pipeline, Settings, Vault};
use bowline_registry::content::Registry;
use bowline_rpc::{Cors, Front, Hosts, Listener, ResponseCache, Telemetry, TrustedProxies};
use bowline_signin::Redirects;
use bowline_store::BoxFuture;
use bowline_transcode::Tables;
use bowline_vulnerabilities::Published;
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

use crate::backup::BackupSchedule;
use crate::call_rates::{self, CallRates};
use crate::error::StartError;
use crate::garbage::Schedule;
use crate::mail::Relay;
use crate::matching::Matching;
use crate::metrics::Metrics;
use crate::options::Options;
use crate::request_sizes::RequestSizes;
use crate::storage::Storage;
use crate::task_board::TaskBoard;
use crate::tls::CertificateFiles;
use crate::well_known::{self, Pages};
use crate::work_counts::WorkCounts;
use crate::{admin, assembly, background, connections, fronts, limits, request_sizes, serving, settings, tls};

/// Default of the calls without a token that one address may make per second.
const DEFAULT_ADDRESS_RATE: u32 = 100;
/// Time at shutdown for writing the pull and last-seen records of the last calls.
const LAST_NOTES_TAKE: Duration = Duration::from_secs(20);

/// Components of a server; public for tests.
pub struct Parts {
    pub contract: Arc<Contract>,
    /// The database and its key.
    pub storage: Storage,
    pub authenticator: Arc<Authenticator>,
    pub exchange: Arc<Exchange>,
    /// Everything about people who sign in.
    pub people: Arc<People>,
    /// The one path of every call.
    pub pipeline: Arc<Pipeline>,
    /// The bytes of the registry's blobs.
    pub content: Content,
    /// When the registry's garbage is collected.
    pub collection: Schedule,
    /// Backups that the server makes by itself.
    pub backups: Option<BackupSchedule>,
    /// Tags, manifests and blobs, as the registry host changes and reads them.
    pub registry: Registry,
    /// The public documents of advisories.
    pub published: Arc<Published>,
    /// Matches of components with records of vulnerabilities.
    pub matching: Arc<Matching>,
    pub distribution: Arc<Distribution>,
    pub package_hosts: Arc<PackageHosts>,
    /// The server's secrets, for use.
    pub vault: Arc<Vault>,
    pub settings: Arc<Settings>,
    pub clock: Arc<dyn Clock>,
    /// Days for which rows of the audit log stay; absent for ever.
    pub audit_retention: Option<u32>,
    /// Pause between two rounds of retention; absent for never.
    pub retention_every: Option<Duration>,
    /// Writes messages as JSON.
    pub tables: Arc<Tables>,
    /// The HTTP client for URLs that callers choose.
    pub client: GuardedClient,
    /// Counts of the background work, for the metrics.
    pub work_counts: Arc<WorkCounts>,
    /// Periodic tasks, for the operator.
    pub(crate) tasks: Arc<TaskBoard>,
    /// Rates of calls, for the operator.
    pub(crate) rates: Arc<CallRates>,
    /// Name of this replica in leases.
    pub replica: String,
    /// Whether a command removed this server's registration because it was silent for too long.
    pub is_unregistered: watch::Sender<bool>,
}

pub struct Server {
    parts: Arc<Parts>,
    address: SocketAddr,
    admin_address: SocketAddr,
    stop: watch::Sender<bool>,
    listeners: Vec<JoinHandle<()>>,
    background: JoinSet<()>,
    notes: JoinSet<()>,
}

impl Server {
    /// Brings a server up: storage, keys, listeners, background work.
    ///
    /// # Errors
    /// What was wrong and what to do.
    pub fn start(options: &Options, clock: Arc<dyn Clock>) -> BoxFuture<'_, Result<Server, StartError>> {
        Box::pin(async move {
            let certificate = CertificateFiles::open(options)?;
            let tls = certificate.as_ref().map(CertificateFiles::server_config).transpose()?;
            let relay = Relay::of(options)?;
            let scheme = if tls.is_some() { "https" } else { "http" };
            let redirects = Redirects::new(&options.redirect_origins)
                .map_err(|why| StartError::Option(format!("--redirect-origins {why}")))?;
            let cors =
                Cors::new(&options.cors_origins).map_err(|why| StartError::Option(format!("--cors-origins {why}")))?;
            let sizes = request_sizes::of(options)?;
            let request_time = limits::request_time(options)?;
            let limits = connections::public(options)?;
            let admin_limits = connections::admin(&limits);
            // Both addresses are bound before anything is created.
            let refused = |source| StartError::Listen { address: options.listen().to_string(), flag: "listen", source };
            let listener = Listener::bind(options.listen(), tls, limits, options.grpc_reflection.unwrap_or(true)).await;
            let listener = listener.map_err(refused)?;
            let address = listener.address().map_err(refused)?;
            let admin_socket = admin::bind(options, admin_limits).await?;
            let settings = Arc::new(settings::of(options, scheme, address)?);
            let storage = Storage::open(options).await?;
            let parts = Arc::new(assembly::assemble(options, storage, settings, clock, address).await?);
            let telemetry = Telemetry::new(&parts.contract).map_err(|error| StartError::Defect(error.to_string()))?;
            let telemetry = Arc::new(telemetry);
            let front = Arc::new(front(options, &parts, telemetry.clone(), redirects, cors, sizes, request_time));
            let (stop, stopped) = watch::channel(false);
            let listeners = [("public", listener.counts()), ("admin", admin_socket.counts())];
            let metrics = Metrics::new(parts.clone(), telemetry.clone(), certificate.clone(), listeners);
            let (admin_address, admin) = admin::serve(admin_socket, &parts, metrics, stopped.clone())?;
            let notes = background::start_notes(&parts, &stopped);
            let main = tokio::spawn(listener.serve(front, wait_for(stopped)));
            let mut background = background::start(&parts, relay);
            background.spawn(call_rates::follow(parts.rates.clone(), telemetry, parts.clock.clone()));
            if let Some(certificate) = certificate {
                background.spawn(tls::follow(certificate, options.tls_look_every.unwrap_or(tls::LOOK_EVERY)));
            }
            Ok(Server { parts, address, admin_address, stop, listeners: vec![main, admin], background, notes })
        })
    }

    pub fn parts(&self) -> &Arc<Parts> {
        &self.parts
    }

    /// The address that everything is served on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The address of liveness, readiness and metrics.
    pub fn admin_address(&self) -> SocketAddr {
        self.admin_address
    }

    /// Waits until a command has removed this server's registration. The server must then stop: the command
    /// may have replaced the key file.
    pub async fn unregistered(&self) {
        wait_for(self.parts.is_unregistered.subscribe()).await;
    }

    /// Lets running calls end, then closes the storage.
    pub fn stop(mut self) -> BoxFuture<'static, ()> {
        Box::pin(async move {
            let _ = self.stop.send(true);
            self.parts.pipeline.streams.stop();
            for listener in self.listeners {
                if let Err(error) = listener.await {
                    tracing::error!(%error, "a listener ended badly");
                }
            }
            if tokio::time::timeout(LAST_NOTES_TAKE, async { while self.notes.join_next().await.is_some() {} })
                .await
                .is_err()
            {
                tracing::warn!(
                    "storage unavailable at shutdown; pull and last-seen records of the last seconds were lost"
                );
            }
            self.background.shutdown().await;
            background::give_back(&self.parts).await;
            self.parts.exchange.flush_last_seen().await;
            self.parts.registry.flush_pulls().await;
            self.parts.package_hosts.flush_notes(random_bytes::<8>).await;
            serving::leave(&self.parts).await;
            self.parts.storage.close().await;
        })
    }
}

/// Waits until the condition is true, such as the server's stop signal.
pub(crate) async fn wait_for(mut condition: watch::Receiver<bool>) {
    // An error means that the server is gone, which is as good a reason to stop.
    let _ = condition.wait_for(|condition| *condition).await;
}

pub(crate) fn address_rate(options: &Options) -> u32 {
    options.rate_limit_address.unwrap_or(DEFAULT_ADDRESS_RATE)
}

fn front(
    options: &Options,
    parts: &Parts,
    telemetry: Arc<Telemetry>,
    redirects: Redirects,
    cors: Cors,
    sizes: RequestSizes,
    request_time: Duration,
) -> Front {
    let settings = &parts.settings;
    let pages = Pages {
        contract: parts.contract.clone(),
        authenticator: parts.authenticator.clone(),
        settings: settings.clone(),
        clock: parts.clock.clone(),
        openapi: Arc::default(),
        has_console: options.has_console(),
    };
    let fronts = fronts::all(options, parts, telemetry.clone(), redirects, sizes.queries, request_time);
    Front {
        pipeline: parts.pipeline.clone(),
        telemetry,
        hosts: Hosts::new(
            &settings.base_url,
            &settings.auth_url,
            &settings.registry_audience,
            &settings.libraries_audience,
        )
        .with_osv(settings.osv_url.as_deref()),
        cors,
        proxies: TrustedProxies::new(options.trusted_proxies.clone()),
        router: well_known::router(pages).merge(fronts),
        response_cache: ResponseCache::default(),
        request_time,
        request_bytes: sizes.request,
        grpc_response_bytes: 100 << 20,
        in_flight: Arc::new(sizes.in_flight),
    }
}
