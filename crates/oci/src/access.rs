//! The registry's lines of the access log, and its counters.

use std::sync::Arc;
use std::time::Duration;

use axum::http::{Method, StatusCode};
use bowline_core::Code;
use bowline_services::content::RegistryError;

use crate::answer::Refused;
use crate::route::Target;

/// Most characters of a path in a line.
const LOGGED_PATH: usize = 512;

/// Counts one request: its name as the log has it, its code (absent for success), and the time until its answer began.
pub type Count = Arc<dyn Fn(&'static str, Option<Code>, Duration) + Send + Sync>;

/// What the log says of one request.
pub(crate) struct Entry<'a> {
    pub(crate) name: &'static str,
    pub(crate) path: &'a str,
    pub(crate) principal: &'a str,
    pub(crate) repository: String,
    pub(crate) request_id: &'a str,
    pub(crate) status: StatusCode,
    pub(crate) elapsed: Duration,
}

/// Writes the line of a request, and counts it.
pub(crate) fn write(count: &Count, entry: &Entry<'_>) {
    let code = code(entry.status);
    let decision = match code {
        Some(Code::Unauthenticated) => "unauthenticated",
        Some(Code::PermissionDenied) => "denied",
        _ => "allowed",
    };
    count(entry.name, code, entry.elapsed);
    tracing::info!(
        target: "access",
        method = entry.name,
        principal = %entry.principal,
        scope = %entry.repository,
        decision,
        code = code.map_or("OK", Code::name),
        micros = entry.elapsed.as_micros() as u64,
        transport = "oci",
        request_id = %entry.request_id,
        status = entry.status.as_u16(),
        path = entry.path.get(..entry.path.len().min(LOGGED_PATH)).unwrap_or_default(),
    );
}

/// Writes why something of ours failed, which the client is not told.
pub(crate) fn write_failure(refused: &Refused, name: &'static str, request_id: &str) {
    let RegistryError::Failed(error) = &refused.error else { return };
    if let Some(cause) = std::error::Error::source(error) {
        tracing::error!(%request_id, method = name, %error, %cause, "call failed");
    }
}

/// What a request is called: few names, whatever clients send.
pub(crate) fn name(target: Option<&Target>, verb: &Method) -> &'static str {
    let Some(target) = target else { return "oci.unknown" };
    match (target, verb.as_str()) {
        (Target::Base, _) => "oci.base",
        (Target::Catalog, _) => "oci.catalog",
        (Target::Tags(_), _) => "oci.tags",
        (Target::Referrers(..), _) => "oci.referrers",
        (Target::History(..), _) => "oci.history",
        (Target::Manifest(..), "GET") => "oci.manifest.get",
        (Target::Manifest(..), "HEAD") => "oci.manifest.head",
        (Target::Manifest(..), "PUT") => "oci.manifest.put",
        (Target::Manifest(..), "DELETE") => "oci.manifest.delete",
        (Target::Blob(..), "GET") => "oci.blob.get",
        (Target::Blob(..), "HEAD") => "oci.blob.head",
        (Target::Blob(..), "DELETE") => "oci.blob.delete",
        (Target::Uploads(_), "POST") => "oci.upload.post",
        (Target::Upload(..), "GET") => "oci.upload.get",
        (Target::Upload(..), "PATCH") => "oci.upload.patch",
        (Target::Upload(..), "PUT") => "oci.upload.put",
        (Target::Upload(..), "DELETE") => "oci.upload.delete",
        _ => "oci.unknown",
    }
}

/// The gRPC code that comes nearest to a status of the protocol.
fn code(status: StatusCode) -> Option<Code> {
    Some(match status.as_u16() {
        200..=399 => return None,
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
