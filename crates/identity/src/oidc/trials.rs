//! Tests of what identities trust, before a workload depends on it: claims against a claim match, and an issuer's keys.

use std::sync::Arc;

use bowline_authn::discovery::IssuerKeys;
use bowline_authn::jwt::parse_unverified;
use bowline_authn::matching::{ClaimMatch, Expect, TokenClaims, issuer_host_is_literal};
use bowline_contract::bowline::iam::v1 as own;
use bowline_contract::bowline::iam::v1::rpc::matchers::{TestClaims, TestIssuer};
use bowline_contract::v2::iam::identity::Relationship;
use bowline_core::{Detail, Error, FieldViolation, Reason, Result, Uidp};
use bowline_pipeline::{Authorized, Handlers, Quota, RateLimits, Surface, handler};
use bowline_resources::kinds::IDENTITY;
use bowline_store::ReadTx;
use serde_json::{Map, Value, json};

use super::candidates::{Basis, claim_match};
use super::issuing::seconds;
use crate::iam::identities;
use crate::iam::relationship::{self, V2, issuer_problem};
use crate::people::{People, present};

/// Issuers whose keys are cached for tests: separate from those of exchanges, so that tests never evict them.
const CACHED_ISSUERS: usize = 64;
/// Issuers that are fetched at once, and those of one organization.
const FETCHED: usize = 8;
const FETCHED_BY_ORGANIZATION: usize = 2;
/// Tests per second of one caller, and of one organization, that send requests; ten seconds' worth may come at once.
const TESTED_PER_SECOND: u32 = 1;
/// Maximum characters of a claim that are shown.
const SHOWN: usize = 256;

pub(crate) fn register(handlers: Handlers, people: Option<&Arc<People>>) -> Handlers {
    let claims = people.cloned();
    let issuers = people.map(|people| Arc::new(IssuerTrials::new(people)));
    handlers
        .validate_costly::<TestClaims>(violations)
        .read_then::<TestClaims, ClaimTrial>(handler!(prepare_claims), move |trial| {
            let people = claims.clone();
            Box::pin(async move {
                let defaults = present(people)?.exchange().default_audiences().to_vec();
                // Patterns may take long to compile.
                tokio::task::spawn_blocking(move || trial.run(&defaults)).await.map_err(Error::internal)?
            })
        })
        .read_then::<TestIssuer, IssuerTrial>(handler!(prepare_issuer), move |trial| {
            let issuers = issuers.clone();
            Box::pin(async move {
                let issuers = issuers.ok_or_else(|| Error::internal("the handlers were made without people"))?;
                issuers.run(trial).await
            })
        })
}

/// Claims, and what they are compared with.
struct ClaimTrial {
    expected: ClaimMatch,
    claims: Map<String, Value>,
}

fn violations(request: &own::TestClaimsRequest) -> Vec<FieldViolation> {
    let mut violations = Vec::new();
    let mut refuse = |field: &str, description: &str| {
        violations.push(FieldViolation { field: field.into(), description: description.into() });
    };
    match (request.identity.is_empty(), &request.claim_match) {
        (true, None) => refuse("identity", "identity or claimMatch is required"),
        (false, Some(_)) => refuse("claimMatch", "cannot be given together with identity"),
        _ => {}
    }
    match (request.token.is_empty(), &request.claims) {
        (true, None) => refuse("token", "token or claims is required"),
        (false, Some(_)) => refuse("claims", "cannot be given together with token"),
        _ => {}
    }
    if let Some(draft) = request.claim_match.clone() {
        violations.extend(relationship::violations(Some(&Relationship::ClaimMatch(draft)), &V2));
    }
    violations
}

async fn prepare_claims(tx: &mut ReadTx, call: &Authorized<own::TestClaimsRequest>) -> Result<ClaimTrial> {
    let request = call.request();
    let expected = match &request.claim_match {
        Some(draft) => claim_match(draft)?,
        None => stored(tx, call.require_scope()?, &request.identity).await?,
    };
    let claims = match &request.claims {
        Some(claims) => object(claims),
        // The error describes the problem without repeating the token.
        None => {
            parse_unverified(&request.token).map_err(|error| Error::invalid_field("token", error.to_string()))?.claims
        }
    };
    Ok(ClaimTrial { expected, claims })
}

/// What an identity at or below the group trusts.
async fn stored(tx: &mut ReadTx, group: &Uidp, identity: &str) -> Result<ClaimMatch> {
    let row = if group.contains(identity) { identities::find(tx, identity).await? } else { None };
    let row = row.ok_or_else(|| Error::not_found(IDENTITY, identity))?;
    let trust = Basis::of(&row)?.trust();
    let trust = trust.map_err(|_| {
        Error::precondition("IDENTITY_WITHOUT_CLAIMS", identity, "the identity is not assumed by the claims of a token")
    })?;
    Ok(trust.expected)
}

impl ClaimTrial {
    fn run(self, default_audiences: &[String]) -> Result<own::TestClaimsResponse> {
        let compiled = self.expected.compile().map_err(|error| Error::invalid_field("claimMatch", error))?;
        let text = |name: &str| self.claims.get(name).and_then(Value::as_str).unwrap_or_default();
        let audiences: Vec<String> = match self.claims.get("aud") {
            Some(Value::String(one)) => vec![one.clone()],
            Some(Value::Array(many)) => many.iter().filter_map(|one| one.as_str().map(String::from)).collect(),
            _ => Vec::new(),
        };
        let claims =
            TokenClaims { issuer: text("iss"), subject: text("sub"), audiences: &audiences, further: &self.claims };
        let compared = compiled.compare(&claims, default_audiences);
        let results: Vec<own::ClaimResult> = compared
            .into_iter()
            .zip(self.expectations())
            .map(|((claim, matches), expected)| self.result(claim, matches, expected, default_audiences))
            .collect();
        Ok(own::TestClaimsResponse { matches: results.iter().all(|result| result.matches), results })
    }

