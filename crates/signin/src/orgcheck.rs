//! Whether an organization has a provider of its own: command lines ask before they open a browser.

use axum::extract::{RawQuery, State};
use axum::response::Response;

use crate::app::Shared;
use crate::grant::{Refusal, answer};
use crate::parameters::Parameters;

/// `GET /orgcheck?name=`: `true` or `false`, to anyone.
pub(crate) async fn check(State(app): Shared, RawQuery(query): RawQuery) -> Result<Response, Refusal> {
    let parameters = Parameters::read(query.unwrap_or_default().as_bytes())?;
    let name = parameters.required("name")?;
    Ok(answer(&app.parts.people.organization_has_provider(name).await?.into()))
}
