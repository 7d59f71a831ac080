//! From options and storage to the parts of a server.

use std::net::SocketAddr;
use std::sync::Arc;

use bowline_authn::addresses::AddressPolicy;
use bowline_authn::aws::{AwsSts, GLOBAL_HOST};
use bowline_authn::crypto::{KeyEncryptionKey, random_bytes};
use bowline_authn::discovery::IssuerKeys;
use bowline_authn::guarded::GuardedClient;
use bowline_content::Content;
use bowline_contract::Contract;
use bowline_core::Clock;
use bowline_delivery::DirectSender;
use bowline_identity::{Exchange, People, people};
use bowline_libraries::hosting::{Hosting, TrustedRoot};
use bowline_oci::{Distribution, Upstream};
use bowline_package_hosts::PackageHosts;
use bowline_pipeline::{Authenticator, OwnKeys, PageKey, Pipeline, RateLimits, Settings, Vault};
use bowline_registry::attached::Documents;
use bowline_registry::content::{Registry, UpstreamChecks};
use bowline_services::{self as services, Outbound};
use bowline_terminal::public_url;
use bowline_transcode::Tables;
use bowline_vulnerabilities::Published;
use tokio::sync::watch;

use crate::backup::BackupSchedule;
use crate::blobs::{Blobs, content};
use crate::error::StartError;
use crate::garbage::Schedule;
use crate::matching::Matching;
use crate::options::Options;
use crate::server::{Parts, address_rate};
use crate::state::{RunningServer, StartFacts};
use crate::storage::Storage;
use crate::{disk, facts, keys, limits, providers, serving};

/// The contract with its patterns compiled, so that no request waits for one.
fn compiled_contract() -> Arc<Contract> {
    let contract = Contract::load();
    contract.field_rules().compile();
    contract
}

/// Makes the parts, each of those before it.
///
/// # Errors
/// An option is wrong, or what is stored cannot be used.
pub(crate) async fn assemble(
    options: &Options,
    storage: Storage,
    settings: Arc<Settings>,
    clock: Arc<dyn Clock>,
    address: SocketAddr,
) -> Result<Parts, StartError> {
    let contract = compiled_contract();
    let tables = Arc::new(Tables::new(contract.pool()).with_text_forms(contract.text_forms()));
    let db = storage.db.clone();
    // A start writes little, and succeeds on a full disk.
    let starting = db.from_reserve();
    let replica = begin(&starting, &storage, &contract, clock.now()).await?;
    let Secrets { authenticator, page_key, vault } =
        Secrets::load(&storage, &starting, contract.clone(), &settings, clock.now()).await?;
    let client = outbound(options, &settings, address)?;
    let (people, exchange) = people(options, &db, &client, &authenticator, &settings, &contract, &vault)?;
    let content = content(options, &starting).await?;
    let published = Arc::new(Published::new(db.clone(), limits::advisory_memory(options)));
    let sender = sender(&db, &contract, &tables, &settings, &authenticator, &client, &clock);
    let (upstream, outbound) = requests(&db, &client, &clock, sender);
    let state = running(options, &settings, &storage, &authenticator, &clock, &replica)?;
    let blobs = || Arc::new(Blobs(content.clone()));
    let handlers = services::handlers(contract.clone(), people.clone(), blobs(), &published, &outbound, state.clone());
    let pipeline = Arc::new(Pipeline::new(
        contract.clone(),
        tables.clone(),
        db.clone(),
        authenticator.clone(),
        settings.clone(),
        clock.clone(),
        page_key,
        vault.clone(),
        handlers,
        RateLimits::new(options.rate_limit_principal.unwrap_or(0), address_rate(options)),
    ));
    // Not the documents of the handlers: pushes do not wait for those who read.
    let registry = Registry::new(pipeline.clone(), disk::pull_spill(options)?, Documents::new(blobs()));
    facts::write(&starting, addresses(&settings)).await?;
    Ok(Parts {
        package_hosts: package_hosts(options, &pipeline, &registry, &content, &client, exchange.clone())?,
        distribution: Arc::new(Distribution::new(registry.clone(), content.clone(), pipeline.clone(), upstream)),
        matching: Arc::new(Matching::new(starting, contract.clone(), &replica)),
        contract,
        storage,
        authenticator,
        exchange,
        people,
        pipeline,
        content,
        collection: Schedule::of(options)?,
        backups: BackupSchedule::of(options).await?,
        registry,
        published,
        vault,
        settings,
        clock,
        audit_retention: audit_retention(options)?,
        retention_every: options.retention_every(),
        tables,
        client,
        work_counts: state.work_counts.clone(),
        tasks: state.tasks.clone(),
        rates: state.rates.clone(),
        replica,
        is_unregistered: watch::Sender::new(false),
    })
}

