//! What owners set for repositories and groups beyond the wire contract. Pushes, pulls and the clean-up obey it;
//! here it is checked and kept.

use bowline_contract::bowline::registry::v1 as own;
use bowline_contract::bowline::registry::v1::rpc::content::{
    ListReferrers, ListTags, PullBlob, PullManifest, PushManifest,
};
use bowline_contract::bowline::registry::v1::rpc::registry_policies as methods;
use bowline_contract::v1::registry::rpc::registry::UpdateTag;
use bowline_contract::v2::registry::rpc::tags_service::CreateTag;
use bowline_contract::{Auth, Method};
use bowline_core::{CapabilitySet, Error, FieldViolation, Micros, Reason, Result, UidRange, Uidp, just_after};
use bowline_pipeline::{Authorized, Changed, Direction, Handlers, Mask, Page, PageRequest, handler};
use bowline_resources::kinds::REGISTRY_POLICY;
use bowline_resources::list::timestamp;
use bowline_resources::patterns;
use bowline_resources::references::require_group;
use bowline_store::{ReadTx, Row, Value, WriteTx};
use prost::Message;
use url::Url;

use super::content::replication::credentials::{self as upstream_credentials, Password};
use super::pattern_budget;
use super::{repos, retention};

pub(crate) fn register(handlers: Handlers) -> Handlers {
    handlers
        .read::<methods::GetRepoPolicy>(handler!(get_of_repo))
        .write::<methods::UpdateRepoPolicy>(handler!(update_of_repo))
        .validate_costly::<methods::UpdateRepoPolicy>(|request| {
            request.policy.as_ref().map(validate).unwrap_or_default()
        })
        .read::<methods::GetGroupPolicy>(handler!(get_of_group))
        .read::<methods::ListPolicies>(handler!(list))
        .write::<methods::UpdateGroupPolicy>(handler!(update_of_group))
        .validate_costly::<methods::UpdateGroupPolicy>(|request| {
            request.policy.as_ref().map(validate).unwrap_or_default()
        })
}

/// The policy of a group or repository; empty if none is set.
pub(crate) async fn of(tx: &mut ReadTx, scope: &Uidp) -> Result<own::RegistryPolicy> {
    let sql = "SELECT policy FROM registry_policies WHERE place = $1";
    let found = tx.query_opt(sql, &[Value::from(scope.as_str())], |row| row.bytes(0).map_err(Error::from)).await?;
    let stored = found.map(|bytes| own::RegistryPolicy::decode(bytes.as_slice()).map_err(Error::internal));
    Ok(own::RegistryPolicy { uid: scope.as_str().into(), ..stored.transpose()?.unwrap_or_default() })
}

async fn get_of_repo(tx: &mut ReadTx, call: &Authorized<own::GetRepoPolicyRequest>) -> Result<own::RegistryPolicy> {
    repos::require(tx, call.require_scope()?).await?;
    of(tx, call.require_scope()?).await
}

async fn get_of_group(tx: &mut ReadTx, call: &Authorized<own::GetGroupPolicyRequest>) -> Result<own::RegistryPolicy> {
    require_group(tx, call.require_scope()?).await?;
    of(tx, call.require_scope()?).await
}

/// Policies of a group and everything below, in which the caller has the same rights.
async fn list(tx: &mut ReadTx, call: &Authorized<own::ListPoliciesRequest>) -> Result<own::ListPoliciesResponse> {
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
    let sql = "SELECT place, policy FROM registry_policies WHERE place >= $1 AND place < $2 ORDER BY place LIMIT $3";
    let params = [Value::from(&lower), Value::from(&upper), Value::Int(page.size as i64 + 1)];
    let read = |row: &Row<'_>| {
        let policy = own::RegistryPolicy::decode(row.bytes(1)?.as_slice()).map_err(Error::internal)?;
        Ok::<_, Error>(own::RegistryPolicy { uid: row.text(0)?, ..policy })
    };
    let mut policies = tx.query(sql, &params, read).await?;
    let mut next_page_token = String::new();
    if policies.len() > page.size {
        policies.truncate(page.size);
        let last = policies.last().map(|policy| policy.uid.clone()).unwrap_or_default();
        next_page_token = page.next_token(call, None, last);
    }
    Ok(own::ListPoliciesResponse { policies, next_page_token })
}

