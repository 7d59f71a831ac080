//! A whole server: from options to running listeners, and down again.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bowline_authn::addresses::AddressPolicy;
use bowline_authn::aws::{AwsSts, GLOBAL_HOST};
use bowline_authn::discovery::IssuerKeys;
use bowline_authn::guarded::GuardedClient;
use bowline_authn::wrap::{KeyEncryptionKey, random_bytes};
use bowline_content::Content;
use bowline_contract::Contract;
use bowline_core::Clock;
use bowline_identity::{Exchange, People, people};
use bowline_oci::Distribution;
use bowline_pipeline::{Authenticator, OwnKeys, PageKey, Pipeline, RateLimits, Settings, Vault};
use bowline_registry::content::Registry;
use bowline_rpc::{Cors, Front, Hosts, Listener, ResponseCache, Telemetry, TrustedProxies};
use bowline_signin::Redirects;
use bowline_terminal::public_url;
use bowline_transcode::Tables;
use bowline_vulnerabilities::Published;
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

use crate::blobs::{Blobs, content};
use crate::error::StartError;
use crate::garbage::Schedule;
use crate::mail::Relay;
use crate::metrics::Metrics;
use crate::options::Options;
use crate::request_sizes::RequestSizes;
use crate::storage::Storage;
use crate::tls::CertificateFiles;
use crate::well_known::{self, Pages};
use crate::work_counts::WorkCounts;
use crate::{
    admin, background, connections, disk, facts, fronts, keys, limits, providers, request_sizes, serving, settings, tls,
};

/// Calls without a token that one address may make per second, where nothing is configured.
const DEFAULT_ADDRESS_RATE: u32 = 100;
/// Time for what was noted of calls to be written when the server stops.
const LAST_NOTES_TAKE: Duration = Duration::from_secs(20);

/// What a server is made of; tests look inside.
pub struct Parts {
    /// The contract.
    pub contract: Arc<Contract>,
    /// The database and its key.
    pub storage: Storage,
    /// Verifies our tokens.
    pub authenticator: Arc<Authenticator>,
    /// The token exchange.
    pub exchange: Arc<Exchange>,
    /// Everything about people who sign in.
    pub people: Arc<People>,
    /// The path of every call.
    pub pipeline: Arc<Pipeline>,
    /// The bytes of the registry's blobs.
    pub content: Content,
    /// When the registry's garbage is collected.
    pub collection: Schedule,
    /// What the registry host does.
    pub registry: Registry,
    /// The public documents of advisories.
    pub published: Arc<Published>,
    /// The registry host.
    pub door: Arc<Distribution>,
    /// The server's secrets, for use.
    pub vault: Arc<Vault>,
    /// What was configured.
    pub settings: Arc<Settings>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Days for which rows of the audit log are kept; absent for ever.
    pub audit_retention: Option<u32>,
    /// How long after one round of retention the next one begins; absent for never.
    pub retention_every: Option<Duration>,
    /// Writes messages as JSON.
    pub tables: Arc<Tables>,
    /// The client for requests to hosts that others name.
    pub client: GuardedClient,
    /// Counts of the background work, for the metrics.
    pub work_counts: WorkCounts,
    /// What this replica calls itself where one of several does something.
    pub replica: String,
    /// Whether a command took this server for stopped.
    pub is_unregistered: watch::Sender<bool>,
}