fn package_hosts(
    options: &Options,
    pipeline: &Arc<Pipeline>,
    registry: &Registry,
    content: &Content,
    client: &GuardedClient,
    exchange: Arc<Exchange>,
) -> Result<Arc<PackageHosts>, StartError> {
    let (hosting, root) = (Hosting::new(pipeline.clone(), registry.clone()), trusted_root(options)?);
    let hosts = PackageHosts::new(hosting, content.clone(), pipeline.clone(), client.clone(), exchange, root);
    Ok(Arc::new(hosts))
}

/// The trusted root that attestations are verified by, if an option names its file.
fn trusted_root(options: &Options) -> Result<Option<Arc<TrustedRoot>>, StartError> {
    let Some(path) = &options.sigstore_trust_root else { return Ok(None) };
    let refuse = |why: String| StartError::Option(format!("--sigstore-trust-root: {} {why}", path.display()));
    let text = std::fs::read_to_string(path).map_err(|error| refuse(format!("cannot be read: {error}")))?;
    Ok(Some(Arc::new(TrustedRoot::parse(&text).map_err(refuse)?)))
}

/// Writes what every database has, and registers this server under a name of its own.
async fn begin(
    starting: &bowline_store::Db,
    storage: &Storage,
    contract: &Arc<Contract>,
    now: i64,
) -> Result<String, StartError> {
    seed(starting, contract, now).await?;
    let replica: String = bowline_core::hex(&random_bytes::<8>());
    serving::register(storage, &replica, now).await?;
    Ok(replica)
}

/// The server as the operator reads it, from its start on.
fn running(
    options: &Options,
    settings: &Settings,
    storage: &Storage,
    authenticator: &Arc<Authenticator>,
    clock: &Arc<dyn Clock>,
    replica: &str,
) -> Result<Arc<RunningServer>, StartError> {
    let known = StartFacts::of(options, settings, storage, authenticator, clock)?;
    Ok(Arc::new(RunningServer::new(storage.db.clone(), replica.to_owned(), known)))
}

/// What asks other registries, and what handlers reach other servers through.
fn requests(
    db: &bowline_store::Db,
    client: &GuardedClient,
    clock: &Arc<dyn Clock>,
    sender: Arc<DirectSender>,
) -> (Arc<Upstream>, Outbound) {
    let upstream = Arc::new(Upstream::new(client.clone(), clock.clone()));
    let checks = Arc::new(UpstreamChecks::new(upstream.clone(), db.clone()));
    (upstream, Outbound { sender, checks })
}

/// What sends single events outside of the relay.
fn sender(
    db: &bowline_store::Db,
    contract: &Arc<Contract>,
    tables: &Arc<Tables>,
    settings: &Arc<Settings>,
    authenticator: &Arc<Authenticator>,
    client: &GuardedClient,
    clock: &Arc<dyn Clock>,
) -> Arc<DirectSender> {
    Arc::new(DirectSender::new(bowline_delivery::Parts {
        db: db.clone(),
        contract: contract.clone(),
        tables: tables.clone(),
        settings: settings.clone(),
        authenticator: authenticator.clone(),
        client: client.clone(),
        clock: clock.clone(),
        random: || u64::from_be_bytes(random_bytes()),
        holder: String::new(),
    }))
}

