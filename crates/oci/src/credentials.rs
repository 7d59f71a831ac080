//! Who asks: a token of this server for the registry, or a user name and a password that are exchanged for one.

use std::sync::Arc;

use axum::http::HeaderMap;
use bowline_core::{Error, Reason};
use bowline_fronts::{Presented, UnreadableAuthorization, presented};
use bowline_identity::{Credential, Issued};
use bowline_pipeline::{ANONYMOUS, Principal, RequestOrigin, Surface};
use bowline_registry::content::RefusalCode;

use crate::Distribution;
use crate::answer::Refused;

/// Someone at the front.
pub(crate) struct Known {
    pub(crate) principal: Principal,
    /// Whether anything was presented, be it a token that everyone gets.
    pub(crate) has_credential: bool,
}

impl From<UnreadableAuthorization> for Refused {
    fn from(unreadable: UnreadableAuthorization) -> Refused {
        Refused::new(RefusalCode::Unauthorized, unreadable.to_string())
    }
}

impl Distribution {
    /// Who sends these headers.
    pub(crate) async fn principal(&self, headers: &HeaderMap, origin: &RequestOrigin) -> Result<Known, Refused> {
        let token: Arc<str> = match presented(headers)? {
            Presented::Nothing => {
                self.pipeline.limits.count_address(Surface::Registry, Some(origin.address))?;
                return Ok(Known { principal: Principal::Anonymous, has_credential: false });
            }
            Presented::Bearer(token) => token.into(),
            Presented::Basic { user, password } => {
                self.exchange.token(&Credential { user, password }, origin).await.map_err(refused)?
            }
        };
        let principal = self.verified(&token)?;
        if principal.subject() == ANONYMOUS {
            self.pipeline.limits.count_address(Surface::Registry, Some(origin.address))?;
            return Ok(Known { principal: Principal::Anonymous, has_credential: true });
        }
        self.pipeline.limits.count_principal(Surface::Registry, principal.subject())?;
        Ok(Known { principal, has_credential: true })
    }

    /// The principal of a token. A token of this server for another front is rejected with an error that says
    /// so.
    fn verified(&self, token: &str) -> Result<Principal, Refused> {
        let (settings, now) = (&self.pipeline.settings, self.pipeline.clock.now());
        let authenticate = |audiences: &[&str]| self.pipeline.authenticator.authenticate(Some(token), audiences, now);
        authenticate(&[&settings.registry_audience]).map_err(|error| {
            let is_for_another_door = authenticate(&settings.audiences()).is_ok();
            match Refused::from(error) {
                Refused { error: bowline_registry::content::RegistryError::Refused(refusal), .. }
                    if is_for_another_door =>
                {
                    Refused::new(RefusalCode::Denied, refusal.message)
                }
                refused => refused,
            }
        })
    }

    /// Exchanges a credential for a token of this server for the registry.
    pub(crate) async fn exchanged(&self, credential: &Credential, origin: &RequestOrigin) -> Result<Issued, Refused> {
        self.exchange.exchange(credential, origin).await.map_err(refused)
    }
}

/// Why no token is issued: the exchange gives details only to holders of a valid token.
fn refused(error: Error) -> Refused {
    match error.reason() {
        Reason::PermissionDenied | Reason::NotFound | Reason::FailedPrecondition => {
            Refused::new(RefusalCode::Denied, error.message())
        }
        Reason::InvalidArgument => Refused::new(RefusalCode::Unauthorized, error.message()),
        _ => error.into(),
    }
}
