use std::time::Duration;

use bowline_core::{Code, Error};
use tracing::field::display;

/// Maximum bytes of a path in a line; any caller can send a longer one.
const LOGGED_PATH: usize = 512;

/// The line of one request in the access log. Empty texts are left out.
#[derive(Clone, Copy, Debug)]
pub struct AccessLine<'a> {
    /// The front: `grpc`, `rest`, `oci`, and so on.
    pub transport: &'static str,
    /// Full name of the method in the contract, or the front's own, such as `oci.manifest.get`.
    pub method: &'a str,
    /// Path of the URL, where the method does not say it all. Never the query, which can hold codes.
    pub path: &'a str,
    /// Full name of the method that a call previews.
    pub previewed: &'a str,
    /// UIDP of the caller.
    pub principal: &'a str,
    /// UIDP or name at which the permission was needed.
    pub scope: &'a str,
    /// HTTP status, where the front has no better code.
    pub status: Option<u16>,
    /// What the request failed with.
    pub code: Option<Code>,
    /// Time until the response began.
    pub elapsed: Duration,
    /// Id of the request, as the response has it.
    pub request_id: &'a str,
}

impl AccessLine<'_> {
    pub fn write(&self) {
        let decision = match self.code {
            Some(Code::Unauthenticated) => "unauthenticated",
            Some(Code::PermissionDenied) => "denied",
            _ => "allowed",
        };
        let text = |text: &str| (!text.is_empty()).then(|| display(text.to_owned()));
        tracing::info!(
            target: "access",
            method = %self.method,
            previewed = text(self.previewed),
            principal = text(self.principal),
            scope = text(self.scope),
            decision,
            code = self.code.map_or("OK", Code::name),
            micros = self.elapsed.as_micros() as u64,
            transport = self.transport,
            request_id = %self.request_id,
            status = self.status,
            path = text(cut(self.path)),
        );
    }
}

/// The beginning of a path, cut between two characters.
fn cut(path: &str) -> &str {
    &path[..path.floor_char_boundary(LOGGED_PATH)]
}

/// Whether this server failed, rather than the caller, so that the causes belong in the log. A full storage has the code
/// RESOURCE_EXHAUSTED, as limits have; only a failure of this server has a source.
pub(crate) fn is_server_fault(error: &Error) -> bool {
    let has_source = std::error::Error::source(error).is_some();
    has_source || matches!(error.code(), Code::Internal | Code::Unavailable | Code::Unknown)
}

/// Writes the causes of a failure of this server to the log; the caller gets none of them.
pub fn write_failure(method: &str, request_id: &str, error: &Error) {
    if is_server_fault(error) {
        write_causes(method, request_id, &causes(error));
    }
}

pub(crate) fn write_causes(method: &str, request_id: &str, causes: &str) {
    tracing::error!(%request_id, %method, cause = %causes, "call failed");
}

/// An error with what it comes from.
pub(crate) fn causes(error: &Error) -> String {
    let mut causes = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        causes = format!("{causes}: {cause}");
        source = cause.source();
    }
    causes
}

/// The code that comes nearest to an HTTP status; none for success.
pub fn code_of(status: u16) -> Option<Code> {
    Some(match status {
        0..=399 => return None,
        401 => Code::Unauthenticated,
        403 => Code::PermissionDenied,
        404 => Code::NotFound,
        405 | 501 => Code::Unimplemented,
        409 => Code::Aborted,
        413 | 429 | 507 => Code::ResourceExhausted,
        416 => Code::OutOfRange,
        400..=499 => Code::InvalidArgument,
        503 => Code::Unavailable,
        504 => Code::DeadlineExceeded,
        _ => Code::Internal,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_paths_are_cut_between_characters() {
        assert_eq!(cut("/v2/"), "/v2/");
        let long = "é".repeat(LOGGED_PATH);
        assert_eq!(cut(&long).len(), LOGGED_PATH);
        assert_eq!(cut(&format!("a{long}")).len(), LOGGED_PATH - 1);
    }

    #[test]
    fn failures_of_the_server_and_of_callers_are_distinguished() {
        let full = Error::storage_full(std::io::Error::other("no space left on device"));
        assert_eq!(full.code(), Code::ResourceExhausted);
        assert!(is_server_fault(&full));
        assert!(is_server_fault(&Error::internal("defect")));
        assert!(!is_server_fault(&Error::invalid_field("name", "must not be empty")));
        assert!(causes(&full).contains("no space left on device"));
    }

    #[test]
    fn statuses_have_codes() {
        assert_eq!(code_of(204), None);
        assert_eq!(code_of(418), Some(Code::InvalidArgument));
        assert_eq!(code_of(507), Some(Code::ResourceExhausted));
        assert_eq!(code_of(599), Some(Code::Internal));
    }
}
