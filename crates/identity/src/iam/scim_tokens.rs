//! The token with which an organization's directory provisions people, one for each identity provider.
//!
//! Only its hash is stored. A replaced token continues working for a while, so that the directory can be
//! updated.

mod life;
mod row;

use bowline_authn::crypto::sha256;
use bowline_contract::v1::iam as v1;
use bowline_contract::v2::iam as v2;
use bowline_contract::v2::iam::identity_provider::Scim;
use bowline_contract::v2::iam::rpc::identity_providers_service::{
    GenerateScimToken, RegenerateScimToken, RevokeScimToken, SetScimEnabled,
};
use bowline_core::{Detail, Error, Micros, Reason, Result, Uidp, hex};
use bowline_pipeline::{Authorized, Change, Changed, Handlers, handler};
use bowline_resources::kinds::{IDENTITY_PROVIDER, SCIM_TOKEN};
use bowline_resources::list::timestamp;
use bowline_store::{ReadTx, Value, WriteTx};
use prost::{Message, Name};

use super::identity_providers::{self, ProviderRow};
use super::{owners, role_bindings};
use life::{ends, overlap};
use row::TokenRow;

pub(crate) fn register(handlers: Handlers) -> Handlers {
    handlers
        .write::<GenerateScimToken>(handler!(generate))
        .write::<RegenerateScimToken>(handler!(regenerate))
        .write::<RevokeScimToken>(handler!(revoke))
        .write::<SetScimEnabled>(handler!(set_enabled))
}

/// What every token begins with.
const PREFIX: &str = "cgscim_";

/// The state of provisioning for lists, without that of the token.
pub(crate) fn to_scim_summary<T>(call: &Authorized<T>, provider: &ProviderRow) -> Scim {
    Scim { enabled: provider.scim_enabled, endpoint_url: endpoint(call, &provider.uid), ..Scim::default() }
}

/// The state of provisioning, with that of the token.
pub(crate) async fn status<T>(tx: &mut ReadTx, call: &Authorized<T>, provider: &ProviderRow) -> Result<Scim> {
    let stored = TokenRow::load(tx, &provider.uid).await?;
    Ok(to_scim(call, provider, &stored))
}

fn to_scim<T>(call: &Authorized<T>, provider: &ProviderRow, stored: &TokenRow) -> Scim {
    Scim {
        token_expire_time: stored.expires_at.and_then(timestamp),
        previous_token_expire_time: stored.previous_end(call.now()).and_then(timestamp),
        credential_state: stored.state(call.now()) as i32,
        etag: stored.etag(&provider.uid),
        ..to_scim_summary(call, provider)
    }
}

/// Where the directory provisions: a UIDP's slashes would be further path segments.
fn endpoint<T>(call: &Authorized<T>, provider: &Uidp) -> String {
    format!("{}/scim/v2/{}", call.settings().base_url, provider.as_str().replace('/', "."))
}

/// A provider and its token as they were when the call began.
struct Before {
    provider: ProviderRow,
    token: TokenRow,
}

impl Before {
    async fn load<T>(tx: &mut ReadTx, call: &Authorized<T>) -> Result<Before> {
        let provider = identity_providers::require(tx, call.require_scope()?).await?;
        // Enabling or disabling a directory changes who can sign in and get the provider's roles, so the caller must hold
        // them.
        identity_providers::require_all_given(tx, call, &provider).await?;
        let token = TokenRow::load(tx, &provider.uid).await?;
        Ok(Before { provider, token })
    }

    /// Requires the current etag.
    fn require_etag(&self, etag: &str) -> Result<()> {
        if etag == self.token.etag(&self.provider.uid) {
            return Ok(());
        }
        let message = "Aborted: the provider's SCIM settings have changed; read the provider again and repeat the call with its etag";
        Err(Error::new(Reason::Aborted, message))
    }

    fn require_token(&self) -> Result<()> {
        if self.token.hash.is_some() {
            return Ok(());
        }
        let name = self.provider.uid.as_str().to_owned();
        let description = "the provider has no SCIM token; generate one".to_owned();
        Err(Error::new(Reason::NotFound, format!("Not found: {description}")).with(Detail::Resource {
            kind: SCIM_TOKEN,
            name,
            description,
        }))
    }

