//! Explanations agree with the oracle for every method, caller and place, and name nothing that the reader may not list.

use std::collections::BTreeSet;

use bowline_contract::bowline::iam::v1 as own;
use bowline_contract::bowline::iam::v1::rpc::access_explainer::ExplainAccess;
use bowline_testkit::{Actor, Engine, TestServer, engines};
use serde_json::Value as Json;

use crate::fixture::{Caller, Fixture, Kind, Place, Standing, UNSHARED};
use crate::oracle::{holds, needed, operates, within};
use crate::sample::Sample;
use crate::table::{Check, Row, table};

#[tokio::test]
async fn explanations_agree_with_the_oracle_in_every_cell() {
    let server = TestServer::start(Engine::Sqlite).await;
    let fixture = Fixture::new(&server).await;
    let (mut wrong, mut cells) = (Vec::new(), [0, 0]);
    let mut requirements = BTreeSet::new();
    let sample = Sample::of_environment(&fixture);
    for (number, row) in table().into_iter().enumerate() {
        // What others are told depends on what is needed alone.
        let is_new = requirements.insert((row.validated == Check::Operator, needed(&fixture, row.full_name)));
        for caller in fixture.callers.iter().filter(|caller| !caller.standing.is_nobody()) {
            for place in fixture.places.iter().filter(|place| sample.has(&fixture, number, caller, place)) {
                let expected = allowed(&fixture, caller, &row, place);
                cells[usize::from(expected)] += 1;
                let case = || format!("{} by {} at {}", row.full_name, caller.actor.name, place.name);
                let of_self = explain(&caller.actor, "", &row, place).await;
                wrong.extend(disagreement(&of_self, expected).map(|what| format!("{}: {what}", case())));
                let is_whole = caller.only.is_none() && caller.inside.is_none();
                if is_new && is_whole && !matches!(caller.standing, Standing::Operator) {
                    let of_other = explain(&fixture.operator, &caller.actor.identity, &row, place).await;
                    wrong.extend(disagreement(&of_other, expected).map(|what| format!("{}, told: {what}", case())));
                }
            }
        }
    }
    drop(fixture);
    server.stop().await;
    assert!(cells.iter().all(|cells| *cells > 100), "{cells:?}");
    assert!(wrong.is_empty(), "{} of {cells:?}:\n{}", wrong.len(), wrong.join("\n"));
}

/// Whether the caller holds what the method needs, at the place.
fn allowed(fixture: &Fixture<'_>, caller: &Caller, row: &Row, place: &Place) -> bool {
    let needed = needed(fixture, row.full_name);
    let suffices = needed.is_empty() || holds(caller, &needed, &place.group);
    suffices && (row.validated != Check::Operator || operates(fixture, caller, row.full_name))
}

async fn explain(actor: &Actor, identity: &str, row: &Row, place: &Place) -> own::AccessExplanation {
    let request = own::ExplainAccessRequest {
        identity: identity.into(),
        method: row.full_name.into(),
        scope: place.group.clone(),
        ..own::ExplainAccessRequest::default()
    };
    actor.grpc::<ExplainAccess>(request).await.unwrap_or_else(|error| panic!("{}: {error:?}", row.full_name))
}

/// What is wrong with an explanation, if anything: its verdict, or a path that does not lead there.
fn disagreement(explanation: &own::AccessExplanation, expected: bool) -> Option<String> {
    if explanation.allowed != expected {
        return Some(format!("expected {expected}, got {explanation:?}"));
    }
    let gives = explanation.steps.iter().filter(|step| step.outcome() == own::AccessOutcome::Gives);
    let given: BTreeSet<&String> = gives.flat_map(|step| &step.gives).collect();
    let is_by_bindings = matches!(explanation.cause(), own::AccessCause::Given | own::AccessCause::NotGiven);
    let covers = explanation.capabilities.iter().all(|capability| given.contains(capability));
    (is_by_bindings && covers != expected).then(|| format!("the path leads elsewhere: {explanation:?}"))
}

/// Every reader asks about every identity at every place, and lists who has access there.
#[tokio::test]
async fn explanations_name_nothing_hidden() {
    for engine in engines() {
        let server = TestServer::start(engine).await;
        let fixture = Fixture::new(&server).await;
        let known = fixture.all.lock().expect(UNSHARED).clone();
        let identities: Vec<String> = known[&Kind::Identity].iter().cloned().chain([fixture.segment(40)]).collect();
        let sample = Sample::of_environment(&fixture);
        let mut named = 0;
        for reader in fixture.callers.iter().filter(|caller| !caller.standing.is_nobody()) {
            for identity in identities.iter().map(String::as_str).chain([""]) {
                named += uids_named(&fixture, reader, &format!("/iam/v1/access:of?identity={identity}"), None).await;
            }
            for place in &fixture.places {
                let path = format!("/iam/v1/access:effective?scope={}&pageSize=200", place.group);
                named += uids_named(&fixture, reader, &path, Some(place)).await;
                for (number, identity) in (0..).zip(identities.iter().map(String::as_str).chain([""])) {
                    if !sample.has(&fixture, number, reader, place) {
                        continue;
                    }
                    let what = format!("identity={identity}&capabilities=groups.delete");
                    let path = format!("/iam/v1/access:explain?scope={}&{what}", place.group);
                    named += uids_named(&fixture, reader, &path, Some(place)).await;
                }
            }
        }
        assert!(named > 1000, "{named}");
        drop(fixture);
        server.stop().await;
    }
}

