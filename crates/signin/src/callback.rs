//! The browser comes back from the provider.

use axum::extract::{Extension, RawQuery, State};
use axum::http::HeaderMap;
use axum::response::Response;
use bowline_core::Error;
use bowline_identity::people::{Provider, Redemption, Upstream};
use bowline_pipeline::RequestOrigin;

use crate::app::{App, Shared, with_cookie};
use crate::confirm;
use crate::cookies;
use crate::finish::{self, leave};
use crate::flow::{self, Flow, Stage};
use crate::parameters::Parameters;
use crate::problem::Problem;
use crate::secrets::{FlowSecret, id_of_state, same};
use crate::start::flow_cookie;

/// The text for a browser that brings a provider's response to no request of its own.
const FOREIGN: &str = "This answer belongs to no sign-in that goes on in this browser: it was begun elsewhere, was \
                       answered already, or took longer than ten minutes. Begin again.";

/// `GET /oauth/callback`.
///
/// The response counts only together with the cookie of the flow it belongs to: a person who is sent a link
/// to a response has not signed in.
pub(crate) async fn callback(
    State(app): Shared,
    Extension(origin): Extension<RequestOrigin>,
    headers: HeaderMap,
    RawQuery(query): RawQuery,
) -> Result<Response, Problem> {
    let parameters = Parameters::read(query.unwrap_or_default().as_bytes())?;
    let secret = of_browser(&app, &headers, parameters.required("state")?)?;
    let taken = flow::take(app.db(), app.vault(), &secret, Stage::AtProvider, app.now()).await?;
    let flow = taken.ok_or_else(|| Problem::bad(FOREIGN))?;
    match came_back(&app, &parameters, &secret, &flow).await {
        Ok((provider, upstream, is_known)) => {
            let flow = Flow { upstream: Some(upstream), ..flow };
            flow::put(app.db(), app.vault(), &secret, &flow, app.now()).await?;
            let page = confirm::page(&app, &origin, &secret, &flow, &provider, is_known);
            Ok(with_cookie(page, flow_cookie(&app, &secret)))
        }
        Err(error) => leave(&app, &secret, &flow.request, &error),
    }
}

/// The flow that a response is for, if this browser began it.
fn of_browser(app: &App, headers: &HeaderMap, state: &str) -> Result<FlowSecret, Problem> {
    let foreign = || Problem::bad(FOREIGN);
    let id = id_of_state(state).ok_or_else(foreign)?;
    let secret =
        cookies::read(headers, &cookies::flow(app.cookies, id)).and_then(FlowSecret::read).ok_or_else(foreign)?;
    if same(&secret.state(app.vault()), state) { Ok(secret) } else { Err(foreign()) }
}

/// Who it is, according to the provider, and whether they are registered.
async fn came_back(
    app: &App,
    parameters: &Parameters,
    secret: &FlowSecret,
    flow: &Flow,
) -> bowline_core::Result<(Provider, Upstream, bool)> {
    if let Some(error) = one(parameters, "error")? {
        return Err(refused(error, one(parameters, "error_description")?));
    }
    let code = one(parameters, "code")?
        .ok_or_else(|| Error::invalid_field("code", "the provider sent neither a code nor an error"))?;
    let people = &app.parts.people;
    let provider = people.provider(&flow.provider.choice()?).await?;
    let redemption = Redemption {
        code,
        redirect_uri: &app.callback_url(),
        code_verifier: &secret.verifier(app.vault()),
        nonce: &secret.nonce(app.vault()),
        iss: one(parameters, "iss")?,
    };
    let upstream = people.redeem(&provider, &redemption, app.now()).await?;
    let is_known = people.find(&provider, &upstream).await?.is_some();
    if !is_known && flow.request.skip_registration {
        return Err(finish::no_account());
    }
    Ok((provider, upstream, is_known))
}

/// A parameter of the provider's response, whose errors go to the program that requested the sign-in.
fn one<'p>(parameters: &'p Parameters, name: &str) -> bowline_core::Result<Option<&'p str>> {
    parameters.one(name).map_err(|problem| Error::invalid_field(name, problem.text))
}

/// The provider's own refusal, in its words as far as they are plain text.
fn refused(error: &str, description: Option<&str>) -> Error {
    let plain = |text: &str| text.chars().filter(|character| !character.is_control()).take(200).collect::<String>();
    let text = match description {
        Some(description) => format!("The identity provider refused: {} ({})", plain(description), plain(error)),
        None => format!("The identity provider refused: {}", plain(error)),
    };
    Error::new(bowline_core::Reason::PermissionDenied, text)
}

#[cfg(test)]
mod tests {
    use bowline_core::Code;

    use super::*;

    #[test]
    fn a_refusal_is_short_plain_text() {
        let error = refused("access_denied", Some(&format!("no\r\n{}", "x".repeat(1000))));
        assert_eq!(error.code(), Code::PermissionDenied);
        assert!(error.message().len() < 300 && !error.message().contains('\n'), "{error}");
    }
}
