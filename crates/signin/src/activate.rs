//! The page on which people type the code of a device.

use axum::body::Bytes;
use axum::extract::{Extension, RawQuery, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bowline_core::Error;
use bowline_pipeline::RequestOrigin;
use maud::html;
use serde::{Deserialize, Serialize};

use crate::app::{App, Shared, own_form};
use crate::codes;
use crate::device;
use crate::login_request::{Destination, LoginRequest};
use crate::page;
use crate::parameters::Parameters;
use crate::problem::Problem;
use crate::secrets::text_of;

/// The parameter of `GET /oauth` that names a device authorization.
pub(crate) const TICKET: &str = "device";
/// What a ticket is sealed for.
const CONTEXT: &str = "device ticket";

/// Proof that someone typed the code, on the way from this page to the provider.
#[derive(Serialize, Deserialize)]
struct Ticket {
    hash: [u8; 32],
    user_code: String,
}

/// `GET /activate`: the form, filled in where the device could show a whole address.
pub(crate) async fn ask(RawQuery(query): RawQuery) -> Result<Response, Problem> {
    let parameters = Parameters::read(query.unwrap_or_default().as_bytes())?;
    let code = parameters.one("user_code")?.and_then(codes::typed);
    Ok(form(code.as_deref().unwrap_or_default(), None))
}

/// `POST /activate`: the code is checked, and the person continues to a provider.
pub(crate) async fn submit(
    State(app): Shared,
    Extension(origin): Extension<RequestOrigin>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, Problem> {
    let parameters = own_form(&headers, &body)?;
    let given = parameters.one("user_code")?.unwrap_or_default();
    app.wrong_codes.count(origin.address, app.now()).map_err(Problem::wait)?;
    let found = match codes::typed(given) {
        Some(code) => {
            let hash = device::hash_of_user_code(app.vault(), &code);
            device::waiting(app.db(), hash, app.now()).await?.map(|hash| Ticket { hash, user_code: code })
        }
        None => None,
    };
    let Some(ticket) = found else {
        let mut response = form(given, Some("No device waits with this code. Compare it with the one on your device."));
        *response.status_mut() = StatusCode::NOT_FOUND;
        return Ok(response);
    };
    app.wrong_codes.forgive(origin.address, app.now());
    let mut response = StatusCode::SEE_OTHER.into_response();
    let address = format!("/oauth?{TICKET}={}", seal(&app, &ticket)?);
    let address = HeaderValue::from_str(&address).map_err(Error::internal)?;
    response.headers_mut().insert(header::LOCATION, address);
    Ok(response)
}

fn seal(app: &App, ticket: &Ticket) -> bowline_core::Result<String> {
    let plain = serde_json::to_vec(ticket).map_err(Error::internal)?;
    Ok(URL_SAFE_NO_PAD.encode(app.vault().seal(CONTEXT, &plain)))
}

/// The login request of a ticket's device.
///
/// # Errors
/// The ticket is not of this server, or its device no longer waits.
pub(crate) async fn request(app: &App, ticket: &str) -> Result<LoginRequest, Problem> {
    let over = || Problem::bad("The device does not wait any more. Begin again on the device.");
    let sealed = URL_SAFE_NO_PAD.decode(ticket).map_err(|_| over())?;
    let plain = app.vault().open(CONTEXT, &sealed).map_err(|_| over())?;
    let ticket: Ticket = serde_json::from_slice(&plain).map_err(|_| over())?;
    let device = device::pending(app.db(), ticket.hash, app.now()).await?.ok_or_else(over)?;
    Ok(LoginRequest {
        destination: Destination::Device {
            hash: text_of(&ticket.hash),
            user_code: ticket.user_code,
            address: device.address,
            client_id: device.client_id,
        },
        audiences: device.audiences,
        identity: None,
        scopes: Vec::new(),
        refresh: device.refresh,
        skip_registration: false,
        invite: None,
        screen_hint: None,
    })
}

fn form(code: &str, wrong: Option<&str>) -> Response {
    page::page(
        "Connect a device",
        html! {
            p { "Enter the code that your device or terminal shows. Never enter a code that someone sent you." }
            @if let Some(wrong) = wrong {
                p.notice role="alert" id="wrong" { (wrong) }
            }
            form method="post" action="/activate" {
                label for="user_code" { "Code" }
                input type="text" id="user_code" name="user_code" value=(code) required maxlength="20"
                    autocomplete="off" autocapitalize="characters" spellcheck="false"
                    aria-describedby=[wrong.map(|_| "wrong")] aria-invalid=[wrong.map(|_| "true")];
                button type="submit" { "Continue" }
            }
        },
    )
}
