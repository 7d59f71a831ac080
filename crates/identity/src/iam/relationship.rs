//! How an identity is assumed: validation of a request, and the stored form.
//!
//! Everything is stored as it was sent, since clients compare what they read with what they wrote.

mod texts;

use bowline_authn::matching;
use bowline_contract::v2::iam as v2;
use bowline_contract::v2::iam::identity::aws_identity::{AwsArn, AwsUserId};
use bowline_contract::v2::iam::identity::claim_match::{Aud, Iss, Sub};
use bowline_contract::v2::iam::identity::{AwsIdentity, ClaimMatch, Relationship, StaticKeys};
use bowline_core::{Detail, Error, FieldViolation, Micros, Result};
use bowline_pipeline::Mask;
use bowline_resources::list::timestamp;
use bowline_resources::patterns::Validation;
use prost::{Message, Name};
use prost_reflect::{DescriptorPool, DynamicMessage};

pub(crate) use texts::issuer_problem;

/// Longest life of static keys, and the default, in microseconds.
const STATIC_KEYS_LIFE: Micros = 365 * 24 * 3600 * 1_000_000;
/// How far a client's clock may be ahead when it requests the longest life, in microseconds.
pub(super) const CLOCK_SKEW: Micros = 5 * 60 * 1_000_000;
/// The first second of the year 1: what the wire's timestamps begin with.
const FIRST_SECOND: i64 = -62_135_596_800;

/// Maximum number of further claims of an identity, exact ones and patterns together.
const MAX_CLAIMS: usize = 32;
/// Maximum bytes of their names and values.
const MAX_CLAIM_BYTES: usize = 8192;

/// Claims that are checked on their own and so cannot be among the further ones.
const RESERVED_CLAIMS: &[&str] = &["iss", "sub", "aud", "exp", "iat", "nbf"];

/// How an API version spells what the versions spell differently.
pub(crate) struct Spelling {
    pub(crate) static_keys: &'static str,
    pub(crate) expiration: &'static str,
}

pub(crate) const V1: Spelling = Spelling { static_keys: "static", expiration: "expiration" };
pub(crate) const V2: Spelling = Spelling { static_keys: "staticKeys", expiration: "expirationTime" };

/// The relationship in its stored form.
pub(crate) fn encode(relationship: &Relationship) -> Vec<u8> {
    v2::Identity { relationship: Some(relationship.clone()), ..v2::Identity::default() }.encode_to_vec()
}

/// What [`encode`] stored; people have none.
pub(crate) fn decode(stored: &[u8]) -> Result<Option<Relationship>> {
    Ok(v2::Identity::decode(stored).map_err(Error::internal)?.relationship)
}

/// The number that lists filter by.
pub(crate) fn type_of(relationship: &Relationship) -> i32 {
    let kind = match relationship {
        Relationship::ClaimMatch(_) => v2::RelationshipType::ClaimMatch,
        Relationship::StaticKeys(_) => v2::RelationshipType::Static,
        Relationship::AwsIdentity(_) => v2::RelationshipType::AwsIdentity,
        Relationship::ServicePrincipal(_) => v2::RelationshipType::ServicePrincipal,
    };
    kind as i32
}

/// Exact issuer and subject, each empty where it is a pattern or absent.
pub(crate) fn exact(relationship: &Relationship) -> (&str, &str) {
    match relationship {
        Relationship::ClaimMatch(claims) => {
            let issuer = if let Some(Iss::Issuer(issuer)) = &claims.iss { issuer } else { "" };
            let subject = if let Some(Sub::Subject(subject)) = &claims.sub { subject } else { "" };
            (issuer, subject)
        }
        Relationship::StaticKeys(keys) => (&keys.issuer, &keys.subject),
        Relationship::AwsIdentity(_) | Relationship::ServicePrincipal(_) => ("", ""),
    }
}

/// When the identity ends, if it does.
pub(crate) fn expires_at(relationship: &Relationship) -> Option<Micros> {
    match relationship {
        Relationship::StaticKeys(keys) => keys.expiration_time.as_ref().and_then(micros),
        _ => None,
    }
}

