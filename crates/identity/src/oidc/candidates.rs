//! Which identity a token may be for, and what that identity trusts.

use std::collections::BTreeMap;

use bowline_authn::crypto::sha256;
use bowline_authn::matching::{ClaimMatch, Expect};
use bowline_contract::v2::iam::identity::claim_match::{Aud, Iss, Sub};
use bowline_contract::v2::iam::identity::{self, Relationship};
use bowline_core::{Error, Micros, Result, Uidp};
use bowline_store::Db;

use super::refusals;
use crate::iam::identities::{self, IdentityRow};

/// Stored number of people.
pub(super) const PERSON: i32 = 0;
/// Stored number of claim matches.
const CLAIM_MATCH: i32 = 1;

/// The part of an identity that decides who may assume it; compared to notice a change meanwhile.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Basis {
    kind: i32,
    issuer: String,
    subject: String,
    relationship: Option<Relationship>,
}

/// Whose keys must have signed a token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Keys {
    /// Those that the issuer publishes.
    Discovered,
    /// Those stored with the identity, and no others: a JWKS as text.
    Stored(String),
}

/// What a token must say, and whose keys must have signed it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Trust {
    pub(crate) expected: ClaimMatch,
    pub(crate) keys: Keys,
}

impl Basis {
    pub(crate) fn of(row: &IdentityRow) -> Result<Basis> {
        Ok(Basis {
            kind: row.relationship_type,
            issuer: row.issuer.clone(),
            subject: row.subject.clone(),
            relationship: row.relationship()?,
        })
    }

    /// What the identity stores of its relationship; absent for people.
    pub(super) fn relationship(&self) -> Option<&Relationship> {
        self.relationship.as_ref()
    }

    /// What the identity trusts.
    ///
    /// # Errors
    /// PERMISSION_DENIED for kinds that no token assumes.
    pub(crate) fn trust(&self) -> Result<Trust> {
        match &self.relationship {
            None if self.kind == PERSON => {
                Ok(Trust { expected: exactly(&self.issuer, &self.subject, None), keys: Keys::Discovered })
            }
            Some(Relationship::ClaimMatch(stored)) => {
                Ok(Trust { expected: claim_match(stored)?, keys: Keys::Discovered })
            }
            Some(Relationship::StaticKeys(stored)) => static_keys(stored),
            Some(Relationship::AwsIdentity(_)) => Err(refusals::mismatch("an AWS identity takes no such token")),
            Some(Relationship::ServicePrincipal(_)) => Err(refusals::mismatch("a service principal cannot be assumed")),
            None => Err(Error::internal("an identity has lost its relationship")),
        }
    }
}

/// What decides whether a credential proves an identity, as a digest that changes with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IdentityRevision([u8; 32]);

impl IdentityRevision {
    /// The revision now; absent where there is no such identity, and for the operator, who has no row.
    ///
    /// # Errors
    /// The storage is unavailable.
    pub async fn read(db: &Db, uid: &Uidp) -> Result<Option<IdentityRevision>> {
        let uid = uid.clone();
        let row = db.read(move |tx| Box::pin(async move { identities::find(tx, uid.as_str()).await })).await?;
        Ok(row.map(|row| IdentityRevision::of(&row)))
    }

    fn of(row: &IdentityRow) -> IdentityRevision {
        let mut bytes = Vec::new();
        for text in [row.issuer.as_bytes(), row.subject.as_bytes(), &row.stored] {
            bytes.extend((text.len() as u64).to_le_bytes());
            bytes.extend(text);
        }
        bytes.extend(row.relationship_type.to_le_bytes());
        bytes.extend(row.expires_at.unwrap_or(Micros::MAX).to_le_bytes());
        bytes.push(u8::from(row.deactivated));
        IdentityRevision(sha256(&bytes))
    }
}

fn exactly(issuer: &str, subject: &str, audience: Option<Expect>) -> ClaimMatch {
    ClaimMatch {
        issuer: Expect::Exact(issuer.into()),
        subject: Expect::Exact(subject.into()),
        audience,
        claims: BTreeMap::new(),
        claim_patterns: BTreeMap::new(),
    }
}

