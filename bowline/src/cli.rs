//! The command line.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{Args, CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

use bowline_cli::{
    advisories, api, auth, complete, configure, context, credential_helper, credential_provider, feeds, keyring,
    libraries, mcp, organization, registry, resources, schema, search, vulns,
};
#[cfg(feature = "server")]
use bowline_server::commands::{
    audit, backup, contract, keys, migrate, openapi, operator, restore, self_check, stored,
};
#[cfg(feature = "server")]
use bowline_server::{OptionOrigins, Options};
use bowline_terminal::{TerminalSettings, block_on, error_label, print, say};

use crate::completion;
use crate::error::CommandError;
use crate::examples;

/// What `--help` says besides of the command.
const AFTER_HELP: &str = "\
Exit codes:
  0  done
  1  failed
  2  wrong usage
  3  not signed in, or the sign-in has ended
  4  not allowed
  5  the server cannot be reached
  6  not found, or not visible
  7  the server differs from the files (diff)
  8  a part was done before something failed (apply)

Variables:
  BOWLINE_CONTEXT   context to use
  BOWLINE_API       address of the API
  BOWLINE_ISSUER    address of the token exchange
  BOWLINE_CONTEXTS  file of the contexts
  BOWLINE_TOKEN     token to call with, in place of the sign-in
  BOWLINE_TOKENS    directory of the cached tokens
  BOWLINE_IDENTITY  identity to assume with the ambient identity token
  BOWLINE_ID_TOKEN  that token, unless GitHub or Kubernetes provides it
  XDG_CONFIG_HOME   directory of the contexts
  XDG_CACHE_HOME    directory of the cached tokens
  NO_COLOR          any value: no colors
  DOCKER_CONFIG     directory of docker's config.json
  BOWLINE_<OPTION>  any option of the server, such as BOWLINE_DATA_DIR

Data goes to stdout, messages to stderr.";

/// A self-hosted platform API for the software supply chain.
#[derive(Parser)]
#[command(name = "bowline", version, about, max_term_width = 100, after_long_help = AFTER_HELP)]
struct Cli {
    #[command(flatten)]
    terminal: TerminalArgs,
    #[command(subcommand)]
    command: Command,
}

/// Options of every command for verbosity and confirmation.
#[derive(Args)]
#[command(next_help_heading = "Everywhere")]
struct TerminalArgs {
    /// Write only data and errors
    #[arg(long, global = true)]
    quiet: bool,
    /// Write each call of the server to stderr
    #[arg(long, global = true, conflicts_with = "quiet")]
    verbose: bool,
    /// Confirm deletions without a prompt
    #[arg(long, short = 'y', global = true)]
    yes: bool,
}

