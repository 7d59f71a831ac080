//! What a list may look at: the visible ranges, narrowed by the hierarchy filter.

use bowline_contract::v1::common::UidpFilter;
use bowline_core::{Error, Result, UidRange, Uidp, intersect, merge};
use bowline_pipeline::Authorized;
use bowline_store::{ReadTx, Value};

use super::Selection;

/// Narrows the visible ranges by a hierarchy filter.
///
/// # Errors
/// INVALID_ARGUMENT if it is not a UIDP; PERMISSION_DENIED if the caller may see nothing at the named scope,
/// above or below it; NOT_FOUND if the caller may and it does not exist.
pub async fn select<'a, T>(
    tx: &mut ReadTx,
    call: &Authorized<T>,
    visible: Vec<UidRange>,
    filter: Option<&UidpFilter>,
) -> Result<Selection<'a>> {
    let mut selection =
        Selection { ranges: visible, parent: None, filters: Vec::new(), conditions: Vec::new(), clauses: Vec::new() };
    let Some(filter) = filter else { return Ok(selection) };
    for (field, place) in [
        ("uidp.descendantsOf", &filter.descendants_of),
        ("uidp.childrenOf", &filter.children_of),
        ("uidp.ancestorsOf", &filter.ancestors_of),
    ] {
        if !place.is_empty() {
            validate_position(tx, call, field, place).await?;
        }
    }
    narrow(&mut selection, filter);
    Ok(selection)
}

/// The same, as in v1: what cannot be seen, or is no UIDP, is just not there.
pub fn select_v1<'a>(visible: Vec<UidRange>, filter: Option<&UidpFilter>, id: &str) -> Selection<'a> {
    let mut selection =
        Selection { ranges: visible, parent: None, filters: Vec::new(), conditions: Vec::new(), clauses: Vec::new() };
    if let Some(filter) = filter {
        narrow(&mut selection, filter);
    }
    if !id.is_empty() {
        selection.ranges = intersect(&selection.ranges, &[UidRange::single(id)]);
    }
    selection
}

fn narrow(selection: &mut Selection<'_>, filter: &UidpFilter) {
    if !filter.descendants_of.is_empty() {
        selection.ranges = intersect(&selection.ranges, &[UidRange::below(&filter.descendants_of)]);
    }
    if !filter.children_of.is_empty() {
        selection.ranges = intersect(&selection.ranges, &[UidRange::below(&filter.children_of)]);
        selection.parent = Some(filter.children_of.clone());
    }
    if !filter.ancestors_of.is_empty() {
        let above = Uidp::parse(&filter.ancestors_of)
            .map(|uidp| uidp.self_and_ancestors().skip(1).map(UidRange::single).collect::<Vec<_>>());
        selection.ranges = intersect(&selection.ranges, &merge(above.unwrap_or_default()));
    }
    if filter.in_root {
        match &selection.parent {
            Some(_) => selection.ranges.clear(),
            None => selection.parent = Some(String::new()),
        }
    }
    if !filter.ids.is_empty() {
        let ids = filter.ids.iter().map(|id| UidRange::single(id)).collect();
        selection.ranges = intersect(&selection.ranges, &merge(ids));
    }
}

async fn validate_position<T>(tx: &mut ReadTx, call: &Authorized<T>, field: &str, place: &str) -> Result<()> {
    if !Uidp::is_valid(place) {
        return Err(Error::invalid_field(field, bowline_core::UidpError.to_string()));
    }
    let needed = call.needed();
    if !call.grants().sees_around(place, needed) {
        call.require_all(place, needed)?;
        // The capability is held there, so nothing but a narrowed scope can have hidden it.
        return Err(Error::permission_denied("Permission denied: the token's scopes leave this place out"));
    }
    if call.grants().allows(place, needed) && !exists(tx, place).await? {
        return Err(Error::not_found(crate::kinds::GROUP, place));
    }
    Ok(())
}

/// Whether something that others live in exists under this UIDP.
async fn exists(tx: &mut ReadTx, uid: &str) -> Result<bool> {
    for sql in [
        "SELECT uid FROM groups WHERE uid = $1",
        "SELECT uid FROM repos WHERE uid = $1",
        "SELECT uid FROM identity_providers WHERE uid = $1",
    ] {
        if tx.query_opt(sql, &[Value::from(uid)], |row| row.text(0).map_err(Error::from)).await?.is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}
