//! Registering without a browser, signing in at the exchange, and going away.

use std::sync::Arc;

use bowline_authn::jwt::Presented;
use bowline_authn::relying;
use bowline_contract::v1::auth::{DeletionRequest, RegistrationRequest, Session};
use bowline_contract::v1::oidc::{ExchangeRequest, RawToken};
use bowline_core::{Error, Result, Uidp};
use bowline_pipeline::{Authorized, Changed, OPERATOR, Open};
use bowline_resources::kinds::IDENTITY;
use bowline_store::{Row, Value, WriteTx};

use super::sessions;
use super::sign_in::{self, SignInAttempt};
use super::tokens::{self, About};
use super::{Parts, Upstream, providers, upstream};
use crate::iam::group_invites::{InviteCode, read_code};
use crate::iam::{human_uid, identities, owners};
use crate::oidc::issuing::{self, Cause, Issuance, first_half, require_active};
use crate::oidc::{params::ExchangeParams, parse_presented, refusals};

/// `Auth.Register`: the bearer token is one of a provider's, and says who registers.
pub(super) async fn register(parts: &Arc<Parts>, call: &Open<RegistrationRequest>) -> Result<Session> {
    let token = call.bearer().filter(|token| !token.is_empty()).ok_or_else(refusals::no_token)?;
    let request = call.request();
    let code = Some(request.code.as_str()).filter(|code| !code.is_empty());
    let invite = code.map(|code| read_code(&parts.vault, code)).transpose()?;
    let presented = parse_presented(token)?;
    let uid = human_uid(&presented.issuer, &presented.subject);
    if !request.identity_id.is_empty() && request.identity_id != uid.as_str() {
        return Err(Error::invalid_field("identityId", "identityId must be empty or that of the token's person"));
    }
    let provider = trusted_provider(parts, &presented, invite.as_ref()).await?;
    let upstream = verified(parts, token, &presented, &provider.client_ids, &provider.groups_claim, call).await?;
    let has_invite = invite.is_some();
    let attempt = attempt(provider.organization, upstream, invite, true, call);
    let job = Arc::new((parts.clone(), attempt));
    let written = parts.db.write(move |tx| {
        let job = job.clone();
        Box::pin(async move {
            let (parts, attempt) = &*job;
            let signed_in = sign_in::admit(tx, parts, attempt).await?;
            // Last: all that came before is undone with it.
            if !signed_in.is_new && !has_invite {
                return Err(Error::already_exists(IDENTITY, signed_in.row.uid.as_str()));
            }
            let group = signed_in.group.map(|group| group.as_str().to_owned()).unwrap_or_default();
            Ok(Session { identity: signed_in.row.uid.as_str().into(), group })
        })
    });
    written.await
}

/// Who may vouch for someone who registers.
struct Trusted {
    organization: Option<Uidp>,
    client_ids: Vec<String>,
    groups_claim: String,
}

/// The operator's providers of the token's issuer; with an invitation also those of the inviting organization.
///
/// # Errors
/// PERMISSION_DENIED, before any request leaves for the issuer.
async fn trusted_provider(parts: &Parts, presented: &Presented, invite: Option<&InviteCode>) -> Result<Trusted> {
    if presented.issuer == parts.settings.auth_url {
        return Err(refusals::no_identity("a token of ours cannot register"));
    }
    let operators = providers::of_operator(parts).await?;
    let client_ids: Vec<String> = operators
        .into_iter()
        .filter(|provider| provider.issuer == presented.issuer)
        .map(|provider| provider.client_id)
        .collect();
    if !client_ids.is_empty() {
        return Ok(Trusted { organization: None, client_ids, groups_claim: String::new() });
    }
    let unknown = || refusals::no_identity("unknown issuer");
    let invite = invite.ok_or_else(unknown)?;
    let (org, issuer) = (invite.group.root(), presented.issuer.clone());
    let read =
        parts.db.read(move |tx| Box::pin(async move { providers::of_organization(tx, org.as_str(), &issuer).await }));
    // Several have the same issuer: the one that the token is for.
    let mut own = read.await?;
    let meant = own.iter().position(|provider| presented.audiences.contains(&provider.client_id)).unwrap_or(0);
    if own.is_empty() {
        return Err(unknown());
    }
    let own = own.swap_remove(meant);
    Ok(Trusted { organization: Some(own.uid), client_ids: vec![own.client_id], groups_claim: own.groups_claim })
}

/// Verifies a token for one of the clients, or for ourselves.
async fn verified<T>(
    parts: &Parts,
    token: &str,
    presented: &Presented,
    client_ids: &[String],
    groups_claim: &str,
    call: &Open<T>,
) -> Result<Upstream> {
    upstream::verify(parts, token, presented, call.now()).await?;
    let audiences = client_ids.iter().chain(parts.exchange.default_audiences());
    let audiences: Vec<&str> = audiences.map(String::as_str).collect();
    relying::validate_audience(presented, &audiences).map_err(upstream::refusal)?;
    // A token for ourselves names none of them: it was verified with the first.
    let named = client_ids.iter().find(|client| presented.audiences.contains(client));
    let client = named.or(client_ids.first()).ok_or_else(|| Error::internal("a provider without a client"))?;
    upstream::read(presented, token, client, groups_claim)
}