/// The one order of the list.
const BY_UID: &[&[&str]] = &[&["uid"]];

async fn update_of_repo(
    tx: &mut WriteTx,
    call: &Authorized<own::UpdateRepoPolicyRequest>,
) -> Result<Changed<own::RegistryPolicy>> {
    repos::require(tx, call.require_scope()?).await?;
    update(tx, call, call.request().policy.clone().unwrap_or_default()).await
}

async fn update_of_group(
    tx: &mut WriteTx,
    call: &Authorized<own::UpdateGroupPolicyRequest>,
) -> Result<Changed<own::RegistryPolicy>> {
    require_group(tx, call.require_scope()?).await?;
    update(tx, call, call.request().policy.clone().unwrap_or_default()).await
}

async fn update<T>(
    tx: &mut WriteTx,
    call: &Authorized<T>,
    given: own::RegistryPolicy,
) -> Result<Changed<own::RegistryPolicy>> {
    let scope = call.require_scope()?;
    let before = of(tx, scope).await?;
    let mut after = changed(&before, given, &call.mask());
    let password = upstream_credentials::settle(before.upstream.as_ref(), after.upstream.as_mut())?;
    if after == before && !matches!(password, Password::Given(_)) {
        return Ok(Changed::nothing(after));
    }
    if after.public && !before.public {
        require_capabilities_of(call, scope, &FOR_EVERYBODY)?;
    }
    if after.retention != before.retention && after.retention.as_ref().is_some_and(retention::has_rules) {
        require_capabilities_of(call, scope, &[methods::ApplyRetention::FULL_NAME])?;
    }
    if after.upstream != before.upstream || matches!(password, Password::Given(_)) {
        require_push(call, scope)?;
    }
    if after.immutable_tag_patterns.len() > before.immutable_tag_patterns.len() {
        pattern_budget::require(tx, scope, after.immutable_tag_patterns.len()).await?;
    }
    after.update_time = timestamp(call.now());
    let sealed = upstream_credentials::sealed(tx, scope.as_str()).await?;
    let sealed = upstream_credentials::seal(call.vault(), scope, &password, sealed);
    save(tx, scope, &after, &sealed, call.now()).await?;
    let event = after.clone();
    Ok(Changed::one(REGISTRY_POLICY, scope, Some(&before), Some(&after), after.clone()).with_event(scope, &event))
}

/// Writes a policy, and the sealed password of its upstream.
async fn save(tx: &mut WriteTx, scope: &Uidp, policy: &own::RegistryPolicy, sealed: &[u8], now: Micros) -> Result<()> {
    let sql =
        "INSERT INTO registry_policies (place, org, is_public, policy, upstream_password, updated_at, tag_patterns)
               VALUES ($1, $2, $3, $4, $5, $6, $7)
               ON CONFLICT (place) DO UPDATE SET is_public = excluded.is_public, policy = excluded.policy,
                                                 upstream_password = excluded.upstream_password,
                                                 updated_at = excluded.updated_at,
                                                 tag_patterns = excluded.tag_patterns";
    let encoded = own::RegistryPolicy { uid: String::new(), ..policy.clone() }.encode_to_vec();
    let params = [
        Value::from(scope.as_str()),
        Value::from(scope.root_str()),
        Value::Bool(policy.public),
        Value::from(&encoded),
        Value::Bytes(sealed),
        Value::Int(now),
        Value::Int(pattern_budget::number(policy)),
    ];
    tx.execute(sql, &params).await?;
    Ok(())
}

/// What everyone may do where images are public.
const FOR_EVERYBODY: [&str; 4] =
    [PullManifest::FULL_NAME, PullBlob::FULL_NAME, ListTags::FULL_NAME, ListReferrers::FULL_NAME];

