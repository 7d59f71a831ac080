//! Tests that are stored beside a policy: what it must decide about versions. They run at each update of it.

use std::collections::HashSet;

use bowline_contract::bowline::libraries::v1 as own;
use bowline_contract::bowline::libraries::v1::rpc::policy_tests::{ListPolicyTests, SetPolicyTests, UpdatePolicy};
use bowline_contract::bowline::libraries::v1::{ExpectedDecision, PolicyTest, PolicyTestResult};
use bowline_core::{Detail, Error, FieldViolation, Micros, PreconditionViolation, Reason, Result, Uidp};
use bowline_pipeline::{Authorized, Change, Changed, Handlers, ResourceSnapshot, handler};
use bowline_resources::kinds::LIBRARY_POLICY;
use bowline_store::{ReadTx, Value, WriteTx};
use prost::Message;

use super::policy::decide::Policy;
use super::{decisions, policies};

/// The kind of the precondition that a failing test is.
const FAILED: &str = "LIBRARY_POLICY_TEST_FAILED";
/// Failures that the message of a refusal names; the details have more of them.
const MAX_EXAMPLES: usize = 3;
/// Bytes of the details of a refusal: they are sent in a trailer, which clients bound at some kilobytes.
const MAX_DETAILS: usize = 1500;
/// Bytes of a package URL, and of a description.
const MAX_QUOTED: usize = 200;

pub(super) fn register(handlers: Handlers) -> Handlers {
    handlers
        .read::<ListPolicyTests>(handler!(list))
        .validate::<SetPolicyTests>(wrong_tests)
        .write::<SetPolicyTests>(handler!(set))
        .validate::<UpdatePolicy>(|request| decisions::draft_violations(request.policy.as_ref()))
        .write::<UpdatePolicy>(handler!(update))
}

/// What is wrong with tests, beyond what the rules of their fields say.
fn wrong_tests(request: &own::SetPolicyTestsRequest) -> Vec<FieldViolation> {
    let (mut wrong, mut named) = (Vec::new(), HashSet::new());
    for (at, test) in request.tests.iter().enumerate() {
        let mut refuse = |field: &str, description: String| {
            wrong.push(FieldViolation { field: format!("tests[{at}].{field}"), description });
        };
        match decisions::spelled(&test.purl) {
            Err(description) => refuse("purl", description),
            Ok(purl) => {
                if !named.insert(purl) {
                    refuse("purl", "the version is named twice".into());
                }
            }
        }
        if test.expected() == ExpectedDecision::Unspecified {
            refuse("expected", "expected is required: ALLOWED or REFUSED".into());
        }
        if test.expected() == ExpectedDecision::Allowed && !test.reason.is_empty() {
            refuse("reason", "only a refusal has a reason".into());
        }
    }
    wrong
}

async fn list(tx: &mut ReadTx, call: &Authorized<own::ListPolicyTestsRequest>) -> Result<own::PolicyTestResults> {
    let uid = call.require_scope()?;
    let policy = policies::stored_policy(tx, uid).await?;
    let tests = stored(tx, uid).await?;
    let results = results(tx, uid, tests, &policy, call.now()).await?;
    Ok(own::PolicyTestResults { policy: uid.as_str().into(), results })
}

async fn set(
    tx: &mut WriteTx,
    call: &Authorized<own::SetPolicyTestsRequest>,
) -> Result<Changed<own::PolicyTestResults>> {
    let uid = call.require_scope()?;
    let request = call.request();
    let policy = policies::stored_policy(tx, uid).await?;
    let before = stored(tx, uid).await?;
    let spelled = |test: &PolicyTest| -> Result<PolicyTest> {
        let purl = decisions::spelled(&test.purl).map_err(|why| Error::invalid_field("tests", why))?;
        Ok(PolicyTest { purl, ..test.clone() })
    };
    let tests = request.tests.iter().map(spelled).collect::<Result<Vec<_>>>()?;
    let results = results(tx, uid, tests.clone(), &policy, call.now()).await?;
    if !request.force {
        let failed: Vec<PolicyTestResult> = results.iter().filter(|result| !result.passed).cloned().collect();
        require_passed(uid, &failed)?;
    }
    let response = own::PolicyTestResults { policy: uid.as_str().into(), results };
    if tests == before {
        return Ok(Changed::nothing(response));
    }
    let [before, after] = [before, tests].map(|tests| own::PolicyTestList { tests });
    put(tx, uid, &after).await?;
    let snapshot =
        |list: &own::PolicyTestList| Some(list).filter(|list| !list.tests.is_empty()).map(ResourceSnapshot::of);
    let change =
        Change { kind: LIBRARY_POLICY, uid: uid.as_str().into(), before: snapshot(&before), after: snapshot(&after) };
    let event = own::SetPolicyTestsRequest { tests: after.tests, ..request.clone() };
    Ok(Changed::many(vec![change], response).with_event(uid, &event))
}

