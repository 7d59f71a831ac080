use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bowline_authn::keys::Algorithm;
use bowline_store::{DiskProbe, Room};
use clap::Args;
use serde::{Deserialize, Serialize};

use crate::error::StartError;
use crate::option_origins::OptionOrigins;
pub use crate::option_values::{LogFormat, Organizations, TokenAlgorithm};
use crate::providers::OperatorProvider;
use crate::terms::TermsOption;

/// Where anyone gets an address: such a domain stands for no organization.
const FREE_MAIL_DOMAINS: [&str; 12] = [
    "gmail.com",
    "outlook.com",
    "hotmail.com",
    "yahoo.com",
    "icloud.com",
    "proton.me",
    "gmx.de",
    "gmx.net",
    "aol.com",
    "mail.ru",
    "qq.com",
    "163.com",
];

/// Options of the server and of the commands that work on its storage.
///
/// Each is a flag, an environment variable `BOWLINE_<FLAG>` and a key of the configuration file; the
/// first of these that is given counts.
#[derive(Clone, Debug, Default, Args, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Options {
    /// Where the values come from.
    #[arg(skip)]
    #[serde(skip)]
    pub origins: OptionOrigins,
    /// TOML file with any of these options
    #[arg(long, env = "BOWLINE_CONFIG", value_name = "FILE")]
    #[serde(skip)]
    pub config: Option<PathBuf>,
    /// Directory of the embedded database and of the key file [default: ./bowline-data]
    #[arg(long, env = "BOWLINE_DATA_DIR", value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
    /// Serve generated demonstration data, made at the first start, from a directory of its own: ./bowline-demo
    #[arg(long, env = "BOWLINE_DEMO")]
    #[serde(skip_deserializing)]
    pub demo: bool,
    /// Address that everything is served on [default: 127.0.0.1:8080]
    #[arg(long, env = "BOWLINE_LISTEN", value_name = "ADDRESS")]
    pub listen: Option<SocketAddr>,
    /// Address of liveness, readiness and metrics [default: 127.0.0.1:8081]
    #[arg(long, env = "BOWLINE_ADMIN_LISTEN", value_name = "ADDRESS")]
    pub admin_listen: Option<SocketAddr>,
    /// Public address of the API [default: http://<listen>]
    #[arg(long, env = "BOWLINE_BASE_URL", value_name = "URL")]
    pub base_url: Option<String>,
    /// Public address of the token exchange, our issuer [default: the base URL]
    #[arg(long, env = "BOWLINE_AUTH_URL", value_name = "URL")]
    pub auth_url: Option<String>,
    /// Public host of the container registry [default: host and port of the base URL]
    #[arg(long, env = "BOWLINE_REGISTRY_HOST", value_name = "HOST")]
    pub registry_host: Option<String>,
    /// Public address of the library front ends [default: <base URL>/libraries]
    #[arg(long, env = "BOWLINE_LIBRARIES_URL", value_name = "URL")]
    pub libraries_url: Option<String>,
    /// Public address of the OSV query API at the root of a host of its own [default: none, it is at <base URL>/osv]
    #[arg(long, env = "BOWLINE_OSV_URL", value_name = "URL")]
    pub osv_url: Option<String>,
    /// Organizations use packages of the ecosystems alone that they have an entitlement for
    #[arg(long, env = "BOWLINE_ENTITLEMENTS_REQUIRED")]
    #[serde(default)]
    pub entitlements_required: bool,
    /// Trusted root of Sigstore, in JSON, by which attestations of published packages are verified [default: none, they are
    /// stored unverified]
    #[arg(long, env = "BOWLINE_SIGSTORE_TRUST_ROOT", value_name = "FILE")]
    pub sigstore_trust_root: Option<PathBuf>,
    /// PostgreSQL instead of the embedded database: postgres://user@host/database
    #[arg(long, env = "BOWLINE_DATABASE_URL", value_name = "URL", hide_env_values = true)]
    pub database_url: Option<String>,
    /// Connections to PostgreSQL that this process opens at most [default: 16]
    #[arg(long, env = "BOWLINE_DATABASE_CONNECTIONS", value_name = "N")]
    pub database_connections: Option<u32>,
    /// MiB of the embedded database that each reader maps into memory at most; 0 for none [default: 1024]
    #[arg(long, env = "BOWLINE_DATABASE_MAP", value_name = "MIB")]
    pub database_map: Option<u32>,
    /// Bucket with the blobs of the container registry: s3://bucket/prefix [default: <data dir>/blobs]
    #[arg(long, env = "BOWLINE_BLOB_URL", value_name = "URL", hide_env_values = true)]
    pub blob_url: Option<String>,
    /// MiB of the embedded database's disk kept for deletions and the operator; 0 for none [default: 64, at most 1/16]
    #[arg(long, env = "BOWLINE_DISK_RESERVE", value_name = "MIB")]
    pub disk_reserve: Option<u32>,
    /// Most MiB of the file for pulls that come faster than their events can be written; 0 for none [default: 256]
    #[arg(long, env = "BOWLINE_PULL_SPILL", value_name = "MIB")]
    pub pull_spill: Option<u32>,
    /// What measures the disk of the embedded database; tests give their own.
    #[arg(skip)]
    #[serde(skip)]
    pub disk_probe: DiskProbe,
    /// Time between two garbage collections of the registry, or never [default: 1h]
    #[arg(long, env = "BOWLINE_GC_EVERY", value_name = "TIME")]
    pub gc_every: Option<String>,
    /// How long a pushed blob may wait for its manifest [default: 24h]
    #[arg(long, env = "BOWLINE_GC_GRACE", value_name = "TIME")]
    pub gc_grace: Option<String>,
    /// Back up to here, by itself: a directory, or s3://bucket/prefix [default: no backups]
    #[arg(long, env = "BOWLINE_BACKUP_TO", value_name = "DIR|URL")]
    pub backup_to: Option<String>,
    /// Public key that backups are encrypted to, as bowline backup keygen prints it
    #[arg(long, env = "BOWLINE_BACKUP_RECIPIENT", value_name = "KEY")]
    pub backup_recipient: Option<String>,
    /// Time between two backups [default: 24h]
    #[arg(long, env = "BOWLINE_BACKUP_EVERY", value_name = "TIME")]
    pub backup_every: Option<String>,
    /// How many of the newest backups are kept [default: all]
    #[arg(long, env = "BOWLINE_BACKUP_KEEP", value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub backup_keep: Option<u32>,
    /// How long an upload to the registry may stay open without growing: 5m to 24h [default: 1h]
    #[arg(long, env = "BOWLINE_UPLOAD_IDLE", value_name = "TIME")]
    pub upload_idle: Option<String>,
    /// Uploads to the registry that one identity may have open [default: 500]
    #[arg(long, env = "BOWLINE_UPLOADS_PER_IDENTITY", value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub uploads_per_identity: Option<u32>,
    /// Uploads to the registry that may be open in one organization [default: 2000]
    #[arg(long, env = "BOWLINE_UPLOADS_PER_ORGANIZATION", value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub uploads_per_organization: Option<u32>,
    /// Who may create organizations [default: operator]
    #[arg(long, env = "BOWLINE_ORGANIZATIONS", value_name = "WHO")]
    pub organizations: Option<Organizations>,
    /// PEM file with the certificate chain: serves TLS
    #[arg(long, env = "BOWLINE_TLS_CERT", value_name = "FILE")]
    pub tls_cert: Option<PathBuf>,
    /// PEM file with the certificate's key
    #[arg(long, env = "BOWLINE_TLS_KEY", value_name = "FILE")]
    pub tls_key: Option<PathBuf>,
    /// Time between two comparisons of these files with what is served; tests give their own.
    #[arg(skip)]
    #[serde(skip)]
    pub tls_look_every: Option<Duration>,
    /// File with the key that wraps stored secrets [default: <data dir>/key]
    #[arg(long, env = "BOWLINE_KEY_FILE", value_name = "FILE")]
    pub key_file: Option<PathBuf>,
    /// Signature algorithm of the first key of a new database; later: bowline keys rotate --algorithm [default: rs256]
    #[arg(long, env = "BOWLINE_TOKEN_ALGORITHM", value_name = "ALGORITHM")]
    pub token_algorithm: Option<TokenAlgorithm>,
    /// Private networks that outbound requests may reach, comma-separated
    #[arg(long, env = "BOWLINE_ALLOW_PRIVATE_ADDRESSES", value_name = "CIDR,...", value_delimiter = ',')]
    #[serde(default)]
    pub allow_private_addresses: Vec<ipnet::IpNet>,
    /// Proxies whose X-Forwarded-For is believed, comma-separated
    #[arg(long, env = "BOWLINE_TRUSTED_PROXIES", value_name = "CIDR,...", value_delimiter = ',')]
    #[serde(default)]
    pub trusted_proxies: Vec<ipnet::IpNet>,
    /// Open connections in all [default: what the limit of open files allows, 10000 at most]
    #[arg(long, env = "BOWLINE_MAX_CONNECTIONS", value_name = "N")]
    pub max_connections: Option<usize>,
    /// Open connections of one address (of one /64 with IPv6), trusted proxies excepted; 0 for no limit [default: 512]
    #[arg(long, env = "BOWLINE_MAX_CONNECTIONS_PER_ADDRESS", value_name = "N")]
    pub max_connections_per_address: Option<usize>,
    /// Time from a connection to the head of its first request [default: 10s]
    #[arg(long, env = "BOWLINE_FIRST_REQUEST_TIMEOUT", value_name = "TIME")]
    pub first_request_timeout: Option<String>,
    /// Time that a connection may have no request under way [default: 3m]
    #[arg(long, env = "BOWLINE_IDLE_TIMEOUT", value_name = "TIME")]
    pub idle_timeout: Option<String>,
    /// Longest time that a call may take, and the body of a REST request to arrive [default: 60s]
    #[arg(long, env = "BOWLINE_REQUEST_TIMEOUT", value_name = "TIME")]
    pub request_timeout: Option<String>,
    /// Time that running calls have to end when the server stops [default: 30s]
    #[arg(long, env = "BOWLINE_SHUTDOWN_TIMEOUT", value_name = "TIME")]
    pub shutdown_timeout: Option<String>,
    /// Streams (watching the audit log) that one caller may have open [default: 16]
    #[arg(long, env = "BOWLINE_STREAMS_PER_CALLER", value_name = "N")]
    pub streams_per_caller: Option<u32>,
    /// Streams that the callers of one organization may have open together [default: 256]
    #[arg(long, env = "BOWLINE_STREAMS_PER_ORGANIZATION", value_name = "N")]
    pub streams_per_organization: Option<u32>,
    /// Streams that may be open in all [default: 2048]
    #[arg(long, env = "BOWLINE_MAX_STREAMS", value_name = "N")]
    pub max_streams: Option<u32>,
    /// MiB of memory for public advisories, which are read from the database beyond it; 0 for none [default: 256]
    #[arg(long, env = "BOWLINE_ADVISORY_MEMORY", value_name = "MIB")]
    pub advisory_memory: Option<u32>,
    /// gRPC reflection, which shows the services to any caller [default: true]
    #[arg(long, env = "BOWLINE_GRPC_REFLECTION", value_name = "BOOL")]
    pub grpc_reflection: Option<bool>,
    /// Web console at /console [default: true]
    #[arg(long, env = "BOWLINE_CONSOLE", value_name = "BOOL")]
    pub console: Option<bool>,
    /// MiB of a request, where its method has no other limit [default: 4]
    #[arg(long, env = "BOWLINE_MAX_REQUEST", value_name = "MIB")]
    pub max_request: Option<u32>,
    /// MiB of large requests under way in all; a caller may have a quarter of it [default: 256]
    #[arg(long, env = "BOWLINE_MAX_REQUESTS_UNDER_WAY", value_name = "MIB")]
    pub max_requests_under_way: Option<u32>,
    /// Sites that a sign-in may send tokens to, besides programs on the browser's own machine, comma-separated
    #[arg(long, env = "BOWLINE_REDIRECT_ORIGINS", value_name = "ORIGIN,...", value_delimiter = ',')]
    #[serde(default)]
    pub redirect_origins: Vec<String>,
    /// Sites whose pages may read responses of the API (CORS), or * for all, comma-separated [default: none]
    #[arg(long, env = "BOWLINE_CORS_ORIGINS", value_name = "ORIGIN,...", value_delimiter = ',')]
    #[serde(default)]
    pub cors_origins: Vec<String>,
    /// Calls per second that one caller may make; 0 for no limit [default: 0]
    #[arg(long, env = "BOWLINE_RATE_LIMIT_PRINCIPAL", value_name = "N")]
    pub rate_limit_principal: Option<u32>,
    /// Calls without a token per second that one address may make; 0 for no limit [default: 100]
    #[arg(long, env = "BOWLINE_RATE_LIMIT_ADDRESS", value_name = "N")]
    pub rate_limit_address: Option<u32>,
    /// Days for which rows of the audit log are kept [default: for ever]
    #[arg(long, env = "BOWLINE_AUDIT_RETENTION", value_name = "DAYS", value_parser = clap::value_parser!(u32).range(1..))]
    pub audit_retention: Option<u32>,
    /// Minutes between two rounds in which retention removes images; 0 for never [default: 60]
    #[arg(long, env = "BOWLINE_RETENTION_EVERY", value_name = "MINUTES")]
    pub retention_every: Option<u32>,
    /// Writes per second that one directory may make over SCIM; 0 for no limit [default: 25]
    #[arg(long, env = "BOWLINE_SCIM_RATE", value_name = "N")]
    pub scim_rate: Option<u32>,
    /// Calls of the OSV query API per second that one address may make; 0 for no limit [default: 50]
    #[arg(long, env = "BOWLINE_OSV_RATE", value_name = "N")]
    pub osv_rate: Option<u32>,
    /// STS hosts that requests of AWS identities may be signed for, comma-separated [default: sts.amazonaws.com]
    #[arg(long, env = "BOWLINE_AWS_STS_HOSTS", value_name = "HOST,...", value_delimiter = ',')]
    #[serde(default)]
    pub aws_sts_hosts: Vec<String>,
    /// Where those requests are sent, such as a proxy or stand-in [default: https://<the signed host>]
    #[arg(long, env = "BOWLINE_AWS_STS_URL", value_name = "URL")]
    pub aws_sts_url: Option<String>,
    /// Identity providers that everyone may sign in with; in the configuration file alone
    #[arg(skip)]
    #[serde(default, skip_serializing)]
    pub operator_providers: Vec<OperatorProvider>,
    /// Log lines for people or as JSON [default: text]
    #[arg(long, env = "BOWLINE_LOG_FORMAT", value_name = "FORMAT")]
    pub log_format: Option<LogFormat>,
    /// Organizations must accept every [[terms]] of the configuration file (id, label, url) before they change anything
    #[arg(long, env = "BOWLINE_TERMS_REQUIRED")]
    #[serde(default)]
    pub terms_required: bool,
    /// Documents that organizations can accept; in the configuration file only.
    #[arg(skip)]
    #[serde(default, skip_serializing)]
    pub terms: Vec<TermsOption>,
    /// Domains whose e-mail addresses prove no membership, comma-separated [default: large free providers]
    #[arg(long, env = "BOWLINE_BLOCKED_EMAIL_DOMAINS", value_name = "DOMAIN,...", value_delimiter = ',')]
    #[serde(default)]
    pub blocked_email_domains: Vec<String>,
    /// Relay for the server's mail: smtp[s]://user:password@host:port; without TLS on this machine only
    #[arg(long, env = "BOWLINE_SMTP_URL", value_name = "URL", hide_env_values = true)]
    pub smtp_url: Option<String>,
    /// Sender of the server's mail: an address, or Name <address>
    #[arg(long, env = "BOWLINE_MAIL_FROM", value_name = "ADDRESS")]
    pub mail_from: Option<String>,
    /// What public identifiers of advisories begin with: two to ten capital letters and digits [default: BWL]
    #[arg(long, env = "BOWLINE_ADVISORY_PREFIX", value_name = "PREFIX")]
    pub advisory_prefix: Option<String>,
    /// UIDP of the group whose repositories are the catalogue of community charts
    #[arg(long, env = "BOWLINE_COMMUNITY_CHARTS", value_name = "GROUP")]
    pub community_charts: Option<String>,
    /// UIDP of the group whose repositories are the catalogue of iamguarded charts
    #[arg(long, env = "BOWLINE_IAMGUARDED_CHARTS", value_name = "GROUP")]
    pub iamguarded_charts: Option<String>,
    /// What is logged: levels by target, such as info,access=warn [default: info]
    #[arg(long, env = "BOWLINE_LOG", value_name = "FILTER")]
    pub log: Option<String>,
}