/// Counts the UIDPs in an answer, each of which the reader must have named or be allowed to list.
async fn uids_named(fixture: &Fixture<'_>, reader: &Caller, path: &str, place: Option<&Place>) -> usize {
    let reply = reader.actor.rest("GET", path, None).await;
    assert!([200, 403, 404].contains(&reply.status), "{path}: {}", reply.text());
    let named = uids(&reply.json());
    for uid in &named {
        let is_known = path.contains(uid) || place.is_some_and(|place| within(&place.group, uid));
        let case = || format!("{}: {path} names {uid}: {}", reader.actor.name, reply.text());
        assert!(is_known || may_be_named(fixture, reader, uid), "{}", case());
    }
    named.len()
}

/// Whether the reader may list something that has this UIDP.
fn may_be_named(fixture: &Fixture<'_>, reader: &Caller, uid: &str) -> bool {
    let built_in = fixture.server.server().parts().contract.built_in_roles();
    if uid == reader.actor.identity || built_in.iter().any(|role| role.uid == uid) {
        return true;
    }
    let own_groups = reader.standing.bindings().iter().any(|(group, _)| group == uid);
    let lists = |capability: &str| holds(reader, &BTreeSet::from([capability.to_owned()]), uid);
    let all = fixture.all.lock().expect(UNSHARED);
    let is = |kind: Kind| all[&kind].contains(uid);
    // People are bound to places of the fixture, and bindings name them.
    let is_person = !uid.contains('/') && !is(Kind::Group);
    let lists_bindings = BTreeSet::from(["role_bindings.list".to_owned()]);
    own_groups
        || is_person && fixture.places.iter().any(|place| holds(reader, &lists_bindings, &place.group))
        || is(Kind::Group) && (lists("groups.list") || lists("role_bindings.list"))
        || is(Kind::Binding) && lists("role_bindings.list")
        || is(Kind::Role) && lists("roles.list")
        // Machines live at the organization and are bound at the places: bindings name them.
        || is(Kind::Identity) && bound_in_sight(fixture, reader, uid)
}

/// Whether the identity is one that the reader may list, or has a binding that the reader may list.
fn bound_in_sight(fixture: &Fixture<'_>, reader: &Caller, uid: &str) -> bool {
    let lists_bindings = BTreeSet::from(["role_bindings.list".to_owned()]);
    let of_callers = fixture.callers.iter().filter(|caller| caller.actor.identity == uid);
    let mut groups = of_callers.flat_map(|caller| caller.standing.bindings());
    let mut ended =
        fixture.callers.iter().filter(|caller| ["expired", "expired identity"].contains(&&*caller.actor.name));
    let has_ended = ended.any(|caller| caller.actor.identity == uid);
    let own = fixture.place("own");
    holds(reader, &BTreeSet::from(["identity.list".to_owned()]), uid)
        || groups.any(|(group, _)| holds(reader, &lists_bindings, group))
        || has_ended && holds(reader, &lists_bindings, &own.group)
}

/// Every text of an answer that has the shape of a UIDP.
fn uids(json: &Json) -> BTreeSet<String> {
    match json {
        Json::String(text) if bowline_core::Uidp::is_valid(text) => BTreeSet::from([text.clone()]),
        Json::Array(items) => items.iter().flat_map(uids).collect(),
        Json::Object(members) => members.values().flat_map(uids).collect(),
        _ => BTreeSet::new(),
    }
}

/// An identity that the reader may not list answers like one that does not exist, and so does a scope.
#[tokio::test]
async fn hidden_identities_and_scopes_answer_like_absent_ones() {
    let server = TestServer::start(Engine::Sqlite).await;
    let fixture = Fixture::new(&server).await;
    let reader = fixture.callers.iter().find(|caller| caller.actor.name == "owner of the sibling").expect("a caller");
    let sibling = &fixture.place("sibling").group;
    let hidden = &fixture.place("own").lasting[&Kind::Identity];
    let owner = fixture.callers.iter().find(|caller| caller.actor.name == "owner").expect("a caller");
    let above = fixture.callers.iter().find(|caller| caller.actor.name == "owner of the parent").expect("a caller");
    let organization = &fixture.place("parent").group;
    let absent = format!("{organization}/{}", fixture.segment(16));
    let mut answers = BTreeSet::new();
    // The last of them holds everything at the scope by a binding above, which the reader may not list either.
    for identity in [&absent, hidden, &owner.actor.identity, &above.actor.identity] {
        for what in ["capabilities=groups.list", "capabilities=groups.delete"] {
            let path = format!("/iam/v1/access:explain?scope={sibling}&identity={identity}&{what}");
            let reply = reader.actor.rest("GET", &path, None).await;
            assert_eq!(reply.status, 404, "{}", reply.text());
            answers.insert(reply.text().replace(identity.as_str(), "IDENTITY"));
        }
        let reply = reader.actor.rest("GET", &format!("/iam/v1/access:of?identity={identity}"), None).await;
        assert_eq!((reply.status, reply.text().as_str()), (200, r#"{"entries":[],"nextPageToken":""}"#));
    }
    assert_eq!(answers.len(), 1, "{answers:#?}");
    let mut answers = BTreeSet::new();
    for scope in [&fixture.place("own").group, &fixture.place("absent").group] {
        for question in ["access:explain?capabilities=groups.list&scope=", "access:effective?scope="] {
            let reply = reader.actor.rest("GET", &format!("/iam/v1/{question}{scope}"), None).await;
            answers.insert(reply.text().replace(scope.as_str(), "SCOPE"));
        }
    }
    assert_eq!(answers.len(), 2, "one for each question: {answers:#?}");
    drop(fixture);
    server.stop().await;
}
