//! Publishing tokens: what trusted publishing hands out for the token of a CI system.
//!
//! Publishers get them at addresses that name no group, and any organization may trust any workload. A publishing token
//! therefore stands for no identity yet: it repeats what the verified token said, and the upload is that of an identity of
//! the organization whose group its address names.

use std::sync::Arc;

use bowline_authn::claims::{AccessClaims, TokenClass, mint, verify_own};
use bowline_authn::jwt::{Presented, parse_unverified};
use bowline_authn::matching::ClaimMatch;
use bowline_contract::Method as _;
use bowline_contract::v1::oidc::rpc::security_token_service::Exchange as ExchangeMethod;
use bowline_core::{CapabilitySet, Error, Micros, Result, UidRange, Uidp, hex};
use bowline_pipeline::Narrowing;
use serde_json::Value;

use super::candidates::{Basis, Keys};
use super::exchange::{Exchange, actor, parse_presented};
use super::issuing::{self, Cause, Proof, require_active, seconds};
use super::matchers::patterns;
use super::{audiences, narrowing, refusals};
use crate::access::load_grants;
use crate::iam::identities::{self, IdentityRow};

/// How long one lives, in seconds: as long as those of PyPI.
const LIFETIME: i64 = 900;
/// Maximum bytes of one: it travels in a header.
const MAX_BYTES: usize = 16 << 10;
/// Maximum number of identities that a token is compared with, of those with its very subject and of those with a pattern; where
/// there are more, publishers name one.
const CANDIDATES: i64 = 50;
/// Maximum number of patterns of all of them: each takes time to compile.
const PATTERNS: usize = 256;

/// What publishers upload with for fifteen minutes.
pub struct PublishingToken {
    pub token: String,
    /// Seconds since 1970, in UTC.
    pub expires_at: i64,
}

/// An upload with a publishing token.
pub struct Upload<'a> {
    pub token: &'a str,
    /// The group that its address names; absent if no group has that name.
    pub group: Option<Uidp>,
    /// The identity that the user name names, if it does.
    pub identity: Option<Uidp>,
    pub request_id: &'a str,
    pub now: Micros,
    /// Id of the token, drawn at random.
    pub id: [u8; 16],
}

