use std::collections::BTreeMap;
use std::path::PathBuf;

/// What was looked up by a name that nothing has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum LookupKind {
    Group,
    Repository,
    Role,
    Identity,
    Other,
}

/// Why something could not be done, in words for the person at the terminal.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// No one is signed in, or the sign-in has ended. The message names what helps.
    #[error("{0}")]
    NotSignedIn(String),
    /// A token that was given cannot be one.
    #[error("{0}")]
    UnusableToken(String),
    /// The server answered with an error: its gRPC code, message and facts.
    #[error("{message}")]
    Refused {
        /// gRPC code, 1 to 16.
        code: i32,
        message: String,
        /// Metadata of the error by name, such as the missing `capability` and its `scope`.
        facts: BTreeMap<String, String>,
    },
    /// No response, or one that cannot be read.
    #[error("the server could not be reached: {0}")]
    Transport(String),
    /// HTTP/2, which carries gRPC, does not pass between here and the server.
    #[error("the server, or a proxy before it, speaks only HTTP/1.1")]
    NoHttp2,
    /// A response with this HTTP status that is not one of the API.
    #[error("the server answered with HTTP status {0} and no error of the API")]
    NotTheApi(u16),
    /// Nothing has the name that was given, as far as the caller may see.
    #[error("{message}")]
    NotFound { kind: LookupKind, message: String },
    /// What was given is wrong.
    #[error("{0}")]
    Usage(String),
    /// No server is named or known.
    #[error("which server? Name it with --api URL, or keep it with: bowline context set NAME --api URL")]
    NoServer,
    /// A file could not be read or written.
    #[error("{path}: {source}")]
    File { path: PathBuf, source: std::io::Error },
    /// The sign-in was refused, cancelled or took too long.
    #[error("{0}")]
    SignIn(String),
}

impl ClientError {
    /// Nothing of a kind has the name that was given; the message says so.
    pub fn not_found(kind: LookupKind, message: impl Into<String>) -> ClientError {
        ClientError::NotFound { kind, message: message.into() }
    }

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
        // The first bytes of an HTTP/1.1 response, read as the length of a frame; a TLS server without HTTP/2; or a peer
        // that closes the connection before the request is written. In all of them the request was not carried out.
        let is_http1 = [
            "frame with invalid size",
            "NoApplicationProtocol",
            "no_application_protocol",
            "operation was canceled: connection closed",
            "operation was canceled: connection was not ready",
            "(SendRequest): channel closed",
        ];
        if is_http1.iter().any(|sign| text.contains(sign)) {
            return ClientError::NoHttp2;
        }
        ClientError::Transport(text)
    }

    /// Whether no usable response came.
    pub fn is_transport(&self) -> bool {
        matches!(self, ClientError::Transport(_) | ClientError::NoHttp2 | ClientError::NotTheApi(_))
    }

    /// Whether what was named does not exist, as far as the caller may see.
    pub fn is_absent(&self) -> bool {
        matches!(self, ClientError::NotFound { .. } | ClientError::Refused { code: 5, .. })
    }

    /// Whether the server said that the token is not good.
    pub fn is_unauthenticated(&self) -> bool {
        matches!(
            self,
            ClientError::NotSignedIn(_) | ClientError::UnusableToken(_) | ClientError::Refused { code: 16, .. }
        )
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
