use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::{Extension, Request, State};
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use bowline_core::{Code, Error, Result};
use bowline_pipeline::RequestOrigin;

use crate::access_line::{AccessLine, causes, code_of, is_server_fault, write_causes};

/// Counts one request: its name in the log, its code (absent for success), and the time until its response
/// began.
pub type Count = Arc<dyn Fn(&'static str, Option<Code>, Duration) + Send + Sync>;

/// Admits a request by its path and origin, or returns the error.
pub type Admit = Arc<dyn Fn(&str, &RequestOrigin) -> Result<()> + Send + Sync>;

/// Admission, counting and access log of a front's requests.
#[derive(Clone)]
pub struct Front {
    /// Name of the transport in the access log: `oci`, `scim`.
    pub transport: &'static str,
    /// Name of a request by its verb and path, such as `oci.manifest.get`. The names are few and fixed,
    /// whatever clients send.
    pub name: fn(&Method, &str) -> &'static str,
    /// Runs before anything of a request is read.
    pub admit: Admit,
    /// Renders the error of a request that is not admitted, in the form of the protocol.
    pub render_rejection: fn(&str, Error) -> Response,
    pub count: Count,
}

impl Front {
    /// Wraps the routes: admission before each request, access log and count after it.
    ///
    /// Requests must carry a [`RequestOrigin`].
    pub fn wrap<S: Clone + Send + Sync + 'static>(self, routes: Router<S>) -> Router<S> {
        routes.layer(from_fn_with_state(Arc::new(self), handle))
    }
}

/// What a handler adds to the log line of its request, in the extensions of its response.
#[derive(Clone, Debug, Default)]
pub struct LogFields {
    /// UIDP of the caller.
    pub principal: String,
    /// UIDP or name at which the permission was needed.
    pub scope: String,
    /// Why the server failed, for the log alone.
    pub causes: Option<String>,
}

impl LogFields {
    /// The causes of a server fault, which callers do not get to see; empty for other errors.
    pub fn failure(error: &Error) -> LogFields {
        LogFields { causes: is_server_fault(error).then(|| causes(error)), ..LogFields::default() }
    }
}

async fn handle(
    State(front): State<Arc<Front>>,
    Extension(origin): Extension<RequestOrigin>,
    request: Request,
    next: Next,
) -> Response {
    let started = Instant::now();
    let method = (front.name)(request.method(), request.uri().path());
    let path = request.uri().path().to_owned();
    let mut response = match (front.admit)(&path, &origin) {
        Ok(()) => next.run(request).await,
        Err(error) => (front.render_rejection)(&path, error),
    };
    let fields = response.extensions_mut().remove::<LogFields>().unwrap_or_default();
    let (status, elapsed) = (response.status().as_u16(), started.elapsed());
    let code = code_of(status);
    (front.count)(method, code, elapsed);
    if let Some(causes) = &fields.causes {
        write_causes(method, &origin.request_id, causes);
    }
    AccessLine {
        transport: front.transport,
        method,
        path: &path,
        previewed: "",
        principal: &fields.principal,
        scope: &fields.scope,
        status: Some(status),
        code,
        elapsed,
        request_id: &origin.request_id,
    }
    .write();
    response
}

/// The response for an error: in the front's form, with `Retry-After` and with the causes for the log.
pub fn error_response(error: &Error, form: impl FnOnce(StatusCode, &Error) -> Response) -> Response {
    let status = StatusCode::from_u16(error.http_status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = form(status, error);
    if let Some(delay) = error.retry_after() {
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(delay.as_secs().max(1)));
    }
    response.extensions_mut().insert(LogFields::failure(error));
    response
}
