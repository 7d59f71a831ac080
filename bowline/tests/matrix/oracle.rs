//! What the server must answer, worked out from the roles, the hierarchy and the contract's words
//! alone: sets of names and prefixes of strings.

use std::collections::BTreeSet;

use bowline_contract::{Auth, Contract};

use crate::fixture::{Caller, Fixture, Place, Standing};
use crate::table::{Check, Row};

pub(crate) const OK: i32 = 0;
pub(crate) const INVALID: i32 = 3;
pub(crate) const NOT_FOUND: i32 = 5;
pub(crate) const ALREADY_EXISTS: i32 = 6;
pub(crate) const DENIED: i32 = 7;
pub(crate) const PRECONDITION: i32 = 9;
pub(crate) const UNAUTHENTICATED: i32 = 16;

/// Whether `uid` is `group` or lies in it.
pub(crate) fn within(uid: &str, group: &str) -> bool {
    uid == group || uid.starts_with(&format!("{group}/"))
}

/// Whether the caller holds these there.
pub(crate) fn holds(caller: &Caller, needed: &BTreeSet<String>, uid: &str) -> bool {
    if caller.inside.as_deref().is_some_and(|inside| !within(uid, inside)) {
        return false;
    }
    if caller.only.as_ref().is_some_and(|only| !needed.is_subset(only)) {
        return false;
    }
    let bound = match &caller.standing {
        Standing::Anonymous => return false,
        Standing::Operator => return true,
        Standing::Bound(bound) => bound,
    };
    let held: BTreeSet<&String> =
        bound.iter().filter(|(group, _)| within(uid, group)).flat_map(|(_, capabilities)| capabilities).collect();
    needed.iter().all(|capability| held.contains(capability))
}

/// Whether the caller holds these at the place or somewhere below it.
fn holds_around(caller: &Caller, needed: &BTreeSet<String>, uid: &str) -> bool {
    let bound = match &caller.standing {
        Standing::Bound(bound) => bound.iter().map(|(group, _)| group.clone()).collect(),
        Standing::Anonymous | Standing::Operator => Vec::new(),
    };
    let below = bound.into_iter().chain(caller.inside.clone()).filter(|group| within(group, uid));
    below.chain([uid.to_owned()]).any(|group| holds(caller, needed, &group))
}

/// The capabilities that the contract asks of a method.
pub(crate) fn needed(fixture: &Fixture<'_>, method: &str) -> BTreeSet<String> {
    needed_of(&fixture.server.server().parts().contract, method)
}

/// The capabilities that a contract asks of a method.
pub(crate) fn needed_of(contract: &Contract, method: &str) -> BTreeSet<String> {
    match &contract.by_full_name(method).expect("a method of the contract").auth {
        Auth::Capabilities { needed, .. } => {
            contract.capabilities().names(needed).into_iter().map(String::from).collect()
        }
        Auth::Own | Auth::Public => panic!("{method} needs no caller"),
    }
}

/// Where the role of the request is given.
fn granted_at<'p>(row: &Row, place: &'p Place) -> &'p str {
    let organization = place.group.split('/').next().filter(|_| row.grants_at_root);
    organization.unwrap_or(&place.group)
}

/// Whether the caller holds what other methods need there, where the request does as much as they do.
fn holds_also(fixture: &Fixture<'_>, caller: &Caller, row: &Row, place: &Place) -> bool {
    row.also.iter().all(|method| holds(caller, &needed(fixture, method), &place.group))
}

/// The gRPC code that both transports must answer with.
pub(crate) fn code(fixture: &Fixture<'_>, caller: &Caller, row: &Row, place: &Place) -> i32 {
    if matches!(caller.standing, Standing::Anonymous) {
        return UNAUTHENTICATED;
    }
    let needed = needed(fixture, row.decided_by.unwrap_or(row.full_name));
    let held = holds(caller, &needed, &place.group);
    match row.validated {
        Check::Operator if !matches!(caller.standing, Standing::Operator) => DENIED,
        Check::Operator => {
            if place.exists || row.absent_is_fine {
                row.let_through
            } else {
                NOT_FOUND
            }
        }
        Check::Caller => row.let_through,
        Check::List { refuses: false } => OK,
        Check::Themselves => DENIED,
        Check::List { refuses: true } if !holds_around(caller, &needed, &place.group) => DENIED,
        Check::List { refuses: true } => {
            if held && !place.exists && !row.absent_is_fine {
                NOT_FOUND
            } else {
                OK
            }
        }
        Check::Scope if !held => DENIED,
        Check::Scope if place.exists && !holds_also(fixture, caller, row, place) => DENIED,
        Check::Scope if row.let_through_at(&place.group) != OK => row.let_through_at(&place.group),
        Check::Scope if !place.exists => {
            if row.absent_is_fine {
                OK
            } else {
                NOT_FOUND
            }
        }
        Check::Scope => match row.grants {
            Some(role) if !holds(caller, &fixture.capabilities(role), granted_at(row, place)) => DENIED,
            _ => OK,
        },
    }
}