fn attempt<T>(
    provider: Option<Uidp>,
    upstream: Upstream,
    invite: Option<InviteCode>,
    may_register: bool,
    call: &Open<T>,
) -> SignInAttempt {
    let drawn = call.draw();
    SignInAttempt {
        provider,
        upstream,
        invite,
        may_register,
        now: call.now(),
        request: (call.request_id().into(), call.method().full_name.clone()),
        binding: std::array::from_fn(|i| drawn[i]),
    }
}

/// `SecurityTokenService.Exchange` with an organization's provider: the registered person gets a session of an hour.
pub(super) async fn exchange_through(
    parts: &Arc<Parts>,
    call: &Open<ExchangeRequest>,
    provider: &Uidp,
    params: &ExchangeParams,
) -> Result<RawToken> {
    let token = call.bearer().filter(|token| !token.is_empty()).ok_or_else(refusals::no_token)?;
    let presented = parse_presented(token)?;
    let uid = provider.clone();
    let found = parts.db.read(move |tx| Box::pin(async move { providers::find(tx, uid.as_str()).await })).await?;
    let is_meant = |found: &providers::OrganizationProvider| {
        found.issuer == presented.issuer && presented.issuer != parts.settings.auth_url
    };
    let found = found.filter(is_meant).ok_or_else(|| refusals::no_identity("identity_provider"))?;
    let clients = [found.client_id];
    let upstream = verified(parts, token, &presented, &clients, &found.groups_claim, call).await?;
    let person = human_uid(&upstream.issuer, &upstream.subject);
    if params.identity.as_ref().is_some_and(|identity| *identity != person) {
        return Err(refusals::mismatch("a person's token for another identity"));
    }
    let about = About::of(&upstream);
    let attempt = attempt(Some(found.uid), upstream, None, false, call);
    let id = bowline_core::hex(&first_half(call.draw()));
    let cause = Cause::of(call);
    let job = Arc::new((parts.clone(), attempt, about, id, params.clone(), cause.clone()));
    let written = parts.db.write(move |tx| {
        let job = job.clone();
        Box::pin(async move {
            let (parts, attempt, about, id, params, cause) = &*job;
            let row = identities::find(tx, person_of(attempt).as_str()).await?;
            let row = row.ok_or_else(|| refusals::no_identity("not registered"))?;
            require_active(&row, cause.now)?;
            sign_in::admit(tx, parts, attempt).await?;
            sign_in::begin(tx, attempt, &row.uid, id, None).await?;
            let session = sessions::find(tx, id, cause.now).await?.ok_or_else(refusals::own_subject)?;
            let proof = tokens::prove(tx, parts, &session, &params.narrowing, about).await?;
            let standing = issuing::record(tx, &Issuance::of(&proof, cause.clone())).await?;
            Ok::<_, Error>((proof, standing))
        })
    });
    let (proof, standing) = written.await?;
    parts.exchange.note_seen(&proof, &standing, cause.now);
    parts.exchange.mint(proof, params.audiences.clone(), &standing, cause.now, cause.id)
}

fn person_of(attempt: &SignInAttempt) -> Uidp {
    human_uid(&attempt.upstream.issuer, &attempt.upstream.subject)
}

/// `Auth.Delete`: a person goes away, with everything that was granted to them.
pub(super) async fn delete(tx: &mut WriteTx, call: &Authorized<DeletionRequest>) -> Result<Changed<()>> {
    let principal = call.principal();
    let uid = Uidp::parse(principal.subject()).map_err(|_| Error::internal("a caller without an identity"))?;
    if principal.token().is_some_and(|token| token.narrowing.is_narrow()) {
        return Err(Error::permission_denied("Permission denied: a narrowed token cannot delete its own identity"));
    }
    if !uid.is_root() || uid.as_str() == OPERATOR {
        return Err(Error::permission_denied(
            "Permission denied: only people delete themselves; machines are deleted as identities",
        ));
    }
    if let Some(org) = only_owner_of(tx, call, &uid).await? {
        return Err(Error::precondition(
            "LAST_OWNER",
            &org,
            format!(
                "the caller is the only owner of the organization {org}; make another person an owner, or delete it"
            ),
        ));
    }
    identities::remove(tx, &uid).await
}

/// An organization that no one else owns directly, if there is one. Only who can act counts as someone else.
async fn only_owner_of(tx: &mut WriteTx, call: &Authorized<DeletionRequest>, uid: &Uidp) -> Result<Option<String>> {
    let owner = owners::role(call.contract())?;
    let sql = "SELECT b.parent FROM role_bindings b JOIN groups g ON g.uid = b.parent AND g.parent = ''
               WHERE b.identity = $1 AND b.role = $2 ORDER BY b.parent";
    let read = |row: &Row<'_>| row.text(0).map_err(Error::from);
    for org in tx.query(sql, &[Value::from(uid.as_str()), Value::from(&owner.uid)], read).await? {
        if owners::count(tx, call.contract(), &org, uid.as_str(), call.now()).await? == 0 {
            return Ok(Some(org));
        }
    }
    Ok(None)
}