    /// Stores the token and the switch as they are now, under the next revision.
    async fn change<T, R, E: Message + Name>(
        self,
        tx: &mut WriteTx,
        call: &Authorized<T>,
        enabled: bool,
        mut token: TokenRow,
        event: &E,
        response: impl FnOnce(Scim) -> R,
    ) -> Result<Changed<R>> {
        let before = self.provider.to_v2(to_scim(call, &self.provider, &self.token));
        token.revision = self.token.revision + 1;
        token.save(tx, &self.provider.uid).await?;
        let provider = ProviderRow { scim_enabled: enabled, ..self.provider };
        if enabled != before.scim.as_ref().is_some_and(|scim| scim.enabled) {
            let sql = "UPDATE identity_providers SET scim_enabled = $2 WHERE uid = $1";
            tx.execute(sql, &[Value::from(provider.uid.as_str()), Value::from(enabled)]).await?;
        }
        let scim = to_scim(call, &provider, &token);
        let after = provider.to_v2(scim.clone());
        Ok(Changed::one(IDENTITY_PROVIDER, &provider.uid, Some(&before), Some(&after), response(scim))
            .with_event(&provider.uid, event))
    }
}

pub(crate) async fn generate(
    tx: &mut WriteTx,
    call: &Authorized<v2::GenerateScimTokenRequest>,
) -> Result<Changed<v2::GenerateScimTokenResponse>> {
    let request = call.request();
    let expires_at = ends(call.now(), request.expire_time.as_ref(), request.never_expires)?;
    let before = Before::load(tx, call).await?;
    if before.token.hash.is_some() {
        return Err(Error::precondition(
            "SCIM_TOKEN_EXISTS",
            before.provider.uid.as_str(),
            "the provider has a SCIM token; regenerate it, or revoke it first",
        ));
    }
    let token = new_token(call);
    let stored = TokenRow { hash: Some(sha256(token.as_bytes()).to_vec()), expires_at, ..TokenRow::default() };
    let uid = before.provider.uid.clone();
    let event = v1::GenerateScimTokenRequest {
        identity_provider_id: uid.as_str().into(),
        expire_time: request.expire_time,
        never_expires: request.never_expires,
    };
    let enabled = before.provider.scim_enabled;
    let response = |scim: Scim| v2::GenerateScimTokenResponse {
        token,
        endpoint_url: scim.endpoint_url,
        expire_time: scim.token_expire_time,
        identity_provider_uid: uid.as_str().into(),
        etag: scim.etag,
    };
    before.change(tx, call, enabled, stored, &event, response).await
}

fn new_token<T>(call: &Authorized<T>) -> String {
    format!("{PREFIX}{}", hex(&call.draw()))
}

pub(crate) async fn regenerate(
    tx: &mut WriteTx,
    call: &Authorized<v2::RegenerateScimTokenRequest>,
) -> Result<Changed<v2::RegenerateScimTokenResponse>> {
    let request = call.request();
    let expires_at = ends(call.now(), request.expire_time.as_ref(), request.never_expires)?;
    let (overlap, requested_overlap) = overlap(request.overlap)?;
    let before = Before::load(tx, call).await?;
    before.require_token()?;
    before.require_etag(&request.etag)?;
    let token = new_token(call);
    let stored = TokenRow {
        hash: Some(sha256(token.as_bytes()).to_vec()),
        expires_at,
        ..before.token.replaced(call.now(), overlap)
    };
    let uid = before.provider.uid.clone();
    let event = v1::RegenerateScimTokenRequest {
        identity_provider_id: uid.as_str().into(),
        overlap: request.overlap,
        expire_time: request.expire_time,
        etag: request.etag.clone(),
        never_expires: request.never_expires,
    };
    let enabled = before.provider.scim_enabled;
    let response = |scim: Scim| v2::RegenerateScimTokenResponse {
        token,
        endpoint_url: scim.endpoint_url,
        expire_time: scim.token_expire_time,
        identity_provider_uid: uid.as_str().into(),
        etag: scim.etag,
        previous_token_expire_time: scim.previous_token_expire_time,
        requested_overlap: Some(requested_overlap),
    };
    before.change(tx, call, enabled, stored, &event, response).await
}

