//! Whether an organization has a provider of its own: command lines ask before they open a browser.

use axum::Json;
use axum::extract::{RawQuery, State};

use crate::app::Shared;
use crate::grant::Refusal;
use crate::parameters::Parameters;

/// `GET /orgcheck?name=`: `true` or `false`, to anybody.
pub(crate) async fn check(State(app): Shared, RawQuery(query): RawQuery) -> Result<Json<bool>, Refusal> {
    let parameters = Parameters::read(query.unwrap_or_default().as_bytes())?;
    let name = parameters.required("name")?;
    Ok(Json(app.parts.people.organization_has_provider(name).await?))
}
