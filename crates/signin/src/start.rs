//! The beginning: which provider, and off to it.

use axum::body::Bytes;
use axum::extract::{Extension, RawQuery, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use bowline_core::{Code, Error};
use bowline_identity::people::{AuthorizationRequest, Choice, Provider, Source};
use bowline_pipeline::RequestOrigin;

use crate::app::{App, Shared, own_form, with_cookie};
use crate::choose;
use crate::cookies;
use crate::flow::{self, Chosen, Flow};
use crate::login_request::{Destination, LoginRequest, ProviderHint};
use crate::page;
use crate::parameters::Parameters;
use crate::problem::Problem;
use crate::secrets::FlowSecret;

/// `GET /oauth`: straight to the provider if the request names one of the operator's, else to the page that offers them.
///
/// The provider of an organization is whatever address its administrator entered: a link must not lead the browser
/// there before the person has read the address.
pub(crate) async fn start(State(app): Shared, RawQuery(query): RawQuery) -> Result<Response, Problem> {
    let parameters = Parameters::read(query.unwrap_or_default().as_bytes())?;
    let request = request(&app, &parameters).await?;
    let Some(choice) = named(&app, &parameters).await? else {
        return choose::page(&app, &parameters, &request, None).await;
    };
    let provider = app.parts.people.provider(&choice).await?;
    let begun = begin(&app, request, &provider).await?;
    let response = match &provider.source {
        Source::Operator { .. } => {
            let mut response = StatusCode::SEE_OTHER.into_response();
            response.headers_mut().insert(header::LOCATION, begun.location()?);
            response
        }
        Source::Organization { .. } => choose::leaving(&provider, &begun.url)?,
    };
    Ok(with_cookie(response, begun.cookie))
}

/// `POST /oauth/organization`: the person typed their organization's name.
pub(crate) async fn organization(
    State(app): Shared,
    Extension(_): Extension<RequestOrigin>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, Problem> {
    let parameters = own_form(&headers, &body)?;
    let request = request(&app, &parameters).await?;
    let Some(name) = parameters.one(choose::NAME)?.map(str::trim).filter(|name| !name.is_empty()) else {
        return choose::page(&app, &parameters, &request, Some("Enter the name of your organization.")).await;
    };
    let provider = match app.parts.people.provider(&Choice::Organization(name.to_owned())).await {
        Ok(provider) => provider,
        Err(error) if error.code() == Code::NotFound => {
            let text = "There is no verified organization of this name that has a provider of its own. Use the link that an owner of yours gave you, or ask the operator to verify the organization.";
            let mut response = choose::page(&app, &parameters, &request, Some(text)).await?;
            *response.status_mut() = StatusCode::NOT_FOUND;
            return Ok(response);
        }
        Err(error) => return Err(error.into()),
    };
    let begun = begin(&app, request, &provider).await?;
    let text = format!("You sign in at {} and come back here afterwards.", provider.issuer);
    Ok(with_cookie(page::moving_on("Continue at your provider", &begun.url, &text), begun.cookie))
}

/// The login request of the query itself, or of the device whose ticket it carries.
async fn request(app: &App, parameters: &Parameters) -> Result<LoginRequest, Problem> {
    let request = match parameters.one(crate::activate::TICKET)? {
        Some(ticket) => crate::activate::request(app, ticket).await?,
        None => LoginRequest::read(parameters, &app.parts.redirects, &app.settings().api_audience)?,
    };
    if let Destination::Console(path) = &request.destination {
        app.console_with(path)?;
    }
    Ok(request)
}

/// The one provider that the parameters name; absent if the person has to choose.
async fn named(app: &App, parameters: &Parameters) -> Result<Option<Choice>, Problem> {
    let request = match ProviderHint::read(parameters)? {
        ProviderHint::One(choice) => return Ok(Some(choice)),
        ProviderHint::Nothing => return Ok(None),
        ProviderHint::Any => None,
        ProviderHint::Client(id) => Some(id),
    };
    let ids: Vec<String> = app.parts.people.operator_providers().await?.into_iter().filter_map(operator_id).collect();
    Ok(match (request, ids.as_slice()) {
        (None, [only]) => Some(Choice::Operator(only.clone())),
        (Some(id), ids) if ids.contains(&id) => Some(Choice::Operator(id)),
        _ => None,
    })
}

/// A flow that has begun.
struct Begun {
    url: String,
    cookie: Option<HeaderValue>,
}

impl Begun {
    fn location(&self) -> Result<HeaderValue, Problem> {
        HeaderValue::from_str(&self.url)
            .map_err(|_| Error::internal("the provider's address does not fit into a header").into())
    }
}

async fn begin(app: &App, login: LoginRequest, provider: &Provider) -> Result<Begun, Problem> {
    let secret = FlowSecret::new(app.draw());
    let vault = app.vault();
    let request = AuthorizationRequest {
        redirect_uri: &app.callback_url(),
        state: &secret.state(vault),
        nonce: &secret.nonce(vault),
        code_challenge: &secret.challenge(vault),
        login_hint: None,
        screen_hint: login.screen_hint.as_deref(),
    };
    let url = app.parts.people.authorization_url(provider, &request).await?;
    let flow = Flow { request: login, provider: Chosen::of(provider), upstream: None };
    flow::put(app.db(), vault, &secret, &flow, app.now()).await?;
    Ok(Begun { url, cookie: flow_cookie(app, &secret) })
}

/// The header that gives the browser the flow's secret.
pub(crate) fn flow_cookie(app: &App, secret: &FlowSecret) -> Option<HeaderValue> {
    app.cookies.set(&cookies::flow(app.cookies, &secret.id(app.vault())), &secret.text(), flow::SECONDS)
}

/// The id of one of the operator's providers.
pub(crate) fn operator_id(provider: Provider) -> Option<String> {
    match provider.source {
        Source::Operator { id } => Some(id),
        Source::Organization { .. } => None,
    }
}

/// What a page says of where the result goes.
pub(crate) fn purpose(exit: &Destination) -> &'static str {
    match exit {
        Destination::Page => "Sign in to manage your groups.",
        Destination::Console(_) => "Sign in to the console.",
        Destination::Redirect(_) => "A program asks you to sign in.",
        Destination::Headless(_) => "A terminal asks you to sign in.",
        Destination::Device { .. } => "A device asks you to sign in.",
    }
}
