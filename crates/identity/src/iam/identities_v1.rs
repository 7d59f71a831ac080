//! Identities as in v1.

use bowline_contract::v1::iam as v1;
use bowline_contract::v1::iam::identity as v1_parts;
use bowline_contract::v1::iam::rpc::identities::{Create, Delete, List, Lookup, Update};
use bowline_contract::v2::iam::identity as v2_parts;
use bowline_core::{Error, FieldViolation, Result};
use bowline_pipeline::{Authorized, Changed, Handlers, Mask, handler};
use bowline_resources::list::{self, timestamp};
use bowline_store::{ReadTx, WriteTx};
use prost::Message;

use super::identities::{self, IdentityInput, IdentityRow};
use super::relationship::V1;

pub(crate) fn register(handlers: Handlers) -> Handlers {
    handlers
        .write::<Create>(handler!(create))
        .write::<Update>(handler!(update))
        .read::<List>(handler!(list))
        .read::<Lookup>(|_tx, call| Box::pin(async move { lookup(call.request()) }))
        .write::<Delete>(handler!(delete))
}

/// The row as v1 has it.
pub(crate) fn of(row: &IdentityRow) -> Result<v1::Identity> {
    Ok(v1::Identity {
        id: row.uid.as_str().into(),
        name: row.name.clone(),
        description: row.description.clone(),
        created_at: timestamp(row.created_at),
        updated_at: timestamp(row.updated_at),
        last_seen: row.last_seen_at.and_then(timestamp),
        relationship: row.relationship()?.map(down),
    })
}

fn input(identity: v1::Identity) -> IdentityInput {
    let v1::Identity { name, description, relationship, id: _, created_at: _, updated_at: _, last_seen: _ } = identity;
    IdentityInput { name, description, company: None, relationship: relationship.map(up) }
}

async fn create(tx: &mut WriteTx, call: &Authorized<v1::CreateIdentityRequest>) -> Result<Changed<v1::Identity>> {
    let identity = call.request().identity.clone().unwrap_or_default();
    answer(identities::create(tx, call, input(identity), &V1).await?)
}

async fn update(tx: &mut WriteTx, call: &Authorized<v1::Identity>) -> Result<Changed<v1::Identity>> {
    let identity = call.request().clone();
    answer(identities::update(tx, call, &Mask::whole(), input(identity), &V1).await?)
}

fn answer(changed: Changed<IdentityRow>) -> Result<Changed<v1::Identity>> {
    let identity = of(&changed.response)?;
    Ok(changed.map(|_| identity))
}

async fn list(tx: &mut ReadTx, call: &Authorized<v1::IdentityFilter>) -> Result<v1::IdentityList> {
    let filter = call.request();
    let visible = identities::visible(call, filter.uidp.as_ref());
    let selection = list::select_v1(visible, filter.uidp.as_ref(), &filter.id);
    let size = |row: &IdentityRow| of(row).map_or(0, |identity| identity.encoded_len());
    let rows = list::everything(tx, call, &identities::TABLE, &selection, size).await?;
    Ok(v1::IdentityList { items: rows.iter().map(of).collect::<Result<_>>()? })
}

fn lookup(request: &v1::LookupRequest) -> Result<v1::Identity> {
    let missing: Vec<_> = [("issuer", &request.issuer), ("subject", &request.subject)]
        .into_iter()
        .filter(|(_, value)| value.is_empty())
        .map(|(field, _)| FieldViolation { field: field.into(), description: format!("{field} is required") })
        .collect();
    if !missing.is_empty() {
        return Err(Error::invalid(missing));
    }
    let uid = identities::human_uid(&request.issuer, &request.subject);
    Ok(v1::Identity { id: uid.into(), ..v1::Identity::default() })
}

async fn delete(tx: &mut WriteTx, call: &Authorized<v1::DeleteIdentityRequest>) -> Result<Changed<()>> {
    identities::remove(tx, call.require_scope()?).await
}

