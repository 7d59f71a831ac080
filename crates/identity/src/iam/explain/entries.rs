//! Lists of who has a role at a scope, and of the roles of one identity.

use bowline_contract::bowline::iam::v1 as own;
use bowline_contract::chainguard::capabilities::Capability;
use bowline_core::{Result, Uidp};
use bowline_pipeline::{Authorized, Cursor, Direction, Page, PageRequest, SortKey};
use bowline_resources::list::{self, Filter, Listed as _, Selection};
use bowline_store::{ReadTx, Value};

use crate::iam::role_bindings::{BindingRow, References, TABLE};

/// The one order of who has access: from the root down.
const FROM_THE_ROOT: &[&[&str]] = &[&["group"]];

pub(super) async fn list_effective(
    tx: &mut ReadTx,
    call: &Authorized<own::ListEffectiveAccessRequest>,
) -> Result<own::ListEffectiveAccessResponse> {
    let request = call.request();
    let scope = call.require_scope()?;
    let page = page_request(request.page_size, &request.page_token, scope.as_str());
    let page = Page::validate(call, &page, FROM_THE_ROOT, (0, Direction::Ascending))?;
    let mut rows = at_and_above(tx, call, scope, &page).await?;
    let mut next_page_token = String::new();
    if rows.len() > page.size {
        rows.truncate(page.size);
        if let Some(last) = rows.last() {
            let key = SortKey::Text(last.group().into());
            next_page_token = page.next_token(call, Some(key), last.uid().to_owned());
        }
    }
    let references = References::load(tx, call, &rows).await?;
    let entries = rows
        .iter()
        .map(|row| own::AccessEntry { inherited: row.group() != scope.as_str(), ..references.to_entry(call, row) });
    Ok(own::ListEffectiveAccessResponse { entries: entries.collect(), next_page_token })
}

/// The bindings of a page, and one more if there are more: group by group, those alone whose bindings the reader may list.
async fn at_and_above<T>(tx: &mut ReadTx, call: &Authorized<T>, scope: &Uidp, page: &Page) -> Result<Vec<BindingRow>> {
    let (last_group, last_uid) = match &page.cursor {
        Some(Cursor { key: Some(SortKey::Text(group)), uid, .. }) => (group.as_str(), uid.as_str()),
        _ => ("", ""),
    };
    let lists = |group: &&str| call.holds(group, Capability::CapIamRoleBindingsList);
    let mut groups: Vec<&str> =
        scope.self_and_ancestors().filter(lists).filter(|group| group.len() >= last_group.len()).collect();
    groups.reverse();
    let mut rows: Vec<BindingRow> = Vec::new();
    for group in groups {
        let room = page.size + 1 - rows.len();
        if room == 0 {
            break;
        }
        let after = if group == last_group { last_uid } else { "" };
        let sql = format!(
            "SELECT {} FROM {} WHERE parent = $1 AND uid > $2 ORDER BY uid LIMIT $3",
            TABLE.columns, TABLE.name
        );
        let params = [Value::from(group), Value::from(after), Value::Int(room as i64)];
        rows.extend(tx.query(&sql, &params, BindingRow::read).await?);
    }
    Ok(rows)
}

pub(super) async fn list_of(
    tx: &mut ReadTx,
    call: &Authorized<own::ListAccessOfRequest>,
) -> Result<own::ListAccessOfResponse> {
    let request = call.request();
    let caller = call.principal().subject();
    let is_caller = request.identity.is_empty() || request.identity == caller;
    let identity = if is_caller { caller } else { &request.identity };
    let selection = Selection {
        // One's own bindings are no secret, but for what the token was not made for.
        ranges: if is_caller { call.grants().left_by_token() } else { call.visible() },
        parent: None,
        filters: vec![Filter { column: "identity", value: Value::from(identity) }],
        conditions: Vec::new(),
        clauses: Vec::new(),
    };
    let page = page_request(request.page_size, &request.page_token, identity);
    let listing = list::page::<_, BindingRow>(tx, call, &TABLE, &selection, &page, (0, Direction::Ascending)).await?;
    let references = References::load(tx, call, &listing.items).await?;
    let entries = listing.items.iter().map(|row| references.to_entry(call, row)).collect();
    Ok(own::ListAccessOfResponse { entries, next_page_token: listing.next_page_token })
}

fn page_request(page_size: i32, page_token: &str, of: &str) -> PageRequest {
    PageRequest { page_size, page_token: page_token.into(), filter: of.into(), ..PageRequest::default() }
}