/// What is made of the stored keys and secrets.
struct Secrets {
    authenticator: Arc<Authenticator>,
    page_key: PageKey,
    vault: Arc<Vault>,
}

impl Secrets {
    async fn load(
        storage: &Storage,
        starting: &bowline_store::Db,
        contract: Arc<Contract>,
        settings: &Settings,
        now: i64,
    ) -> Result<Secrets, StartError> {
        let wrapping = &storage.wrapping_key;
        let ring = keys::load_or_create(starting, wrapping, storage.token_algorithm, now).await?;
        let verification = ring.verification_keys(now.div_euclid(1_000_000));
        let own_keys = OwnKeys { ring, verification };
        let authenticator = Arc::new(Authenticator::new(contract, settings.auth_url.clone(), own_keys));
        let page_key = PageKey::new(keys::secret(starting, wrapping, "page tokens").await?);
        let sealing = KeyEncryptionKey::from_bytes(wrapping.as_bytes());
        let sealing = sealing.map_err(|error| StartError::Sealed(error.to_string()))?;
        let authentication = keys::secret(starting, wrapping, "codes and refresh tokens").await?;
        keys::packages::create_first(starting, wrapping, now).await?;
        Ok(Secrets { authenticator, page_key, vault: Arc::new(Vault::new(sealing, authentication)) })
    }
}

/// The client for what others serve.
pub(crate) fn outbound(
    options: &Options,
    settings: &Settings,
    address: SocketAddr,
) -> Result<GuardedClient, StartError> {
    let policy = AddressPolicy {
        allow: options.allow_private_addresses.clone(),
        // A server that the world reaches through a proxy on the same machine is not a local one.
        allow_loopback_and_http: address.ip().is_loopback() && is_loopback_url(&settings.base_url),
    };
    GuardedClient::new(policy).map_err(|error| StartError::Defect(error.to_string()))
}

/// Sign-in and token exchange, which share the keys of issuers.
fn people(
    options: &Options,
    db: &bowline_store::Db,
    client: &GuardedClient,
    authenticator: &Arc<Authenticator>,
    settings: &Arc<Settings>,
    contract: &Arc<Contract>,
    vault: &Arc<Vault>,
) -> Result<(Arc<People>, Arc<Exchange>), StartError> {
    let issuer_keys = Arc::new(IssuerKeys::new(client.clone()));
    let providers = providers::configured(&options.operator_providers)?;
    let exchange = Arc::new(Exchange::new(
        db.clone(),
        issuer_keys.clone(),
        aws_sts(options, client.clone())?,
        providers.clone(),
        authenticator.clone(),
        settings.clone(),
        contract.clone(),
    ));
    let people = People::new(people::Parts {
        db: db.clone(),
        client: client.clone(),
        issuer_keys,
        authenticator: authenticator.clone(),
        settings: settings.clone(),
        contract: contract.clone(),
        vault: vault.clone(),
        exchange: exchange.clone(),
        providers,
    });
    Ok((Arc::new(people), exchange))
}

/// What commands without the server's options need to know.
fn addresses(settings: &Settings) -> Vec<(&'static str, String)> {
    vec![
        ("base_url", settings.base_url.clone()),
        ("auth_url", settings.auth_url.clone()),
        ("api_audience", settings.api_audience.clone()),
    ]
}

fn audit_retention(options: &Options) -> Result<Option<u32>, StartError> {
    match options.audit_retention {
        Some(0) => Err(StartError::Option("--audit-retention 0: a day at least; leave it out to keep all".into())),
        days => Ok(days),
    }
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

/// Whether the host of an address is this machine.
pub(crate) fn is_loopback_url(url: &str) -> bool {
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
