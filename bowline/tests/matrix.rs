//! Who may call what where: every implemented method, by every kind of caller, at every kind of place,
//! over both transports, against an oracle that shares no code with the server's decision.
//!
//! `golden/role_method_matrix.txt` says in a form for people which built-in role may call which method;
//! `UPDATE_GOLDEN=1` rewrites it. A new method needs a line in `matrix/table.rs`.

#[path = "matrix/calls.rs"]
mod calls;
#[path = "matrix/console.rs"]
mod console;
#[path = "matrix/console_corpus.rs"]
mod console_corpus;
#[path = "matrix/console_fields.rs"]
mod console_fields;
#[path = "matrix/console_html.rs"]
mod console_html;
#[path = "matrix/console_support.rs"]
mod console_support;
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
#[path = "matrix/fixture_people.rs"]
mod fixture_people;
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
#[path = "matrix/packages.rs"]
mod packages;
#[path = "matrix/previewed.rs"]
mod previewed;
#[path = "matrix/sample.rs"]
mod sample;
#[path = "matrix/standing.rs"]
mod standing;
#[path = "matrix/table.rs"]
mod table;
#[path = "matrix/table_libraries.rs"]
mod table_libraries;
#[path = "matrix/table_providers.rs"]
mod table_providers;
#[path = "matrix/unimplemented.rs"]
mod unimplemented;

use std::collections::BTreeSet;

use bowline_contract::bowline::people::v1::rpc::sessions::EndAllSessions;
use bowline_contract::{Auth, Method};
use bowline_testkit::{Actor, Engine, TestServer, engines};

use crate::calls::{Outcome, over_grpc, over_rest};
use crate::fixture::{Caller, Fixture, Place, Standing};
use crate::sample::{COMPARED_ALONE, Sample};
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
    assert!(fixture.callers.len() >= 20, "{}", fixture.callers.len());
    let sample = Sample::of_environment(&fixture);
    validate_all(&fixture, &|number, caller, place| sample.has(&fixture, number, caller, place)).await;
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
    let everywhere = ["expired", "stranger", "viewer", "owner", "owner narrowed to the child", "operator"];
    let sampled = ["owner of the child", "person of a provider", "operator.viewer", "operator.admin"];
    let places = ["own", "child", "sibling", "absent"];
    let sample = Sample::of_environment(&fixture);
    let tries = |number: usize, caller: &Caller, place: &Place| {
        let name = caller.actor.name.as_str();
        let is_sampled = sampled.contains(&name) && sample.has(&fixture, number, caller, place);
        places.contains(&place.name) && (is_sampled || everywhere.contains(&name))
    };
    validate_all(&fixture, &tries).await;
    drop(fixture);
    server.stop().await;
}

/// Tries the cells that are chosen, by the number of the method, the caller and the place.
async fn validate_all(fixture: &Fixture<'_>, chosen: &dyn Fn(usize, &Caller, &Place) -> bool) {
    let (mut wrong, mut calls) = (Vec::new(), 0);
    for (number, row) in table().into_iter().enumerate() {
        for caller in &fixture.callers {
            for place in fixture.places.iter().filter(|place| chosen(number, caller, place)) {
                let expected = oracle::code(fixture, caller, &row, place);
                let case = format!("{} by {} at {}", row.full_name, caller.actor.name, place.name);
                let grpc = over_grpc(fixture, &actor_of(fixture, caller, &row).await, &row, place).await;
                let rest = over_rest(fixture, &actor_of(fixture, caller, &row).await, &row, place).await;
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
            for pair in [["sibling", "absent sibling"], ["other organization", COMPARED_ALONE]] {
                if chosen(number, caller, fixture.place(pair[0])) {
                    wrong.extend(leak(fixture, caller, &row, pair).await);
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {calls} calls:\n{}", wrong.len(), wrong.join("\n"));
}

/// Who calls: another person of the same kind where the call ends the sessions of its caller.
async fn actor_of(fixture: &Fixture<'_>, caller: &Caller, row: &Row) -> Actor {
    let ends = row.full_name == EndAllSessions::FULL_NAME && matches!(caller.standing, Standing::OfProvider(_));
    if ends { fixture.signed_in(&caller.actor.name).await } else { caller.actor.clone() }
}

/// A refusal says the same of what exists and of what does not.
async fn leak(fixture: &Fixture<'_>, caller: &Caller, row: &Row, pair: [&str; 2]) -> Option<String> {
    let [there, absent] = pair.map(|name| fixture.place(name));
    if oracle::code(fixture, caller, row, there) != oracle::DENIED {
        return None;
    }
    // Who may call the method there, and lacks only what it would give, may know what is there.
    if oracle::holds(caller, &oracle::needed(fixture, row.full_name), &there.group) {
        return None;
    }
    // Who is bound there and not where nothing is lacks less there, which it knows by its own bindings.
    let mut bound = caller.standing.bindings().iter().map(|(group, _)| group);
    if bound.any(|group| oracle::within(&there.group, group) && !oracle::within(&absent.group, group)) {
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
