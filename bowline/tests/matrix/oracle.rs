//! What the server must answer, worked out from the roles, the hierarchy and the contract's words
//! alone: sets of names and prefixes of strings.

use std::collections::BTreeSet;

use bowline_contract::{Auth, Contract, Verb};

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
        Standing::Operator | Standing::Admin => return true,
        Standing::OperatorViewer(everywhere) => return needed.is_subset(everywhere),
        Standing::Bound(bound) | Standing::OfProvider(bound) => bound,
    };
    let held: BTreeSet<&String> =
        bound.iter().filter(|(group, _)| within(uid, group)).flat_map(|(_, capabilities)| capabilities).collect();
    needed.iter().all(|capability| held.contains(capability))
}

/// Whether the caller holds these at the place or somewhere below it.
fn holds_around(caller: &Caller, needed: &BTreeSet<String>, uid: &str) -> bool {
    let bound = caller.standing.bindings().iter().map(|(group, _)| group.clone());
    let below = bound.chain(caller.inside.clone()).filter(|group| within(group, uid));
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

/// Whether the caller may call a method of operators. Viewers may call what is a GET and sends no event.
pub(crate) fn operates(fixture: &Fixture<'_>, caller: &Caller, method: &str) -> bool {
    let info = fixture.server.server().parts().contract.by_full_name(method).expect("a method of the contract");
    let is_get = info.bindings.first().is_some_and(|binding| binding.verb == Verb::Get);
    caller.standing.operates(is_get && info.event.is_none())
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
    if caller.standing.is_nobody() {
        return UNAUTHENTICATED;
    }
    // An invitation is good while a binding of its inviter gives the role: what else gives it does not count.
    let lacks_bindings = row.needs_binding && matches!(caller.standing, Standing::Admin);
    let needed = needed(fixture, row.decided_by.unwrap_or(row.full_name));
    let held = holds(caller, &needed, &place.group);
    match row.validated {
        Check::Operator if lacks_bindings || !operates(fixture, caller, row.full_name) => DENIED,
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
        Check::Person => match caller.standing {
            Standing::Admin | Standing::OperatorViewer(_) => OK,
            Standing::OfProvider(_) => DENIED,
            Standing::Anonymous | Standing::Operator | Standing::Bound(_) => row.let_through,
        },
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
        Check::Scope if lacks_bindings => DENIED,
        Check::Scope => match row.grants {
            Some(role) if !holds(caller, &fixture.capabilities(role), granted_at(row, place)) => DENIED,
            _ => OK,
        },
    }
}
