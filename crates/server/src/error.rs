use std::path::PathBuf;

use bowline_terminal::TerminalError;

/// Why the server does not start, or a command does not do its work: what was wrong and what to do.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// An option does not make sense.
    #[error("{0}")]
    Option(String),
    /// The command line lacks something.
    #[error("{cause}")]
    Usage {
        cause: String,
        /// The command that works.
        hint: String,
    },
    /// A value on the command line, or the terminal.
    #[error(transparent)]
    Terminal(#[from] TerminalError),
    /// Something that the start needs cannot be used as it is.
    #[error("{cause}")]
    Unusable {
        /// What is wrong with what.
        cause: String,
        hint: String,
    },
    /// A file cannot be read or written.
    #[error("{path}: {source}")]
    File { path: PathBuf, source: std::io::Error },
    /// An address cannot be bound.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        address: String,
        /// The option that sets it.
        flag: &'static str,
        source: std::io::Error,
    },
    #[error("storage: {0}")]
    Storage(#[from] bowline_store::StoreError),
    /// A rule of this server refuses.
    #[error("{0}")]
    Refused(#[from] bowline_core::Error),
    /// A key or a secret cannot be opened.
    #[error("the key file does not open what is stored: {0}")]
    Sealed(String),
    /// The audit log is not what it should be.
    #[error("audit log: {0}")]
    Audit(String),
    /// Blobs are not what they should be.
    #[error("{0} blobs are missing or damaged: push what they belong to again, or restore them from a backup")]
    Blobs(usize),
    /// `bowline self-check` found what keeps a server from its work.
    #[error("{0} checks failed")]
    Checks(usize),
    /// A defect of this server.
    #[error("defect: {0}")]
    Defect(String),
}

impl StartError {
    /// What to do about it, where the message does not say so itself.
    pub fn hint(&self) -> Option<String> {
        use std::io::ErrorKind;
        match self {
            StartError::Unusable { hint, .. } | StartError::Usage { hint, .. } => Some(hint.clone()),
            StartError::Listen { flag, source, .. } => Some(match source.kind() {
                ErrorKind::AddrInUse => {
                    format!("stop the program that uses this address, or choose another one with --{flag}")
                }
                _ => format!("choose an address of this machine that this user may listen on with --{flag}"),
            }),
            StartError::Sealed(_) => {
                Some("restore the key file that this database was made with, or name it with --key-file".into())
            }
            StartError::Storage(error) if error.kind() == bowline_store::ErrorKind::Full => {
                Some("free disk space where the database is, and run the command again".into())
            }
            StartError::File { source, .. } if source.kind() == ErrorKind::PermissionDenied => {
                Some("let the user that runs bowline read and write it".into())
            }
            _ => None,
        }
    }

    /// The exit code of a process that ends with it: 2 for wrong usage, else 1.
    pub fn exit_code(&self) -> u8 {
        match self {
            StartError::Option(_) | StartError::Usage { .. } => 2,
            StartError::Terminal(error) => error.exit_code(),
            _ => 1,
        }
    }
}
