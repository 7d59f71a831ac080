//! Terms as in v1.

use bowline_contract::v1::iam as v1;
use bowline_contract::v1::iam::rpc::terms::{AcceptTerms, ListAccepted};
use bowline_core::Result;
use bowline_pipeline::{Authorized, Changed, Handlers, handler};
use bowline_resources::list;
use bowline_store::{ReadTx, WriteTx};
use prost::Message;

use super::terms::{self, AcceptanceRow};

pub(crate) fn register(handlers: Handlers) -> Handlers {
    handlers.write::<AcceptTerms>(handler!(accept)).read::<ListAccepted>(handler!(list))
}

async fn accept(
    tx: &mut WriteTx,
    call: &Authorized<v1::AcceptTermsRequest>,
) -> Result<Changed<v1::AcceptTermsResponse>> {
    let accepted = terms::accept(tx, call, &call.request().document_ids).await?;
    Ok(accepted.map(|(group, document_ids)| v1::AcceptTermsResponse { group, document_ids }))
}

/// What was accepted, and nothing of what was not. A group that is not there has accepted nothing.
async fn list(tx: &mut ReadTx, call: &Authorized<v1::TermsFilter>) -> Result<v1::TermsList> {
    let selection = terms::of_group(call.require_scope()?);
    let size = |row: &AcceptanceRow| row.to_v1().encoded_len();
    let rows = list::everything(tx, call, &terms::TABLE, &selection, size).await?;
    Ok(v1::TermsList { items: rows.iter().map(AcceptanceRow::to_v1).collect() })
}
