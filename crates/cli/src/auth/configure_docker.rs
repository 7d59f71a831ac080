use std::path::PathBuf;

use bowline_client::{ClientError, Contexts, DockerConfig};
use bowline_terminal::say;
use clap::Args;

use crate::error::CliError;
use crate::session::{Session, Target, variable};
use crate::{credential_helper, helpers};

/// What to do where the server gives no token for a host.
const REMEDY: &str = "name the server's registry host with --registry";

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
    let context = helpers::context_name(&session, command.target.context.as_deref())?;
    helpers::try_token(&session, &registry, "container clients", REMEDY).await?;
    config.use_helper(&registry, credential_helper::NAME)?;
    write_helper(&session, context, &registry)?;
    let helper = helpers::link(credential_helper::COMMAND, command.helper_directory, "--helper-directory")?;
    config.write()?;
    say(&format!(
        "{registry}: container clients now ask {} for credentials\nchanged: {}\n",
        helper.display(),
        path.display()
    ));
    if let Some(directory) = helper.parent()
        && !helpers::is_searched(directory)
    {
        say(&format!("put {} into PATH, or no client finds the helper\n", directory.display()));
    }
    Ok(())
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

/// Stores which server issues tokens for that registry: docker passes only the registry's name to the helper.
fn write_helper(session: &Session, context: String, registry: &str) -> Result<(), ClientError> {
    let mut known = Contexts::read(&session.contexts)?;
    known.contexts.get_mut(&context).ok_or_else(|| helpers::missing(session))?.registry = Some(registry.into());
    known.write(&session.contexts)
}
