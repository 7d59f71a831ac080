//! The state of replication, and requests to check an upstream at the next pull.

use bowline_contract::bowline::registry::v1 as own;
use bowline_contract::bowline::registry::v1::rpc::replication::{FetchNow, ListUpstreams};
use bowline_contract::v1::registry::sync_status::Status;
use bowline_core::{Result, UidRange};
use bowline_pipeline::{Authorized, Changed, Direction, Handlers, Page, PageRequest, handler};
use bowline_resources::list::timestamp;
use bowline_resources::references::require_group;
use bowline_store::{ReadTx, Row, Value, WriteTx};
use prost::Message;

use super::upstream_tags;
use crate::repos;

pub(crate) fn register(handlers: Handlers) -> Handlers {
    handlers.read::<ListUpstreams>(handler!(list)).write::<FetchNow>(handler!(fetch_now))
}

/// The one order of the list.
const ORDERS: &[&[&str]] = &[&["repo_uid"]];

async fn list(tx: &mut ReadTx, call: &Authorized<own::ListUpstreamsRequest>) -> Result<own::ListUpstreamsResponse> {
    let group = call.require_scope()?;
    require_group(tx, group).await?;
    let request = call.request();
    let rest = own::ListUpstreamsRequest { page_size: 0, page_token: String::new(), ..request.clone() };
    let page = PageRequest {
        page_size: request.page_size,
        page_token: request.page_token.clone(),
        filter: rest.encode_to_vec(),
        ..PageRequest::default()
    };
    let page = Page::validate(call, &page, ORDERS, (0, Direction::Ascending))?;
    let range = UidRange::below(group.as_str());
    let after = page.cursor.as_ref().map_or(String::new(), |cursor| cursor.uid.clone());
    let failed = if request.failed_only { format!("AND s.status = {}", Status::Failed as i32) } else { String::new() };
    let sql = format!(
        "SELECT s.repo, r.name, s.status, s.checked_at, s.message FROM upstream_syncs s JOIN repos r ON r.uid = s.repo
         WHERE s.repo >= $1 AND s.repo < $2 AND s.repo > $3 {failed} ORDER BY s.repo LIMIT $4"
    );
    let params =
        [Value::from(&range.lower), Value::from(&range.upper), Value::from(&after), Value::Int(page.size as i64 + 1)];
    let mut upstreams = tx.query(&sql, &params, state).await?;
    let mut next_page_token = String::new();
    if upstreams.len() > page.size {
        upstreams.truncate(page.size);
        if let Some(last) = upstreams.last() {
            next_page_token = page.next_token(call, None, last.repo_uid.clone());
        }
    }
    Ok(own::ListUpstreamsResponse { upstreams, next_page_token })
}

fn state(row: &Row<'_>) -> Result<own::UpstreamState> {
    Ok(own::UpstreamState {
        repo_uid: row.text(0)?,
        repo_name: row.text(1)?,
        status: i32::try_from(row.int(2)?).unwrap_or(Status::Unknown as i32),
        check_time: timestamp(row.int(3)?),
        error: row.text(4)?,
    })
}

/// Makes every replicated tag due for a check. Pulls of clients trigger the checks, so the repository does not change yet:
/// there is neither an audit entry nor an event.
async fn fetch_now(
    tx: &mut WriteTx,
    call: &Authorized<own::FetchNowRequest>,
) -> Result<Changed<own::FetchNowResponse>> {
    let repo = call.require_scope()?;
    repos::require(tx, repo).await?;
    let tags = upstream_tags::check_all(tx, repo).await?;
    Ok(Changed::nothing(own::FetchNowResponse { repo_uid: repo.as_str().into(), tags }))
}
