//! SCIM tokens as in v1.

use bowline_contract::v1::iam as v1;
use bowline_contract::v1::iam::rpc::identity_providers::{
    GenerateScimToken, RegenerateScimToken, RevokeScimToken, SetScimEnabled,
};
use bowline_contract::v2::iam as v2;
use bowline_core::Result;
use bowline_pipeline::{Authorized, Changed, Handlers, handler};
use bowline_store::WriteTx;

use super::scim_tokens;

pub(crate) fn register(handlers: Handlers) -> Handlers {
    handlers
        .write::<GenerateScimToken>(handler!(generate))
        .write::<RegenerateScimToken>(handler!(regenerate))
        .write::<RevokeScimToken>(handler!(revoke))
        .write::<SetScimEnabled>(handler!(set_enabled))
}

async fn generate(
    tx: &mut WriteTx,
    call: &Authorized<v1::GenerateScimTokenRequest>,
) -> Result<Changed<v1::GenerateScimTokenResponse>> {
    let request = call.request();
    let call = call.with_request(v2::GenerateScimTokenRequest {
        identity_provider_uid: request.identity_provider_id.clone(),
        expire_time: request.expire_time,
        never_expires: request.never_expires,
    });
    let changed = scim_tokens::generate(tx, &call).await?;
    Ok(changed.map(|made| v1::GenerateScimTokenResponse {
        token: made.token,
        endpoint_url: made.endpoint_url,
        expire_time: made.expire_time,
        identity_provider_id: made.identity_provider_uid,
        etag: made.etag,
    }))
}

async fn regenerate(
    tx: &mut WriteTx,
    call: &Authorized<v1::RegenerateScimTokenRequest>,
) -> Result<Changed<v1::RegenerateScimTokenResponse>> {
    let request = call.request();
    let call = call.with_request(v2::RegenerateScimTokenRequest {
        identity_provider_uid: request.identity_provider_id.clone(),
        overlap: request.overlap,
        expire_time: request.expire_time,
        etag: request.etag.clone(),
        never_expires: request.never_expires,
    });
    let changed = scim_tokens::regenerate(tx, &call).await?;
    Ok(changed.map(|made| v1::RegenerateScimTokenResponse {
        token: made.token,
        endpoint_url: made.endpoint_url,
        expire_time: made.expire_time,
        identity_provider_id: made.identity_provider_uid,
        etag: made.etag,
        previous_token_expire_time: made.previous_token_expire_time,
        requested_overlap: made.requested_overlap,
    }))
}

async fn revoke(
    tx: &mut WriteTx,
    call: &Authorized<v1::RevokeScimTokenRequest>,
) -> Result<Changed<v1::RevokeScimTokenResponse>> {
    let identity_provider_uid = call.request().identity_provider_id.clone();
    let call = call.with_request(v2::RevokeScimTokenRequest { identity_provider_uid });
    let changed = scim_tokens::revoke(tx, &call).await?;
    Ok(changed.map(|revoked| v1::RevokeScimTokenResponse {
        identity_provider_id: revoked.identity_provider_uid,
        etag: revoked.etag,
        enabled: revoked.enabled,
        revoke_time: revoked.revoke_time,
    }))
}

async fn set_enabled(
    tx: &mut WriteTx,
    call: &Authorized<v1::SetScimEnabledRequest>,
) -> Result<Changed<v1::SetScimEnabledResponse>> {
    let request = call.request();
    let call = call.with_request(v2::SetScimEnabledRequest {
        identity_provider_uid: request.identity_provider_id.clone(),
        enabled: request.enabled,
        etag: request.etag.clone(),
    });
    let changed = scim_tokens::set_enabled(tx, &call).await?;
    Ok(changed.map(|set| v1::SetScimEnabledResponse {
        identity_provider_id: set.identity_provider_uid,
        enabled: set.enabled,
        etag: set.etag,
    }))
}
