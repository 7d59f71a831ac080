//! Publishing tokens: what trusted publishing hands out for the token of a CI system.
//!
//! Publishers get them at addresses that name no group, and any organization may trust any workload. A publishing token
//! therefore stands for no identity yet: it repeats what the verified token said, and the exchange finds the identity in the
//! organization that the upload is addressed to.

use bowline_authn::claims::{AccessClaims, TokenClass, mint, verify_own};
use bowline_authn::jwt::{Presented, parse_unverified};
use bowline_authn::matching::ClaimMatch;
use bowline_core::{CapabilitySet, Error, Micros, Result, Uidp, hex};
use bowline_pipeline::Narrowing;
use serde_json::Value;

use super::candidates::Basis;
use super::exchange::{Exchange, actor, parse_presented};
use super::issuing::{self, Proof, require_active, seconds};
use super::params::ExchangeParams;
use super::{narrowing, refusals};
use crate::access::load_grants;
use crate::iam::identities::{self, IdentityRow};

/// How long one lives, in seconds: as long as those of PyPI.
const LIFETIME: i64 = 900;
/// Maximum number of identities that a token is compared with.
const CANDIDATES: usize = 100;

/// A publishing token.
pub struct PublishingToken {
    pub token: String,
    /// Seconds since 1970, in UTC.
    pub expires_at: i64,
}

/// Whether a text is a publishing token by its own word.
pub fn is_publishing_token(token: &str) -> bool {
    parse_unverified(token).is_ok_and(|presented| is_of_publishing(&presented))
}

pub(super) fn is_of_publishing(presented: &Presented) -> bool {
    presented.header.typ.as_deref() == Some(TokenClass::Publishing.typ())
}

/// PERMISSION_DENIED: no identity of the organization matches the token. It says the same where the group does not exist.
pub fn no_publisher() -> Error {
    Error::permission_denied(
        "Permission denied: the group does not exist, or no identity of its organization matches issuer, subject, audience \
         and claims of the token; create one with that issuer and subject, and give it a role that publishes packages",
    )
}

impl Exchange {
    /// Verifies a token of a CI system, and repeats what it says in a publishing token with these capabilities. `id` is drawn at
    /// random.
    ///
    /// # Errors
    /// UNAUTHENTICATED, PERMISSION_DENIED if no identity trusts exactly its issuer, or UNAVAILABLE if the issuer's keys cannot
    /// be read.
    pub async fn publishing_token(
        &self,
        token: &str,
        capabilities: CapabilitySet,
        now: Micros,
        id: [u8; 16],
    ) -> Result<PublishingToken> {
        let presented = parse_presented(token)?;
        let issuer = presented.issuer.clone();
        let read =
            self.db.read(move |tx| Box::pin(async move { identities::trusts_issuer_exactly(tx, &issuer).await }));
        // Before any request is sent.
        if presented.issuer == self.settings.auth_url || !read.await? {
            return Err(refusals::unknown_issuer(&presented.issuer));
        }
        self.verify_by_discovery(token, &presented, now).await?;
        let keys = self.authenticator.keys();
        let key = keys.ring.signing_key(seconds(now)).ok_or_else(issuing::no_key)?;
        let left = Narrowing { capabilities: Some(capabilities), scopes: Vec::new() };
        let expires_at = seconds(now).saturating_add(LIFETIME);
        let claims = AccessClaims {
            iss: self.settings.auth_url.clone(),
            sub: presented.subject.clone(),
            aud: vec![self.settings.libraries_audience.clone()],
            exp: expires_at,
            iat: seconds(now),
            jti: hex(&id),
            narrow: narrowing::to_claim(&left),
            upstream: Some(Value::Object(presented.claims)),
            ..AccessClaims::default()
        };
        Ok(PublishingToken { token: mint(TokenClass::Publishing, &claims, key), expires_at })
    }

