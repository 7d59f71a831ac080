use std::sync::Arc;

use bowline_authn::TokenError;
use bowline_authn::aws::AwsSts;
use bowline_authn::claims::{AccessClaims, MAX_ACCESS_LIFETIME, TokenClass, mint, verify_own};
use bowline_authn::discovery::IssuerKeys;
use bowline_authn::jwks::Jwks;
use bowline_authn::jwt::{LEEWAY, Presented, check_times, parse_unverified, verify_signature};
use bowline_authn::matching::{ClaimMatch, Compiled};
use bowline_contract::Contract;
use bowline_contract::v1::oidc::{ExchangeRequest, RawToken};
use bowline_core::{Error, Micros, Result, Uidp};
use bowline_pipeline::{
    Actor, Authenticator, Change, Grants, Narrowing, OPERATOR, Open, Settings, load_grants, record_audit,
};
use bowline_store::{Db, WriteTx};
use serde_json::{Map, Value, json};

use super::asked::Asked;
use super::aws::may_be_signed_request;
use super::candidates::{Basis, Keys, pick};
use super::cap_claim::cap_claim;
use super::last_seen::LastSeen;
use super::matchers::Matchers;
use super::{audiences, narrowing, refusals};
use crate::iam::identities::{self, IdentityRow};
use crate::kinds::IDENTITY;

/// The token exchange, with everything it needs.
pub struct Exchange {
    pub(super) db: Db,
    issuer_keys: Arc<IssuerKeys>,
    authenticator: Arc<Authenticator>,
    pub(super) aws: AwsSts,
    pub(super) settings: Arc<Settings>,
    contract: Arc<Contract>,
    default_audiences: Vec<String>,
    matchers: Matchers,
    last_seen: LastSeen,
}

/// What a presented token proved.
pub(super) struct Proof {
    pub(super) subject: Uidp,
    /// What the identity trusted when the proof was made; absent for tokens of ours.
    pub(super) basis: Option<Basis>,
    /// Members that the new token takes over or says of its holder.
    pub(super) draft: AccessClaims,
    pub(super) narrowing: Narrowing,
}

/// What an issuance writes, for every attempt of its transaction.
struct Issuance {
    subject: Uidp,
    basis: Option<Basis>,
    session: Option<String>,
    now: Micros,
    request_id: String,
    method: String,
}

/// The identity as the issuing transaction sees it.
struct Standing {
    grants: Grants,
    expires_at: Option<Micros>,
    last_seen_at: Option<Micros>,
}

