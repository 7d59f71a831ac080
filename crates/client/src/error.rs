use std::path::PathBuf;

/// Why something could not be done, in words for the person at the terminal.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// No one is signed in, or the sign-in has ended.
    #[error("{0}")]
    NotSignedIn(String),
    /// The server answered with an error: its gRPC code and message.
    #[error("{message}")]
    Refused {
        /// gRPC code, 1 to 16.
        code: i32,
        message: String,
    },
    /// No response, or one that cannot be read.
    #[error("the server could not be reached: {0}")]
    Transport(String),
    /// What was given is wrong.
    #[error("{0}")]
    Usage(String),
    /// A file could not be read or written.
    #[error("{path}: {source}")]
    File { path: PathBuf, source: std::io::Error },
    /// The sign-in was refused, cancelled or took too long.
    #[error("{0}")]
    SignIn(String),
}

impl ClientError {
    pub(crate) fn transport(error: reqwest::Error) -> ClientError {
        // The chain says what happened; the URL may carry a code.
        let mut text = String::new();
        let error = error.without_url();
        let mut cause: Option<&dyn std::error::Error> = Some(&error);
        while let Some(link) = cause {
            if !text.is_empty() {
                text.push_str(": ");
            }
            text.push_str(&link.to_string());
            cause = link.source();
        }
        ClientError::Transport(text)
    }

    /// Whether the server said that the token is not good.
    pub fn is_unauthenticated(&self) -> bool {
        matches!(self, ClientError::NotSignedIn(_) | ClientError::Refused { code: 16, .. })
    }

    /// Whether the server said that the request itself is wrong.
    pub fn is_invalid_argument(&self) -> bool {
        matches!(self, ClientError::Refused { code: 3, .. })
    }

    /// Whether the server said that the caller may not do it.
    pub fn is_permission_denied(&self) -> bool {
        matches!(self, ClientError::Refused { code: 7, .. })
    }
}