/// Replaces a policy, also while tests fail if that is forced.
async fn update(
    tx: &mut WriteTx,
    call: &Authorized<own::UpdateTestedPolicyRequest>,
) -> Result<Changed<own::UpdateTestedPolicyResponse>> {
    let uid = call.require_scope()?;
    let given = call.request().policy.clone().unwrap_or_default();
    let (changed, failed) = policies::replace(tx, call, uid, given).await?;
    if !call.request().force {
        require_passed(uid, &failed)?;
    }
    Ok(changed.map(|policy| own::UpdateTestedPolicyResponse { policy: Some(policy), failed }))
}

/// The tests of a policy that it fails.
pub(super) async fn failing(
    tx: &mut ReadTx,
    uid: &Uidp,
    policy: &Policy,
    now: Micros,
) -> Result<Vec<PolicyTestResult>> {
    let tests = stored(tx, uid).await?;
    let mut results = results(tx, uid, tests, policy, now).await?;
    results.retain(|result| !result.passed);
    Ok(results)
}

/// Refuses while tests fail: the message names some, the details as many as a trailer holds.
///
/// # Errors
/// FAILED_PRECONDITION.
pub(super) fn require_passed(uid: &Uidp, failed: &[PolicyTestResult]) -> Result<()> {
    if failed.is_empty() {
        return Ok(());
    }
    let named: Vec<String> = failed.iter().take(MAX_EXAMPLES).map(described).collect();
    let more = match failed.len().saturating_sub(MAX_EXAMPLES) {
        0 => String::new(),
        more => format!("; and {more} more"),
    };
    let text = format!(
        "Precondition failed: {} of the tests of the library policy {uid} would fail: {}{more}. Correct the policy or \
         its tests, or force the update with bowline.libraries.v1.PolicyTests",
        failed.len(),
        named.join("; ")
    );
    Err(Error::new(Reason::FailedPrecondition, text).with(Detail::Precondition(violations(uid, failed))))
}

/// A violation for each failure, up to the bound; one of the policy counts the others.
fn violations(uid: &Uidp, failed: &[PolicyTestResult]) -> Vec<PreconditionViolation> {
    let (mut listed, mut bytes) = (Vec::new(), 0);
    for result in failed {
        let subject = shortened(result.test.as_ref().map(|test| test.purl.clone()).unwrap_or_default());
        let description = described(result);
        bytes += FAILED.len() + subject.len() + description.len();
        if bytes > MAX_DETAILS {
            break;
        }
        listed.push(PreconditionViolation { kind: FAILED, subject, description });
    }
    if listed.len() < failed.len() {
        let description = format!("and {} more tests would fail", failed.len() - listed.len());
        listed.push(PreconditionViolation { kind: FAILED, subject: uid.as_str().into(), description });
    }
    listed
}

/// A text that a request may have made long.
fn shortened(mut text: String) -> String {
    if text.len() > MAX_QUOTED {
        text.truncate(text.floor_char_boundary(MAX_QUOTED));
        text.push_str("...");
    }
    text
}

/// A failure in words: what was expected of which version, and what is decided.
fn described(result: &PolicyTestResult) -> String {
    let PolicyTest { purl, reason, note, .. } = result.test.clone().unwrap_or_default();
    let is_refusal = result.test.as_ref().is_some_and(|test| test.expected() == ExpectedDecision::Refused);
    let outcome = |allowed: bool, reason: &str| match (allowed, reason) {
        (true, _) => "allowed".to_owned(),
        (false, "") => "refused".to_owned(),
        (false, reason) => format!("refused for {reason}"),
    };
    let note = if note.is_empty() { note } else { format!(" ({note})") };
    let (expected, decided) = (outcome(!is_refusal, &reason), outcome(result.allowed, &result.reason));
    shortened(format!("{purl} must be {expected} and is {decided}{note}"))
}

