//! Rules of policies about known vulnerabilities, stored beside the policy, which the wire contract has no field for.

use bowline_contract::bowline::libraries::v1 as own;
use bowline_contract::bowline::libraries::v1::rpc::policy_vulnerabilities::{GetRule, SetRule};
use bowline_core::{Error, FieldViolation, Result, Uidp};
use bowline_pipeline::{Authorized, Change, Changed, Handlers, ResourceSnapshot, handler};
use bowline_resources::kinds::LIBRARY_POLICY;
use bowline_store::{ReadTx, Value, WriteTx};
use prost::Message;

use super::policy::decide::{Policy, Severity, VulnerabilityRule};
use super::{policies, policy_expectations};

/// Longest time that a fix can be required to have been public, in days.
const MAX_FIX_DAYS: i32 = 365;

pub(super) fn register(handlers: Handlers) -> Handlers {
    handlers
        .read::<GetRule>(handler!(get))
        .validate::<SetRule>(|request| violations("rule", request.rule.as_ref()))
        .write::<SetRule>(handler!(set))
}

/// What is wrong with a rule.
pub(super) fn violations(field: &str, rule: Option<&own::VulnerabilityRule>) -> Vec<FieldViolation> {
    let Some(rule) = rule else { return Vec::new() };
    let mut wrong = Vec::new();
    if own::VulnerabilitySeverity::try_from(rule.minimum_severity).is_err() {
        let description = "must be LOW, MEDIUM, HIGH or CRITICAL".into();
        wrong.push(FieldViolation { field: format!("{field}.minimumSeverity"), description });
    }
    if !(0..=MAX_FIX_DAYS).contains(&rule.fix_days) {
        let description = format!("must be 0 to {MAX_FIX_DAYS}");
        wrong.push(FieldViolation { field: format!("{field}.fixDays"), description });
    }
    wrong
}

/// A rule that was validated, ready to check by; absent if it names no severity.
pub(super) fn ready(rule: &own::VulnerabilityRule) -> Option<VulnerabilityRule> {
    let minimum = match rule.minimum_severity() {
        own::VulnerabilitySeverity::Unspecified => return None,
        own::VulnerabilitySeverity::Low => Severity::Low,
        own::VulnerabilitySeverity::Medium => Severity::Medium,
        own::VulnerabilitySeverity::High => Severity::High,
        own::VulnerabilitySeverity::Critical => Severity::Critical,
    };
    Some(VulnerabilityRule { minimum, fix_days: rule.fix_days, includes_unfixed: rule.includes_unfixed })
}

/// The rule of a policy, ready to check by.
pub(super) async fn of_policy(tx: &mut ReadTx, uid: &Uidp) -> Result<Option<VulnerabilityRule>> {
    Ok(stored(tx, uid).await?.as_ref().and_then(ready))
}

/// Reads a rule as it is stored; absent without bytes.
pub(super) fn read(stored: Option<Vec<u8>>) -> Result<Option<VulnerabilityRule>> {
    let Some(bytes) = stored else { return Ok(None) };
    Ok(ready(&own::VulnerabilityRule::decode(bytes.as_slice()).map_err(Error::internal)?))
}

async fn get(
    tx: &mut ReadTx,
    call: &Authorized<own::GetVulnerabilityRuleRequest>,
) -> Result<own::PolicyVulnerabilityRule> {
    let uid = call.require_scope()?;
    policies::stored_policy(tx, uid).await?;
    Ok(shown(uid, stored(tx, uid).await?))
}

async fn set(
    tx: &mut WriteTx,
    call: &Authorized<own::SetVulnerabilityRuleRequest>,
) -> Result<Changed<own::PolicyVulnerabilityRule>> {
    let (uid, request) = (call.require_scope()?, call.request());
    let policy = policies::stored_custom(tx, uid).await?;
    let before = stored(tx, uid).await?;
    let after = request.rule.filter(|rule| rule.minimum_severity() != own::VulnerabilitySeverity::Unspecified);
    if after == before {
        return Ok(Changed::nothing(shown(uid, before)));
    }
    if !request.force {
        let policy = Policy { vulnerabilities: after.as_ref().and_then(ready), ..policy };
        let failed = policy_expectations::failing(tx, uid, &policy, call.now()).await?;
        policy_expectations::require_passed(uid, &failed)?;
    }
    match &after {
        Some(rule) => put(tx, uid, rule).await?,
        None => remove(tx, uid).await?,
    }
    let [before, after] = [before, after].map(|rule| shown(uid, rule));
    let snapshot = |rule: &own::PolicyVulnerabilityRule| rule.rule.is_some().then(|| ResourceSnapshot::of(rule));
    let change =
        Change { kind: LIBRARY_POLICY, uid: uid.as_str().into(), before: snapshot(&before), after: snapshot(&after) };
    Ok(Changed::many(vec![change], after).with_event(uid, request))
}

fn shown(uid: &Uidp, rule: Option<own::VulnerabilityRule>) -> own::PolicyVulnerabilityRule {
    own::PolicyVulnerabilityRule { policy: uid.as_str().into(), rule }
}

async fn stored(tx: &mut ReadTx, uid: &Uidp) -> Result<Option<own::VulnerabilityRule>> {
    let sql = "SELECT rule FROM library_policy_vulnerabilities WHERE policy = $1";
    let bytes = tx.query_opt(sql, &[Value::from(uid.as_str())], |row| row.bytes(0).map_err(Error::from)).await?;
    bytes.map(|bytes| own::VulnerabilityRule::decode(bytes.as_slice()).map_err(Error::internal)).transpose()
}

async fn put(tx: &mut WriteTx, uid: &Uidp, rule: &own::VulnerabilityRule) -> Result<()> {
    let sql = "INSERT INTO library_policy_vulnerabilities (policy, rule) VALUES ($1, $2)
               ON CONFLICT (policy) DO UPDATE SET rule = excluded.rule";
    tx.execute(sql, &[Value::from(uid.as_str()), Value::Bytes(&rule.encode_to_vec())]).await?;
    Ok(())
}

/// Removes the rule of a policy, which may have none.
pub(super) async fn remove(tx: &mut WriteTx, uid: &Uidp) -> Result<()> {
    let sql = "DELETE FROM library_policy_vulnerabilities WHERE policy = $1";
    tx.execute(sql, &[Value::from(uid.as_str())]).await?;
    Ok(())
}
