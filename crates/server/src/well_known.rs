//! Paths outside the contract: the start page, discovery, keys, OpenAPI.

use std::sync::{Arc, OnceLock};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use bowline_authn::crypto::sha256;
use bowline_contract::{ApiVersion, Contract};
use bowline_core::Clock;
use bowline_fronts::encoding::{Compression, accepts_gzip, gzip};
use bowline_pipeline::{Authenticator, Settings};
use serde_json::{Value, json};

/// What these pages are made of.
#[derive(Clone)]
pub(crate) struct Pages {
    pub(crate) contract: Arc<Contract>,
    pub(crate) authenticator: Arc<Authenticator>,
    pub(crate) settings: Arc<Settings>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) openapi: Arc<OpenApi>,
    /// Whether browsers are led to the console.
    pub(crate) has_console: bool,
}

/// The OpenAPI documents, made once: they are large, and anyone may read them.
#[derive(Default)]
pub(crate) struct OpenApi {
    v1: OnceLock<Encoded>,
    v2: OnceLock<Encoded>,
}

struct Encoded {
    /// Stands for the content in either encoding.
    etag: String,
    plain: Bytes,
    /// Absent if the encoder failed.
    gzip: Option<Bytes>,
}

/// The one grant of the token endpoint (RFC 8628).
const DEVICE_GRANT: &str = "urn:ietf:params:oauth:grant-type:device_code";

pub(crate) fn router(pages: Pages) -> Router {
    Router::new()
        .route("/.well-known/oauth-authorization-server", get(authorization_server))
        .route("/.well-known/openid-configuration", get(discovery))
        .route("/.well-known/jwks.json", get(jwks))
        .route("/", get(root))
        .route("/openapi/v1.json", get(openapi_v1))
        .route("/openapi/v2.json", get(openapi_v2))
        .with_state(pages)
        .fallback(not_found)
        .method_not_allowed_fallback(wrong_verb)
}

async fn discovery(State(pages): State<Pages>) -> impl IntoResponse {
    let issuer = &pages.settings.auth_url;
    let algorithms: std::collections::BTreeSet<String> =
        pages.authenticator.keys().ring.keys().iter().map(|key| key.key.algorithm().as_str().to_owned()).collect();
    document(&json!({
        "issuer": issuer,
        "jwks_uri": format!("{issuer}/.well-known/jwks.json"),
        // Not the endpoint of RFC 6749: it is here because clients of OpenID Connect insist on one.
        "authorization_endpoint": format!("{issuer}/oauth"),
        "token_endpoint": format!("{issuer}/oauth/token"),
        "device_authorization_endpoint": format!("{issuer}/oauth/device_authorization"),
        "revocation_endpoint": format!("{issuer}/oauth/revoke"),
        "grant_types_supported": [DEVICE_GRANT],
        "token_endpoint_auth_methods_supported": ["none"],
        "revocation_endpoint_auth_methods_supported": ["none"],
        "response_types_supported": ["id_token"],
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": algorithms,
        "claims_supported": ["iss", "sub", "aud", "exp", "iat", "email", "email_verified", "act", "cap"],
    }))
}

/// RFC 8414. No grant here uses an authorization endpoint, which is why none is named.
async fn authorization_server(State(pages): State<Pages>) -> impl IntoResponse {
    let issuer = &pages.settings.auth_url;
    document(&json!({
        "issuer": issuer,
        "jwks_uri": format!("{issuer}/.well-known/jwks.json"),
        "token_endpoint": format!("{issuer}/oauth/token"),
        "device_authorization_endpoint": format!("{issuer}/oauth/device_authorization"),
        "revocation_endpoint": format!("{issuer}/oauth/revoke"),
        "response_types_supported": [],
        "grant_types_supported": [DEVICE_GRANT],
        "scopes_supported": ["openid", "offline_access"],
        "token_endpoint_auth_methods_supported": ["none"],
        "revocation_endpoint_auth_methods_supported": ["none"],
    }))
}

async fn jwks(State(pages): State<Pages>) -> impl IntoResponse {
    let now = pages.clock.now().div_euclid(1_000_000);
    document(&pages.authenticator.keys().ring.jwks(now))
}

