//! The end of a browser's session.

use axum::body::Bytes;
use axum::extract::{Extension, State};
use axum::http::HeaderMap;
use axum::response::Response;
use bowline_pipeline::RequestOrigin;
use maud::html;

use crate::app::{App, Shared, own_form, with_cookie};
use crate::cookies;
use crate::page;
use crate::problem::Problem;
use crate::secrets::{bytes_of, same, sign_out_token};

/// `GET /signout`: who is signed in, and a button.
pub(crate) async fn sign_out_page(State(app): Shared, headers: HeaderMap) -> Result<Response, Problem> {
    let Some(cookie) = session(&app, &headers) else {
        return Ok(signed_out());
    };
    let Some(signed) = app.parts.people.session_of_cookie(&cookie, app.now()).await? else {
        return Ok(without_cookie(&app, signed_out()));
    };
    Ok(page::page(
        "Sign out",
        html! {
            p {
                "You are signed in as " strong { (signed.name) }
                @if !signed.email.is_empty() && signed.email != signed.name { " (" (signed.email) ")" }
                "."
            }
            p { "Signing out ends the tokens of this session at once." }
            form method="post" action="/signout" {
                input type="hidden" name="token" value=(sign_out_token(app.vault(), &cookie));
                button type="submit" { "Sign out" }
            }
        },
    ))
}

/// Handles the form of `POST /signout`.
pub(crate) async fn sign_out(
    State(app): Shared,
    Extension(origin): Extension<RequestOrigin>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, Problem> {
    let parameters = own_form(&headers, &body)?;
    let Some(cookie) = session(&app, &headers) else {
        return Ok(signed_out());
    };
    if !same(&sign_out_token(app.vault(), &cookie), parameters.one("token")?.unwrap_or_default()) {
        return Err(Problem::forbidden("This form has expired. Open the sign-out page again."));
    }
    app.parts.people.end_session(&cookie, &app.context(&origin, "/signout")).await?;
    let page = page::page("You are signed out", html! { p { "The tokens of this session have ended." } });
    Ok(without_cookie(&app, page))
}

fn session(app: &App, headers: &HeaderMap) -> Option<[u8; 32]> {
    cookies::read(headers, &cookies::session(app.cookies)).and_then(bytes_of)
}

fn without_cookie(app: &App, response: Response) -> Response {
    with_cookie(response, app.cookies.set(&cookies::session(app.cookies), "", 0))
}

fn signed_out() -> Response {
    page::page("Sign out", html! { p { "This browser is not signed in." } })
}
