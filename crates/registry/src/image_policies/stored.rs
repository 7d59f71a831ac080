//! The image policies of groups and repositories, and their exceptions.

use bowline_contract::bowline::registry::v1 as own;
use bowline_contract::bowline::registry::v1::rpc::image_policies as methods;
use bowline_core::{Error, FieldViolation, Micros, Result, UidRange, Uidp, hex, just_after};
use bowline_pipeline::{Authorized, Changed, Direction, Handlers, Mask, Page, PageRequest, handler};
use bowline_resources::kinds::IMAGE_POLICY;
use bowline_resources::list::{micros, timestamp};
use bowline_resources::references::require_group;
use bowline_store::{ReadTx, Row, Value, WriteTx};
use prost::Message;

use super::decide::DAY;
use super::validate::{missing_root, validate};
use crate::repos;

/// Exceptions of one policy.
const MAX_EXCEPTIONS: usize = 100;
/// Longest time of an exception.
const MAX_EXCEPTION: Micros = 366 * DAY;

pub(super) fn register(handlers: Handlers) -> Handlers {
    handlers
        .read::<methods::GetImagePolicy>(handler!(get))
        .read::<methods::ListImagePolicies>(handler!(list))
        .write::<methods::UpdateImagePolicy>(handler!(update))
        .validate_costly::<methods::UpdateImagePolicy>(|request| {
            request.policy.as_ref().map(validate).unwrap_or_default()
        })
        .write::<methods::CreateImageException>(handler!(create_exception))
        .write::<methods::DeleteImageException>(handler!(delete_exception))
}

/// A policy as it is stored.
struct Stored {
    policy: own::ImagePolicy,
    revision: i64,
}

/// The policy of a group or repository; empty if none is set.
async fn of(tx: &mut ReadTx, scope: &Uidp) -> Result<Stored> {
    repos::require_repo_or_group(tx, scope).await?;
    let sql = "SELECT policy, revision FROM image_policies WHERE scope = $1";
    let read = |row: &Row<'_>| {
        let policy = own::ImagePolicy::decode(row.bytes(0)?.as_slice()).map_err(Error::internal)?;
        Ok::<_, Error>(Stored { policy, revision: row.int(1)? })
    };
    let found = tx.query_opt(sql, &[Value::from(scope.as_str())], read).await?;
    let mut stored = found.unwrap_or(Stored { policy: own::ImagePolicy::default(), revision: 0 });
    stored.policy.uid = scope.as_str().into();
    Ok(stored)
}

async fn get(tx: &mut ReadTx, call: &Authorized<own::GetImagePolicyRequest>) -> Result<own::ImagePolicy> {
    Ok(of(tx, call.require_scope()?).await?.policy)
}

/// The one order of the list.
const BY_UID: &[&[&str]] = &[&["uid"]];

/// Policies of a group and everything below, in which the caller has the same rights.
async fn list(
    tx: &mut ReadTx,
    call: &Authorized<own::ListImagePoliciesRequest>,
) -> Result<own::ListImagePoliciesResponse> {
    let (request, group) = (call.request(), call.require_scope()?);
    require_group(tx, group).await?;
    let page = PageRequest {
        page_size: request.page_size,
        page_token: request.page_token.clone(),
        filter: group.as_str().into(),
        ..PageRequest::default()
    };
    let page = Page::validate(call, &page, BY_UID, (0, Direction::Ascending))?;
    let UidRange { mut lower, upper } = UidRange::subtree(group.as_str());
    if let Some(cursor) = &page.cursor {
        lower = lower.max(just_after(&cursor.uid));
    }
    let sql = "SELECT scope, policy FROM image_policies WHERE scope >= $1 AND scope < $2 ORDER BY scope LIMIT $3";
    let params = [Value::from(&lower), Value::from(&upper), Value::Int(page.size as i64 + 1)];
    let read = |row: &Row<'_>| {
        let policy = own::ImagePolicy::decode(row.bytes(1)?.as_slice()).map_err(Error::internal)?;
        Ok::<_, Error>(own::ImagePolicy { uid: row.text(0)?, ..policy })
    };
    let mut policies = tx.query(sql, &params, read).await?;
    let mut next_page_token = String::new();
    if policies.len() > page.size {
        policies.truncate(page.size);
        let last = policies.last().map(|policy| policy.uid.clone()).unwrap_or_default();
        next_page_token = page.next_token(call, None, last);
    }
    Ok(own::ListImagePoliciesResponse { policies, next_page_token })
}

async fn update(
    tx: &mut WriteTx,
    call: &Authorized<own::UpdateImagePolicyRequest>,
) -> Result<Changed<own::ImagePolicy>> {
    let before = of(tx, call.require_scope()?).await?;
    let given = call.request().policy.clone().unwrap_or_default();
    let after = changed(&before.policy, given, &call.mask());
    if after == before.policy {
        return Ok(Changed::nothing(after));
    }
    if let Some(FieldViolation { field, description }) = missing_root(&after) {
        return Err(Error::invalid_field(field, description));
    }
    save(tx, call, before, after).await
}

