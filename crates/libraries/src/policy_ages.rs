//! From when on policies count the age of versions, stored with the policy, which the wire contract has no field for.

use bowline_contract::bowline::libraries::v1 as own;
use bowline_contract::bowline::libraries::v1::rpc::policy_ages::{GetRule, SetRule};
use bowline_core::{Error, FieldViolation, Result, Uidp};
use bowline_pipeline::{Authorized, Change, Changed, Handlers, ResourceSnapshot, handler};
use bowline_resources::kinds::LIBRARY_POLICY;
use bowline_store::{ReadTx, Value, WriteTx};

use super::policy::age::AgeSource;
use super::policy::decide::Policy;
use super::{policies, policy_expectations};

pub(super) fn register(handlers: Handlers) -> Handlers {
    handlers
        .read::<GetRule>(handler!(get))
        .validate::<SetRule>(|request| violations("ageSource", request.age_source))
        .write::<SetRule>(handler!(set))
}

/// What is wrong with a source, by its number.
pub(super) fn violations(field: &str, source: i32) -> Vec<FieldViolation> {
    if own::AgeSource::try_from(source).is_ok() {
        return Vec::new();
    }
    let description = "must be UPSTREAM, FIRST_SEEN_NEW_VERSIONS or FIRST_SEEN_ALL".into();
    vec![FieldViolation { field: field.into(), description }]
}

/// A source, ready to count by; without one, the upstream's time counts.
pub(super) fn ready(source: own::AgeSource) -> AgeSource {
    match source {
        own::AgeSource::Unspecified | own::AgeSource::Upstream => AgeSource::Upstream,
        own::AgeSource::FirstSeenNewVersions => AgeSource::NewVersions,
        own::AgeSource::FirstSeenAll => AgeSource::AllVersions,
    }
}

/// Reads a source as it is stored.
pub(super) fn read(stored: i64) -> Result<AgeSource> {
    known(stored).map(ready)
}

/// The source of a policy, ready to count by.
pub(super) async fn of_policy(tx: &mut ReadTx, uid: &Uidp) -> Result<AgeSource> {
    stored(tx, uid).await.map(ready)
}

fn known(stored: i64) -> Result<own::AgeSource> {
    let source = i32::try_from(stored).ok().and_then(|number| own::AgeSource::try_from(number).ok());
    source.ok_or_else(|| Error::internal(format!("a stored policy has the unknown source of ages {stored}")))
}

async fn get(tx: &mut ReadTx, call: &Authorized<own::GetAgeRuleRequest>) -> Result<own::PolicyAgeRule> {
    let uid = call.require_scope()?;
    policies::stored_policy(tx, uid).await?;
    Ok(shown(uid, stored(tx, uid).await?))
}

async fn set(tx: &mut WriteTx, call: &Authorized<own::SetAgeRuleRequest>) -> Result<Changed<own::PolicyAgeRule>> {
    let (uid, request) = (call.require_scope()?, call.request());
    let policy = policies::stored_custom(tx, uid).await?;
    let before = shown(uid, stored(tx, uid).await?);
    let after = shown(uid, request.age_source());
    if after == before {
        return Ok(Changed::nothing(before));
    }
    if !request.force {
        let policy = Policy { age_source: ready(request.age_source()), ..policy };
        let failed = policy_expectations::failing(tx, uid, &policy, call.now()).await?;
        policy_expectations::require_passed(uid, &failed)?;
    }
    let sql = "UPDATE library_policies SET age_source = $2 WHERE uid = $1";
    tx.execute(sql, &[Value::from(uid.as_str()), Value::from(after.age_source)]).await?;
    let change = Change {
        kind: LIBRARY_POLICY,
        uid: uid.as_str().into(),
        before: Some(ResourceSnapshot::of(&before)),
        after: Some(ResourceSnapshot::of(&after)),
    };
    Ok(Changed::many(vec![change], after).with_event(uid, request))
}

/// The rule of a policy: of one that has none, the upstream's time counts.
fn shown(uid: &Uidp, source: own::AgeSource) -> own::PolicyAgeRule {
    let source = match source {
        own::AgeSource::Unspecified => own::AgeSource::Upstream,
        source => source,
    };
    own::PolicyAgeRule { policy: uid.as_str().into(), age_source: source as i32 }
}

async fn stored(tx: &mut ReadTx, uid: &Uidp) -> Result<own::AgeSource> {
    let sql = "SELECT age_source FROM library_policies WHERE uid = $1";
    let number = tx.query_opt(sql, &[Value::from(uid.as_str())], |row| row.int(0).map_err(Error::from)).await?;
    known(number.unwrap_or_default())
}
