//! Who may call what where: every implemented method, by every kind of caller, at every kind of place,
//! over both transports, against an oracle that shares no code with the server's decision.
//!
//! `golden/role_method_matrix.txt` says in a form for people which built-in role may call which method;
//! `UPDATE_GOLDEN=1` rewrites it. A new method needs a line in `matrix/table.rs`.

#[path = "matrix/calls.rs"]
mod calls;
#[path = "behaviour/contents.rs"]
mod contents;
#[path = "matrix/escalation.rs"]
mod escalation;
#[path = "matrix/explained.rs"]
mod explained;
#[path = "matrix/fixture.rs"]
mod fixture;
#[path = "matrix/fixture_libraries.rs"]
mod fixture_libraries;
#[path = "matrix/fixture_providers.rs"]
mod fixture_providers;
#[path = "matrix/golden.rs"]
mod golden;
#[path = "matrix/lists.rs"]
mod lists;
#[path = "matrix/made.rs"]
mod made;
#[path = "matrix/malformed.rs"]
mod malformed;
#[path = "matrix/oci.rs"]
mod oci;
#[path = "matrix/oracle.rs"]
mod oracle;
#[path = "matrix/table.rs"]
mod table;
#[path = "matrix/table_libraries.rs"]
mod table_libraries;
#[path = "matrix/table_providers.rs"]
mod table_providers;
#[path = "matrix/unimplemented.rs"]
mod unimplemented;

use std::collections::BTreeSet;

use bowline_contract::Auth;
use bowline_testkit::{Engine, TestServer, engines};

use crate::calls::{Outcome, over_grpc, over_rest};
use crate::fixture::Fixture;
use crate::table::{Row, table};

#[tokio::test]
async fn the_table_has_every_implemented_method() {
    let server = TestServer::start(Engine::Sqlite).await;
    let contract = &server.server().parts().contract;
    let listed: BTreeSet<&str> = table().iter().map(|row| row.full_name).chain(table::telling::ELSEWHERE).collect();
    let implemented: BTreeSet<&str> = bowline_services::implemented(contract)
        .into_iter()
        .map(|index| contract.method(index))
        .filter(|method| matches!(method.auth, Auth::Capabilities { .. }))
        .map(|method| method.full_name.as_str())
        .collect();
    assert_eq!(listed, implemented, "left: tests/matrix/table.rs, right: methods with a handler and a permission");
    server.stop().await;
}

#[tokio::test]
async fn every_caller_at_every_place_on_sqlite() {
    let server = TestServer::start(Engine::Sqlite).await;
    let fixture = Fixture::new(&server).await;
    validate_all(&fixture, &|_| true, &|_| true).await;
    drop(fixture);
    server.stop().await;
}

/// The decision is the same code; what differs is how grants are read.
#[tokio::test]
async fn some_callers_at_some_places_on_postgres() {
    if !engines().contains(&Engine::Postgres) {
        return;
    }
    let server = TestServer::start(Engine::Postgres).await;
    let fixture = Fixture::new(&server).await;
    let callers = ["expired", "stranger", "viewer", "owner", "owner narrowed to the child", "operator"];
    let places = ["own", "child", "sibling", "absent"];
    validate_all(&fixture, &|caller| callers.contains(&caller), &|place| places.contains(&place)).await;
    drop(fixture);
    server.stop().await;
}

async fn validate_all(fixture: &Fixture<'_>, callers: &dyn Fn(&str) -> bool, places: &dyn Fn(&str) -> bool) {
    let mut wrong = Vec::new();
    let mut calls = 0;
    for row in table() {
        for caller in fixture.callers.iter().filter(|caller| callers(&caller.actor.name)) {
            for place in fixture.places.iter().filter(|place| places(place.name)) {
                let expected = oracle::code(fixture, caller, &row, place);
                let case = format!("{} by {} at {}", row.full_name, caller.actor.name, place.name);
                let grpc = over_grpc(fixture, &caller.actor, &row, place).await;
                let rest = over_rest(fixture, &caller.actor, &row, place).await;
                calls += 2;
                for (transport, outcome) in [("gRPC", &grpc), ("REST", &rest)] {
                    if outcome.code != expected {
                        wrong.push(format!("{case}, {transport}: expected {expected}, got {outcome:?}"));
                    }
                }
                if grpc.code != rest.code || masked(&grpc) != masked(&rest) {
                    wrong.push(format!("{case}: gRPC answers {grpc:?}, REST {rest:?}"));
                }
            }
            wrong.extend(leak(fixture, caller, &row).await);
        }
    }
    assert!(wrong.is_empty(), "{} of {calls} calls:\n{}", wrong.len(), wrong.join("\n"));
}

/// A refusal says the same of what exists and of what does not.
async fn leak(fixture: &Fixture<'_>, caller: &fixture::Caller, row: &Row) -> Option<String> {
    let [there, absent] = ["sibling", "absent sibling"].map(|name| fixture.place(name));
    if oracle::code(fixture, caller, row, there) != oracle::DENIED {
        return None;
    }
    // Who may call the method there, and lacks only what it would give, may know what is there.
    if oracle::holds(caller, &oracle::needed(fixture, row.full_name), &there.group) {
        return None;
    }
    let there = over_rest(fixture, &caller.actor, row, there).await;
    let absent = over_rest(fixture, &caller.actor, row, absent).await;
    let same = masked(&there) == masked(&absent) && there.details == absent.details;
    let case = || format!("{} by {}: {there:?} tells itself from {absent:?}", row.full_name, caller.actor.name);
    (!same).then(case)
}

/// A refusal's text without the UIDPs in it.
fn masked(outcome: &Outcome) -> String {
    if outcome.code == oracle::OK { String::new() } else { calls::without_uids(&outcome.message) }
}
