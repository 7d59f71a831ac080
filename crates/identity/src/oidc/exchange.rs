use std::sync::Arc;

use bowline_authn::TokenError;
use bowline_authn::aws::AwsSts;
use bowline_authn::claims::{AccessClaims, TokenClass, mint, verify_own};
use bowline_authn::discovery::IssuerKeys;
use bowline_authn::jwks::Jwks;
use bowline_authn::jwt::{LEEWAY, Presented, check_times, parse_unverified, verify_signature};
use bowline_authn::matching::{ClaimMatch, Compiled};
use bowline_contract::Contract;
use bowline_contract::v1::oidc::{ExchangeRequest, RawToken};
use bowline_core::{Error, Micros, Result, Uidp};
use bowline_pipeline::{Authenticator, Narrowing, Open, Settings};
use bowline_store::Db;
use serde_json::{Map, Value, json};

use super::aws::may_be_signed_request;
use super::candidates::{Basis, Keys, PERSON, pick};
use super::issuing::{self, Cause, Issuance, Proof, Standing, require_active, seconds};
use super::last_seen::LastSeen;
use super::matchers::Matchers;
use super::params::ExchangeParams;
use super::{audiences, narrowing, refusals};
use crate::iam::identities::{self, IdentityRow};
use crate::people::{ConfiguredProvider, providers};

/// The token exchange, with everything it needs.
pub struct Exchange {
    pub(super) db: Db,
    issuer_keys: Arc<IssuerKeys>,
    pub(super) authenticator: Arc<Authenticator>,
    pub(super) aws: AwsSts,
    operator_providers: Vec<ConfiguredProvider>,
    pub(super) settings: Arc<Settings>,
    contract: Arc<Contract>,
    default_audiences: Vec<String>,
    matchers: Matchers,
    last_seen: LastSeen,
}

impl Exchange {
    /// An exchange that mints with the keys of `authenticator`.
    pub fn new(
        db: Db,
        issuer_keys: Arc<IssuerKeys>,
        aws: AwsSts,
        operator_providers: Vec<ConfiguredProvider>,
        authenticator: Arc<Authenticator>,
        settings: Arc<Settings>,
        contract: Arc<Contract>,
    ) -> Exchange {
        let default_audiences = audiences::defaults(&settings.auth_url);
        Exchange {
            db,
            issuer_keys,
            aws,
            operator_providers,
            authenticator,
            settings,
            contract,
            default_audiences,
            matchers: Matchers::default(),
            last_seen: LastSeen::default(),
        }
    }

    /// Writes when identities were last seen. Call it every few seconds, and once at the end.
    pub async fn flush_last_seen(&self) {
        if let Err(error) = self.last_seen.flush(&self.db).await {
            tracing::warn!(%error, "when identities were last seen could not be written; trying again later");
        }
    }

    pub(super) async fn exchange(&self, call: &Open<ExchangeRequest>, requested: ExchangeParams) -> Result<RawToken> {
        let token = call.bearer().filter(|token| !token.is_empty()).ok_or_else(refusals::no_token)?;
        if may_be_signed_request(token) {
            let proof = self.prove_aws(token, &requested, call.now()).await?;
            return self.issue(Cause::of(call), requested.audiences, proof).await;
        }
        let presented = parse_presented(token)?;
        let now = call.now();
        let proof = if presented.issuer == self.settings.auth_url {
            self.prove_own(token, &presented, &requested, now)?
        } else {
            self.prove_foreign(token, &presented, &requested, now).await?
        };
        self.issue(Cause::of(call), requested.audiences, proof).await
    }

    /// Proves the caller by a token of this server: an access token, for another audience or a tighter
    /// narrowing, or an id token, which only this front accepts as proof of a sign-in.
    fn prove_own(&self, token: &str, presented: &Presented, requested: &ExchangeParams, now: Micros) -> Result<Proof> {
        let keys = self.authenticator.keys();
        let issuer = &self.settings.auth_url;
        let is_id = presented.header.typ.as_deref() == Some(TokenClass::Id.typ());
        let (class, audiences) = if is_id {
            (TokenClass::Id, vec![issuer.as_str()])
        } else {
            (TokenClass::Access, self.settings.audiences().to_vec())
        };
        let claims =
            verify_own(token, class, &keys.verification, issuer, &audiences, seconds(now)).map_err(refusals::token)?;
        // An id token without a session would outlive its sign-in.
        if is_id && claims.sid.is_none() {
            return Err(refusals::token(TokenError::Audience));
        }
        let facts = self.authenticator.facts(claims.clone())?;
        // A token from a registry client's configuration must not become one for the API, and an id token is
        // good only for the audiences that the person confirmed.
        let held = if is_id { &claims.good_for } else { &facts.audiences };
        let opens_api = held.contains(&self.settings.api_audience);
        if !opens_api && !requested.audiences.iter().all(|audience| held.contains(audience)) {
            return Err(refusals::wider_audience());
        }
        if requested.identity.as_ref().is_some_and(|identity| *identity != facts.subject) {
            return Err(refusals::mismatch("a token of ours for another identity"));
        }
        Ok(Proof {
            narrowing: narrowing::intersect(&facts.narrowing, &requested.narrowing)?,
            subject: facts.subject,
            basis: None,
            // The provider of the session stays: it limits where the session acts.
            draft: AccessClaims {
                // What an id token opens ends with its session.
                exp: if is_id { i64::MAX } else { claims.exp },
                email: claims.email,
                email_verified: claims.email_verified,
                act: claims.act,
                idp: claims.idp,
                sid: claims.sid,
                upstream: claims.upstream,
                ..AccessClaims::default()
            },
        })
    }