/// A running server.
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
    pub async fn start(options: &Options, clock: Arc<dyn Clock>) -> Result<Server, StartError> {
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
        // Nothing is created before both addresses are held.
        let refused = |source| StartError::Listen { address: options.listen().to_string(), flag: "listen", source };
        let listener = Listener::bind(options.listen(), tls, limits, options.grpc_reflection.unwrap_or(true)).await;
        let listener = listener.map_err(refused)?;
        let address = listener.address().map_err(refused)?;
        let admin_socket = admin::bind(options, admin_limits).await?;
        let settings = Arc::new(settings::of(options, scheme, address)?);
        let storage = Storage::open(options).await?;
        let parts = Arc::new(assemble(options, storage, settings, clock, address).await?);
        let telemetry = Telemetry::new(&parts.contract).map_err(|error| StartError::Defect(error.to_string()))?;
        let telemetry = Arc::new(telemetry);
        let front = Arc::new(front(options, &parts, telemetry.clone(), redirects, cors, sizes, request_time));
        let (stop, stopped) = watch::channel(false);
        let listeners = [("public", listener.counts()), ("admin", admin_socket.counts())];
        let metrics = Metrics::new(parts.clone(), telemetry, certificate.clone(), listeners);
        let (admin_address, admin) = admin::serve(admin_socket, &parts, metrics, stopped.clone())?;
        let notes = background::start_notes(&parts, &stopped);
        let main = tokio::spawn(listener.serve(front, wait_for(stopped)));
        let mut background = background::start(&parts, relay);
        if let Some(certificate) = certificate {
            background.spawn(tls::follow(certificate, options.tls_look_every.unwrap_or(tls::LOOK_EVERY)));
        }
        Ok(Server { parts, address, admin_address, stop, listeners: vec![main, admin], background, notes })
    }

    /// The parts.
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

    /// Waits until a command took this server for stopped, after which it must stop: it has the wrong key file.
    pub async fn unregistered(&self) {
        wait_for(self.parts.is_unregistered.subscribe()).await;
    }

    /// Lets running calls end, then closes the storage.
    pub async fn stop(mut self) {
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
            tracing::warn!("pulls and sign-ins of the last seconds are not written down: the storage does not answer");
        }
        self.background.shutdown().await;
        background::give_back(&self.parts).await;
        self.parts.exchange.flush_last_seen().await;
        self.parts.registry.flush_pulls().await;
        serving::leave(&self.parts).await;
        self.parts.storage.close().await;
    }
}

/// Waits until it is true, such as that the server stops.
pub(crate) async fn wait_for(mut condition: watch::Receiver<bool>) {
    // An error means that the server is gone, which is as good a reason to stop.
    let _ = condition.wait_for(|condition| *condition).await;
}

async fn assemble(
    options: &Options,
    storage: Storage,
    settings: Arc<Settings>,
    clock: Arc<dyn Clock>,
    address: SocketAddr,
) -> Result<Parts, StartError> {
    let contract = Contract::load();
    let tables = Arc::new(Tables::new(contract.pool()).with_text_forms(contract.text_forms()));
    let db = storage.db.clone();
    // A start writes little, and succeeds on a full disk.
    let starting = db.from_reserve();
    seed(&starting, &contract, clock.now()).await?;
    let replica: String = bowline_core::hex(&random_bytes::<8>());
    serving::register(&storage, &replica, clock.now()).await?;
    let ring = keys::load_or_create(&starting, &storage.wrapping_key, storage.token_algorithm, clock.now()).await?;
    let verification = ring.verification_keys(clock.now().div_euclid(1_000_000));
    let own_keys = OwnKeys { ring, verification };
    let authenticator = Arc::new(Authenticator::new(contract.clone(), settings.auth_url.clone(), own_keys));
    let page_key = PageKey::new(keys::secret(&starting, &storage.wrapping_key, "page tokens").await?);
    let sealing = KeyEncryptionKey::from_bytes(storage.wrapping_key.as_bytes());
    let sealing = sealing.map_err(|error| StartError::Sealed(error.to_string()))?;
    let authentication = keys::secret(&starting, &storage.wrapping_key, "codes and refresh tokens").await?;
    let vault = Arc::new(Vault::new(sealing, authentication));
    let policy = AddressPolicy {
        allow: options.allow_private_addresses.clone(),
        // A server that the world reaches through a proxy on the same machine is not a local one.
        allow_loopback_and_http: address.ip().is_loopback() && is_loopback_url(&settings.base_url),
    };
    let client = GuardedClient::new(policy).map_err(|error| StartError::Defect(error.to_string()))?;
    let issuer_keys = Arc::new(IssuerKeys::new(client.clone()));
    let operator_providers = providers::configured(&options.operator_providers)?;
    let exchange = Arc::new(Exchange::new(
        db.clone(),
        issuer_keys.clone(),
        aws_sts(options, client.clone())?,
        operator_providers.clone(),
        authenticator.clone(),
        settings.clone(),
        contract.clone(),
    ));
    let people = Arc::new(People::new(people::Parts {
        db: db.clone(),
        client: client.clone(),
        issuer_keys,
        authenticator: authenticator.clone(),
        settings: settings.clone(),
        contract: contract.clone(),
        vault: vault.clone(),
        exchange: exchange.clone(),
        providers: operator_providers,
    }));
    let content = content(options, &starting).await?;
    let published = Arc::new(Published::new(db.clone(), limits::advisory_memory(options)));
    let limits = RateLimits::new(options.rate_limit_principal.unwrap_or(0), address_rate(options));
    let pipeline = Arc::new(Pipeline::new(
        contract.clone(),
        tables.clone(),
        db.clone(),
        authenticator.clone(),
        settings.clone(),
        clock.clone(),
        page_key,
        vault.clone(),
        bowline_services::handlers(contract.clone(), people.clone(), Arc::new(Blobs(content.clone())), &published),
        limits,
    ));
    let registry = Registry::new(pipeline.clone(), disk::pull_spill(options)?);
    let door = Arc::new(Distribution::new(registry.clone(), content.clone(), pipeline.clone(), client.clone()));
    let told = vec![
        ("base_url", settings.base_url.clone()),
        ("auth_url", settings.auth_url.clone()),
        ("api_audience", settings.api_audience.clone()),
    ];
    facts::write(&starting, told).await?;
    let audit_retention = match options.audit_retention {
        Some(0) => {
            return Err(StartError::Option("--audit-retention 0: a day at least; leave it out to keep all".into()));
        }
        days => days,
    };
    Ok(Parts {
        contract,
        storage,
        authenticator,
        exchange,
        people,
        pipeline,
        content,
        collection: Schedule::of(options)?,
        registry,
        published,
        door,
        vault,
        settings,
        clock,
        audit_retention,
        retention_every: options.retention_every(),
        tables,
        client,
        work_counts: WorkCounts::default(),
        replica,
        is_unregistered: watch::Sender::new(false),
    })
}

