//! Decisions for callers of the API: `CheckPolicies` of the contract, and previews.

use std::collections::BTreeMap;

use bowline_contract::bowline::registry::v1 as own;
use bowline_contract::bowline::registry::v1::rpc::image_policies::PreviewImagePolicy;
use bowline_contract::v1::registry as v1;
use bowline_contract::v1::registry::rpc::policies::CheckPolicies;
use bowline_core::{Error, Micros, Result, UidRange, Uidp};
use bowline_pipeline::{Authorized, Direction, Handlers, Page, PageRequest};
use bowline_store::{ReadTx, Row, Value};
use prost::Message as _;
use prost_types::value::Kind;

use super::decide::{Decision, Outcome, RuleVerdict};
use super::gather::{FindingBytes, Gathered, gather, policies};
use super::validate::{missing_root, validate};
use crate::attached::Documents;
use crate::tags::Hidden;
use crate::{images, paths, repos};

pub(super) fn register(handlers: Handlers, documents: &Documents) -> Handlers {
    let (for_check, for_preview) = (documents.clone(), documents.clone());
    handlers
        .read_then::<CheckPolicies, _>(
            |tx, call| {
                Box::pin(async move {
                    let (repo, digest) = (call.require_scope()?, &call.request().digest);
                    images::require(tx, repo, digest).await?;
                    let applied = policies(tx, repo).await?;
                    Ok((gather(tx, repo, digest, applied, &mut FindingBytes::new()).await?, call.now()))
                })
            },
            move |(gathered, now)| {
                let documents = for_check.clone();
                Box::pin(async move {
                    let results = documents.decide(gathered, now).await?.rules.into_iter().map(result).collect();
                    Ok(v1::CheckPoliciesResponse { results })
                })
            },
        )
        .read_then::<PreviewImagePolicy, _>(
            |tx, call| Box::pin(preview(tx, call)),
            move |previewed| {
                let documents = for_preview.clone();
                Box::pin(async move { previewed.evaluate(&documents).await })
            },
        )
        .validate_costly::<PreviewImagePolicy>(|request| {
            let policy = request.policy.as_ref();
            policy.map(|policy| validate(policy).into_iter().chain(missing_root(policy)).collect()).unwrap_or_default()
        })
}

fn result_of(verdict: &RuleVerdict) -> v1::PolicyCheckResult {
    match verdict.outcome {
        _ if verdict.allows() => v1::PolicyCheckResult::Allowed,
        Outcome::Failed => v1::PolicyCheckResult::Denied,
        Outcome::Unknown | Outcome::Passed => v1::PolicyCheckResult::Error,
    }
}

/// A verdict in the words of the contract: its parameters say why.
fn result(verdict: RuleVerdict) -> v1::PolicyResult {
    let text = |text: &str| prost_types::Value { kind: Some(Kind::StringValue(text.to_owned())) };
    let mut parameters = BTreeMap::from([("reason".to_owned(), text(&verdict.reason))]);
    if let Some(exception) = &verdict.exception {
        parameters.insert("exception".to_owned(), text(&exception.id));
        parameters.insert("justification".to_owned(), text(&exception.justification));
    }
    let mode = match verdict.mode {
        own::ImagePolicyMode::Enforce => v1::PolicyMode::Enforced,
        own::ImagePolicyMode::Log | own::ImagePolicyMode::Unspecified => v1::PolicyMode::DryRun,
    };
    v1::PolicyResult {
        mode: mode as i32,
        result: result_of(&verdict) as i32,
        policy_id: verdict.scope.clone(),
        policy_name: verdict.rule,
        binding_id: verdict.scope,
        parameters,
    }
}

/// Images of one page.
const AT_ONCE: usize = 20;
/// Tags that are shown of an image.
const SHOWN_TAGS: i64 = 20;
/// The one order of the list.
const ORDERS: &[&[&str]] = &[&["repo_uid"]];

/// Images, with what is needed to decide about them.
struct Previewed {
    images: Vec<(own::ImageVerdict, Gathered)>,
    next_page_token: String,
    now: Micros,
}

impl Previewed {
    async fn evaluate(self, documents: &Documents) -> Result<own::PreviewImagePolicyResponse> {
        let mut verdicts = Vec::with_capacity(self.images.len());
        for (image, gathered) in self.images {
            let decision = documents.decide(gathered, self.now).await?;
            verdicts.push(own::ImageVerdict {
                refused: decision.refusal().is_some(),
                exempt: decision.is_exempt,
                rules: shown(decision),
                ..image
            });
        }
        Ok(own::PreviewImagePolicyResponse { verdicts, next_page_token: self.next_page_token })
    }
}

fn shown(decision: Decision) -> Vec<own::ImageRuleVerdict> {
    let verdict = |verdict: RuleVerdict| own::ImageRuleVerdict {
        result: result_of(&verdict) as i32,
        policy_uid: verdict.scope,
        rule: verdict.rule,
        mode: verdict.mode as i32,
        reason: verdict.reason,
        exception: verdict.exception,
    };
    decision.rules.into_iter().map(verdict).collect()
}

