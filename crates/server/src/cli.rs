//! The command line.

use std::ffi::OsString;
use std::io::Write as _;
use std::process::ExitCode;

use clap::{CommandFactory as _, Parser, Subcommand};

use crate::commands::{
    advisories, audit, auth, completion, context, contract, credential_helper, feeds, keys, libraries, openapi,
    operator, registry, serve, vulns,
};
use crate::error::StartError;
use crate::options::Options;
use crate::storage_options::StorageOptions;

/// What `--help` says besides of the command.
const AFTER_HELP: &str = "\
Exit codes:
  0  done
  1  failed
  2  wrong usage
  3  not signed in, or the sign-in has ended
  4  not allowed
  5  the server cannot be reached

Variables:
  BOWLINE_CONTEXT, BOWLINE_API, BOWLINE_ISSUER  which server is meant
  BOWLINE_CONTEXTS                              file of the known servers
  BOWLINE_IDENTITY                              identity to assume with the surroundings' own token
  BOWLINE_ID_TOKEN                              that token, where GitHub and Kubernetes do not provide it
  XDG_CONFIG_HOME, XDG_CACHE_HOME               where servers and tokens are kept
  DOCKER_CONFIG                                 directory of docker's config.json
  BOWLINE_<OPTION>                              any option of the server, such as BOWLINE_DATA_DIR

Data goes to stdout, talk to stderr.";

/// A self-hosted platform API for the software supply chain.
#[derive(Parser)]
#[command(name = "bowline", version, about, max_term_width = 100, after_long_help = AFTER_HELP)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run the server
    Serve(Box<Options>),
    /// Sign in, and get tokens for everything else
    #[command(subcommand)]
    Auth(auth::AuthCommand),
    /// Container images: repositories, tags, and what is set for them
    #[command(subcommand)]
    Registry(registry::RegistryCommand),
    /// Judgements about vulnerabilities, and their review
    #[command(subcommand)]
    Advisories(advisories::AdvisoriesCommand),
    /// Records of vulnerabilities and judgements about them: from others, and to others
    #[command(subcommand)]
    Feeds(feeds::FeedsCommand),
    /// What is known of vulnerabilities
    #[command(subcommand)]
    Vulns(vulns::VulnsCommand),
    /// Packages of Java, Python and JavaScript: the catalogue, and what policies refuse
    #[command(subcommand)]
    Libraries(libraries::LibrariesCommand),
    /// The servers that the command line knows
    #[command(subcommand)]
    Context(context::ContextCommand),
    /// What only the operator may do
    #[command(subcommand)]
    Operator(operator::OperatorCommand),
    /// Signing keys of the server's tokens
    #[command(subcommand)]
    Keys(keys::KeysCommand),
    /// Bring the database's schema up to date, which a start does too
    Migrate(Box<StorageOptions>),
    /// The audit log, as it stands in the database; the server may run
    #[command(subcommand)]
    Audit(audit::AuditCommand),
    /// The wire contract
    #[command(subcommand)]
    Contract(contract::ContractCommand),
    /// Print the OpenAPI document
    Openapi(openapi::OpenapiCommand),
    /// Print the script that lets a shell complete commands: source <(bowline completion bash)
    Completion(completion::CompletionCommand),
    /// Print the manual page, or write one for every command
    Man(completion::ManCommand),
    /// Print the version
    Version,
}

/// Runs the command line and gives its exit code: 0 done, 1 failed, 2 wrong usage, 3 not signed in, 4 not allowed,
/// 5 the server cannot be reached.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    if arguments.first().is_some_and(|name| credential_helper::is_meant(name)) {
        return credential_helper::run(&arguments[1..]);
    }
    let cli = match Cli::try_parse_from(arguments) {
        Ok(cli) => cli,
        Err(error) => {
            let _ = error.print();
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2));
        }
    };
    match execute(cli.command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let hint = error.hint().map(|hint| format!("hint: {hint}\n")).unwrap_or_default();
            say(&format!("error: {error}\n{hint}"));
            ExitCode::from(error.exit_code())
        }
    }
}

fn execute(command: Command) -> Result<(), StartError> {
    match command {
        Command::Serve(options) => block_on(serve::run(options.with_file()?)),
        Command::Auth(command) => block_on(auth::run(command)),
        Command::Registry(command) => block_on(registry::run(command)),
        Command::Advisories(command) => block_on(advisories::run(command)),
        Command::Feeds(command) => block_on(feeds::run(command)),
        Command::Vulns(command) => block_on(vulns::run(command)),
        Command::Libraries(command) => block_on(libraries::run(command)),
        Command::Context(command) => context::run(command),
        Command::Operator(command) => block_on(operator::run(command)),
        Command::Keys(command) => block_on(keys::run(command)),
        Command::Migrate(options) => block_on(serve::migrate(options.with_file()?)),
        Command::Audit(command) => block_on(audit::run(command)),
        Command::Contract(command) => contract::run(command),
        Command::Openapi(command) => openapi::run(command),
        Command::Completion(command) => completion::completion(&command, Cli::command()),
        Command::Man(command) => completion::man(&command, Cli::command()),
        Command::Version => print(&format!("bowline {}\n", env!("CARGO_PKG_VERSION"))),
    }
}

pub(crate) fn block_on<T>(work: impl Future<Output = Result<T, StartError>>) -> Result<T, StartError> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| StartError::Defect(error.to_string()))?;
    runtime.block_on(work)
}

/// Writes data to stdout; a closed pipe is no failure.
pub(crate) fn print(text: &str) -> Result<(), StartError> {
    match std::io::stdout().write_all(text.as_bytes()).and_then(|()| std::io::stdout().flush()) {
        Err(source) if source.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(StartError::File { path: "standard output".into(), source })
        }
        _ => Ok(()),
    }
}

/// Tells the person at the terminal something: stderr, since stdout is for data.
pub(crate) fn say(text: &str) {
    // Where nobody listens there is nobody to tell.
    let _ = std::io::stderr().write_all(text.as_bytes());
}