/// The relationship after an update; none if the update leaves it alone.
///
/// A member that the mask names is replaced by the request's, whichever was there: that is how an
/// identity changes its type. Of a member that the mask names in part, those parts change and the
/// rest stays: an update of the subject alone must not drop the claims.
///
/// # Errors
/// INVALID_ARGUMENT if nothing would be left.
pub(crate) fn chosen(
    before: Option<&Relationship>,
    mask: &Mask,
    given: Option<Relationship>,
    pool: &DescriptorPool,
) -> Result<Option<Relationship>> {
    match (before, given) {
        (None, given) => match given.as_ref().filter(|given| mask.covers(member(given))) {
            Some(given) => {
                Err(Error::invalid_field(V2.shown(given), "a person's identity has no relationship; people sign in"))
            }
            None => Ok(None),
        },
        (Some(before), Some(given)) if is_partial(mask, before, &given) => merge(before, &given, mask, pool).map(Some),
        (Some(_), Some(given)) if mask.covers(member(&given)) => Ok(Some(given)),
        (Some(before), _) if mask.covers(member(before)) => Err(missing()),
        (Some(_), _) => Ok(None),
    }
}

/// Whether the mask names parts of the stored member only.
fn is_partial(mask: &Mask, before: &Relationship, given: &Relationship) -> bool {
    let name = member(given);
    name == member(before) && !mask.is_whole() && mask.names(name) && !mask.paths().iter().any(|path| path == name)
}

/// The stored member with the named parts taken from the given one.
fn merge(before: &Relationship, given: &Relationship, mask: &Mask, pool: &DescriptorPool) -> Result<Relationship> {
    let descriptor = pool
        .get_message_by_name(&v2::Identity::full_name())
        .ok_or_else(|| Error::internal("the contract has no identity"))?;
    let dynamic = |relationship: &Relationship| {
        let identity = v2::Identity { relationship: Some(relationship.clone()), ..Default::default() };
        DynamicMessage::decode(descriptor.clone(), identity.encode_to_vec().as_slice()).map_err(Error::internal)
    };
    let (mut merged, given) = (dynamic(before)?, dynamic(given)?);
    let name = member(before);
    for path in mask.paths() {
        let Some(part) = path.strip_prefix(name).and_then(|rest| rest.strip_prefix('.')) else {
            continue;
        };
        let part = part.split('.').next().unwrap_or(part);
        let value = given.get_field_by_name(name).and_then(|inner| inner.as_message().map(|inner| field(inner, part)));
        let Some(inner) = merged.get_field_by_name_mut(name).and_then(|inner| inner.as_message_mut()) else {
            continue;
        };
        match value.flatten() {
            Some(value) => inner.set_field_by_name(part, value),
            None => inner.clear_field_by_name(part),
        }
    }
    let identity = v2::Identity::decode(merged.encode_to_vec().as_slice()).map_err(Error::internal)?;
    identity.relationship.ok_or_else(missing)
}

/// The field's value, if the message has one.
fn field(message: &DynamicMessage, name: &str) -> Option<prost_reflect::Value> {
    message.has_field_by_name(name).then(|| message.get_field_by_name(name).map(std::borrow::Cow::into_owned)).flatten()
}

/// The proto name of the oneof's member.
fn member(relationship: &Relationship) -> &'static str {
    match relationship {
        Relationship::ClaimMatch(_) => "claim_match",
        Relationship::StaticKeys(_) => "static_keys",
        Relationship::AwsIdentity(_) => "aws_identity",
        Relationship::ServicePrincipal(_) => "service_principal",
    }
}

fn missing() -> Error {
    Error::invalid_field(
        "relationship",
        "exactly one of claim_match, static_keys (static in the first version), aws_identity and service_principal is required",
    )
}

