//! The registry's lines of the access log, and its counters.

use std::sync::Arc;
use std::time::Duration;

use axum::http::{Method, StatusCode};
use bowline_core::Code;
use bowline_fronts::{AccessLine, code_of};
use bowline_registry::content::RegistryError;

use crate::answer::Refused;
use crate::route::Target;

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
    let code = code_of(entry.status.as_u16());
    count(entry.name, code, entry.elapsed);
    AccessLine {
        transport: "oci",
        method: entry.name,
        path: entry.path,
        principal: entry.principal,
        scope: &entry.repository,
        status: Some(entry.status.as_u16()),
        code,
        elapsed: entry.elapsed,
        request_id: entry.request_id,
    }
    .write();
}

/// Writes why the server failed, which the client is not told.
pub(crate) fn write_failure(refused: &Refused, name: &'static str, request_id: &str) {
    let RegistryError::Failed(error) = &refused.error else { return };
    if std::error::Error::source(error).is_some() {
        bowline_fronts::write_failure(name, request_id, error);
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