impl Options {
    /// Whether the web console is on.
    pub fn has_console(&self) -> bool {
        self.console.unwrap_or(true)
    }

    /// How long after one round of retention the next one begins; absent for never.
    pub fn retention_every(&self) -> Option<Duration> {
        let minutes = self.retention_every.unwrap_or(60);
        (minutes > 0).then(|| Duration::from_secs(u64::from(minutes) * 60))
    }

    /// What public identifiers of advisories begin with.
    ///
    /// # Errors
    /// Something that no identifier can begin with.
    pub fn advisory_prefix(&self) -> Result<String, StartError> {
        let prefix = self.advisory_prefix.as_deref().unwrap_or("BWL");
        if bowline_vulnerabilities::advisories::is_prefix(prefix) {
            return Ok(prefix.to_owned());
        }
        let rule = "must be two to ten capital letters and digits, a letter first";
        Err(StartError::Option(format!("--advisory-prefix {prefix}: {rule}")))
    }

    /// Directory of the embedded database and of the key file.
    pub fn data_dir(&self) -> PathBuf {
        self.data_dir.clone().unwrap_or_else(|| PathBuf::from("./bowline-data"))
    }

    /// The embedded database.
    pub(crate) fn database_file(&self) -> PathBuf {
        self.data_dir().join("bowline.db")
    }

