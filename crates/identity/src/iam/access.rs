//! How people come to an organization that does not know them yet: the domain of their e-mail address names it.

mod request_mail;

use std::time::Duration;

use bowline_contract::v1::iam as v1;
use bowline_contract::v2::iam as v2;
use bowline_contract::v2::iam::rpc::groups_service::{CheckEligibility, LookupGroup, RequestGroupAccess};
use bowline_core::{Detail, Error, Micros, Reason, Result, Uidp};
use bowline_pipeline::{Authorized, Change, Changed, EventBody, Handlers, ResourceSnapshot, handler};
use bowline_resources::kinds::GROUP;
use bowline_store::{ReadTx, Value, WriteTx};

use super::groups::{self, GroupRow};

pub(crate) fn register(handlers: Handlers) -> Handlers {
    handlers
        .read::<LookupGroup>(handler!(lookup_v2))
        .read::<CheckEligibility>(handler!(check_v2))
        .write::<RequestGroupAccess>(handler!(request_v2))
}

async fn lookup_v2(tx: &mut ReadTx, call: &Authorized<v2::LookupGroupRequest>) -> Result<v2::LookupGroupResponse> {
    let found = require_organization(tx, call).await?;
    let group = v2::Group { uid: found.uid.into(), name: found.name, ..v2::Group::default() };
    Ok(v2::LookupGroupResponse { group: Some(group) })
}

async fn check_v2(
    tx: &mut ReadTx,
    call: &Authorized<v2::CheckEligibilityRequest>,
) -> Result<v2::CheckEligibilityResponse> {
    Ok(v2::CheckEligibilityResponse { eligible: is_eligible(tx, call).await? })
}

async fn request_v2(
    tx: &mut WriteTx,
    call: &Authorized<v2::RequestGroupAccessRequest>,
) -> Result<Changed<v2::RequestGroupAccessResponse>> {
    let changed = request(tx, call, &call.request().group_uid).await?;
    Ok(changed.map(|()| v2::RequestGroupAccessResponse {}))
}

/// The organization of the caller's e-mail domain.
///
/// # Errors
/// NOT_FOUND, the same whether the organization does not exist, the address proves nothing, or its domain is
/// public.
pub(crate) async fn require_organization<T>(tx: &mut ReadTx, call: &Authorized<T>) -> Result<GroupRow> {
    organization(tx, call).await?.ok_or_else(not_found)
}

fn not_found() -> Error {
    Error::new(Reason::NotFound, "Not found: there is no organization here for the domain of your e-mail address")
}

/// Only people have an e-mail address in their token, and only one that was verified.
async fn organization<T>(tx: &mut ReadTx, call: &Authorized<T>) -> Result<Option<GroupRow>> {
    let Some(facts) = call.principal().token() else { return Ok(None) };
    let Some(domain) = facts.email.as_deref().and_then(domain) else { return Ok(None) };
    if call.settings().blocked_email_domains.contains(&domain) {
        return Ok(None);
    }
    let found = groups::find_verified(tx, &domain).await?;
    // An organization's own identity provider proves addresses to that organization alone.
    let proves = |group: &GroupRow| {
        facts.provider.as_deref().is_none_or(|provider| provider.split('/').next() == Some(group.uid.as_str()))
    };
    Ok(found.filter(proves))
}

/// The domain of an e-mail address, in lower case.
fn domain(email: &str) -> Option<String> {
    let (local, domain) = email.rsplit_once('@')?;
    (!local.is_empty() && !domain.is_empty()).then(|| domain.to_ascii_lowercase())
}

/// Whether the caller may ask their organization to let them in, and is not in already.
pub(crate) async fn is_eligible<T>(tx: &mut ReadTx, call: &Authorized<T>) -> Result<bool> {
    Ok(organization(tx, call).await?.is_some_and(|group| !has_role(call, &group.uid)))
}