/// Checks a relationship, and fills in when static keys end if the caller left that open.
///
/// # Errors
/// INVALID_ARGUMENT with everything that is wrong at once.
pub(crate) fn settle(
    given: Option<Relationship>,
    before: Option<&Relationship>,
    now: Micros,
    spelling: &Spelling,
    patterns: Validation,
) -> Result<Relationship> {
    let mut relationship = given.ok_or_else(missing)?;
    // Rules may have become stricter since it was stored, and a maximum moves with the clock.
    if Some(&relationship) == before {
        return Ok(relationship);
    }
    let kept = before.and_then(|before| match before {
        Relationship::StaticKeys(keys) => keys.expiration_time,
        _ => None,
    });
    let mut validate =
        RelationshipValidator { member: spelling.shown(&relationship), violations: Vec::new(), patterns };
    match &mut relationship {
        Relationship::ClaimMatch(claims) => validate.claim_match(claims),
        Relationship::StaticKeys(keys) => {
            keys.expiration_time = keys.expiration_time.or(kept).or_else(|| timestamp(now + STATIC_KEYS_LIFE));
            validate.static_keys(keys);
            if keys.expiration_time != kept {
                validate.expiration(keys, now, spelling);
            }
        }
        Relationship::AwsIdentity(aws) => validate.aws_identity(aws),
        Relationship::ServicePrincipal(number) => validate.service_principal(*number),
    }
    validate.patterns.finish()?;
    if validate.violations.is_empty() { Ok(relationship) } else { Err(Error::invalid(validate.violations)) }
}

/// What is wrong with a new identity's relationship, as far as the request alone shows it.
pub(crate) fn violations(given: Option<&Relationship>, spelling: &Spelling) -> Vec<FieldViolation> {
    let mut given = given.cloned();
    if let Some(Relationship::StaticKeys(keys)) = &mut given {
        // When they end is checked with the clock, by the handler.
        keys.expiration_time = None;
    }
    let Err(error) = settle(given, None, 0, spelling, Validation::BeforeTransaction) else {
        return Vec::new();
    };
    let lists = error.details().iter().filter_map(|detail| match detail {
        Detail::BadRequest(violations) => Some(violations.clone()),
        _ => None,
    });
    lists.flatten().collect()
}

impl Spelling {
    /// The JSON name of the oneof's member.
    fn shown(&self, relationship: &Relationship) -> &'static str {
        match relationship {
            Relationship::ClaimMatch(_) => "claimMatch",
            Relationship::StaticKeys(_) => self.static_keys,
            Relationship::AwsIdentity(_) => "awsIdentity",
            Relationship::ServicePrincipal(_) => "servicePrincipal",
        }
    }
}

/// Collects what is wrong with one relationship.
struct RelationshipValidator {
    member: &'static str,
    violations: Vec<FieldViolation>,
    patterns: Validation,
}

impl RelationshipValidator {
    fn refuse(&mut self, field: &str, description: impl Into<String>) {
        let field = match (self.member, field) {
            (member, "") => member.to_owned(),
            // The method takes the parts as fields of its own.
            ("", field) => field.to_owned(),
            (member, field) => format!("{member}.{field}"),
        };
        self.violations.push(FieldViolation { field, description: description.into() });
    }

    fn require(&mut self, field: &str, value: &str) {
        if value.is_empty() {
            self.refuse(field, format!("{field} is required"));
        }
    }

    fn pattern(&mut self, field: &str, pattern: &str) {
        self.require(field, pattern);
        if let Some(problem) = self.patterns.problem(pattern) {
            self.refuse(field, problem);
        }
    }

    fn claim_match(&mut self, claims: &ClaimMatch) {
        // Before any pattern is compiled.
        let texts = claims.claims.iter().chain(&claims.claim_patterns);
        let bytes: usize = texts.map(|(name, text)| name.len() + text.len()).sum();
        if claims.claims.len() + claims.claim_patterns.len() > MAX_CLAIMS || bytes > MAX_CLAIM_BYTES {
            let what = format!("claims and claimPatterns may be {MAX_CLAIMS} together, and {MAX_CLAIM_BYTES} bytes");
            self.refuse("claims", &what);
            return;
        }
        match &claims.iss {
            None => self.refuse("issuer", "issuer or issuerPattern is required"),
            Some(Iss::Issuer(issuer)) => self.issuer(issuer),
            Some(Iss::IssuerPattern(pattern)) => self.issuer_pattern(pattern),
        }
        match &claims.sub {
            None => self.refuse("subject", "subject or subjectPattern is required"),
            Some(Sub::Subject(subject)) => self.require("subject", subject),
            Some(Sub::SubjectPattern(pattern)) => self.pattern("subjectPattern", pattern),
        }
        match &claims.aud {
            None => {}
            Some(Aud::Audience(audience)) => self.require("audience", audience),
            Some(Aud::AudiencePattern(pattern)) => self.pattern("audiencePattern", pattern),
        }
        for name in claims.claims.keys() {
            self.claim_name("claims", name);
        }
        for (name, pattern) in &claims.claim_patterns {
            self.claim_name("claimPatterns", name);
            self.pattern(&format!("claimPatterns.{name}"), pattern);
        }
    }

