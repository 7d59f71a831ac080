//! First grants of a person who signs in: the role that a provider or an invitation promises, and the events
//! about it.

use bowline_authn::jwt::parse_unverified;
use bowline_contract::Method as _;
use bowline_contract::v1::auth::RegistrationRequest;
use bowline_contract::v1::auth::rpc::auth::Register;
use bowline_contract::v1::iam::CreateRoleBindingRequest;
use bowline_contract::v1::iam::rpc::role_bindings::Create as CreateRoleBinding;
use bowline_core::{Error, Result, Uidp};
use bowline_pipeline::{Change, EventBody, ResourceSnapshot, record_audit, record_event};
use bowline_store::{Value, WriteTx};
use serde_json::json;

use super::providers::OrganizationProvider;
use super::sign_in::{ProviderTrust, SignInAttempt, verified_email};
use super::{Parts, Upstream};
use crate::iam::group_invites::{InviteCode, Redeemer, redeem};
use crate::iam::role_bindings::{self, BindingRow};
use crate::iam::roles;

/// Anyone who comes for the first time through an organization's provider gets the role that it promises. Anyone who was
/// deleted and registers again does not: someone may have taken the role away meanwhile.
pub(super) async fn bind_default_role(
    tx: &mut WriteTx,
    parts: &Parts,
    attempt: &SignInAttempt,
    provider: &OrganizationProvider,
    person: &Uidp,
) -> Result<()> {
    if provider.default_role.is_empty() || !record_given(tx, attempt, provider, person).await? {
        return Ok(());
    }
    let gone = || {
        Error::precondition(
            "DEFAULT_ROLE_GONE",
            provider.uid.as_str(),
            "the identity provider's default role does not exist any more; its administrator must choose another",
        )
    };
    let group =
        provider.uid.parent().ok_or_else(|| Error::internal("an identity provider is stored without a group"))?;
    let role = Uidp::parse(&provider.default_role).map_err(|_| gone())?;
    let reaches = role.parent().is_none_or(|place| place.contains(group.as_str()));
    if !reaches || roles::find(tx, role.as_str()).await?.is_none() {
        return Err(gone());
    }
    let row = BindingRow {
        uid: group.child_from(attempt.binding),
        identity: person.as_str().into(),
        role: role.as_str().into(),
        created_at: attempt.now,
    };
    if let Some(change) = role_bindings::give(tx, &row).await? {
        record_binding(tx, provider, &row).await?;
        tell_binding(tx, parts, attempt, person, &change, &row).await?;
    }
    Ok(())
}

/// Whether the default role is due: it is given to a person once, whatever becomes of them.
async fn record_given(
    tx: &mut WriteTx,
    attempt: &SignInAttempt,
    provider: &OrganizationProvider,
    person: &Uidp,
) -> Result<bool> {
    let sql = "INSERT INTO default_roles_given (provider, person, given_at, binding) VALUES ($1, $2, $3, '')
               ON CONFLICT DO NOTHING";
    let params = [Value::from(provider.uid.as_str()), Value::from(person.as_str()), Value::Int(attempt.now)];
    Ok(tx.execute(sql, &params).await? == 1)
}

/// Records the binding that the default role made: it makes the person an owner of the directory's own. A role that the
/// person had before stays the administrator's.
async fn record_binding(tx: &mut WriteTx, provider: &OrganizationProvider, row: &BindingRow) -> Result<()> {
    let sql = "UPDATE default_roles_given SET binding = $3 WHERE provider = $1 AND person = $2";
    let params = [Value::from(provider.uid.as_str()), Value::from(&row.identity), Value::from(row.uid.as_str())];
    tx.execute(sql, &params).await?;
    Ok(())
}

async fn tell_binding(
    tx: &mut WriteTx,
    parts: &Parts,
    attempt: &SignInAttempt,
    person: &Uidp,
    change: &Change,
    row: &BindingRow,
) -> Result<()> {
    record_audit(tx, attempt.now, &attempt.actor(person), change).await?;
    let request = CreateRoleBindingRequest { parent: row.group().into(), role_binding: Some(row.to_v1()) };
    let event = EventBody {
        subject: row.uid.as_str().into(),
        group: row.group().into(),
        body: ResourceSnapshot::of(&request),
        extensions: Vec::new(),
    };
    tell(tx, parts, attempt, person, CreateRoleBinding::FULL_NAME, &event).await
}

/// Redeems the invitation. An address counts as verified for it by the operator's word, or by that of a provider of
/// the inviting group or of one above it: anyone who runs a provider further down has no say in the group.
pub(super) async fn join(
    tx: &mut WriteTx,
    parts: &Parts,
    trust: &ProviderTrust,
    attempt: &SignInAttempt,
    invite: &InviteCode,
    person: &Uidp,
) -> Result<Uidp> {
    let inviting = invite.group.root_str();
    let is_own = trust.organization.as_ref().is_some_and(|provider| provider.uid.root_str() == inviting);
    if trust.organization.is_some() && !is_own && !trust.is_operators {
        return Err(Error::permission_denied(
            "Permission denied: this identity provider is another organization's; sign in with one of the operator's, or of the inviting organization",
        ));
    }
    let runs_over = |provider: &OrganizationProvider| {
        provider.uid.parent().is_some_and(|group| group.contains(invite.group.as_str()))
    };
    let vouches = trust.is_operators || trust.organization.as_ref().is_some_and(runs_over);
    let email = verified_email(&attempt.upstream, vouches);
    let redeemed = redeem(tx, invite, &Redeemer { identity: person, verified_email: email }, attempt.now).await?;
    if let Some(change) = &redeemed.binding {
        let row = BindingRow {
            uid: Uidp::parse(&change.uid).map_err(Error::internal)?,
            identity: person.as_str().into(),
            role: redeemed.role,
            created_at: attempt.now,
        };
        tell_binding(tx, parts, attempt, person, change, &row).await?;
    }
    Ok(redeemed.group)
}

pub(super) async fn tell_registration(
    tx: &mut WriteTx,
    parts: &Parts,
    attempt: &SignInAttempt,
    person: &Uidp,
    group: Option<Uidp>,
) -> Result<()> {
    // The code is a secret and stays out.
    let request = RegistrationRequest { identity_id: person.as_str().into(), ..RegistrationRequest::default() };
    let event = EventBody {
        subject: person.as_str().into(),
        group: group.map(|group| group.as_str().to_owned()).unwrap_or_default(),
        body: ResourceSnapshot::of(&request),
        extensions: Vec::new(),
    };
    tell(tx, parts, attempt, person, Register::FULL_NAME, &event).await
}

async fn tell(
    tx: &mut WriteTx,
    parts: &Parts,
    attempt: &SignInAttempt,
    person: &Uidp,
    method: &str,
    event: &EventBody,
) -> Result<()> {
    let info = parts.contract.by_full_name(method);
    let info = info.ok_or_else(|| Error::internal(format!("{method} is not in the contract")))?;
    let act = act(&attempt.upstream);
    record_event(tx, info, attempt.now, &attempt.actor(person), Some(&act), event).await
}

/// Whom the provider vouched for, as tokens and events carry it.
pub(super) fn act(upstream: &Upstream) -> serde_json::Value {
    let audiences = parse_unverified(&upstream.id_token).map(|token| token.audiences).unwrap_or_default();
    let aud = match &audiences[..] {
        [one] => json!(one),
        many => json!(many),
    };
    json!({ "iss": upstream.issuer, "sub": upstream.subject, "aud": aud })
}
