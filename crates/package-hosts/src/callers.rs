//! Who asks: a token of this server for libraries, or a user name and a password that are exchanged for one.

use std::sync::Arc;

use axum::http::{HeaderMap, StatusCode};
use bowline_authn::crypto::random_bytes;
use bowline_core::{Error, Reason, Uidp};
use bowline_formats::percent;
use bowline_fronts::{Presented, presented};
use bowline_identity::{Credential, Upload, is_publishing_token};
use bowline_pipeline::{ANONYMOUS, Principal, RequestOrigin, Surface};

use crate::PackageHosts;
use crate::answers::Refused;

/// Someone at the front.
pub(crate) struct Caller {
    pub(crate) principal: Principal,
    /// Whether they came with a token of trusted publishing.
    pub(crate) is_publisher: bool,
}

impl PackageHosts {
    /// Who sends these headers to a group; without one, to the caller's organization.
    pub(crate) async fn caller(
        &self,
        headers: &HeaderMap,
        origin: &RequestOrigin,
        scope: Option<&str>,
    ) -> Result<Caller, Refused> {
        let unreadable =
            |error: bowline_fronts::UnreadableAuthorization| Refused::new(StatusCode::UNAUTHORIZED, error.to_string());
        let (mut named, mut is_publisher) = (None, false);
        let token: Arc<str> = match presented(headers).map_err(unreadable)? {
            Presented::Nothing => return Err(self.anonymous(origin)),
            Presented::Bearer(token) if is_publishing_token(&token) => {
                is_publisher = true;
                self.publisher(("", &token), origin, scope).await?
            }
            Presented::Basic { user, password } if is_publishing_token(&password) => {
                is_publisher = true;
                self.publisher((&user, &password), origin, scope).await?
            }
            Presented::Bearer(token) => token.into(),
            Presented::Basic { user, password } if self.verified(&password).is_err() => {
                let credential = Credential { user: identity(&user), password };
                self.exchange.token(&credential, origin).await.map_err(refused)?
            }
            // Publishers send a minted token under any name that is not an identity's, such as `__token__`.
            Presented::Basic { user, password } => {
                named = Some(identity(&user)).filter(|user| Uidp::is_valid(user));
                password.into()
            }
        };
        let principal = self.verified(&token).or_else(|error| {
            // Counted like an exchange, although none began.
            self.pipeline.limits.count_address(Surface::Packages, Some(origin.address))?;
            Err(error)
        })?;
        if named.is_some_and(|user| user != principal.subject()) {
            let text = "the token is of another identity than the user name";
            return Err(Refused::new(StatusCode::UNAUTHORIZED, text));
        }
        if principal.subject() == ANONYMOUS {
            return Err(self.anonymous(origin));
        }
        self.pipeline.limits.count_principal(Surface::Packages, principal.subject())?;
        Ok(Caller { principal, is_publisher })
    }

    /// The token of the identity that publishes with a publishing token at a group. Uploads are few: it is not cached, so that a
    /// change of the identity holds at once.
    async fn publisher(
        &self,
        (user, token): (&str, &str),
        origin: &RequestOrigin,
        scope: Option<&str>,
    ) -> Result<Arc<str>, Refused> {
        self.pipeline.limits.count_address(Surface::Packages, Some(origin.address))?;
        let scope = scope.ok_or_else(|| {
            let text = "a token of trusted publishing is of no organization: put ~ and the path of a group, such as ~acme:web, \
                        after the word of the ecosystem in the address";
            Refused::new(StatusCode::FORBIDDEN, text)
        })?;
        let upload = Upload {
            token,
            group: self.hosting.group_at(scope).await?,
            identity: Uidp::parse(&identity(user)).ok(),
            request_id: &origin.request_id,
            now: self.pipeline.clock.now(),
            id: random_bytes::<16>(),
        };
        Ok(self.issuing.publisher_token(upload).await.map_err(refused)?.into())
    }

    fn anonymous(&self, origin: &RequestOrigin) -> Refused {
        match self.pipeline.limits.count_address(Surface::Packages, Some(origin.address)) {
            Err(error) => error.into(),
            Ok(()) => Refused::new(
                StatusCode::UNAUTHORIZED,
                "credentials are required: the UIDP of an identity as the user name, and a pull token or a token of its \
                 issuer as the password",
            ),
        }
    }

    fn verified(&self, token: &str) -> Result<Principal, Error> {
        let (settings, now) = (&self.pipeline.settings, self.pipeline.clock.now());
        self.pipeline.authenticator.authenticate(Some(token), &[&settings.libraries_audience], now)
    }
}

/// The UIDP that a user name stands for. pip takes no slash in user names, so `_` and `%2F` stand for it too; neither is
/// part of any UIDP.
fn identity(user: &str) -> String {
    let decoded = percent::decode(user).map_or_else(|| user.to_owned(), Into::into);
    let slashed = decoded.replace('_', "/");
    if Uidp::is_valid(&slashed) { slashed } else { user.to_owned() }
}

/// Why no token is issued: the exchange gives details only to holders of a valid token.
fn refused(error: Error) -> Refused {
    match error.reason() {
        Reason::NotFound | Reason::FailedPrecondition => Refused::new(StatusCode::FORBIDDEN, error.message()),
        Reason::InvalidArgument => Refused::new(StatusCode::UNAUTHORIZED, error.message()),
        _ => error.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slash_in_a_user_name_has_three_spellings() {
        let (root, child) = ("0123456789abcdef0123456789abcdef01234567", "0123456789abcdef");
        let uidp = format!("{root}/{child}");
        for user in [uidp.clone(), format!("{root}_{child}"), format!("{root}%2F{child}"), format!("{root}%2f{child}")]
        {
            assert_eq!(identity(&user), uidp, "{user}");
        }
        for user in ["__token__", "a_b", "100%"] {
            assert_eq!(identity(user), user);
        }
    }
}