    /// What is expected, in the order in which it is compared; nothing where the default audiences are.
    fn expectations(&self) -> Vec<Option<Expect>> {
        let expected = &self.expected;
        let mut all = vec![Some(expected.issuer.clone()), Some(expected.subject.clone()), expected.audience.clone()];
        all.extend(expected.claims.values().map(|text| Some(Expect::Exact(text.clone()))));
        all.extend(expected.claim_patterns.values().map(|pattern| Some(Expect::Pattern(pattern.clone()))));
        all
    }

    fn result(
        &self,
        claim: String,
        matches: bool,
        expected: Option<Expect>,
        default_audiences: &[String],
    ) -> own::ClaimResult {
        let value = self.claims.get(&claim);
        let reason =
            if matches { String::new() } else { mismatch(&claim, value, expected.as_ref(), default_audiences) };
        let value = value.map(shown).unwrap_or_default();
        let (expected, pattern) = match expected {
            Some(Expect::Exact(text)) => (text, false),
            Some(Expect::Pattern(text)) => (text, true),
            None => (String::new(), false),
        };
        own::ClaimResult { claim, matches, expected, pattern, value, reason }
    }
}

fn mismatch(claim: &str, value: Option<&Value>, expected: Option<&Expect>, default_audiences: &[String]) -> String {
    match (value, expected) {
        (None, _) => "the token has no such claim".into(),
        (_, None) => format!("must be one of the default audiences: {}", default_audiences.join(", ")),
        (_, Some(Expect::Pattern(pattern))) if claim == "iss" && !issuer_host_is_literal(pattern) => {
            "the pattern is not literal up to the end of the host, so that it matches no issuer".into()
        }
        (Some(Value::Array(_)), _) if claim == "aud" => "none of the audiences matches".into(),
        (Some(Value::Array(_) | Value::Object(_) | Value::Null), _) => {
            "only strings, booleans and numbers match".into()
        }
        (_, Some(Expect::Pattern(_))) => "the pattern does not match the whole value".into(),
        (_, Some(Expect::Exact(_))) => "the value differs".into(),
    }
}

fn shown(value: &Value) -> String {
    let text = value.as_str().map_or_else(|| value.to_string(), String::from);
    text.chars().take(SHOWN).collect()
}

fn object(claims: &prost_types::Struct) -> Map<String, Value> {
    claims.fields.iter().map(|(name, claim)| (name.clone(), value(claim))).collect()
}

fn value(given: &prost_types::Value) -> Value {
    use prost_types::value::Kind;
    match &given.kind {
        None | Some(Kind::NullValue(_)) => Value::Null,
        // A token has whole numbers without a fraction.
        Some(Kind::NumberValue(number)) if number.fract() == 0.0 && number.abs() < 9e15 => json!(*number as i64),
        Some(Kind::NumberValue(number)) => json!(number),
        Some(Kind::StringValue(text)) => json!(text),
        Some(Kind::BoolValue(flag)) => json!(flag),
        Some(Kind::StructValue(inner)) => Value::Object(object(inner)),
        Some(Kind::ListValue(list)) => list.values.iter().map(value).collect(),
    }
}

/// An issuer to fetch the keys of.
struct IssuerTrial {
    issuer: String,
    caller: String,
    organization: String,
    now: i64,
}

async fn prepare_issuer(_tx: &mut ReadTx, call: &Authorized<own::TestIssuerRequest>) -> Result<IssuerTrial> {
    let issuer = call.request().issuer.clone();
    if let Some(problem) = issuer_problem(&issuer) {
        return Err(Error::invalid_field("issuer", problem));
    }
    let organization = call.require_scope()?.root_str().to_owned();
    let caller = call.principal().subject().to_owned();
    Ok(IssuerTrial { issuer, caller, organization, now: seconds(call.now()) })
}

/// Fetches keys of issuers that no identity trusts yet: few at once, and with a cache of its own.
struct IssuerTrials {
    keys: IssuerKeys,
    running: Arc<Quota<String>>,
    /// Tests of unknown issuers call out: neither a caller nor an organization may have this server call at any rate.
    rates: RateLimits,
}

impl IssuerTrials {
    fn new(people: &People) -> IssuerTrials {
        let keys = IssuerKeys::with_capacity(people.client(), CACHED_ISSUERS);
        let running = Quota::new(FETCHED, FETCHED_BY_ORGANIZATION);
        IssuerTrials { keys, running, rates: RateLimits::new(TESTED_PER_SECOND, 0) }
    }

    async fn run(&self, trial: IssuerTrial) -> Result<own::TestIssuerResponse> {
        if !self.keys.is_cached(&trial.issuer, trial.now) {
            for key in [&trial.caller, &trial.organization] {
                self.rates.count_principal(Surface::Api, key)?;
            }
        }
        let _lease = self.running.take(Some(trial.organization), 1).map_err(|_| {
            let text = "Too many issuers are tested at the moment: try again when others have been answered";
            Error::new(Reason::RateLimited, text).with(Detail::RetryAfter(std::time::Duration::from_secs(1)))
        })?;
        Ok(match self.keys.keys_for(&trial.issuer, None, trial.now).await {
            Ok(keys) => {
                let ids = keys.keys().iter().filter_map(|key| key.kid().map(String::from));
                own::TestIssuerResponse { usable: true, key_ids: ids.collect(), ..Default::default() }
            }
            Err(error) => own::TestIssuerResponse {
                reason: error.reason().into(),
                problem: error.public_message(),
                ..Default::default()
            },
        })
    }
}