    async fn prove_foreign(
        &self,
        token: &str,
        presented: &Presented,
        requested: &ExchangeParams,
        now: Micros,
    ) -> Result<Proof> {
        let (row, expected) = match &requested.identity {
            Some(identity) => self.named(token, presented, identity, now).await?,
            None => self.unnamed(token, presented, &requested.narrowing, now).await?,
        };
        require_active(&row, now)?;
        self.require_operator_provider(&row).await?;
        let email = Some(row.email.clone()).filter(|email| row.relationship_type == 0 && !email.is_empty());
        Ok(Proof {
            basis: Some(Basis::of(&row)?),
            subject: row.uid,
            draft: AccessClaims {
                exp: i64::MAX,
                email_verified: email.as_ref().map(|_| true),
                email,
                act: Some(actor(presented, &expected)),
                ..AccessClaims::default()
            },
            narrowing: requested.narrowing.clone(),
        })
    }

    /// Rejects people of an issuer that only an organization configured: they sign in through its provider,
    /// which limits where they act and whose removal signs them out.
    async fn require_operator_provider(&self, row: &IdentityRow) -> Result<()> {
        if row.relationship_type != PERSON {
            return Ok(());
        }
        let (configured, issuer) = (self.operator_providers.clone(), row.issuer.clone());
        let read = self
            .db
            .read(move |tx| Box::pin(async move { providers::is_operators(tx, &configured, &issuer, None).await }));
        if read.await? { Ok(()) } else { Err(refusals::no_identity("a person of an organization's own issuer")) }
    }

    /// Finds the identity that the caller names, and verifies the token against it.
    async fn named(
        &self,
        token: &str,
        presented: &Presented,
        identity: &Uidp,
        now: Micros,
    ) -> Result<(IdentityRow, ClaimMatch)> {
        let uid = identity.clone();
        let row = self.db.read(move |tx| Box::pin(async move { identities::find(tx, uid.as_str()).await })).await?;
        let row = row.ok_or_else(|| refusals::mismatch("no such identity"))?;
        let trust = Basis::of(&row)?.trust()?;
        let matcher = self.matchers.get(row.uid.as_str(), &trust.expected)?;
        // Before any request is sent, and before the caller learns anything.
        if !matcher.trusts_issuer(&presented.issuer) {
            return Err(refusals::mismatch("issuer"));
        }
        match &trust.keys {
            Keys::Discovered => self.verify_by_discovery(token, presented, now).await?,
            Keys::Stored(text) => {
                let keys = Jwks::parse_str(text).map_err(|_| refusals::stored_keys(row.uid.as_str()))?;
                verify(token, presented, &keys, now)?;
            }
        }
        self.require_claims(&matcher, presented)?;
        Ok((row, trust.expected))
    }

    /// Finds the identity by the token's issuer and subject: a person, or a workload of the organization of
    /// the caller's `scopes`. Any organization may register any issuer and subject, so identities of other
    /// organizations are ignored.
    async fn unnamed(
        &self,
        token: &str,
        presented: &Presented,
        narrowing: &Narrowing,
        now: Micros,
    ) -> Result<(IdentityRow, ClaimMatch)> {
        let (issuer, subject) = (presented.issuer.clone(), presented.subject.clone());
        let organization = narrowing::organization(&narrowing.scopes).map(str::to_owned);
        let rows = self
            .db
            .read(move |tx| {
                Box::pin(async move {
                    if !identities::trusts_issuer_exactly(tx, &issuer).await? {
                        return Ok(None);
                    }
                    identities::find_by_subject(tx, &issuer, &subject, organization.as_deref()).await.map(Some)
                })
            })
            .await?;
        let mut rows = rows.ok_or_else(|| refusals::no_identity("unknown issuer"))?;
        self.verify_by_discovery(token, presented, now).await?;
        let kinds: Vec<i32> = rows.iter().map(|row| row.relationship_type).collect();
        let row = rows.swap_remove(pick(&kinds).map_err(refusals::no_identity)?);
        let trust = Basis::of(&row)?.trust()?;
        if trust.keys != Keys::Discovered {
            return Err(Error::internal("an identity with keys of its own was picked by issuer and subject"));
        }
        let matcher = self.matchers.get(row.uid.as_str(), &trust.expected)?;
        self.require_claims(&matcher, presented)?;
        Ok((row, trust.expected))
    }