/// A relationship of v1 in the form of v2; only numbers and names differ.
fn up(relationship: v1_parts::Relationship) -> v2_parts::Relationship {
    use v1_parts::{aws_identity as aws, claim_match as claim};
    use v2_parts::{aws_identity as aws_v2, claim_match as claim_v2};
    match relationship {
        v1_parts::Relationship::ClaimMatch(claims) => v2_parts::Relationship::ClaimMatch(v2_parts::ClaimMatch {
            iss: claims.iss.map(|iss| match iss {
                claim::Iss::Issuer(text) => claim_v2::Iss::Issuer(text),
                claim::Iss::IssuerPattern(text) => claim_v2::Iss::IssuerPattern(text),
            }),
            sub: claims.sub.map(|sub| match sub {
                claim::Sub::Subject(text) => claim_v2::Sub::Subject(text),
                claim::Sub::SubjectPattern(text) => claim_v2::Sub::SubjectPattern(text),
            }),
            aud: claims.aud.map(|aud| match aud {
                claim::Aud::Audience(text) => claim_v2::Aud::Audience(text),
                claim::Aud::AudiencePattern(text) => claim_v2::Aud::AudiencePattern(text),
            }),
            claims: claims.claims,
            claim_patterns: claims.claim_patterns,
        }),
        v1_parts::Relationship::Static(keys) => v2_parts::Relationship::StaticKeys(v2_parts::StaticKeys {
            issuer: keys.issuer,
            subject: keys.subject,
            issuer_keys: keys.issuer_keys,
            expiration_time: keys.expiration,
            audiences: keys.audiences,
        }),
        v1_parts::Relationship::AwsIdentity(account) => v2_parts::Relationship::AwsIdentity(v2_parts::AwsIdentity {
            aws_account: account.aws_account,
            aws_arn: account.aws_arn.map(|arn| match arn {
                aws::AwsArn::Arn(text) => aws_v2::AwsArn::Arn(text),
                aws::AwsArn::ArnPattern(text) => aws_v2::AwsArn::ArnPattern(text),
            }),
            aws_user_id: account.aws_user_id.map(|id| match id {
                aws::AwsUserId::UserId(text) => aws_v2::AwsUserId::UserId(text),
                aws::AwsUserId::UserIdPattern(text) => aws_v2::AwsUserId::UserIdPattern(text),
            }),
        }),
        v1_parts::Relationship::ServicePrincipal(number) => v2_parts::Relationship::ServicePrincipal(number),
    }
}

fn down(relationship: v2_parts::Relationship) -> v1_parts::Relationship {
    use v1_parts::{aws_identity as aws_v1, claim_match as claim_v1};
    use v2_parts::{aws_identity as aws, claim_match as claim};
    match relationship {
        v2_parts::Relationship::ClaimMatch(claims) => v1_parts::Relationship::ClaimMatch(v1_parts::ClaimMatch {
            iss: claims.iss.map(|iss| match iss {
                claim::Iss::Issuer(text) => claim_v1::Iss::Issuer(text),
                claim::Iss::IssuerPattern(text) => claim_v1::Iss::IssuerPattern(text),
            }),
            sub: claims.sub.map(|sub| match sub {
                claim::Sub::Subject(text) => claim_v1::Sub::Subject(text),
                claim::Sub::SubjectPattern(text) => claim_v1::Sub::SubjectPattern(text),
            }),
            aud: claims.aud.map(|aud| match aud {
                claim::Aud::Audience(text) => claim_v1::Aud::Audience(text),
                claim::Aud::AudiencePattern(text) => claim_v1::Aud::AudiencePattern(text),
            }),
            claims: claims.claims,
            claim_patterns: claims.claim_patterns,
        }),
        v2_parts::Relationship::StaticKeys(keys) => v1_parts::Relationship::Static(v1_parts::StaticKeys {
            issuer: keys.issuer,
            subject: keys.subject,
            issuer_keys: keys.issuer_keys,
            expiration: keys.expiration_time,
            audiences: keys.audiences,
        }),
        v2_parts::Relationship::AwsIdentity(account) => v1_parts::Relationship::AwsIdentity(v1_parts::AwsIdentity {
            aws_account: account.aws_account,
            aws_arn: account.aws_arn.map(|arn| match arn {
                aws::AwsArn::Arn(text) => aws_v1::AwsArn::Arn(text),
                aws::AwsArn::ArnPattern(text) => aws_v1::AwsArn::ArnPattern(text),
            }),
            aws_user_id: account.aws_user_id.map(|id| match id {
                aws::AwsUserId::UserId(text) => aws_v1::AwsUserId::UserId(text),
                aws::AwsUserId::UserIdPattern(text) => aws_v1::AwsUserId::UserIdPattern(text),
            }),
        }),
        v2_parts::Relationship::ServicePrincipal(number) => v1_parts::Relationship::ServicePrincipal(number),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relationships_survive_both_ways() {
        let aws = v2_parts::AwsIdentity {
            aws_account: "123456789012".into(),
            aws_arn: Some(v2_parts::aws_identity::AwsArn::ArnPattern("bar".into())),
            aws_user_id: Some(v2_parts::aws_identity::AwsUserId::UserId("me".into())),
        };
        let claims = v2_parts::ClaimMatch {
            iss: Some(v2_parts::claim_match::Iss::Issuer("https://a.example".into())),
            sub: Some(v2_parts::claim_match::Sub::SubjectPattern("b.*".into())),
            aud: Some(v2_parts::claim_match::Aud::AudiencePattern("c".into())),
            claims: [("d".to_owned(), "e".to_owned())].into(),
            claim_patterns: [("f".to_owned(), "g".to_owned())].into(),
        };
        let keys = v2_parts::StaticKeys {
            issuer: "i".into(),
            subject: "s".into(),
            issuer_keys: "keys".into(),
            expiration_time: timestamp(5_000_001),
            audiences: vec!["a".into()],
        };
        for relationship in [
            v2_parts::Relationship::AwsIdentity(aws),
            v2_parts::Relationship::ClaimMatch(claims),
            v2_parts::Relationship::StaticKeys(keys),
            v2_parts::Relationship::ServicePrincipal(2),
        ] {
            assert_eq!(up(down(relationship.clone())), relationship);
        }
    }
}
