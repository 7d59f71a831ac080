use std::path::PathBuf;

use bowline_client::ClientError;

/// Why the server does not start, or a command does not do its work: what was wrong and what to do.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// An option does not make sense.
    #[error("{0}")]
    Option(String),
    /// Something that the start needs cannot be used as it is.
    #[error("{cause}")]
    Unusable {
        /// What is wrong with what.
        cause: String,
        /// What to do.
        hint: String,
    },
    /// A file cannot be read or written.
    #[error("{path}: {source}")]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// An address cannot be bound.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// The address.
        address: String,
        /// The option that sets it.
        flag: &'static str,
        /// Why.
        source: std::io::Error,
    },
    /// The storage refuses.
    #[error("storage: {0}")]
    Storage(#[from] bowline_store::StoreError),
    /// A rule of ours refuses.
    #[error("{0}")]
    Refused(#[from] bowline_core::Error),
    /// A key or a secret cannot be opened.
    #[error("the key file does not open what is stored: {0}")]
    Sealed(String),
    /// A command that talks to a server did not succeed.
    #[error("{0}")]
    Client(#[from] ClientError),
    /// The audit log is not what it should be.
    #[error("audit log: {0}")]
    Audit(String),
    /// Blobs are not what they should be.
    #[error("{0} blobs are missing or damaged: push what they belong to again, or restore them from a backup")]
    Blobs(usize),
    /// Files were left out of an import.
    #[error("files that were skipped, for the reasons above: {0}; the others were taken in")]
    Skipped(usize),
    /// Records were left out of an import.
    #[error("records that were left out, for the reasons above: {0}; the others were taken in")]
    LeftOut(usize),
    /// Some of the vulnerabilities that were asked for.
    #[error("no record here tells of {}: check the spelling, or import a source that does with `bowline feeds import`", .0.join(", "))]
    Unknown(Vec<String>),
    /// A document that cannot be read, or not all of it.
    #[error("{0}")]
    Document(String),
    /// A defect of ours.
    #[error("defect: {0}")]
    Defect(String),
}

impl StartError {
    /// What to do about it, where the message does not say so itself.
    pub fn hint(&self) -> Option<String> {
        use std::io::ErrorKind;
        match self {
            StartError::Unusable { hint, .. } => Some(hint.clone()),
            StartError::Listen { flag, source, .. } => Some(match source.kind() {
                ErrorKind::AddrInUse => {
                    format!("stop the program that uses this address, or choose another one with --{flag}")
                }
                _ => format!("choose an address of this machine that this user may listen on with --{flag}"),
            }),
            StartError::Sealed(_) => {
                Some("restore the key file that this database was made with, or name it with --key-file".into())
            }
            StartError::File { source, .. } if source.kind() == ErrorKind::PermissionDenied => {
                Some("let the user that runs bowline read and write it".into())
            }
            _ => None,
        }
    }

    /// What the process ends with: see [`crate::run`].
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            StartError::Client(error) if error.is_unauthenticated() => 3,
            StartError::Client(error) if error.is_permission_denied() => 4,
            StartError::Client(ClientError::Transport(_)) => 5,
            StartError::Option(_) | StartError::Client(ClientError::Usage(_)) => 2,
            _ => 1,
        }
    }
}