    /// Verifies with the keys that the issuer publishes. For trusted issuers only: it sends requests to them.
    pub(super) async fn verify_by_discovery(&self, token: &str, presented: &Presented, now: Micros) -> Result<()> {
        let kid = presented.header.kid.as_deref();
        let keys = self.issuer_keys.keys_for(&presented.issuer, kid, seconds(now)).await.map_err(refusals::keys)?;
        verify(token, presented, &keys, now)
    }

    fn require_claims(&self, matcher: &Compiled, presented: &Presented) -> Result<()> {
        matcher.matches(presented, &self.default_audiences).map_err(|mismatch| refusals::claim(&mismatch))
    }

    /// Records the issuance, then mints: every token has an entry in the audit log.
    pub(super) async fn issue(&self, cause: Cause, audiences: Vec<String>, proof: Proof) -> Result<RawToken> {
        let issuance = Arc::new(Issuance::of(&proof, cause));
        let (now, jti) = (issuance.cause.now, issuance.cause.id);
        let standing = self
            .db
            .write(move |tx| {
                let issuance = issuance.clone();
                Box::pin(async move { issuing::record(tx, &issuance).await })
            })
            .await?;
        if proof.basis.is_some() {
            self.note_seen(&proof, &standing, now);
        }
        self.mint(proof, audiences, &standing, now, jti)
    }

    /// The token of a recorded issuance.
    pub(crate) fn mint(
        &self,
        proof: Proof,
        audiences: Vec<String>,
        standing: &Standing,
        now: Micros,
        jti: [u8; 16],
    ) -> Result<RawToken> {
        let keys = self.authenticator.keys();
        let key = keys.ring.signing_key(seconds(now)).ok_or_else(issuing::no_key)?;
        let claims = issuing::claims(&self.settings.auth_url, proof, audiences, standing, now, jti);
        Ok(RawToken {
            token: mint(TokenClass::Access, &claims, key),
            refresh_token: String::new(),
            expiry: Some(prost_types::Timestamp { seconds: claims.exp, nanos: 0 }),
        })
    }

    /// Issues a token for the identity that the caller names, by a token of another issuer.
    pub(crate) async fn assume(&self, token: &str, requested: ExchangeParams, cause: Cause) -> Result<RawToken> {
        let presented = parse_presented(token)?;
        let proof = self.prove_foreign(token, &presented, &requested, cause.now).await?;
        self.issue(cause, requested.audiences, proof).await
    }

    /// Records that the identity was seen.
    pub(crate) fn note_seen(&self, proof: &Proof, standing: &Standing, now: Micros) {
        self.last_seen.note(proof.subject.as_str(), standing.last_seen_at, now);
    }

    /// Parses and validates the request.
    pub(crate) fn requested(&self, request: &ExchangeRequest) -> Result<ExchangeParams> {
        ExchangeParams::read(request, &self.settings, &self.contract)
    }

    /// The `aud` values that a presented token may have if the identity names none.
    pub(crate) fn default_audiences(&self) -> &[String] {
        &self.default_audiences
    }
}

/// Reads a presented token, unverified.
pub(crate) fn parse_presented(token: &str) -> Result<Presented> {
    let presented = parse_unverified(token).map_err(refusals::token)?;
    // Storage refuses texts with NUL, and no issuer of sense has one.
    if presented.issuer.contains('\0') || presented.subject.contains('\0') {
        return Err(refusals::token(TokenError::Malformed));
    }
    Ok(presented)
}

fn verify(token: &str, presented: &Presented, keys: &Jwks, now: Micros) -> Result<()> {
    verify_signature(token, keys).map_err(refusals::token)?;
    check_times(presented, seconds(now), LEEWAY).map_err(refusals::token)
}

/// The `act` claim: issuer, subject and audience of the presented token, and those of its claims that the
/// identity matches.
pub(super) fn actor(presented: &Presented, expected: &ClaimMatch) -> Value {
    let names = expected.claims.keys().chain(expected.claim_patterns.keys());
    let claims = names.filter_map(|name| presented.claims.get(name).map(|value| (name.clone(), value.clone())));
    let mut act: Map<String, Value> = claims.collect();
    let aud = match &presented.audiences[..] {
        [one] => json!(one),
        many => json!(many),
    };
    act.extend([
        ("iss".into(), json!(presented.issuer)),
        ("sub".into(), json!(presented.subject)),
        ("aud".into(), aud),
    ]);
    Value::Object(act)
}

#[cfg(test)]
#[path = "exchange_tests.rs"]
mod tests;
