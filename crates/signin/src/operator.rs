//! The link that signs the operator in once.

use axum::body::Bytes;
use axum::extract::{Extension, State};
use axum::http::{HeaderMap, Uri};
use axum::response::Response;
use bowline_pipeline::RequestOrigin;
use maud::html;

use crate::app::{Shared, own_form, with_cookie};
use crate::login_request::CONSOLE;
use crate::page;
use crate::parameters::Parameters;
use crate::problem::Problem;

/// `GET /oauth/operator`: a button. Whatever fetches links ahead of people does not use them up.
pub(crate) async fn ask(State(app): Shared, uri: Uri, headers: HeaderMap) -> Result<Response, Problem> {
    let parameters = Parameters::read(uri.query().unwrap_or_default().as_bytes())?;
    let has_console = app.parts.console.is_some() && app.is_console_host(&uri, &headers);
    let code = parameters.required("code")?;
    Ok(page::page(
        "Sign in as operator",
        html! {
            p {
                "This link works once. It stands for a token that may do everything on this server, for an hour at most"
                @if has_console { ", and opens the console with it or shows it" }
                "."
            }
            form method="post" action="/oauth/operator" {
                input type="hidden" name="code" value=(code);
                div.actions {
                    @if has_console {
                        button type="submit" name="answer" value="console" { "Open the console" }
                    }
                    button.quiet type="submit" name="answer" value="token" { "Show the token" }
                }
            }
        },
    ))
}

/// `POST /oauth/operator`: the link is used up. Its token is shown, or stays on the server while the browser gets the cookie of
/// a session of the console.
pub(crate) async fn redeem(
    State(app): Shared,
    Extension(origin): Extension<RequestOrigin>,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, Problem> {
    let parameters = own_form(&headers, &body)?;
    let code = parameters.required("code")?;
    let console = match parameters.one("answer")? {
        Some("console") if !app.is_console_host(&uri, &headers) => {
            let address = &app.settings().auth_url;
            return Err(Problem::bad(format!(
                "The console is not at this address. Open the link at {address} instead."
            )));
        }
        Some("console") => Some(app.console_with(CONSOLE)?),
        Some("token") | None => None,
        Some(_) => return Err(Problem::bad("The answer is either console or token.")),
    };
    let issued = app.parts.people.redeem_operator_link(code, &app.context(&origin, "/oauth/operator")).await?;
    if let Some(console) = console {
        let cookie = console.begin(issued.token, "Operator")?;
        console.end(&headers);
        return Ok(with_cookie(page::see_other(CONSOLE)?, Some(cookie)));
    }
    let minutes = (issued.expires_at - app.now().div_euclid(1_000_000)).max(0) / 60;
    Ok(page::page(
        "Operator token",
        html! {
            p.notice { "This token may do everything, and is shown once. Keep it to yourself." }
            label for="token" { "Token, good for " (minutes) " minutes" }
            textarea id="token" readonly rows="8" spellcheck="false" { (issued.token) }
        },
    ))
}
