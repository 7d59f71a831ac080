use std::io::Read as _;
use std::path::PathBuf;

use bowline_authn::crypto::random_bytes;
use bowline_core::{Clock as _, SystemClock};
use bowline_identity::people::{self, ConfiguredProvider};
use bowline_terminal::{Output, Table, Work, public_url, seconds};
use clap::{Args, Subcommand};

use crate::commands::print;
use crate::error::StartError;
use crate::options::Options;
use crate::storage::{Storage, mint_operator_token};
use crate::storage_options::{IssuingOptions, StorageOptions};
use crate::{facts, providers};

/// `bowline operator`.
#[derive(Subcommand)]
pub enum OperatorCommand {
    /// Print a token of the operator, who may call every method; the server need not run
    Token(Box<TokenCommand>),
    /// Print a one-time sign-in link for the operator's browser, valid for five minutes
    LoginUrl(Box<LoginUrlCommand>),
    /// Identity providers that everyone may sign in with; running servers see a change at once
    #[command(subcommand)]
    Providers(ProvidersCommand),
}

/// `bowline operator providers`.
#[derive(Subcommand)]
pub enum ProvidersCommand {
    /// List the stored providers; those of the configuration file are not stored
    List(Box<ListCommand>),
    /// Store a provider; its secret is read from --client-secret-file or from standard input, never from arguments
    Add(Box<AddCommand>),
    /// Remove a stored provider
    Remove(Box<RemoveCommand>),
}

/// `bowline operator providers list`.
#[derive(Args)]
pub struct ListCommand {
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    options: StorageOptions,
}

/// `bowline operator providers add`.
#[derive(Args)]
pub struct AddCommand {
    /// Short name: lower-case letters, digits and hyphens
    id: String,
    /// What the sign-in page shows [default: the id]
    #[arg(long, value_name = "TEXT")]
    label: Option<String>,
    /// Issuer URL
    #[arg(long, value_name = "URL")]
    issuer: String,
    /// The server's name at the provider
    #[arg(long, value_name = "ID")]
    client_id: String,
    /// File with the client secret [default: standard input]
    #[arg(long, value_name = "FILE", conflicts_with = "public_client")]
    client_secret_file: Option<PathBuf>,
    /// The provider knows the server as a client without a secret
    #[arg(long)]
    public_client: bool,
    /// Scopes to ask for besides openid, comma-separated [default: email,profile]
    #[arg(long, value_name = "SCOPE,...", value_delimiter = ',')]
    scopes: Option<Vec<String>>,
    #[command(flatten)]
    options: StorageOptions,
}

/// `bowline operator providers remove`.
#[derive(Args)]
pub struct RemoveCommand {
    /// Short name of the provider
    id: String,
    #[command(flatten)]
    options: StorageOptions,
}

/// `bowline operator login-url`.
#[derive(Args)]
pub struct LoginUrlCommand {
    #[command(flatten)]
    issuing: IssuingOptions,
    #[command(flatten)]
    reason: ReasonOption,
    #[command(flatten)]
    options: StorageOptions,
}

/// `bowline operator token`.
#[derive(Args)]
pub struct TokenCommand {
    #[command(flatten)]
    issuing: IssuingOptions,
    /// Audience of the token [default: the API's]
    #[arg(long, value_name = "AUDIENCE")]
    audience: Option<String>,
    /// How long the token lives, such as 15m; an hour at most
    #[arg(long, value_name = "TIME", default_value = "1h")]
    ttl: String,
    #[command(flatten)]
    reason: ReasonOption,
    #[command(flatten)]
    options: StorageOptions,
}

/// Why someone acts as the local operator, who has no name.
#[derive(Args)]
struct ReasonOption {
    /// Why it is needed, in one line: recorded in the audit log with the token, and sent with its event [required]
    // Not required by the parser, whose message would not say what to do.
    #[arg(long, env = "BOWLINE_OPERATOR_REASON", value_name = "TEXT")]
    reason: Option<String>,
}

/// Runs `bowline operator`.
pub fn run(command: OperatorCommand) -> Work<StartError> {
    Box::pin(execute(command))
}

async fn execute(command: OperatorCommand) -> Result<(), StartError> {
    match command {
        OperatorCommand::Token(command) => token(*command).await,
        OperatorCommand::LoginUrl(command) => login_url(*command).await,
        OperatorCommand::Providers(ProvidersCommand::List(command)) => list(*command).await,
        OperatorCommand::Providers(ProvidersCommand::Add(command)) => add(*command).await,
        OperatorCommand::Providers(ProvidersCommand::Remove(command)) => remove(*command).await,
    }
}