/// Whether a text is a publishing token by its own word.
pub fn is_publishing_token(token: &str) -> bool {
    let class = |presented: Presented| presented.header.typ.as_deref() == Some(TokenClass::Publishing.typ());
    parse_unverified(token).is_ok_and(class)
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
            return Err(refusals::unknown_issuer());
        }
        self.verify_by_discovery(token, &presented, now).await?;
        let keys = self.authenticator.keys();
        let key = keys.ring.signing_key(seconds(now)).ok_or_else(issuing::no_key)?;
        let (jti, expires_at) = (hex(&id), seconds(now).saturating_add(LIFETIME));
        let left = Narrowing { capabilities: Some(capabilities), scopes: Vec::new() };
        let claims = AccessClaims {
            iss: self.settings.auth_url.clone(),
            // A reader that does not look at the class must take it for no identity, and for no token of a front.
            sub: format!("publishing:{jti}"),
            aud: vec![self.publishing_audience()],
            exp: expires_at,
            iat: seconds(now),
            narrow: narrowing::to_claim(&left),
            upstream: Some(Value::Object(presented.claims)),
            jti,
            ..AccessClaims::default()
        };
        let token = mint(TokenClass::Publishing, &claims, key);
        if token.len() > MAX_BYTES || parse_unverified(&token).is_err() {
            return Err(refusals::too_long(MAX_BYTES));
        }
        tracing::info!(jti = claims.jti, "publishing token issued");
        Ok(PublishingToken { token, expires_at })
    }

    /// An access token for packages, of the identity that publishes with a publishing token at a group: one of the group's
    /// organization that the repeated claims match and that has the capabilities there. Those with the very subject come
    /// before those with a pattern. It ends with the publishing token.
    ///
    /// # Errors
    /// UNAUTHENTICATED, or PERMISSION_DENIED where there is no such group or identity.
    pub async fn publisher_token(&self, upload: Upload<'_>) -> Result<String> {
        let (keys, now) = (self.authenticator.keys(), upload.now);
        let (issuer, audience) = (&self.settings.auth_url, self.publishing_audience());
        let verified =
            verify_own(upload.token, TokenClass::Publishing, &keys.verification, issuer, &[&audience], seconds(now));
        let claims = verified.map_err(refusals::token)?;
        let (Some(Value::Object(upstream)), Some(narrow)) = (claims.upstream, claims.narrow) else {
            return Err(Error::internal("a publishing token without the claims that it repeats"));
        };
        let header = parse_unverified(upload.token).map_err(refusals::token)?.header;
        let repeated = Arc::new(Presented::of_claims(header, upstream).map_err(refusals::token)?);
        // Only now: what is there is not said to someone without a good token.
        let group = upload.group.ok_or_else(|| refusals::no_publisher("no such group"))?;
        let narrowing = Narrowing { scopes: vec![group.clone()], ..narrowing::from_claim(&narrow)? };
        let needed = narrowing.capabilities.unwrap_or(CapabilitySet::EMPTY);
        let matching = self.matching(repeated.clone(), &group, upload.identity).await?;
        let (row, expected) = self.first_that_may(matching, &group, needed).await?;
        require_active(&row, now)?;
        let proof = Proof {
            basis: Some(Basis::of(&row)?),
            subject: row.uid,
            draft: AccessClaims { exp: claims.exp, act: Some(actor(&repeated, &expected)), ..AccessClaims::default() },
            narrowing,
        };
        let method = ExchangeMethod::FULL_NAME.to_owned();
        let cause = Cause { now, request_id: upload.request_id.to_owned(), method, id: upload.id };
        let audiences = vec![self.settings.libraries_audience.clone()];
        Ok(self.issue(cause, audiences, proof).await?.token)
    }

    /// No front accepts this one.
    fn publishing_audience(&self) -> String {
        format!("{}/publishing", self.settings.auth_url.trim_end_matches('/'))
    }

    /// The identities with a role at the group, or above it, that the claims match; only the named one, if one is.
    async fn matching(
        &self,
        presented: Arc<Presented>,
        group: &Uidp,
        named: Option<Uidp>,
    ) -> Result<Vec<(IdentityRow, ClaimMatch)>> {
        let (claims, group) = (presented.clone(), group.clone());
        let read = self.db.read(move |tx| {
            let (claims, group, named) = (claims.clone(), group.clone(), named.clone());
            Box::pin(async move {
                let (organization, groups) = (group.root(), group.self_and_ancestors().collect::<Vec<_>>());
                let mut rows = Vec::new();
                for subject in [claims.subject.as_str(), ""] {
                    let by = (claims.issuer.as_str(), subject);
                    let within = match &named {
                        Some(named) => UidRange::single(named.as_str()),
                        None => UidRange::below(organization.as_str()),
                    };
                    rows.extend(identities::find_with_roles(tx, &within, by, &groups, CANDIDATES).await?);
                }
                Ok::<_, Error>(rows)
            })
        });
        let rows = read.await?;
        let mut audiences = self.default_audiences().to_vec();
        audiences.push(audiences::of_npm(&self.settings.libraries_audience));
        // Patterns are others' work: they are compiled away from the threads that serve.
        let compared = tokio::task::spawn_blocking(move || compared(rows, &presented, &audiences));
        compared.await.map_err(Error::internal)?
    }

    /// The first identity that holds the capabilities at the group.
    async fn first_that_may(
        &self,
        mut matching: Vec<(IdentityRow, ClaimMatch)>,
        group: &Uidp,
        needed: CapabilitySet,
    ) -> Result<(IdentityRow, ClaimMatch)> {
        let uids: Vec<Uidp> = matching.iter().map(|(row, _)| row.uid.clone()).collect();
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
                Ok(None)
            })
        });
        let at = read.await?.ok_or_else(|| refusals::no_publisher("no identity matches and may publish"))?;
        Ok(matching.swap_remove(at))
    }
}

/// Those of some identities that the claims match.
fn compared(
    rows: Vec<IdentityRow>,
    presented: &Presented,
    audiences: &[String],
) -> Result<Vec<(IdentityRow, ClaimMatch)>> {
    let (mut matching, mut compiled) = (Vec::new(), 0);
    for row in rows {
        let trust = Basis::of(&row)?.trust()?;
        compiled += patterns(&trust.expected);
        if compiled > PATTERNS {
            break;
        }
        let matcher = trust.expected.compile().map_err(Error::internal)?;
        if trust.keys == Keys::Discovered && matcher.matches(presented, audiences).is_ok() {
            matching.push((row, trust.expected));
        }
    }
    Ok(matching)
}