fn aws_sts(options: &Options, client: GuardedClient) -> Result<AwsSts, StartError> {
    let url = options.aws_sts_url.as_deref().map(|url| public_url("aws-sts-url", url)).transpose()?;
    let hosts = match options.aws_sts_hosts.as_slice() {
        [] => vec![GLOBAL_HOST.to_owned()],
        hosts => hosts.to_vec(),
    };
    let is_host = |host: &String| {
        let is_name = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b".-".contains(&byte);
        !host.is_empty() && host.bytes().all(is_name)
    };
    match hosts.iter().find(|host| !is_host(host)) {
        None => Ok(AwsSts::new(client, hosts, url)),
        Some(host) => Err(StartError::Option(format!(
            "--aws-sts-hosts {host}: must be host names in lower case without scheme and port, such as {GLOBAL_HOST}"
        ))),
    }
}

fn is_loopback_url(url: &str) -> bool {
    match url::Url::parse(url).ok().as_ref().and_then(url::Url::host) {
        Some(url::Host::Ipv4(address)) => address.is_loopback(),
        Some(url::Host::Ipv6(address)) => address.is_loopback(),
        Some(url::Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        None => false,
    }
}

async fn seed(db: &bowline_store::Db, contract: &Arc<Contract>, now: i64) -> Result<(), StartError> {
    let contract = contract.clone();
    db.write(move |tx| {
        let contract = contract.clone();
        Box::pin(async move { bowline_identity::seed_built_in_roles(tx, &contract, now).await })
    })
    .await?;
    Ok(())
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
    };
    let fronts = fronts::all(options, parts, telemetry.clone(), redirects, sizes.queries);
    Front {
        pipeline: parts.pipeline.clone(),
        telemetry,
        hosts: Hosts::new(
            &settings.base_url,
            &settings.auth_url,
            &settings.registry_audience,
            &settings.libraries_audience,
        ),
        cors,
        proxies: TrustedProxies::new(options.trusted_proxies.clone()),
        router: well_known::router(pages).merge(fronts),
        kept: ResponseCache::default(),
        request_time,
        request_bytes: sizes.request,
        grpc_response_bytes: 100 << 20,
        in_flight: Arc::new(sizes.in_flight),
    }
}
