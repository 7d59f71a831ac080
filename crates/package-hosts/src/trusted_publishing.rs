//! Trusted publishing: publishers get a short token for the one that their CI system signs, and store no secret.
//!
//! Both protocols are at the root of the host, whatever address packages are published at: that of PyPI, which uv and actions
//! of CI systems speak, and that of npm. Which identity publishes is decided at the upload, by the group in its address.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{Extension, Request, State};
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::response::Response;
use axum::routing::{get, post};
use bowline_authn::crypto::random_bytes;
use bowline_core::{Error, Reason};
use bowline_fronts::{Count, Front, Presented, error_response, presented};
use bowline_identity::PublishingToken;
use bowline_libraries::hosting::{Npm, Protocol, Python};
use bowline_pipeline::{Principal, RequestOrigin, Surface};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::PackageHosts;
use crate::answers::{finished, set, typed};

/// Maximum bytes of a request.
const BODY: usize = 70 << 10;
const JSON: &str = "application/json";

#[derive(Deserialize)]
struct MintRequest {
    token: String,
}

/// The routes at the root of the host. `count` is called for each request.
pub(crate) fn routes(hosts: Arc<PackageHosts>, count: Count) -> Router {
    let pipeline = hosts.pipeline.clone();
    let admit = Arc::new(move |_: &str, origin: &RequestOrigin| {
        pipeline.limits.count_address(Surface::Packages, Some(origin.address))
    });
    let render_rejection = |_: &str, error: Error| refused(&error);
    let front = Front { transport: "packages", name, admit, render_rejection, count };
    let routes = Router::new()
        .route("/_/oidc/audience", get(audience).fallback(wrong_verb))
        .route("/_/oidc/mint-token", post(mint).fallback(wrong_verb))
        .route("/-/npm/v1/oidc/token/exchange/package/{*name}", post(exchange).fallback(wrong_verb))
        .with_state(hosts);
    front.wrap(routes)
}

/// What a request is called in the access log and in the counters.
fn name(_: &Method, path: &str) -> &'static str {
    match path {
        "/_/oidc/audience" => "packages.python.audience",
        "/_/oidc/mint-token" => "packages.python.mint",
        _ => "packages.javascript.exchange",
    }
}

/// The audience that CI systems sign their tokens for.
async fn audience(State(hosts): State<Arc<PackageHosts>>, Extension(origin): Extension<RequestOrigin>) -> Response {
    answer(&origin, Ok(json!({ "audience": hosts.pipeline.settings.auth_url })))
}

/// PyPI's exchange: the token in a document.
async fn mint(
    State(hosts): State<Arc<PackageHosts>>,
    Extension(origin): Extension<RequestOrigin>,
    request: Request,
) -> Response {
    let shown = |token: PublishingToken| json!({ "success": true, "token": token.token, "expires": token.expires_at });
    answer(&origin, hosts.mint(request.into_body(), &origin).await.map(shown))
}

/// npm's exchange: the token in the header. The name of the package says nothing of the group, so it decides nothing.
async fn exchange(
    State(hosts): State<Arc<PackageHosts>>,
    Extension(origin): Extension<RequestOrigin>,
    headers: HeaderMap,
) -> Response {
    let minted = match presented(&headers) {
        Ok(Presented::Bearer(token)) => hosts.publishing_token::<Npm>(&token, &origin).await,
        _ => Err(Error::new(Reason::Unauthenticated, "send the token of the CI system: Authorization: Bearer <token>")),
    };
    answer(&origin, minted.map(|token| json!({ "token": token.token })))
}

async fn wrong_verb(Extension(origin): Extension<RequestOrigin>) -> Response {
    let sentence = "audiences are read with GET, and tokens exchanged with POST";
    let body = json!({ "message": sentence, "errors": [{ "code": "invalid-payload", "description": sentence }] });
    finished(typed(StatusCode::METHOD_NOT_ALLOWED, JSON, body.to_string()), &origin.request_id)
}

impl PackageHosts {
    async fn mint(&self, body: Body, origin: &RequestOrigin) -> Result<PublishingToken, Error> {
        let shape = "send a JSON object with the token of the CI system: {\"token\": \"...\"}";
        let bytes = axum::body::to_bytes(body, BODY).await.map_err(|_| Error::new(Reason::InvalidArgument, shape))?;
        let request: MintRequest =
            serde_json::from_slice(&bytes).map_err(|_| Error::new(Reason::InvalidArgument, shape))?;
        self.publishing_token::<Python>(&request.token, origin).await
    }

    /// A publishing token for one of a CI system, for an ecosystem.
    async fn publishing_token<P: Protocol>(
        &self,
        token: &str,
        origin: &RequestOrigin,
    ) -> Result<PublishingToken, Error> {
        let client = self.hosting.client(Principal::Anonymous, origin.address, origin.request_id.clone());
        let capabilities = client.publishing_capabilities::<P>()?;
        let now = self.pipeline.clock.now();
        self.issuing.publishing_token(token, capabilities, now, random_bytes::<16>()).await
    }
}

/// A document, which nothing may store since it holds a token, or a refusal.
fn answer(origin: &RequestOrigin, answered: Result<Value, Error>) -> Response {
    let mut response = match answered {
        Ok(document) => typed(StatusCode::OK, JSON, document.to_string()),
        Err(error) => refused(&error),
    };
    set(&mut response, header::CACHE_CONTROL, "no-store");
    finished(response, &origin.request_id)
}

/// A refusal as PyPI spells it, with the sentence in `message`, where npm looks for it too.
fn refused(error: &Error) -> Response {
    // PyPI answers 422 to whatever is wrong with a token.
    let (code, status) = match error.reason() {
        Reason::InvalidArgument => ("invalid-payload", Some(StatusCode::UNPROCESSABLE_ENTITY)),
        Reason::PermissionDenied => ("invalid-publisher", Some(StatusCode::UNPROCESSABLE_ENTITY)),
        Reason::Unauthenticated | Reason::TokenInvalid | Reason::TokenExpired => {
            ("invalid-token", Some(StatusCode::UNPROCESSABLE_ENTITY))
        }
        _ => ("unavailable", None),
    };
    error_response(error, |usual, error| {
        let status = status.unwrap_or(usual);
        let sentence = error.message();
        let errors = json!([{ "code": code, "description": sentence }]);
        typed(status, JSON, json!({ "message": sentence, "errors": errors }).to_string())
    })
}