/// Our issuer, as far as the options say.
fn issuer(options: &Options) -> Result<Option<String>, StartError> {
    match (&options.auth_url, &options.base_url) {
        (Some(url), _) => Ok(Some(public_url("auth-url", url)?)),
        (None, Some(url)) => Ok(Some(public_url("base-url", url)?)),
        (None, None) => Ok(None),
    }
}

async fn login_url(command: LoginUrlCommand) -> Result<(), StartError> {
    let reason = command.reason.validate("login-url")?;
    let options = command.options.for_issuing(command.issuing)?;
    let issuer = issuer(&options)?;
    let storage = Storage::open_existing(&options).await?;
    let known = facts::read(&storage.db).await?;
    let issuer = issuer.or(known.get("auth_url").cloned()).ok_or_else(|| {
        StartError::Option("the server has not started yet; start it once, or name its address with --auth-url".into())
    })?;
    let code = people::create_operator_link(&storage.db, random_bytes(), &reason, SystemClock.now()).await;
    storage.db.close().await;
    print(&format!("{issuer}/oauth/operator?code={}\n", code?))
}

async fn list(command: ListCommand) -> Result<(), StartError> {
    let storage = Storage::open_existing(&command.options.with_file()?).await?;
    let lines = providers::list(&storage).await;
    storage.db.close().await;
    let mut table = Table::new(&["id", "issuer", "client", "secret"]);
    for line in lines? {
        table.push(line);
    }
    print(&command.output.list(&table)?)
}

async fn add(command: AddCommand) -> Result<(), StartError> {
    let client_secret = match &command.client_secret_file {
        _ if command.public_client => None,
        Some(path) => Some(providers::secret_of(path)?),
        None => Some(secret_of_stdin()?),
    };
    let provider = ConfiguredProvider {
        label: command.label.unwrap_or_else(|| command.id.clone()),
        id: command.id,
        issuer: command.issuer,
        client_id: command.client_id,
        client_secret,
        scopes: command.scopes.unwrap_or_else(providers::default_scopes),
    };
    let storage = Storage::open_existing(&command.options.with_file()?).await?;
    let id = provider.id.clone();
    let added = providers::add(&storage, provider, SystemClock.now()).await;
    storage.db.close().await;
    added?;
    print(&format!("identity provider {id} is stored\n"))
}

/// The secret may also come from a terminal, which shows what is typed: a file is better.
fn secret_of_stdin() -> Result<String, StartError> {
    let mut bytes = Vec::new();
    let read = std::io::stdin().lock().take(8192).read_to_end(&mut bytes);
    read.map_err(|source| StartError::File { path: "standard input".into(), source })?;
    providers::secret(bytes, "standard input")
}

async fn remove(command: RemoveCommand) -> Result<(), StartError> {
    let storage = Storage::open_existing(&command.options.with_file()?).await?;
    let removed = providers::remove(&storage, &command.id, SystemClock.now()).await;
    storage.db.close().await;
    removed?;
    print(&format!("identity provider {} is removed\n", command.id))
}

/// Characters of a reason.
const REASON: usize = 1000;

impl ReasonOption {
    /// The reason, which is one line, as the audit log shows it.
    fn validate(self, command: &str) -> Result<String, StartError> {
        let reason = self.reason.as_deref().map(str::trim).unwrap_or_default();
        if reason.is_empty() {
            return Err(StartError::Usage {
                cause: "the reason is missing: the audit log cannot name who acts as the local operator".into(),
                hint: format!(
                    "bowline operator {command} --reason \"sign-in is down\"; or set BOWLINE_OPERATOR_REASON"
                ),
            });
        }
        if reason.chars().count() > REASON || reason.chars().any(char::is_control) {
            return Err(StartError::Option(format!("--reason: must be one line of at most {REASON} characters")));
        }
        Ok(reason.to_owned())
    }
}

async fn token(command: TokenCommand) -> Result<(), StartError> {
    let lifetime = seconds("ttl", &command.ttl, 3600)?;
    let reason = command.reason.validate("token")?;
    let options = command.options.for_issuing(command.issuing)?;
    let issuer = issuer(&options)?;
    let audience = match (&command.audience, &options.base_url) {
        (Some(audience), _) => Some(audience.clone()),
        (None, Some(url)) => Some(public_url("base-url", url)?),
        (None, None) => None,
    };
    let storage = Storage::open_existing(&options).await?;
    let token = mint_operator_token(&storage, &SystemClock, issuer, audience, lifetime, Some(&reason)).await;
    storage.db.close().await;
    print(&format!("{}\n", token?))
}