/// A claim match in the form that tokens are compared with.
///
/// # Errors
/// INTERNAL for one without issuer or subject, which is never stored.
pub(super) fn claim_match(stored: &identity::ClaimMatch) -> Result<ClaimMatch> {
    let damaged = || Error::internal("a claim match without issuer or subject is stored");
    Ok(ClaimMatch {
        issuer: match stored.iss.clone().ok_or_else(damaged)? {
            Iss::Issuer(text) => Expect::Exact(text),
            Iss::IssuerPattern(pattern) => Expect::Pattern(pattern),
        },
        subject: match stored.sub.clone().ok_or_else(damaged)? {
            Sub::Subject(text) => Expect::Exact(text),
            Sub::SubjectPattern(pattern) => Expect::Pattern(pattern),
        },
        audience: stored.aud.clone().map(|audience| match audience {
            Aud::Audience(text) => Expect::Exact(text),
            Aud::AudiencePattern(pattern) => Expect::Pattern(pattern),
        }),
        claims: stored.claims.clone(),
        claim_patterns: stored.claim_patterns.clone(),
    })
}

fn static_keys(stored: &identity::StaticKeys) -> Result<Trust> {
    let audience = match &stored.audiences[..] {
        [] => None,
        [one] => Some(Expect::Exact(one.clone())),
        _ => return Err(Error::internal("static keys with several audiences are stored")),
    };
    Ok(Trust {
        expected: exactly(&stored.issuer, &stored.subject, audience),
        keys: Keys::Stored(stored.issuer_keys.clone()),
    })
}

/// Picks among identities that have the token's very issuer and subject, by their kinds: the person,
/// else the one claim match. Static keys and AWS identities are found by name only.
///
/// # Errors
/// Why there is no pick, for the log.
pub(crate) fn pick(kinds: &[i32]) -> std::result::Result<usize, &'static str> {
    for wanted in [PERSON, CLAIM_MATCH] {
        let mut found = kinds.iter().enumerate().filter(|(_, kind)| **kind == wanted);
        match (found.next(), found.next()) {
            (Some((position, _)), None) => return Ok(position),
            (Some(_), Some(_)) => return Err("several candidates"),
            (None, _) => {}
        }
    }
    Err("no candidate")
}

#[cfg(test)]
mod tests {
    use super::*;
    use bowline_contract::v2::iam::ServicePrincipal;
    use bowline_core::Reason;

    #[test]
    fn people_come_first_and_claim_matches_must_be_alone() {
        assert_eq!(pick(&[1, 0, 1, 2]), Ok(1));
        assert_eq!(pick(&[2, 3, 4, 1]), Ok(3));
        assert_eq!(pick(&[]), Err("no candidate"));
        assert_eq!(pick(&[2, 3, 4]), Err("no candidate"));
        assert_eq!(pick(&[1, 2, 1]), Err("several candidates"));
        assert_eq!(pick(&[0, 0, 1]), Err("several candidates"));
    }

    fn basis(kind: i32, relationship: Option<Relationship>) -> Basis {
        Basis { kind, issuer: "https://idp.example".into(), subject: "me".into(), relationship }
    }

    #[test]
    fn people_are_found_by_issuer_and_subject() {
        let trust = basis(0, None).trust().unwrap();
        assert_eq!(trust.keys, Keys::Discovered);
        assert_eq!(trust.expected, exactly("https://idp.example", "me", None));
        assert_eq!(basis(2, None).trust().unwrap_err().reason(), Reason::Internal);
    }

    #[test]
    fn static_identities_have_keys_of_their_own() {
        let stored = identity::StaticKeys {
            issuer: "https://keys.example".into(),
            subject: "robot".into(),
            issuer_keys: "{}".into(),
            audiences: vec!["here".into()],
            ..identity::StaticKeys::default()
        };
        let trust = basis(2, Some(Relationship::StaticKeys(stored))).trust().unwrap();
        assert_eq!(trust.keys, Keys::Stored("{}".into()));
        assert_eq!(trust.expected, exactly("https://keys.example", "robot", Some(Expect::Exact("here".into()))));
    }

    #[test]
    fn some_kinds_are_never_assumed() {
        let aws = Relationship::AwsIdentity(identity::AwsIdentity::default());
        let service = Relationship::ServicePrincipal(ServicePrincipal::default() as i32);
        for relationship in [aws, service] {
            assert_eq!(basis(3, Some(relationship)).trust().unwrap_err().reason(), Reason::PermissionDenied);
        }
    }
}