#[derive(Subcommand)]
enum Command {
    /// Run the server
    #[cfg(feature = "server")]
    Serve(Box<Options>),
    /// Sign in, and get tokens for other programs
    #[command(subcommand)]
    Auth(auth::AuthCommand),
    /// Container images: repositories, tags, policies, usage
    #[command(subcommand)]
    Registry(RegistryCommand),
    /// Identity and access: groups, roles, identities, role bindings
    #[command(subcommand)]
    Iam(resources::Generated<resources::Iam>),
    /// Explain and list access; answer requests to join
    #[command(subcommand)]
    Access(AccessCommand),
    /// Search by name, or resolve a pasted digest, id, package URL or image reference
    Search(Box<search::SearchCommand>),
    /// Event subscriptions and deliveries
    #[command(subcommand)]
    Events(resources::Generated<resources::Events>),
    /// Vulnerability advisories and their review
    #[command(subcommand)]
    Advisories(advisories::AdvisoriesCommand),
    /// Import and export of vulnerability records and advisories
    #[command(subcommand)]
    Feeds(feeds::FeedsCommand),
    /// Metadata of vulnerabilities
    #[command(subcommand)]
    Vulns(vulns::VulnsCommand),
    /// Packages of Java, Python, JavaScript, Go and Cargo, generic files, and policies for them
    #[command(subcommand)]
    Libraries(libraries::LibrariesCommand),
    /// Write an organization or group as files
    Export(Box<organization::ExportCommand>),
    /// Show what differs between files and the server
    Diff(Box<organization::DiffCommand>),
    /// Make the server equal to files: create, change and delete what differs
    Apply(Box<organization::ApplyCommand>),
    /// Call any method of the API
    Api(Box<api::ApiCommand>),
    /// Serve the API's methods to language models as tools, over standard input and output (MCP)
    Mcp(Box<mcp::McpCommand>),
    /// Give kubelets credentials for the registry: the plugin bowline-credential-provider
    CredentialProvider(Box<credential_provider::CredentialProviderCommand>),
    /// Configure container clients to pull images of other registries through this one
    #[command(subcommand)]
    Configure(configure::ConfigureCommand),
    /// Contexts: the servers that commands use
    #[command(subcommand)]
    Context(context::ContextCommand),
    /// Commands of the operator
    #[cfg(feature = "server")]
    #[command(subcommand)]
    Operator(operator::OperatorCommand),
    /// Signing keys of the server's tokens
    #[cfg(feature = "server")]
    #[command(subcommand)]
    Keys(keys::KeysCommand),
    /// Migrate the schema, or move all data to another database and blob store
    #[cfg(feature = "server")]
    Migrate(Box<migrate::MigrateCommand>),
    /// Encrypted backups of the database and all blobs
    #[cfg(feature = "server")]
    #[command(subcommand)]
    Backup(backup::BackupCommand),
    /// Restore a backup into an empty directory, or database and bucket
    #[cfg(feature = "server")]
    Restore(Box<restore::RestoreCommand>),
    /// Check the configuration, storage, keys and issuers of a server
    #[cfg(feature = "server")]
    SelfCheck(Box<self_check::SelfCheckCommand>),
    /// State of a running server, and its operators; for operators
    #[command(subcommand)]
    Server(resources::Generated<resources::Server>),
    /// The audit log: who changed what, and when
    #[command(subcommand)]
    Audit(AuditCommand),
    /// The wire contract
    #[cfg(feature = "server")]
    #[command(subcommand)]
    Contract(contract::ContractCommand),
    /// Print the OpenAPI document
    #[cfg(feature = "server")]
    Openapi(openapi::OpenapiCommand),
    /// Print a completion script: source <(bowline completion bash)
    Completion(completion::CompletionCommand),
    /// Print the manual page, or write one for every command
    Man(completion::ManCommand),
    /// Print the JSON schema of what a command prints with -o json
    Schema(schema::SchemaCommand),
    /// Print the version
    Version,
}

/// `bowline registry`: what calls a server, and what works on its storage.
#[derive(Subcommand)]
enum RegistryCommand {
    #[command(flatten)]
    Client(Box<registry::RegistryCommand>),
    #[command(flatten)]
    Generated(resources::Generated<resources::Registry>),
    #[cfg(feature = "server")]
    #[command(flatten)]
    Stored(stored::StoredCommand),
}

/// `bowline access`: what is written by hand, and what is made from the contract.
#[derive(Subcommand)]
enum AccessCommand {
    #[command(flatten)]
    Client(resources::AccessCommand),
    #[command(flatten)]
    Generated(resources::Generated<resources::Access>),
}

/// `bowline audit`: what calls a server, and what reads its database.
#[derive(Subcommand)]
enum AuditCommand {
    #[command(flatten)]
    Client(resources::Generated<resources::Audit>),
    #[cfg(feature = "server")]
    #[command(flatten)]
    Stored(audit::AuditCommand),
}

/// Runs the command line and gives its exit code: 0 done, 1 failed, 2 wrong usage, 3 not signed in, 4 not allowed,
/// 5 the server cannot be reached, 6 not found, 7 files differ, 8 a part was done.
pub(crate) fn run(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let mut arguments: Vec<OsString> = arguments.into_iter().collect();
    if arguments.first().is_some_and(|name| credential_helper::is_meant(name)) {
        return credential_helper::run(&arguments[1..]);
    }
    if arguments.first().is_some_and(|name| keyring::is_meant(name)) {
        return keyring::run(&arguments[1..]);
    }
    if arguments.first().is_some_and(|name| credential_provider::is_meant(name)) {
        arguments.insert(1, credential_provider::SUBCOMMAND.into());
    }
    match completion::is_completed(|| complete::add(described()), &arguments) {
        Ok(true) => return ExitCode::SUCCESS,
        Ok(false) => {}
        Err(error) => return failed(&error.into()),
    }
    let cli = match parse(arguments) {
        Ok(cli) => cli,
        Err(error) => {
            let _ = error.print();
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2));
        }
    };
    let TerminalArgs { quiet, verbose, yes } = cli.terminal;
    TerminalSettings { quiet, verbose, yes, no_color: has_no_color() }.set();
    match execute(cli.command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if error.is_result() => ExitCode::from(error.exit_code()),
        Err(error) => failed(&error),
    }
}

/// Prints an error with its hint, and gives its exit code.
fn failed(error: &CommandError) -> ExitCode {
    let hint = error.hint().map(|hint| format!("hint: {hint}\n")).unwrap_or_default();
    say(&format!("{} {error}\n{hint}", error_label()));
    ExitCode::from(error.exit_code())
}