/// No one gives away, or has the server do, what they may not do themselves: the caller must hold there what these
/// methods need.
pub(super) fn require_capabilities_of<T>(call: &Authorized<T>, scope: &Uidp, names: &[&str]) -> Result<()> {
    let mut given = CapabilitySet::EMPTY;
    for name in names {
        match call.contract().by_full_name(name).map(|method| &method.auth) {
            Some(Auth::Capabilities { needed, .. }) => given = given.union(needed),
            _ => return Err(Error::internal(format!("{name} needs no capabilities"))),
        }
    }
    call.require_all(scope.as_str(), &given)
}

/// What a push of a manifest with new and moved tags needs.
const PUSH: [&str; 3] = [PushManifest::FULL_NAME, CreateTag::FULL_NAME, UpdateTag::FULL_NAME];

/// A source or an upstream supplies images as a push does: changing one needs the capabilities of a push there.
pub(super) fn require_push<T>(call: &Authorized<T>, scope: &Uidp) -> Result<()> {
    require_capabilities_of(call, scope, &PUSH).map_err(|error| match error.reason() {
        Reason::PermissionDenied => {
            error.advise("images come from a source or an upstream as from a push: ask for the role registry.push")
        }
        _ => error,
    })
}

/// The policy with what the mask covers taken from what was given.
fn changed(before: &own::RegistryPolicy, given: own::RegistryPolicy, mask: &Mask) -> own::RegistryPolicy {
    let mut after = before.clone();
    if mask.covers("public") {
        after.public = given.public;
    }
    if mask.covers("immutable_tag_patterns") {
        after.immutable_tag_patterns = given.immutable_tag_patterns;
    }
    if mask.covers("byte_quota") {
        after.byte_quota = given.byte_quota;
    }
    if mask.covers("retention") {
        after.retention = given.retention;
    }
    if mask.covers("upstream") {
        after.upstream = given.upstream;
    }
    after
}

/// Maximum number of images, and of days, that a rule keeps.
const MAX_RETAINED: i32 = 10_000;

fn validate(policy: &own::RegistryPolicy) -> Vec<FieldViolation> {
    let mut wrong = Vec::new();
    let mut refuse = |field: &str, description: String| {
        wrong.push(FieldViolation { field: field.into(), description });
    };
    if policy.byte_quota < 0 {
        refuse("byteQuota", "must not be negative".into());
    }
    validate_patterns("immutableTagPatterns", &policy.immutable_tag_patterns, &mut refuse);
    if let Some(upstream) = &policy.upstream {
        if let Err(description) = validate_address(&upstream.url) {
            refuse("upstream.url", description.into());
        }
        validate_patterns("upstream.tagPatterns", &upstream.tag_patterns, &mut refuse);
    }
    wrong.extend(validate_retention(policy.retention.as_ref()));
    wrong
}

/// What is wrong with rules of retention.
pub(super) fn validate_retention(retention: Option<&own::Retention>) -> Vec<FieldViolation> {
    let Some(retention) = retention else { return Vec::new() };
    let mut wrong = Vec::new();
    let mut refuse = |field: &str, description: String| {
        wrong.push(FieldViolation { field: field.into(), description });
    };
    for (field, number) in [("retention.keepLast", retention.keep_last), ("retention.keepDays", retention.keep_days)] {
        if !(0..=MAX_RETAINED).contains(&number) {
            refuse(field, format!("must be 0 to {MAX_RETAINED}"));
        }
    }
    validate_patterns("retention.keepPatterns", &retention.keep_patterns, &mut refuse);
    wrong
}

fn validate_patterns(field: &str, patterns: &[String], refuse: &mut impl FnMut(&str, String)) {
    for pattern in patterns {
        if pattern.is_empty() {
            refuse(field, "a pattern must not be empty".into());
        } else if let Some(description) = patterns::problem(pattern) {
            refuse(field, description);
        }
    }
}

/// What is wrong with the address of a repository at another registry.
pub(super) fn validate_address(text: &str) -> std::result::Result<(), &'static str> {
    let url = Url::parse(text).map_err(|_| "must be an https address")?;
    if url.scheme() != "https" || url.host_str().is_none_or(str::is_empty) {
        return Err("must be an https address");
    }
    if !url.username().is_empty() || url.password().is_some() || url.query().is_some() || url.fragment().is_some() {
        return Err("must have no user, password, query or fragment");
    }
    Ok(())
}
