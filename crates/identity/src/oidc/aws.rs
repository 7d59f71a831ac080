//! Identities of AWS accounts: the bearer is a signed request in place of a token.

use bowline_authn::aws::{Caller, CallerMatch, SignedRequest};
use bowline_authn::claims::AccessClaims;
use bowline_authn::matching::Expect;
use bowline_contract::v2::iam::identity::aws_identity::{AwsArn, AwsUserId};
use bowline_contract::v2::iam::identity::{AwsIdentity, Relationship};
use bowline_core::{Error, Micros, Result};
use serde_json::{Value, json};

use super::candidates::Basis;
use super::exchange::Exchange;
use super::issuing::{Proof, require_active, seconds};
use super::params::ExchangeParams;
use super::refusals;
use crate::iam::identities;

/// Whether a bearer may be a signed request: a token has dots, and base64 has none.
pub(super) fn may_be_signed_request(bearer: &str) -> bool {
    !bearer.contains('.')
}

impl Exchange {
    /// Proves that the signer of the request may be the identity that the caller names. A request goes to AWS
    /// only for an identity that trusts it, and it is bound to this server and to that identity.
    pub(super) async fn prove_aws(&self, bearer: &str, params: &ExchangeParams, now: Micros) -> Result<Proof> {
        let request = SignedRequest::parse(bearer).map_err(refusals::aws)?;
        let identity = params.identity.clone().ok_or_else(|| refusals::no_identity("an AWS request names none"))?;
        let audience = &self.settings.auth_url;
        self.aws.check(&request, audience, identity.as_str(), seconds(now)).map_err(refusals::aws)?;
        let row =
            self.db.read(move |tx| Box::pin(async move { identities::find(tx, identity.as_str()).await })).await?;
        let row = row.ok_or_else(|| refusals::mismatch("no such identity"))?;
        let basis = Basis::of(&row)?;
        let expected = basis.aws().ok_or_else(|| refusals::mismatch("no AWS identity"))?;
        require_active(&row, now)?;
        let caller = self.aws.caller(&request).await.map_err(refusals::aws)?;
        if let Some(member) = expected.mismatch(&caller).map_err(Error::internal)? {
            return Err(refusals::aws_caller(member));
        }
        Ok(Proof {
            basis: Some(basis),
            subject: row.uid,
            draft: AccessClaims { exp: i64::MAX, act: Some(actor(&caller, audience)), ..AccessClaims::default() },
            narrowing: params.narrowing.clone(),
        })
    }
}

fn actor(caller: &Caller, audience: &str) -> Value {
    json!({
        "iss": caller.issuer,
        "sub": caller.arn,
        "aud": audience,
        "account": caller.account,
        "arn": caller.arn,
        "user_id": caller.user_id,
    })
}

impl Basis {
    /// Whom an AWS identity accepts, absent for other kinds.
    fn aws(&self) -> Option<CallerMatch> {
        match self.relationship() {
            Some(Relationship::AwsIdentity(stored)) => Some(caller_match(stored)),
            _ => None,
        }
    }
}

fn caller_match(stored: &AwsIdentity) -> CallerMatch {
    CallerMatch {
        account: stored.aws_account.clone(),
        arn: stored.aws_arn.clone().map(|arn| match arn {
            AwsArn::Arn(text) => Expect::Exact(text),
            AwsArn::ArnPattern(pattern) => Expect::Pattern(pattern),
        }),
        user_id: stored.aws_user_id.clone().map(|id| match id {
            AwsUserId::UserId(text) => Expect::Exact(text),
            AwsUserId::UserIdPattern(pattern) => Expect::Pattern(pattern),
        }),
    }
}
