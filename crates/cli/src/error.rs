use std::path::PathBuf;

use bowline_client::ClientError;
use bowline_terminal::TerminalError;

/// Why a command does not do its work: what was wrong and what to do.
#[derive(Debug, thiserror::Error)]
pub enum CliError {
    /// An option does not make sense.
    #[error("{0}")]
    Option(String),
    /// A file cannot be read or written.
    #[error("{path}: {source}")]
    File { path: PathBuf, source: std::io::Error },
    /// A value on the command line, or the terminal.
    #[error(transparent)]
    Terminal(#[from] TerminalError),
    #[error("{0}")]
    Refused(#[from] bowline_core::Error),
    /// The call of the server failed.
    #[error("{0}")]
    Client(#[from] ClientError),
    /// Files were left out of an import.
    #[error("files that were skipped, for the reasons above: {0}; the others were taken in")]
    Skipped(usize),
    /// Records were left out of an import.
    #[error("records that were left out, for the reasons above: {0}; the others were taken in")]
    LeftOut(usize),
    /// The server has no record of some vulnerabilities.
    #[error("no record here is about {}: check the spelling, or import a source that does with `bowline feeds import`", .0.join(", "))]
    Unknown(Vec<String>),
    /// A document that cannot be read, or not all of it.
    #[error("{0}")]
    Document(String),
    /// A defect of the program.
    #[error("defect: {0}")]
    Defect(String),
}

impl CliError {
    /// What to do about it, where the message does not say so itself.
    pub fn hint(&self) -> Option<String> {
        match self {
            CliError::File { source, .. } if source.kind() == std::io::ErrorKind::PermissionDenied => {
                Some("let the user that runs bowline read and write it".into())
            }
            _ => None,
        }
    }

    /// The exit code of a process that ends with it: 2 wrong usage, 3 not signed in, 4 not allowed, 5 the server cannot
    /// be reached, else 1.
    pub fn exit_code(&self) -> u8 {
        match self {
            CliError::Client(error) if error.is_unauthenticated() => 3,
            CliError::Client(error) if error.is_permission_denied() => 4,
            CliError::Client(ClientError::Transport(_)) => 5,
            CliError::Option(_) | CliError::Client(ClientError::Usage(_)) => 2,
            CliError::Terminal(error) => error.exit_code(),
            _ => 1,
        }
    }
}
