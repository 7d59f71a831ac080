use std::time::Duration;

use bowline_contract::MethodInfo;
use bowline_core::{Code, Error, Result};

use crate::front::Front;

/// What the access log says of one call.
pub(crate) struct Entry<'a> {
    pub(crate) method: &'a MethodInfo,
    pub(crate) principal: &'a str,
    pub(crate) scope: &'a str,
    pub(crate) transport: &'static str,
    pub(crate) request_id: &'a str,
    pub(crate) elapsed: Duration,
}

/// Writes one line per call, and counts it. Causes of our own errors go to the log here, and nowhere else.
pub(crate) fn write<T>(front: &Front, entry: &Entry<'_>, result: &Result<T>) {
    let code = result.as_ref().err().map(Error::code);
    let decision = match code {
        Some(Code::Unauthenticated) => "unauthenticated",
        Some(Code::PermissionDenied) => "denied",
        _ => "allowed",
    };
    front.telemetry.count(entry.method.index, code.map_or(0, |code| code as i32), entry.elapsed);
    tracing::info!(
        target: "access",
        method = %entry.method.full_name,
        principal = %entry.principal,
        scope = %entry.scope,
        decision,
        code = code.map_or("OK", Code::name),
        micros = entry.elapsed.as_micros() as u64,
        transport = entry.transport,
        request_id = %entry.request_id,
    );
    if let Err(error) = result
        && matches!(error.code(), Code::Internal | Code::Unavailable | Code::Unknown)
    {
        tracing::error!(
            request_id = %entry.request_id,
            method = %entry.method.full_name,
            cause = %causes(error),
            "call failed"
        );
    }
}

fn causes(error: &Error) -> String {
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}