async fn results(
    tx: &mut ReadTx,
    uid: &Uidp,
    tests: Vec<PolicyTest>,
    policy: &Policy,
    now: Micros,
) -> Result<Vec<PolicyTestResult>> {
    let purls: Vec<String> = tests.iter().map(|test| test.purl.clone()).collect();
    let decisions = decisions::decided(tx, &uid.root(), (&purls, &[]), policy, now).await?;
    let result = |(test, decision): (PolicyTest, own::Decision)| {
        let own::Decision { allowed, reason, .. } = decision;
        let is_expected = allowed == (test.expected() == ExpectedDecision::Allowed);
        let passed = is_expected && (test.reason.is_empty() || test.reason == reason);
        PolicyTestResult { test: Some(test), passed, allowed, reason }
    };
    Ok(tests.into_iter().zip(decisions).map(result).collect())
}

async fn stored(tx: &mut ReadTx, uid: &Uidp) -> Result<Vec<PolicyTest>> {
    let sql = "SELECT tests FROM library_policy_tests WHERE policy = $1";
    let bytes = tx.query_opt(sql, &[Value::from(uid.as_str())], |row| row.bytes(0).map_err(Error::from)).await?;
    let list = own::PolicyTestList::decode(bytes.unwrap_or_default().as_slice()).map_err(Error::internal)?;
    Ok(list.tests)
}

async fn put(tx: &mut WriteTx, uid: &Uidp, list: &own::PolicyTestList) -> Result<()> {
    if list.tests.is_empty() {
        return remove(tx, uid).await;
    }
    let sql = "INSERT INTO library_policy_tests (policy, tests) VALUES ($1, $2)
               ON CONFLICT (policy) DO UPDATE SET tests = excluded.tests";
    tx.execute(sql, &[Value::from(uid.as_str()), Value::Bytes(&list.encode_to_vec())]).await?;
    Ok(())
}

/// Removes the tests of a policy, which may have none.
pub(super) async fn remove(tx: &mut WriteTx, uid: &Uidp) -> Result<()> {
    tx.execute("DELETE FROM library_policy_tests WHERE policy = $1", &[Value::from(uid.as_str())]).await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failed(count: usize, purl: &str) -> Vec<PolicyTestResult> {
        let test = |at: usize| PolicyTest {
            purl: format!("pkg:npm/{purl}@{at}"),
            expected: ExpectedDecision::Refused as i32,
            note: "as agreed".into(),
            ..PolicyTest::default()
        };
        (0..count).map(|at| PolicyTestResult { test: Some(test(at)), allowed: true, ..Default::default() }).collect()
    }

    fn refusal(failed: &[PolicyTestResult]) -> (String, Vec<PreconditionViolation>) {
        let error = require_passed(&Uidp::parse(&"a".repeat(40)).unwrap(), failed).unwrap_err();
        let [Detail::Precondition(violations)] = error.details() else { panic!("{error:?}") };
        (error.message().to_owned(), violations.clone())
    }

    #[test]
    fn a_refusal_fits_in_a_trailer_however_many_tests_fail() {
        for purl in ["left-pad".to_owned(), "\u{10ffff}".repeat(1000)] {
            let (message, violations) = refusal(&failed(100, &purl));
            let size = |one: &PreconditionViolation| one.kind.len() + one.subject.len() + one.description.len();
            let bytes = message.len() + violations.iter().map(size).sum::<usize>();
            assert!(bytes < 3000, "{bytes}");
            let last = violations.last().unwrap();
            assert_eq!(last.subject, "a".repeat(40));
            assert_eq!(last.description, format!("and {} more tests would fail", 101 - violations.len()));
            assert!(message.contains("100 of the tests") && message.contains("; and 97 more."), "{message}");
        }
        let (_, violations) = refusal(&failed(3, "left-pad"));
        assert_eq!(violations.len(), 3);
        assert!(violations.iter().all(|one| one.subject.starts_with("pkg:npm/left-pad@")), "{violations:?}");
    }
}