/// The command line, with the examples of all commands.
fn described() -> clap::Command {
    examples::add(Cli::command())
}

/// The parsed command line; a server is told where each of its options comes from.
fn parse(arguments: Vec<OsString>) -> Result<Cli, clap::Error> {
    let mut command = described();
    let mut matches = command.try_get_matches_from_mut(arguments)?;
    #[cfg(feature = "server")]
    let origins = matches.subcommand_matches("serve").map(OptionOrigins::of);
    let parsed = Cli::from_arg_matches_mut(&mut matches);
    #[cfg_attr(not(feature = "server"), expect(unused_mut, reason = "a client has no options of a server"))]
    let mut cli = parsed.map_err(|error| error.format(&mut command))?;
    #[cfg(feature = "server")]
    if let (Command::Serve(options), Some(origins)) = (&mut cli.command, origins) {
        options.origins = origins;
    }
    Ok(cli)
}

/// Whether the variable forbids colors, as <https://no-color.org> has it.
fn has_no_color() -> bool {
    std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
}

fn execute(command: Command) -> Result<(), CommandError> {
    match command {
        Command::Auth(command) => Ok(block_on(auth::run(command))?),
        Command::Registry(RegistryCommand::Client(command)) => Ok(block_on(registry::run(*command))?),
        Command::Registry(RegistryCommand::Generated(command)) => Ok(block_on(resources::run(command))?),
        Command::Iam(command) => Ok(block_on(resources::run(command))?),
        Command::Access(AccessCommand::Client(command)) => Ok(block_on(resources::run_access(command))?),
        Command::Access(AccessCommand::Generated(command)) => Ok(block_on(resources::run(command))?),
        Command::Server(command) => Ok(block_on(resources::run(command))?),
        Command::Search(command) => Ok(block_on(search::run(*command))?),
        Command::Events(command) => Ok(block_on(resources::run(command))?),
        Command::Audit(AuditCommand::Client(command)) => Ok(block_on(resources::run(command))?),
        #[cfg(feature = "server")]
        Command::Registry(RegistryCommand::Stored(command)) => Ok(block_on(stored::run(command))?),
        Command::Advisories(command) => Ok(block_on(advisories::run(command))?),
        Command::Feeds(command) => Ok(block_on(feeds::run(command))?),
        Command::Vulns(command) => Ok(block_on(vulns::run(command))?),
        Command::Libraries(command) => Ok(block_on(libraries::run(command))?),
        Command::Export(command) => Ok(block_on(organization::export(*command))?),
        Command::Diff(command) => Ok(block_on(organization::diff(*command))?),
        Command::Apply(command) => Ok(block_on(organization::apply(*command))?),
        Command::Api(command) => Ok(block_on(api::run(*command))?),
        Command::Mcp(command) => Ok(block_on(mcp::run(*command))?),
        Command::CredentialProvider(command) => Ok(block_on(credential_provider::run(*command))?),
        Command::Configure(command) => Ok(configure::run(command)?),
        Command::Context(command) => Ok(context::run(command)?),
        Command::Completion(command) => completion::completion(&command),
        Command::Man(command) => completion::man(&command, described()),
        Command::Schema(command) => Ok(schema::run(&command)?),
        Command::Version => Ok(print(&format!("bowline {}\n", env!("CARGO_PKG_VERSION")))?),
        #[cfg(feature = "server")]
        Command::Serve(options) => Ok(block_on(bowline_demo::serve(options.with_file()?))?),
        #[cfg(feature = "server")]
        Command::Operator(command) => Ok(block_on(operator::run(command))?),
        #[cfg(feature = "server")]
        Command::Keys(command) => Ok(block_on(keys::run(command))?),
        #[cfg(feature = "server")]
        Command::Migrate(command) => Ok(block_on(migrate::run(*command))?),
        #[cfg(feature = "server")]
        Command::Backup(command) => Ok(block_on(backup::run(command))?),
        #[cfg(feature = "server")]
        Command::Restore(command) => Ok(block_on(restore::run(*command))?),
        #[cfg(feature = "server")]
        Command::SelfCheck(command) => Ok(block_on(self_check::run(*command))?),
        #[cfg(feature = "server")]
        Command::Audit(AuditCommand::Stored(command)) => Ok(block_on(audit::run(command))?),
        #[cfg(feature = "server")]
        Command::Contract(command) => Ok(contract::run(command)?),
        #[cfg(feature = "server")]
        Command::Openapi(command) => Ok(openapi::run(command)?),
    }
}
