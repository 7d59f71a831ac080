//! OAuth endpoints for clients without a browser: device authorization (RFC 8628), its tokens, revocation (RFC 7009).

use axum::body::Bytes;
use axum::extract::{Extension, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bowline_authn::crypto::sha256;
use bowline_core::Error;
use bowline_fronts::LogFields;
use bowline_pipeline::RequestOrigin;
use serde_json::{Value, json};

use crate::app::{App, Shared, program_form};
use crate::codes;
use crate::device::{self, Device, Outcome, Poll, Tokens};
use crate::login_request::audiences;
use crate::problem::Problem;
use crate::secrets::{bytes_of, text_of};

/// The grant type of devices.
const DEVICE_CODE: &str = "urn:ietf:params:oauth:grant-type:device_code";
/// Longest name of a client.
const LONGEST_CLIENT: usize = 200;
/// Attempts to draw a free user code of 40 bits.
const DRAWS: usize = 4;

/// An error as RFC 6749 writes it.
pub(crate) struct Refusal {
    status: StatusCode,
    error: &'static str,
    description: String,
    retry_after: Option<u64>,
    cause: Option<String>,
}

impl Refusal {
    fn new(error: &'static str, description: impl Into<String>) -> Refusal {
        let description = description.into();
        Refusal { status: StatusCode::BAD_REQUEST, error, description, retry_after: None, cause: None }
    }

    pub(crate) fn invalid_request(description: impl Into<String>) -> Refusal {
        Refusal::new("invalid_request", description)
    }
}

impl From<Problem> for Refusal {
    fn from(problem: Problem) -> Refusal {
        let error = match problem.status.as_u16() {
            429 | 503 => "temporarily_unavailable",
            500.. => "server_error",
            _ => "invalid_request",
        };
        Refusal {
            status: problem.status,
            error,
            description: problem.text,
            retry_after: problem.retry_after,
            cause: problem.cause,
        }
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Refusal {
        Refusal::from(Problem::from(error))
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let body = json!({ "error": self.error, "error_description": self.description });
        let mut response = answer(&body);
        *response.status_mut() = self.status;
        if let Some(seconds) = self.retry_after {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        response.extensions_mut().insert(LogFields { causes: self.cause, ..LogFields::default() });
        response
    }
}

pub(crate) fn answer(value: &Value) -> Response {
    ([(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))], value.to_string()).into_response()
}

/// Handles `POST /oauth/device_authorization` (RFC 8628, 3.1).
pub(crate) async fn device_authorization(
    State(app): Shared,
    Extension(origin): Extension<RequestOrigin>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, Refusal> {
    let form = program_form(&headers, &body)?;
    app.devices.count(origin.address, app.now()).map_err(Problem::wait)?;
    let device = Device {
        client_id: client_id(form.one("client_id")?)?.to_owned(),
        audiences: audiences(form.one("audience")?, &app.settings().api_audience)?,
        refresh: form.one("scope")?.is_some_and(|scope| scope.split(' ').any(|word| word == "offline_access")),
        address: origin.address.to_string(),
        outcome: Outcome::Pending,
    };
    let (device_code, user_code) = begin(&app, &device).await?;
    let page = format!("{}/activate", app.settings().auth_url);
    Ok(answer(&json!({
        "device_code": device_code,
        "user_code": user_code,
        "verification_uri_complete": format!("{page}?user_code={user_code}"),
        "verification_uri": page,
        "expires_in": device::SECONDS,
        "interval": device::INTERVAL,
    })))
}

async fn begin(app: &App, device: &Device) -> bowline_core::Result<(String, String)> {
    for _ in 0..DRAWS {
        let (code, user_code) = (app.draw(), codes::code(&app.draw()));
        let user_hash = device::hash_of_user_code(app.vault(), &user_code);
        if device::put(app.db(), sha256(&code), user_hash, device, app.now()).await? {
            return Ok((text_of(&code), user_code));
        }
    }
    Err(Error::internal("every user code that was drawn is taken"))
}

fn client_id(given: Option<&str>) -> Result<&str, Refusal> {
    match given {
        None => Err(Refusal::invalid_request("client_id is missing: set client_id to the name of your program")),
        Some(id) if id.len() > LONGEST_CLIENT || !id.bytes().all(|byte| byte.is_ascii_graphic()) => {
            Err(Refusal::invalid_request("client_id is too long, or has characters that no name has"))
        }
        Some(id) => Ok(id),
    }
}

/// `POST /oauth/token`: the one grant is that of devices.
pub(crate) async fn token(State(app): Shared, headers: HeaderMap, body: Bytes) -> Result<Response, Refusal> {
    let form = program_form(&headers, &body)?;
    match form.one("grant_type")? {
        Some(DEVICE_CODE) => {}
        Some(_) => {
            let text = format!("the only grant_type is {DEVICE_CODE}; others go to the token exchange, /sts/exchange");
            return Err(Refusal::new("unsupported_grant_type", text));
        }
        None => return Err(Refusal::invalid_request("grant_type is missing")),
    }
    let client_id = client_id(form.one("client_id")?)?;
    let unknown = || Refusal::new("invalid_grant", "the device_code is unknown, another client's, or was used already");
    let code = form.one("device_code")?.ok_or_else(|| Refusal::invalid_request("device_code is missing"))?;
    let hash = sha256(&bytes_of(code).ok_or_else(unknown)?);
    match device::poll(app.db(), app.vault(), hash, client_id, app.now()).await? {
        Poll::Granted(tokens) => Ok(answer(&granted(&tokens, app.now().div_euclid(1_000_000)))),
        Poll::Pending => Err(Refusal::new("authorization_pending", "the person has not answered yet: ask again")),
        Poll::SlowDown => Err(Refusal::new("slow_down", "wait five seconds longer between two requests")),
        Poll::Denied => Err(Refusal::new("access_denied", "the person denied the request, or may not sign in")),
        Poll::Expired => Err(Refusal::new("expired_token", "the device_code is older than 15 minutes: begin again")),
        Poll::Unknown => Err(unknown()),
    }
}

fn granted(tokens: &Tokens, now: i64) -> Value {
    let mut answer = json!({
        "id_token": tokens.id_token,
        "access_token": tokens.access_token,
        "token_type": "Bearer",
        "expires_in": (tokens.expires_at - now).max(0),
    });
    if let Some(refresh_token) = &tokens.refresh_token {
        answer["refresh_token"] = json!(refresh_token);
    }
    answer
}

/// `POST /oauth/revoke`: whatever the token was, it is not valid afterwards.
pub(crate) async fn revoke(
    State(app): Shared,
    Extension(origin): Extension<RequestOrigin>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<StatusCode, Refusal> {
    let form = program_form(&headers, &body)?;
    let token = form.one("token")?.ok_or_else(|| Refusal::invalid_request("token is missing"))?;
    app.parts.people.revoke(token, &app.context(&origin, "/oauth/revoke")).await?;
    Ok(StatusCode::OK)
}
