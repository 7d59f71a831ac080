//! Requests for access to an organization: lists of open ones, and their acceptance or decline.

use bowline_contract::bowline::iam::v1 as own;
use bowline_contract::bowline::iam::v1::rpc::access_requests::{AnswerAccessRequest, ListAccessRequests};
use bowline_core::{Error, Result, Uidp};
use bowline_pipeline::{
    Authorized, Change, Changed, Cursor, Direction, Handlers, Page, PageRequest, ResourceSnapshot, SortKey, handler,
};
use bowline_resources::kinds::ACCESS_REQUEST;
use bowline_resources::list::timestamp;
use bowline_resources::references;
use bowline_store::{ReadTx, Row, Value, WriteTx};

use super::role_bindings::{self, BindingInput, Spelling};

/// The one order of requests: by time.
const BY_TIME: &[&[&str]] = &[&["request_time"]];

pub(crate) fn register(handlers: Handlers) -> Handlers {
    handlers.read::<ListAccessRequests>(handler!(list)).write::<AnswerAccessRequest>(handler!(answer))
}

/// An open request with the person's name and address.
struct RequestRow {
    identity: String,
    at: i64,
    name: String,
    email: String,
}

impl RequestRow {
    fn read(row: &Row<'_>) -> Result<RequestRow> {
        Ok(RequestRow { identity: row.text(0)?, at: row.int(1)?, name: row.text(2)?, email: row.text(3)? })
    }

    fn shown(self, group: &Uidp) -> own::AccessRequest {
        own::AccessRequest {
            identity: self.identity,
            group: group.as_str().into(),
            request_time: timestamp(self.at),
            name: self.name,
            email: self.email,
        }
    }
}

async fn list(
    tx: &mut ReadTx,
    call: &Authorized<own::ListAccessRequestsRequest>,
) -> Result<own::ListAccessRequestsResponse> {
    let request = call.request();
    let group = references::require_scope(tx, call).await?;
    let page = PageRequest {
        page_size: request.page_size,
        page_token: request.page_token.clone(),
        filter: group.as_str().into(),
        ..PageRequest::default()
    };
    let page = Page::validate(call, &page, BY_TIME, (0, Direction::Ascending))?;
    let (at, identity) = match &page.cursor {
        Some(Cursor { key: Some(SortKey::Int(at)), uid, .. }) => (*at, uid.as_str()),
        _ => (i64::MIN, ""),
    };
    let sql = "SELECT r.identity, r.at, i.name, i.email FROM access_requests r JOIN identities i ON i.uid = r.identity
               WHERE r.group_uid = $1 AND r.answered_at IS NULL AND (r.at, r.identity) > ($2, $3)
               ORDER BY r.at, r.identity LIMIT $4";
    let wanted = page.size + 1;
    let params = [Value::from(group.as_str()), Value::Int(at), Value::from(identity), Value::Int(wanted as i64)];
    let mut rows: Vec<RequestRow> = tx.query(sql, &params, RequestRow::read).await?;
    let mut next_page_token = String::new();
    if rows.len() == wanted {
        rows.truncate(page.size);
        if let Some(last) = rows.last() {
            next_page_token = page.next_token(call, Some(SortKey::Int(last.at)), last.identity.clone());
        }
    }
    let requests = rows.into_iter().map(|row| row.shown(&group)).collect();
    Ok(own::ListAccessRequestsResponse { requests, next_page_token })
}

async fn answer(
    tx: &mut WriteTx,
    call: &Authorized<own::AnswerAccessRequestRequest>,
) -> Result<Changed<own::AccessRequestAnswer>> {
    let request = call.request();
    match (request.role.is_empty(), request.decline) {
        (true, false) => return Err(Error::invalid_field("role", "role or decline is required")),
        (false, true) => return Err(Error::invalid_field("decline", "cannot be given together with role")),
        _ => {}
    }
    let group = references::require_scope(tx, call).await?;
    if request.decline {
        let closed = close(tx, call, &group).await?;
        return Ok(Changed::many(vec![closed], own::AccessRequestAnswer::default()));
    }
    // The grant is authorized first: only callers who may bind the role learn whether there is a request.
    let input = BindingInput { identity: request.identity.clone(), role: request.role.clone() };
    let changed = role_bindings::create(tx, call, input, &Spelling::V1).await?;
    let closed = close(tx, call, &group).await?;
    let changed = changed.along(vec![closed]);
    Ok(changed.map(|row| own::AccessRequestAnswer { role_binding: row.uid.into() }))
}

/// Marks the request as closed. The row stays, so that the person cannot send another request on the same day.
///
/// # Errors
/// NOT_FOUND without an open request.
async fn close(tx: &mut WriteTx, call: &Authorized<own::AnswerAccessRequestRequest>, group: &Uidp) -> Result<Change> {
    let identity = &call.request().identity;
    let sql = "SELECT at FROM access_requests WHERE identity = $1 AND group_uid = $2 AND answered_at IS NULL";
    let key = [Value::from(identity), Value::from(group.as_str())];
    let at = tx.query_opt(sql, &key, |row| row.int(0).map_err(Error::from)).await?;
    let at = at.ok_or_else(|| Error::not_found(ACCESS_REQUEST, identity))?;
    let sql = "UPDATE access_requests SET answered_at = $3 WHERE identity = $1 AND group_uid = $2";
    tx.execute(sql, &[Value::from(identity), Value::from(group.as_str()), Value::Int(call.now())]).await?;
    // Name and address are the person's and no part of the record.
    let before = own::AccessRequest {
        identity: identity.clone(),
        group: group.as_str().into(),
        request_time: timestamp(at),
        ..own::AccessRequest::default()
    };
    let before = Some(ResourceSnapshot::of(&before));
    Ok(Change { kind: ACCESS_REQUEST, uid: group.as_str().into(), before, after: None })
}
