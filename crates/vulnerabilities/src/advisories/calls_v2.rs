//! Advisories as in v2, which reads.

use std::collections::BTreeSet;

use bowline_contract::v2::vulnerabilities as v2;
use bowline_contract::v2::vulnerabilities::rpc::advisories_service::{GetAdvisory, ListAdvisories};
use bowline_core::Result;
use bowline_pipeline::{Authorized, Direction, Handlers, handler};
use bowline_resources::list;
use bowline_store::ReadTx;

use super::filters::Filters;
use super::lists::{self, AdvisoryQuery};
use super::rows::AdvisoryRow;
use super::{events, rows, severities};

pub(super) fn register(handlers: Handlers) -> Handlers {
    handlers.read::<GetAdvisory>(handler!(get)).read::<ListAdvisories>(handler!(list))
}

async fn get(tx: &mut ReadTx, call: &Authorized<v2::GetAdvisoryRequest>) -> Result<v2::Advisory> {
    let row = rows::require(tx, call.require_scope()?).await?;
    let mut shown = shown(tx, &[row]).await?;
    shown.pop().ok_or_else(|| bowline_core::Error::internal("an advisory that was found is not shown"))
}

async fn list(tx: &mut ReadTx, call: &Authorized<v2::ListAdvisoriesRequest>) -> Result<v2::ListAdvisoriesResponse> {
    let request = call.request();
    let selection = list::select(tx, call, call.visible(), request.uidp.as_ref()).await?;
    let mut filters = Filters::of_v2(request);
    lists::resolve_origin(tx, &mut filters).await?;
    let by_uid = request.uidp.as_ref().is_some_and(|uidp| !uidp.ids.is_empty());
    let (page, default) = (list::paging(request), (0, Direction::Ascending));
    let found = lists::page(tx, call, AdvisoryQuery { selection, filters: &filters, by_uid, page, default }).await?;
    Ok(v2::ListAdvisoriesResponse {
        advisories: shown(tx, &found.rows).await?,
        next_page_token: found.next_page_token,
        total_count: found.total_count,
        skipped: found.skipped,
    })
}

/// The advisories with their events and severities.
async fn shown(tx: &mut ReadTx, found: &[AdvisoryRow]) -> Result<Vec<v2::Advisory>> {
    let uids: Vec<&str> = found.iter().map(|row| row.uid.as_str()).collect();
    let mut events = events::load(tx, &uids).await?;
    let aliases: BTreeSet<&str> = found.iter().flat_map(|row| &row.aliases).map(String::as_str).collect();
    let severities = severities::load(tx, &aliases).await?;
    found.iter().map(|row| row.to_v2(&events.remove(row.uid.as_str()).unwrap_or_default(), &severities)).collect()
}