impl Exchange {
    /// An exchange that mints with the keys of `authenticator`.
    pub fn new(
        db: Db,
        issuer_keys: Arc<IssuerKeys>,
        aws: AwsSts,
        authenticator: Arc<Authenticator>,
        settings: Arc<Settings>,
        contract: Arc<Contract>,
    ) -> Exchange {
        let default_audiences = audiences::defaults(&settings.auth_url);
        Exchange {
            db,
            issuer_keys,
            aws,
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

    pub(super) async fn exchange(&self, call: &Open<ExchangeRequest>) -> Result<RawToken> {
        let token = call.bearer().filter(|token| !token.is_empty()).ok_or_else(refusals::no_token)?;
        let asked = Asked::read(call.request(), &self.settings, &self.contract)?;
        if may_be_signed_request(token) {
            let proof = self.prove_aws(token, &asked, call.now()).await?;
            return self.issue(call, asked.audiences, proof).await;
        }
        let presented = parse_unverified(token).map_err(refusals::token)?;
        // Storage refuses texts with NUL, and no issuer of sense has one.
        if presented.issuer.contains('\0') || presented.subject.contains('\0') {
            return Err(refusals::token(TokenError::Malformed));
        }
        let now = call.now();
        let proof = if presented.issuer == self.settings.auth_url {
            self.prove_own(token, &asked, now)?
        } else {
            self.prove_foreign(token, &presented, &asked, now).await?
        };
        self.issue(call, asked.audiences, proof).await
    }

    /// A token of ours, presented again for another audience or a tighter narrowing.
    fn prove_own(&self, token: &str, asked: &Asked, now: Micros) -> Result<Proof> {
        let keys = self.authenticator.keys();
        let audiences = self.settings.audiences();
        let issuer = &self.settings.auth_url;
        let claims = verify_own(token, TokenClass::Access, &keys.verification, issuer, &audiences, seconds(now))
            .map_err(refusals::token)?;
        let facts = self.authenticator.facts(claims.clone())?;
        // A token that lies in a registry client's configuration must not become one for the API.
        let opens_api = facts.audiences.contains(&self.settings.api_audience);
        if !opens_api && !asked.audiences.iter().all(|audience| facts.audiences.contains(audience)) {
            return Err(refusals::wider_audience());
        }
        if asked.identity.as_ref().is_some_and(|identity| *identity != facts.subject) {
            return Err(refusals::mismatch("a token of ours for another identity"));
        }
        Ok(Proof {
            narrowing: narrowing::intersect(&facts.narrowing, &asked.narrowing)?,
            subject: facts.subject,
            basis: None,
            // The provider of the session stays: it limits where the session acts.
            draft: AccessClaims {
                exp: claims.exp,
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

    async fn prove_foreign(&self, token: &str, presented: &Presented, asked: &Asked, now: Micros) -> Result<Proof> {
        let (row, expected) = match &asked.identity {
            Some(identity) => self.named(token, presented, identity, now).await?,
            None => self.unnamed(token, presented, now).await?,
        };
        require_active(&row, now)?;
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
            narrowing: asked.narrowing.clone(),
        })
    }

    /// The identity that the caller names, if the token is for it.
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
        // Before any request leaves, and before anything is told.
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

    /// The identity that the store finds by the token's issuer and subject.
    async fn unnamed(&self, token: &str, presented: &Presented, now: Micros) -> Result<(IdentityRow, ClaimMatch)> {
        let (issuer, subject) = (presented.issuer.clone(), presented.subject.clone());
        let rows = self
            .db
            .read(move |tx| {
                Box::pin(async move {
                    if !identities::trusts_issuer_exactly(tx, &issuer).await? {
                        return Ok(None);
                    }
                    identities::find_by_subject(tx, &issuer, &subject).await.map(Some)
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

    /// Verifies with the keys that the issuer publishes. Only for issuers that somebody trusts.
    async fn verify_by_discovery(&self, token: &str, presented: &Presented, now: Micros) -> Result<()> {
        let kid = presented.header.kid.as_deref();
        let keys = self.issuer_keys.keys_for(&presented.issuer, kid, seconds(now)).await.map_err(refusals::keys)?;
        verify(token, presented, &keys, now)
    }

    fn require_claims(&self, matcher: &Compiled, presented: &Presented) -> Result<()> {
        matcher.matches(presented, &self.default_audiences).map_err(|mismatch| refusals::claim(&mismatch))
    }

    /// Records the issuance, then mints: no token leaves that the audit log does not know.
    async fn issue(&self, call: &Open<ExchangeRequest>, audiences: Vec<String>, proof: Proof) -> Result<RawToken> {
        let now = call.now();
        let Proof { subject, basis, draft, narrowing } = proof;
        let keys = self.authenticator.keys();
        let key = keys.ring.signing_key(seconds(now)).ok_or_else(|| Error::internal("there is no signing key"))?;
        let is_foreign = basis.is_some();
        let issuance = Arc::new(Issuance {
            subject: subject.clone(),
            basis,
            session: draft.sid.clone(),
            now,
            request_id: call.request_id().into(),
            method: call.method().full_name.clone(),
        });
        let standing = self
            .db
            .write(move |tx| {
                let issuance = issuance.clone();
                Box::pin(async move { record(tx, &issuance).await })
            })
            .await?;
        if is_foreign {
            self.last_seen.note(subject.as_str(), standing.last_seen_at, now);
        }
        let claims = AccessClaims {
            iss: self.settings.auth_url.clone(),
            sub: subject.as_str().into(),
            aud: audiences,
            exp: ends(now, draft.exp, standing.expires_at),
            iat: seconds(now),
            jti: bowline_core::hex(&call.draw()[..16]),
            cap: cap_claim(&standing.grants.direct(usize::MAX), &narrowing),
            narrow: narrowing::to_claim(&narrowing),
            ..draft
        };
        Ok(RawToken {
            token: mint(TokenClass::Access, &claims, key),
            refresh_token: String::new(),
            expiry: Some(prost_types::Timestamp { seconds: claims.exp, nanos: 0 }),
        })
    }
}

/// Looks at the identity once more, and writes the audit row of the issuance.
async fn record(tx: &mut WriteTx, issuance: &Issuance) -> Result<Standing> {
    let uid = issuance.subject.as_str();
    let standing = standing(tx, issuance).await?;
    let actor = Actor { subject: uid, request_id: &issuance.request_id, method: &issuance.method };
    let change = Change { kind: IDENTITY, uid: uid.into(), before: None, after: None };
    record_audit(tx, issuance.now, &actor, &change).await?;
    Ok(standing)
}

async fn standing(tx: &mut WriteTx, issuance: &Issuance) -> Result<Standing> {
    let uid = &issuance.subject;
    let gone = || {
        if issuance.basis.is_some() { refusals::mismatch("deleted meanwhile") } else { refusals::own_subject() }
    };
    let row = match uid.as_str() {
        // The operator is nobody in the store.
        OPERATOR if issuance.basis.is_none() => None,
        _ => Some(identities::find(tx, uid.as_str()).await?.ok_or_else(gone)?),
    };
    if let Some(row) = &row {
        match &issuance.basis {
            None => require_active(row, issuance.now).map_err(|_| refusals::own_subject())?,
            Some(basis) if *basis != Basis::of(row)? => return Err(refusals::changed()),
            Some(_) => require_active(row, issuance.now)?,
        }
    }
    Ok(Standing {
        grants: load_grants(tx, uid.as_str(), issuance.session.as_deref()).await?.ok_or_else(gone)?,
        expires_at: row.as_ref().and_then(|row| row.expires_at),
        last_seen_at: row.and_then(|row| row.last_seen_at),
    })
}

pub(super) fn require_active(row: &IdentityRow, now: Micros) -> Result<()> {
    if row.deactivated {
        return Err(refusals::inactive("is deactivated"));
    }
    // A token counts whole seconds: one that could not last a single one is not worth minting.
    if row.expires_at.is_some_and(|end| seconds(end) <= seconds(now)) {
        return Err(refusals::inactive("has expired"));
    }
    Ok(())
}

fn verify(token: &str, presented: &Presented, keys: &Jwks, now: Micros) -> Result<()> {
    verify_signature(token, keys).map_err(refusals::token)?;
    check_times(presented, seconds(now), LEEWAY).map_err(refusals::token)
}

/// When the new token ends: within the hour, not after the presented token of ours, not after the identity.
fn ends(now: Micros, not_after: i64, identity_ends: Option<Micros>) -> i64 {
    let within_the_hour = seconds(now).saturating_add(MAX_ACCESS_LIFETIME);
    within_the_hour.min(not_after).min(identity_ends.map_or(i64::MAX, seconds))
}

/// Whom the presented token was about, and the further claims that the identity asked for.
fn actor(presented: &Presented, expected: &ClaimMatch) -> Value {
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

pub(super) fn seconds(micros: Micros) -> i64 {
    micros.div_euclid(1_000_000)
}

#[cfg(test)]
#[path = "exchange_tests.rs"]
mod tests;
