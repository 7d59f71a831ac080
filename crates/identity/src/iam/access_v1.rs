//! Asking for access as in v1.

use bowline_contract::v1::iam as v1;
use bowline_contract::v1::iam::rpc::groups::{CheckEligibility, LookupGroup, RequestGroupAccess};
use bowline_core::Result;
use bowline_pipeline::{Authorized, Changed, Handlers, handler};
use bowline_store::{ReadTx, WriteTx};

use super::access;

pub(crate) fn register(handlers: Handlers) -> Handlers {
    handlers
        .read::<LookupGroup>(handler!(lookup))
        .read::<CheckEligibility>(handler!(check))
        .write::<RequestGroupAccess>(handler!(request))
}

async fn lookup(tx: &mut ReadTx, call: &Authorized<v1::LookupGroupRequest>) -> Result<v1::LookupGroupResponse> {
    let found = access::require_organization(tx, call).await?;
    let group = v1::Group { id: found.uid.into(), name: found.name, ..v1::Group::default() };
    Ok(v1::LookupGroupResponse { group: Some(group) })
}

async fn check(
    tx: &mut ReadTx,
    call: &Authorized<v1::CheckEligibilityRequest>,
) -> Result<v1::CheckEligibilityResponse> {
    Ok(v1::CheckEligibilityResponse { eligible: access::is_eligible(tx, call).await? })
}

async fn request(
    tx: &mut WriteTx,
    call: &Authorized<v1::RequestGroupAccessRequest>,
) -> Result<Changed<v1::RequestGroupAccessResponse>> {
    let changed = access::request(tx, call, &call.request().group_id).await?;
    Ok(changed.map(|()| v1::RequestGroupAccessResponse {}))
}
