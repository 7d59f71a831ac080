use std::time::Duration;

use bowline_contract::MethodInfo;
use bowline_core::{Error, Result};
use bowline_fronts::{AccessLine, write_failure};

use crate::front::Front;

/// What the access log says of one call.
pub(crate) struct Entry<'a> {
    pub(crate) method: &'a MethodInfo,
    /// Full name of the method that the call previews; empty for other calls.
    pub(crate) previewed: &'a str,
    pub(crate) principal: &'a str,
    pub(crate) scope: &'a str,
    pub(crate) transport: &'static str,
    pub(crate) request_id: &'a str,
    pub(crate) elapsed: Duration,
}

/// Writes one line per call, and counts it. Causes of the server's own errors go to the log here, and nowhere
/// else.
pub(crate) fn write<T>(front: &Front, entry: &Entry<'_>, result: &Result<T>) {
    let code = result.as_ref().err().map(Error::code);
    front.telemetry.count(entry.method.index, code.map_or(0, |code| code as i32), entry.elapsed);
    AccessLine {
        transport: entry.transport,
        method: &entry.method.full_name,
        path: "",
        previewed: entry.previewed,
        principal: entry.principal,
        scope: entry.scope,
        status: None,
        code,
        elapsed: entry.elapsed,
        request_id: entry.request_id,
    }
    .write();
    if let Err(error) = result {
        write_failure(&entry.method.full_name, entry.request_id, error);
    }
}
