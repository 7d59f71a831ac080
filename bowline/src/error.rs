use bowline_cli::CliError;
#[cfg(feature = "server")]
use bowline_server::StartError;
use bowline_terminal::TerminalError;

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CommandError {
    #[error(transparent)]
    Client(#[from] CliError),
    #[cfg(feature = "server")]
    #[error(transparent)]
    Server(#[from] StartError),
    #[error(transparent)]
    Terminal(#[from] TerminalError),
}

impl CommandError {
    /// What to do about it, where the message does not say so itself.
    pub(crate) fn hint(&self) -> Option<String> {
        match self {
            CommandError::Client(error) => error.hint(),
            #[cfg(feature = "server")]
            CommandError::Server(error) => error.hint(),
            CommandError::Terminal(error) => error.hint(),
        }
    }

    /// Whether the output says all of it: nothing is printed about it.
    pub(crate) fn is_result(&self) -> bool {
        matches!(self, CommandError::Client(error) if error.is_result())
    }

    /// The exit code, as `--help` lists it.
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            CommandError::Client(error) => error.exit_code(),
            #[cfg(feature = "server")]
            CommandError::Server(error) => error.exit_code(),
            CommandError::Terminal(error) => error.exit_code(),
        }
    }
}
