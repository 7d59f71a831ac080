//! What an exchange asks for, judged before anybody looks at the token.

use bowline_contract::Contract;
use bowline_contract::v1::oidc::ExchangeRequest;
use bowline_core::{Error, Result, Uidp, UidpError};
use bowline_pipeline::{Narrowing, Settings};

use super::{audiences, narrowing, refusals};

/// The request in our own types.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    pub(super) audiences: Vec<String>,
    /// The identity to assume; absent to find it by issuer and subject.
    pub(super) identity: Option<Uidp>,
    pub(super) narrowing: Narrowing,
}

impl Asked {
    /// Reads the request.
    ///
    /// # Errors
    /// INVALID_ARGUMENT naming what is wrong with it.
    #[expect(deprecated, reason = "the single scope is still accepted, together with the list")]
    pub(super) fn read(request: &ExchangeRequest, settings: &Settings, contract: &Contract) -> Result<Asked> {
        let audiences = audiences::requested(&request.aud, &settings.audiences())?;
        let identity = uidp("identity", &request.identity)?;
        let narrowing = narrowing::requested(&request.cap, &request.scope, &request.scopes, contract.capabilities())?;
        // Providers are not stored yet, so that nobody has signed in through one.
        if uidp("identity_provider", &request.identity_provider)?.is_some() {
            return Err(refusals::no_identity("identity_provider"));
        }
        Ok(Asked { audiences, identity, narrowing })
    }
}

fn uidp(field: &str, text: &str) -> Result<Option<Uidp>> {
    if text.is_empty() {
        return Ok(None);
    }
    let refused = |UidpError| Error::invalid_field(field, format!("{field} {UidpError}"));
    Uidp::parse(text).map(Some).map_err(refused)
}