async fn preview(tx: &mut ReadTx, call: &Authorized<own::PreviewImagePolicyRequest>) -> Result<Previewed> {
    let (request, scope) = (call.request(), call.require_scope()?);
    repos::require_repo_or_group(tx, scope).await?;
    let rest = own::PreviewImagePolicyRequest { page_size: 0, page_token: String::new(), ..request.clone() };
    let page = PageRequest {
        page_size: request.page_size,
        page_token: request.page_token.clone(),
        filter: rest.encode_to_vec(),
        ..PageRequest::default()
    };
    let page = Page::validate(call, &page, ORDERS, (0, Direction::Ascending))?;
    let after = page.cursor.as_ref().map_or("", |cursor| cursor.uid.as_str());
    let size = page.size.min(AT_ONCE);
    let mut found = images_of(tx, scope, &request.digest, after, size + 1).await?;
    let mut has_more = found.len() > size;
    found.truncate(size);
    let (mut images, mut left) = (Vec::new(), FindingBytes::new());
    for (repo, digest) in found {
        if left.is_low() {
            has_more = true;
            break;
        }
        let uid = paths::stored(&repo)?;
        let applied = with_draft(policies(tx, &uid).await?, scope, request.policy.as_ref());
        let gathered = gather(tx, &uid, &digest, applied, &mut left).await?;
        let tags = tags(tx, &uid, &digest).await?;
        images.push((own::ImageVerdict { repo_uid: repo, digest, tags, ..own::ImageVerdict::default() }, gathered));
    }
    let last = images.last().filter(|_| has_more).map(|(image, _)| format!("{} {}", image.repo_uid, image.digest));
    let next_page_token = last.map(|last| page.next_token(call, None, last)).unwrap_or_default();
    Ok(Previewed { images, next_page_token, now: call.now() })
}

/// The images of a scope after a position: one of this digest, or the tagged ones.
async fn images_of(
    tx: &mut ReadTx,
    scope: &Uidp,
    digest: &str,
    after: &str,
    most: usize,
) -> Result<Vec<(String, String)>> {
    let UidRange { lower, upper } = UidRange::of(scope);
    let (after_repo, after_digest) = after.split_once(' ').unwrap_or_default();
    let read = |row: &Row<'_>| Ok::<_, Error>((row.text(0)?, row.text(1)?));
    let range = [Value::from(&lower), Value::from(&upper), Value::from(after_repo), Value::from(after_digest)];
    if digest.is_empty() {
        let sql = "SELECT DISTINCT t.parent, t.digest FROM tags t
                   JOIN repo_manifests r ON r.repo = t.parent AND r.digest = t.digest
                   WHERE t.parent >= $1 AND t.parent < $2 AND (t.parent, t.digest) > ($3, $4) AND t.hidden <> $5
                   ORDER BY t.parent, t.digest LIMIT $6";
        let rest = [Value::Int(Hidden::Referrer as i64), Value::Int(most as i64)];
        return tx.query(sql, &range.into_iter().chain(rest).collect::<Vec<_>>(), read).await;
    }
    let sql = "SELECT r.repo, r.digest FROM repo_manifests r
               WHERE r.repo >= $1 AND r.repo < $2 AND (r.repo, r.digest) > ($3, $4) AND r.digest = $5
               ORDER BY r.repo, r.digest LIMIT $6";
    let rest = [Value::from(digest), Value::Int(most as i64)];
    tx.query(sql, &range.into_iter().chain(rest).collect::<Vec<_>>(), read).await
}

async fn tags(tx: &mut ReadTx, repo: &Uidp, digest: &str) -> Result<Vec<String>> {
    let sql = "SELECT name FROM tags WHERE parent = $1 AND digest = $2 ORDER BY name LIMIT $3";
    let params = [Value::from(repo.as_str()), Value::from(digest), Value::Int(SHOWN_TAGS)];
    tx.query(sql, &params, |row| row.text(0).map_err(Error::from)).await
}

/// The policies that apply, with a draft in place of the one of the scope. The exceptions of that one stay.
fn with_draft(
    mut applied: Vec<own::ImagePolicy>,
    scope: &Uidp,
    draft: Option<&own::ImagePolicy>,
) -> Vec<own::ImagePolicy> {
    let Some(draft) = draft else { return applied };
    let uid = scope.as_str().to_owned();
    let at = applied.partition_point(|policy| policy.uid < uid);
    let is_there = applied.get(at).is_some_and(|policy| policy.uid == uid);
    let exceptions = if is_there { applied.remove(at).exceptions } else { Vec::new() };
    applied.insert(at, own::ImagePolicy { uid, exceptions, ..draft.clone() });
    applied
}