/// Withdraws the token, and the one before, and switches provisioning off. Idempotent.
pub(crate) async fn revoke(
    tx: &mut WriteTx,
    call: &Authorized<v2::RevokeScimTokenRequest>,
) -> Result<Changed<v2::RevokeScimTokenResponse>> {
    let before = Before::load(tx, call).await?;
    let uid = before.provider.uid.clone();
    let response = |revoked_at: Micros| {
        let identity_provider_uid = uid.as_str().into();
        move |scim: Scim| v2::RevokeScimTokenResponse {
            identity_provider_uid,
            etag: scim.etag,
            enabled: scim.enabled,
            revoke_time: timestamp(revoked_at),
        }
    };
    let withdrawn = before.token.revoked_at.filter(|_| before.token.hash.is_none());
    if let (Some(revoked_at), false) = (withdrawn, before.provider.scim_enabled) {
        return Ok(Changed::nothing(response(revoked_at)(to_scim(call, &before.provider, &before.token))));
    }
    if withdrawn.is_none() {
        before.require_token()?;
    }
    // Provisioning may have been switched on again without a token.
    let revoked_at = withdrawn.unwrap_or_else(|| call.now());
    let stored = TokenRow { revoked_at: Some(revoked_at), ..TokenRow::default() };
    let event = v1::RevokeScimTokenRequest { identity_provider_id: uid.as_str().into() };
    before.change(tx, call, false, stored, &event, response(revoked_at)).await
}

pub(crate) async fn set_enabled(
    tx: &mut WriteTx,
    call: &Authorized<v2::SetScimEnabledRequest>,
) -> Result<Changed<v2::SetScimEnabledResponse>> {
    let request = call.request();
    let before = Before::load(tx, call).await?;
    before.require_etag(&request.etag)?;
    let uid = before.provider.uid.clone();
    let response = |scim: Scim| v2::SetScimEnabledResponse {
        identity_provider_uid: uid.as_str().into(),
        enabled: scim.enabled,
        etag: scim.etag,
    };
    if request.enabled == before.provider.scim_enabled {
        return Ok(Changed::nothing(response(to_scim(call, &before.provider, &before.token))));
    }
    if request.enabled {
        require_owners(tx, call, &uid).await?;
    }
    let event = v1::SetScimEnabledRequest {
        identity_provider_id: uid.as_str().into(),
        enabled: request.enabled,
        etag: request.etag.clone(),
    };
    let stored = before.token.clone();
    before.change(tx, call, request.enabled, stored, &event, response).await
}

/// Minimum number of owners of a group before a directory may lock people out of it.
const MIN_OWNERS: i64 = 2;

async fn require_owners<T>(tx: &mut ReadTx, call: &Authorized<T>, provider: &Uidp) -> Result<()> {
    let group = provider.parent_str();
    let found = owners::count(tx, call.contract(), group, "", call.now()).await?;
    if found >= MIN_OWNERS {
        return Ok(());
    }
    let what = format!(
        "SCIM needs {MIN_OWNERS} identities that have the role owner at the group itself and can act; there are {found}"
    );
    Err(Error::precondition("TOO_FEW_OWNERS", group, what))
}

/// Deletes the provisioning of a deleted provider, and the roles in the organization of people it had deactivated.
pub(crate) async fn delete_of_provider(tx: &mut WriteTx, provider: &Uidp) -> Result<Vec<Change>> {
    let sql = "SELECT person FROM scim_users WHERE provider = $1 AND NOT active AND person <> ''";
    let left = tx.query(sql, &[Value::from(provider.as_str())], |row| row.text(0).map_err(Error::from)).await?;
    let mut changes = Vec::new();
    for person in left {
        changes.extend(role_bindings::delete_of_identity_in(tx, &person, provider.parent_str()).await?);
    }
    for sql in ["DELETE FROM scim_tokens WHERE provider = $1", "DELETE FROM scim_users WHERE provider = $1"] {
        tx.execute(sql, &[Value::from(provider.as_str())]).await?;
    }
    Ok(changes)
}

/// Refuses while a directory provisions people: they are matched by issuer and subject.
pub(crate) async fn require_no_provisioned_users(tx: &mut ReadTx, provider: &Uidp) -> Result<()> {
    let sql = "SELECT uid FROM scim_users WHERE provider = $1 LIMIT 1";
    let found = tx.query_opt(sql, &[Value::from(provider.as_str())], |row| row.text(0).map_err(Error::from)).await?;
    match found {
        None => Ok(()),
        Some(_) => Err(Error::precondition(
            "PEOPLE_PROVISIONED",
            provider.as_str(),
            "cannot change the issuer or client while a directory provisions people through the identity provider; \
             remove them over SCIM first",
        )),
    }
}