    fn issuer(&mut self, issuer: &str) {
        if let Some(problem) = issuer_problem(issuer) {
            self.refuse("issuer", problem);
        }
    }

    /// A pattern that reaches into the host could name a server that no one meant to trust.
    fn issuer_pattern(&mut self, pattern: &str) {
        let before = self.violations.len();
        self.pattern("issuerPattern", pattern);
        if self.violations.len() == before && !matching::issuer_host_is_literal(pattern) {
            self.refuse(
                "issuerPattern",
                r"must be literal up to the end of the host, such as ^https://issuer\.example\.com/.*$",
            );
        }
    }

    fn claim_name(&mut self, map: &str, name: &str) {
        if name.is_empty() {
            self.refuse(map, "the name of a claim must not be empty");
        }
        if RESERVED_CLAIMS.contains(&name) {
            self.refuse(
                &format!("{map}.{name}"),
                format!("{name} cannot be a further claim; it has a field of its own"),
            );
        }
    }

    fn static_keys(&mut self, keys: &StaticKeys) {
        // No request goes to this issuer, so it need not be a URL.
        for (field, value) in [("issuer", &keys.issuer), ("subject", &keys.subject), ("issuerKeys", &keys.issuer_keys)]
        {
            self.require(field, value);
        }
        if keys.audiences.len() > 1 {
            self.refuse("audiences", "at most one audience");
        }
        if keys.audiences.iter().any(String::is_empty) {
            self.refuse("audiences", "an audience must not be empty");
        }
    }

    fn expiration(&mut self, keys: &StaticKeys, now: Micros, spelling: &Spelling) {
        match keys.expiration_time.as_ref().and_then(micros) {
            None => self.refuse(spelling.expiration, "must be a time of the years 1 to 9999"),
            Some(end) if end > now + STATIC_KEYS_LIFE + CLOCK_SKEW => {
                self.refuse(spelling.expiration, "must be at most 365 days ahead");
            }
            Some(_) => {}
        }
    }

    fn aws_identity(&mut self, aws: &AwsIdentity) {
        if aws.aws_account.len() != 12 || !aws.aws_account.bytes().all(|byte| byte.is_ascii_digit()) {
            self.refuse("awsAccount", "awsAccount must be 12 digits");
        }
        // With neither, everyone in the account would be let in.
        if aws.aws_arn.is_none() && aws.aws_user_id.is_none() {
            self.refuse("arn", "arn, arnPattern, userId or userIdPattern is required");
        }
        match &aws.aws_arn {
            None => {}
            Some(AwsArn::Arn(arn)) => self.require("arn", arn),
            Some(AwsArn::ArnPattern(pattern)) => self.pattern("arnPattern", pattern),
        }
        match &aws.aws_user_id {
            None => {}
            Some(AwsUserId::UserId(id)) => self.require("userId", id),
            Some(AwsUserId::UserIdPattern(pattern)) => self.pattern("userIdPattern", pattern),
        }
    }

    fn service_principal(&mut self, number: i32) {
        if number == 0 || v2::ServicePrincipal::try_from(number).is_err() {
            self.refuse("", "must be a known service principal");
        }
    }
}

pub(super) fn micros(time: &prost_types::Timestamp) -> Option<Micros> {
    if time.seconds < FIRST_SECOND || !(0..1_000_000_000).contains(&time.nanos) {
        return None;
    }
    time.seconds.checked_mul(1_000_000)?.checked_add(i64::from(time.nanos / 1000))
}

#[cfg(test)]
#[path = "relationship_tests.rs"]
mod tests;
