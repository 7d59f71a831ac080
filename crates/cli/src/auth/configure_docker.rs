use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use bowline_client::{ClientError, Contexts, DockerConfig};
use bowline_terminal::say;
use clap::Args;

use crate::credential_helper;
use crate::error::CliError;
use crate::session::{Session, Target, variable};

/// `bowline auth configure-docker`.
#[derive(Args)]
pub struct ConfigureDockerCommand {
    #[command(flatten)]
    target: Target,
    /// Host of the registry, with its port if it has one [default: the API's]
    #[arg(long, value_name = "HOST")]
    registry: Option<String>,
    /// File to change [default: $DOCKER_CONFIG/config.json, else ~/.docker/config.json]
    #[arg(long, value_name = "FILE")]
    docker_config: Option<PathBuf>,
    /// Directory for the helper, one of PATH [default: where bowline is]
    #[arg(long, value_name = "DIRECTORY")]
    helper_directory: Option<PathBuf>,
}

pub(crate) async fn run(command: ConfigureDockerCommand) -> Result<(), CliError> {
    let session = Session::open(&command.target)?;
    let registry = match command.registry {
        Some(registry) => {
            credential_helper::require_host(&registry)?;
            registry
        }
        None => credential_helper::host(&session.api).to_owned(),
    };
    let path = command.docker_config.map_or_else(docker_config, Ok)?;
    let mut config = DockerConfig::read(&path)?;
    let context = context_name(&session, command.target.context.as_deref())?;
    try_token(&session, &registry).await?;
    config.use_helper(&registry, credential_helper::NAME)?;
    write_helper(&session, context, &registry)?;
    let helper = link(command.helper_directory)?;
    config.write()?;
    say(&format!(
        "{registry}: container clients now ask {} for credentials\nchanged: {}\n",
        helper.display(),
        path.display()
    ));
    if let Some(directory) = helper.parent()
        && !is_searched(directory)
    {
        say(&format!("put {} into PATH, or no client finds the helper\n", directory.display()));
    }
    Ok(())
}

/// Requests a token, so that a wrong host fails here and not at the first push.
async fn try_token(session: &Session, registry: &str) -> Result<(), ClientError> {
    match session.token(registry).await {
        Ok(_) => Ok(()),
        Err(ClientError::NotSignedIn(_) | ClientError::UnusableToken(_) | ClientError::Transport(_)) => {
            say(&format!(
                "whether {} gives tokens for {registry} was not tried: sign in with `bowline auth login`, whose sign-in \
                 container clients use\n",
                session.issuer.url()
            ));
            Ok(())
        }
        Err(ClientError::Refused { message, .. }) => Err(ClientError::Usage(format!(
            "{} gives no token for {registry}: {message}; name the server's registry host with --registry",
            session.issuer.url()
        ))),
        Err(other) => Err(other),
    }
}

/// Whether programs of the directory are found by name.
fn is_searched(directory: &Path) -> bool {
    let same = |one: &Path| one.canonicalize().ok() == directory.canonicalize().ok();
    variable("PATH").is_some_and(|path| std::env::split_paths(&path).any(|one| same(&one)))
}

fn docker_config() -> Result<PathBuf, ClientError> {
    let directory: PathBuf = match variable("DOCKER_CONFIG") {
        Some(directory) => directory.into(),
        None => variable("HOME").map(|home| PathBuf::from(home).join(".docker")).ok_or_else(|| {
            ClientError::Usage("neither HOME nor DOCKER_CONFIG is set: name the file with --docker-config".into())
        })?,
    };
    Ok(directory.join("config.json"))
}

/// The context of the server, which the helper finds by the registry's name.
fn context_name(session: &Session, context: Option<&str>) -> Result<String, ClientError> {
    let known = Contexts::read(&session.contexts)?;
    let name = match context {
        Some(name) => Some(name),
        None => known.only(|context| context.api == session.api)?,
    };
    name.map(String::from).ok_or_else(|| missing(session))
}

fn missing(session: &Session) -> ClientError {
    ClientError::Usage(format!("store the server first, with: bowline context set NAME --api {}", session.api))
}

/// Stores which server issues tokens for that registry: docker passes only the registry's name to the helper.
fn write_helper(session: &Session, context: String, registry: &str) -> Result<(), ClientError> {
    let mut known = Contexts::read(&session.contexts)?;
    known.contexts.get_mut(&context).ok_or_else(|| missing(session))?.registry = Some(registry.into());
    known.write(&session.contexts)
}

/// Makes `docker-credential-bowline`: this binary by another name.
fn link(directory: Option<PathBuf>) -> Result<PathBuf, CliError> {
    let failed = |path: &Path, source| CliError::File { path: path.into(), source };
    let binary = std::env::current_exe().map_err(|source| failed(Path::new("bowline"), source))?;
    let beside = || binary.parent().map(Path::to_path_buf);
    let directory = directory.or_else(beside).ok_or_else(|| CliError::Defect("a binary without a directory".into()))?;
    if !directory.is_dir() {
        let message = format!("--helper-directory {}: there is no such directory; make it first", directory.display());
        return Err(CliError::Client(ClientError::Usage(message)));
    }
    let helper = directory.join(credential_helper::COMMAND);
    // A dangling link is left from a former path of the binary.
    if helper.is_symlink() && !helper.exists() {
        std::fs::remove_file(&helper).map_err(|source| failed(&helper, source))?;
    }
    match std::os::unix::fs::symlink(&binary, &helper) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            let meant = helper.canonicalize().map_err(|source| failed(&helper, source))?;
            if meant == binary.canonicalize().map_err(|source| failed(&binary, source))? {
                return Ok(helper);
            }
            let message = format!("{} is another program; take it away, or name --helper-directory", helper.display());
            Err(CliError::Client(ClientError::Usage(message)))
        }
        Err(error) if error.kind() == ErrorKind::PermissionDenied => Err(CliError::Client(ClientError::Usage(
            format!("{}: {error}; name a directory of your own with --helper-directory", directory.display()),
        ))),
        other => other.map(|()| helper.clone()).map_err(|source| failed(&helper, source)),
    }
}