    /// The room on the disk of the embedded database.
    pub(crate) fn room(&self) -> Room {
        let reserve = u64::from(self.disk_reserve.unwrap_or(64)) << 20;
        Room::new(&self.data_dir(), reserve, self.disk_probe.clone())
    }

    /// The key file: given, or beside the embedded database.
    ///
    /// # Errors
    /// PostgreSQL without a key file: replicas share the database, not a directory.
    pub fn key_file(&self) -> Result<PathBuf, StartError> {
        match (&self.key_file, &self.database_url) {
            (Some(path), _) => Ok(path.clone()),
            (None, None) => Ok(self.data_dir().join("key")),
            (None, Some(_)) => Err(StartError::Option(
                "--database-url needs --key-file: the key that wraps stored secrets must be the same on every replica. \
                 Make one with: head -c 32 /dev/urandom > key && chmod 600 key"
                    .into(),
            )),
        }
    }

    /// Signature algorithm of a first key.
    pub fn token_algorithm(&self) -> Algorithm {
        self.token_algorithm.map(Algorithm::from).unwrap_or_default()
    }

    /// Domains whose addresses prove no membership, in lower case.
    pub fn blocked_email_domains(&self) -> Vec<String> {
        if self.blocked_email_domains.is_empty() {
            return FREE_MAIL_DOMAINS.map(String::from).into();
        }
        self.blocked_email_domains.iter().map(|domain| domain.trim().to_ascii_lowercase()).collect()
    }

    /// The address to listen on.
    pub fn listen(&self) -> SocketAddr {
        self.listen.unwrap_or_else(|| SocketAddr::from(([127, 0, 0, 1], 8080)))
    }

    /// The address of the admin listener.
    pub fn admin_listen(&self) -> SocketAddr {
        self.admin_listen.unwrap_or_else(|| SocketAddr::from(([127, 0, 0, 1], 8081)))
    }
}

/// Whether a path exists that the option's value names.
pub(crate) fn require_file(path: &Path) -> Result<Vec<u8>, StartError> {
    std::fs::read(path).map_err(|source| StartError::File { path: path.into(), source })
}