/// The API's address: browsers go to the console, programs get the documents.
async fn root(State(pages): State<Pages>, headers: HeaderMap) -> Response {
    let console = HeaderValue::from_str(&format!("{}/console/", pages.settings.auth_url));
    let mut response = match console {
        Ok(console) if pages.has_console && takes_pages(&headers) => {
            (StatusCode::SEE_OTHER, [(header::LOCATION, console)]).into_response()
        }
        _ => documents(&pages).into_response(),
    };
    response.headers_mut().insert(header::VARY, HeaderValue::from_static("accept, sec-fetch-mode"));
    response
}

/// Whether a person in a browser asks: it says that it navigates, or it names HTML and not JSON.
fn takes_pages(headers: &HeaderMap) -> bool {
    if let Some(mode) = headers.get("sec-fetch-mode") {
        return mode == "navigate";
    }
    let values = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let kinds: Vec<&str> = values.flat_map(|value| value.split(',')).filter_map(accepted_kind).collect();
    let names = |kind: &str| kinds.iter().any(|one| one.eq_ignore_ascii_case(kind));
    names("text/html") && !names("application/json")
}

/// A media type of an `Accept` header; absent for one with the quality 0, which is not acceptable.
fn accepted_kind(text: &str) -> Option<&str> {
    let mut parts = text.split(';').map(str::trim);
    let kind = parts.next()?;
    let quality = parts.find_map(|part| part.strip_prefix("q=").or_else(|| part.strip_prefix("Q=")));
    let is_rejected = quality.is_some_and(|quality| quality.parse::<f32>().is_ok_and(|quality| quality <= 0.0));
    (!is_rejected).then_some(kind)
}

fn documents(pages: &Pages) -> impl IntoResponse + use<> {
    let base = &pages.settings.base_url;
    document(&json!({
        "name": "bowline",
        "version": env!("CARGO_PKG_VERSION"),
        "documents": {
            "openapi_v1": format!("{base}/openapi/v1.json"),
            "openapi_v2": format!("{base}/openapi/v2.json"),
            "openid_configuration": format!("{base}/.well-known/openid-configuration"),
        },
    }))
}

async fn openapi_v1(State(pages): State<Pages>, headers: HeaderMap) -> Response {
    pages.openapi.v1.get_or_init(|| openapi(&pages, ApiVersion::V1)).response(&headers)
}

async fn openapi_v2(State(pages): State<Pages>, headers: HeaderMap) -> Response {
    pages.openapi.v2.get_or_init(|| openapi(&pages, ApiVersion::V2)).response(&headers)
}

fn openapi(pages: &Pages, version: ApiVersion) -> Encoded {
    let plain = bowline_rpc::openapi(&pages.contract, version, &pages.settings.base_url).to_string();
    let gzip = gzip(plain.as_bytes(), Compression::default()).ok();
    let etag = format!("W/\"{}\"", bowline_core::hex(&sha256(plain.as_bytes())));
    Encoded { etag, plain: plain.into(), gzip }
}

impl Encoded {
    fn response(&self, headers: &HeaderMap) -> Response {
        let gzip = self.gzip.clone().filter(|_| accepts_gzip(headers));
        let mut described = headers_of_document();
        described.insert(header::VARY, HeaderValue::from_static("accept-encoding"));
        described.extend(HeaderValue::from_str(&self.etag).ok().map(|etag| (header::ETAG, etag)));
        if bowline_rpc::is_known(headers.get(header::IF_NONE_MATCH), &self.etag) {
            described.remove(header::CONTENT_TYPE);
            return (StatusCode::NOT_MODIFIED, described).into_response();
        }
        if gzip.is_some() {
            described.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        }
        (described, gzip.unwrap_or_else(|| self.plain.clone())).into_response()
    }
}

/// A JSON document that may be cached for a short time: keys must be seen before they sign.
fn document(value: &Value) -> impl IntoResponse + use<> {
    (headers_of_document(), value.to_string())
}

fn headers_of_document() -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("public, max-age=300"));
    headers
}

async fn not_found() -> impl IntoResponse {
    error(StatusCode::NOT_FOUND, 5, "Not Found")
}

async fn wrong_verb() -> impl IntoResponse {
    error(StatusCode::METHOD_NOT_ALLOWED, 12, "Method Not Allowed")
}

fn error(status: StatusCode, code: i32, message: &str) -> impl IntoResponse + use<> {
    let body = format!("{{\"code\":{code},\"message\":\"{message}\",\"details\":[]}}");
    (status, [(header::CONTENT_TYPE, "application/json")], body)
}
