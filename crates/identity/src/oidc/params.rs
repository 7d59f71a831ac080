//! Parameters of an exchange, validated before the token is looked at.

use bowline_contract::Contract;
use bowline_contract::v1::oidc::ExchangeRequest;
use bowline_core::{Error, Result, Uidp, UidpError};
use bowline_pipeline::{Narrowing, Settings};

use super::{audiences, narrowing};

/// The request in typed form.
#[derive(Clone, Debug)]
pub(crate) struct ExchangeParams {
    pub(crate) audiences: Vec<String>,
    /// The identity to assume; absent to find it by issuer and subject.
    pub(crate) identity: Option<Uidp>,
    /// The organization's provider that the person signed in with.
    pub(crate) provider: Option<Uidp>,
    pub(crate) narrowing: Narrowing,
}

impl ExchangeParams {
    /// Reads the request.
    ///
    /// # Errors
    /// INVALID_ARGUMENT naming what is wrong with it.
    #[expect(deprecated, reason = "the single scope is still accepted, together with the list")]
    pub(crate) fn read(request: &ExchangeRequest, settings: &Settings, contract: &Contract) -> Result<ExchangeParams> {
        let audiences = audiences::requested(&request.aud, &settings.audiences())?;
        let identity = uidp("identity", &request.identity)?;
        let narrowing = narrowing::requested(&request.cap, &request.scope, &request.scopes, contract.capabilities())?;
        let provider = uidp("identity_provider", &request.identity_provider)?;
        Ok(ExchangeParams { audiences, identity, provider, narrowing })
    }
}

fn uidp(field: &str, text: &str) -> Result<Option<Uidp>> {
    if text.is_empty() {
        return Ok(None);
    }
    let refused = |UidpError| Error::invalid_field(field, format!("{field} {UidpError}"));
    Uidp::parse(text).map(Some).map_err(refused)
}