/// Whether the caller has a role in the organization, at whichever group of it.
fn has_role<T>(call: &Authorized<T>, organization: &Uidp) -> bool {
    let direct = call.grants().direct(usize::MAX);
    direct.iter().any(|(group, _)| organization.contains(group))
}

/// Asks the owners of the caller's organization to let them in.
pub(crate) async fn request<T>(tx: &mut WriteTx, call: &Authorized<T>, group: &str) -> Result<Changed<()>> {
    let organization = require_organization(tx, call).await?;
    if organization.uid.as_str() != group {
        return Err(not_found());
    }
    if has_role(call, &organization.uid) {
        return Err(Error::precondition("ALREADY_A_MEMBER", group, "you have a role in this organization already"));
    }
    note(tx, call, &organization.uid).await?;
    if call.settings().sends_mail {
        request_mail::to_owners(tx, call, &organization).await?;
    }
    // Nothing of the group changed; the row records who sent the request.
    let asked = Change { kind: GROUP, uid: group.into(), before: None, after: None };
    let event = EventBody {
        subject: group.into(),
        group: group.into(),
        body: ResourceSnapshot::of(&v1::RequestGroupAccessRequest { group_id: group.into() }),
        extensions: Vec::new(),
    };
    Ok(Changed { event: Some(event), ..Changed::many(vec![asked], ()) })
}

/// Time between two requests of a person to one organization, in microseconds.
const DAY: Micros = 24 * 3600 * 1_000_000;
/// Organizations that one person may ask a day.
const MAX_REQUESTS_PER_DAY: usize = 5;

/// Remembers the request, or refuses it as one too many.
async fn note<T>(tx: &mut WriteTx, call: &Authorized<T>, group: &Uidp) -> Result<()> {
    let (subject, now) = (call.principal().subject(), call.now());
    let sql = "SELECT group_uid, at FROM access_requests WHERE identity = $1 AND at > $2 ORDER BY at";
    let read = |row: &bowline_store::Row<'_>| Ok::<_, Error>((row.text(0)?, row.int(1)?));
    let recent: Vec<(String, Micros)> = tx.query(sql, &[Value::from(subject), Value::Int(now - DAY)], read).await?;
    if let Some((_, at)) = recent.iter().find(|(asked, _)| asked == group.as_str()) {
        return Err(too_many("this organization was asked already; its owners know", at + DAY - now));
    }
    if let Some((_, at)) = recent.first().filter(|_| recent.len() >= MAX_REQUESTS_PER_DAY) {
        return Err(too_many("a person may ask 5 organizations a day", at + DAY - now));
    }
    // The condition holds off a second request that runs at the same time.
    let sql = "INSERT INTO access_requests (identity, group_uid, at) VALUES ($1, $2, $3)
               ON CONFLICT (identity, group_uid) DO UPDATE SET at = excluded.at, answered_at = NULL
               WHERE access_requests.at <= $4";
    let params = [Value::from(subject), Value::from(group.as_str()), Value::Int(now), Value::Int(now - DAY)];
    if tx.execute(sql, &params).await? == 0 {
        return Err(too_many("this organization was asked already; its owners know", DAY));
    }
    Ok(())
}

fn too_many(what: &str, wait: Micros) -> Error {
    let wait = Duration::from_micros(u64::try_from(wait).unwrap_or(1));
    let hours = wait.as_secs().div_ceil(3600);
    Error::new(Reason::RateLimited, format!("Rate limit reached: {what}; try again in {hours} h"))
        .with(Detail::RetryAfter(wait))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn domains_of_addresses() {
        assert_eq!(domain("me@Acme.Example").as_deref(), Some("acme.example"));
        assert_eq!(domain("\"a@evil.example\"@acme.example").as_deref(), Some("acme.example"));
        for wrong in ["", "me", "@acme.example", "me@", "@"] {
            assert_eq!(domain(wrong), None, "{wrong}");
        }
    }
}