/// The policy with what the mask covers taken from what was given.
fn changed(before: &own::ImagePolicy, given: own::ImagePolicy, mask: &Mask) -> own::ImagePolicy {
    let mut after = before.clone();
    if mask.covers("rules") {
        after.rules = given.rules;
    }
    if mask.covers("grace_days") {
        after.grace_days = given.grace_days;
    }
    if mask.covers("trusted_root") {
        after.trusted_root = given.trusted_root;
    }
    after
}

async fn create_exception(
    tx: &mut WriteTx,
    call: &Authorized<own::CreateImageExceptionRequest>,
) -> Result<Changed<own::ImagePolicy>> {
    let scope = call.require_scope()?;
    let before = of(tx, scope).await?;
    let given = call.request().exception.clone().unwrap_or_default();
    validate_exception(scope, &before.policy, &given, call.now())?;
    let mut after = before.policy.clone();
    remove_ended(&mut after, call.now());
    if after.exceptions.len() >= MAX_EXCEPTIONS {
        let description = format!("the policy has {MAX_EXCEPTIONS} exceptions; delete some, or change its rules");
        return Err(Error::precondition("TOO_MANY_EXCEPTIONS", scope.as_str(), description));
    }
    after.exceptions.push(own::ImageException {
        granted_by: call.principal().subject().to_owned(),
        grant_time: timestamp(call.now()),
        id: hex(&call.draw()[..8]),
        ..given
    });
    save(tx, call, before, after).await
}

/// An exception weakens the policy that it is of, and no other: what it names lies within the scope of the policy.
fn validate_exception(scope: &Uidp, policy: &own::ImagePolicy, given: &own::ImageException, now: Micros) -> Result<()> {
    let refuse =
        |field: &str, description: String| Err(Error::invalid_field(format!("exception.{field}"), description));
    if given.digest.is_empty() && given.repo_uid.is_empty() {
        return refuse(
            "digest",
            "must be set, or the repository: an exception of all images is a change of the rules".into(),
        );
    }
    let repo = Uidp::parse(&given.repo_uid).ok();
    if !given.repo_uid.is_empty()
        && !repo.is_some_and(|repo| repo.self_and_ancestors().any(|one| one == scope.as_str()))
    {
        return refuse("repoUid", format!("must be {scope} or below it: the exception is of its policy"));
    }
    if let Some(unknown) = given.rules.iter().find(|name| !policy.rules.iter().any(|rule| rule.name == **name)) {
        return refuse("rules", format!("names no rule of the policy: \"{unknown}\""));
    }
    match given.expire_time.map(micros) {
        Some(end) if end > now && end <= now + MAX_EXCEPTION => Ok(()),
        _ => refuse("expireTime", "must be a time within the next 366 days".into()),
    }
}

async fn delete_exception(
    tx: &mut WriteTx,
    call: &Authorized<own::DeleteImageExceptionRequest>,
) -> Result<Changed<own::ImagePolicy>> {
    let before = of(tx, call.require_scope()?).await?;
    let id = &call.request().exception_id;
    let mut after = before.policy.clone();
    after.exceptions.retain(|exception| exception.id != *id);
    if after == before.policy {
        return Err(Error::not_found(IMAGE_POLICY, format!("{} with the exception {id}", after.uid)));
    }
    save(tx, call, before, after).await
}

fn remove_ended(policy: &mut own::ImagePolicy, now: Micros) {
    policy.exceptions.retain(|exception| exception.expire_time.is_some_and(|end| micros(end) > now));
}

/// Writes a policy with a revision of its own.
async fn save<T>(
    tx: &mut WriteTx,
    call: &Authorized<T>,
    before: Stored,
    mut after: own::ImagePolicy,
) -> Result<Changed<own::ImagePolicy>> {
    let scope = call.require_scope()?;
    remove_ended(&mut after, call.now());
    after.update_time = timestamp(call.now());
    let sql = "INSERT INTO image_policies (scope, org, revision, grace_days, policy) VALUES ($1, $2, $3, $4, $5)
               ON CONFLICT (scope) DO UPDATE SET revision = excluded.revision, grace_days = excluded.grace_days,
                                                 policy = excluded.policy";
    let encoded = own::ImagePolicy { uid: String::new(), ..after.clone() }.encode_to_vec();
    let params = [
        Value::from(scope.as_str()),
        Value::from(scope.root_str()),
        Value::Int(call.now().max(before.revision + 1)),
        Value::from(after.grace_days),
        Value::from(&encoded),
    ];
    tx.execute(sql, &params).await?;
    let changed = Changed::one(IMAGE_POLICY, scope, Some(&before.policy), Some(&after), after.clone());
    Ok(changed.with_event(scope, &after))
}