    /// Proves the caller by a publishing token: the identity of the group's organization that the repeated claims match.
    pub(super) async fn prove_publishing(
        &self,
        token: &str,
        presented: &Presented,
        requested: &ExchangeParams,
        now: Micros,
    ) -> Result<Proof> {
        let keys = self.authenticator.keys();
        let audience = self.settings.libraries_audience.as_str();
        let (issuer, class) = (&self.settings.auth_url, TokenClass::Publishing);
        let claims = verify_own(token, class, &keys.verification, issuer, &[audience], seconds(now));
        let claims = claims.map_err(refusals::token)?;
        if requested.audiences != [audience] {
            return Err(refusals::wider_audience());
        }
        let (Some(Value::Object(upstream)), Some(narrow)) = (claims.upstream, claims.narrow) else {
            return Err(Error::internal("a publishing token without the claims of what it repeats"));
        };
        let narrowing = narrowing::intersect(&narrowing::from_claim(&narrow)?, &requested.narrowing)?;
        let [group] = &narrowing.scopes[..] else {
            return Err(Error::invalid_field("scopes", "must be the one group whose packages are published"));
        };
        let repeated = Presented::of_claims(presented.header.clone(), upstream).map_err(refusals::token)?;
        let needed = narrowing.capabilities.unwrap_or(CapabilitySet::EMPTY);
        let (row, expected) = self.publisher(&repeated, group, needed).await?;
        require_active(&row, now)?;
        if requested.identity.as_ref().is_some_and(|identity| *identity != row.uid) {
            return Err(refusals::mismatch("a publishing token for another identity"));
        }
        Ok(Proof {
            basis: Some(Basis::of(&row)?),
            subject: row.uid,
            draft: AccessClaims { exp: claims.exp, act: Some(actor(&repeated, &expected)), ..AccessClaims::default() },
            narrowing,
        })
    }

    /// The identity of the group's organization that the claims match. Of several it is the first that may publish there, those
    /// with the very subject before those with a pattern: each of them is trusted by the organization.
    async fn publisher(
        &self,
        presented: &Presented,
        group: &Uidp,
        needed: CapabilitySet,
    ) -> Result<(IdentityRow, ClaimMatch)> {
        let audiences = self.publishing_audiences();
        let mut matching = Vec::new();
        for row in self.candidates(presented, group).await? {
            let trust = Basis::of(&row)?.trust()?;
            let matcher = self.matchers.get(row.uid.as_str(), &trust.expected)?;
            if matcher.matches(presented, &audiences).is_ok() {
                matching.push((row, trust.expected));
            }
        }
        let uids: Vec<Uidp> = matching.iter().map(|(row, _)| row.uid.clone()).collect();
        let Some(at) = self.first_that_may(uids, group, needed).await? else {
            let (issuer, subject) = (&presented.issuer, &presented.subject);
            tracing::info!(
                issuer,
                subject,
                group = group.as_str(),
                "exchange refused: no identity may publish with it"
            );
            return Err(no_publisher());
        };
        Ok(matching.swap_remove(at))
    }

    /// The identities that trust the issuer, and the subject or a pattern.
    async fn candidates(&self, presented: &Presented, group: &Uidp) -> Result<Vec<IdentityRow>> {
        let (issuer, subject) = (presented.issuer.clone(), presented.subject.clone());
        let organization = group.root_str().to_owned();
        let read = self.db.read(move |tx| {
            Box::pin(async move {
                let limit = CANDIDATES as i64 + 1;
                identities::find_publishers(tx, (&issuer, &subject), &organization, limit).await
            })
        });
        let rows = read.await?;
        if rows.len() > CANDIDATES { Err(refusals::many_publishers(CANDIDATES)) } else { Ok(rows) }
    }

    /// The place of the first identity that holds the capabilities at the group; of the first of all if none does, which learns
    /// at the upload what it lacks. Absent if there is no identity.
    async fn first_that_may(&self, uids: Vec<Uidp>, group: &Uidp, needed: CapabilitySet) -> Result<Option<usize>> {
        let group = group.clone();
        let read = self.db.read(move |tx| {
            let (uids, group) = (uids.clone(), group.clone());
            Box::pin(async move {
                for (at, uid) in uids.iter().enumerate() {
                    let grants = load_grants(tx, uid.as_str(), None).await?;
                    if grants.is_some_and(|grants| grants.allows(group.as_str(), &needed)) {
                        return Ok::<_, Error>(Some(at));
                    }
                }
                Ok((!uids.is_empty()).then_some(0))
            })
        });
        read.await
    }

    /// The `aud` values that a repeated token may have if the identity names none: the usual ones, and what npm requests.
    fn publishing_audiences(&self) -> Vec<String> {
        let after_scheme = self.settings.libraries_audience.split_once("://").map_or("", |(_, rest)| rest);
        let authority = after_scheme.split('/').next().unwrap_or_default();
        let host =
            authority.rsplit_once(':').filter(|(_, port)| !port.ends_with(']')).map_or(authority, |(host, _)| host);
        let mut audiences = self.default_audiences().to_vec();
        audiences.push(format!("npm:{host}"));
        audiences
    }
}
