//! Built-in roles: rows without a parent, kept as the contract has them.

use bowline_contract::Contract;
use bowline_contract::v1::common::UidpFilter;
use bowline_core::{Error, Micros, Result, UidRange, Uidp, merge};

use bowline_resources::list::Selection;
use bowline_store::WriteTx;

use super::{RoleRow, find, insert, save};
use crate::access::iam_changed;

/// Whether the UIDP is that of a built-in role.
pub(super) fn is_built_in(contract: &Contract, uid: &str) -> bool {
    contract.built_in_roles().iter().any(|role| role.uid == uid)
}

/// Every built-in role as a range of its own; sorted.
pub(crate) fn built_in_ranges(contract: &Contract) -> Vec<UidRange> {
    merge(contract.built_in_roles().iter().map(|role| UidRange::single(&role.uid)).collect())
}

/// Adds the built-in roles, which everyone sees, to a list. They have no scope in the hierarchy. A filter
/// by scope therefore excludes them, also from ranges that cover everything, as the operator's do.
pub(crate) fn add_built_in(selection: &mut Selection<'_>, contract: &Contract, filter: Option<&UidpFilter>, id: &str) {
    let mut built_in = built_in_ranges(contract);
    if filter.is_some_and(names_scope) {
        selection.ranges.retain(|range| !built_in.contains(range));
        if filter.is_some_and(|filter| filter.in_root) {
            selection.ranges.clear();
        }
        return;
    }
    let ids = filter.map_or(&[][..], |filter| &filter.ids);
    built_in.retain(|range| (ids.is_empty() || ids.contains(&range.lower)) && (id.is_empty() || id == range.lower));
    built_in.append(&mut selection.ranges);
    selection.ranges = merge(built_in);
}

fn names_scope(filter: &UidpFilter) -> bool {
    let scopes = [&filter.ancestors_of, &filter.descendants_of, &filter.children_of];
    filter.in_root || scopes.iter().any(|scope| !scope.is_empty())
}

/// Makes the stored built-in roles those of the contract; what is as it should be stays untouched.
pub async fn seed_built_in_roles(tx: &mut WriteTx, contract: &Contract, now: Micros) -> Result<()> {
    let mut changed = false;
    for role in contract.built_in_roles() {
        let mut declared = RoleRow {
            uid: Uidp::parse(&role.uid).map_err(Error::internal)?,
            name: role.name.clone(),
            description: role.description.clone(),
            capabilities: role.capabilities,
            created_at: now,
            updated_at: now,
        };
        match find(tx, &role.uid).await? {
            None => changed |= insert(tx, &declared).await?,
            Some(stored) if is_same(&stored, &declared) => {}
            Some(stored) => {
                declared.created_at = stored.created_at;
                save(tx, &declared).await?;
                changed = true;
            }
        }
    }
    if changed { iam_changed(tx).await } else { Ok(()) }
}

fn is_same(left: &RoleRow, right: &RoleRow) -> bool {
    left.name == right.name && left.description == right.description && left.capabilities == right.capabilities
}
