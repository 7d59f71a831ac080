//! The console has no back door: each page shows what the API returns to the same caller for the calls that the page
//! records, refuses what the API refuses, and agrees with the oracle. Whoever may not see a resource gets the page of an
//! absent one.

use std::collections::BTreeSet;

use bowline_testkit::{Engine, TestServer};
use prost_reflect::DynamicMessage;
use serde_json::Value as Json;

use crate::calls::{Outcome, STATUSES, method};
use crate::console_support::{Browsers, Call, Shown, address, masked, tries_all, uids};
use crate::fixture::{Caller, Fixture, Place};
use crate::oracle;
use crate::table::{self, Row};

/// Who opens every page, besides the operator.
const READERS: [&str; 6] =
    ["owner", "viewer", "owner narrowed to a few capabilities", "owner narrowed to the child", "stranger", "puller"];
const PLACES: [&str; 4] = ["own", "child", "sibling", "absent"];

/// Methods whose response changes without a change.
const RESTLESS: [&str; 3] = ["Operator.GetHealth", "Operator.GetStorage", "Operator.ListTasks"];

/// How a page says that a part is refused.
const REFUSALS: [&str; 2] = ["You may not see this", "you may not see it"];

#[tokio::test]
async fn pages_show_what_the_api_returns_to_the_same_caller() {
    let server = TestServer::start(Engine::Sqlite).await;
    let fixture = Fixture::new(&server).await;
    let browsers = Browsers::new(&fixture);
    let rows = table::table();
    let (mut wrong, mut seen) = (Vec::new(), Seen::default());
    for caller in readers(&fixture) {
        let browser = browsers.of(caller);
        for place in fixture.places.iter().filter(|place| tries_all() || PLACES.contains(&place.name)) {
            for path in bowline_console::Console::paths() {
                let address = address(path, place);
                let case = format!("{address} by {} at {}", caller.actor.name, place.name);
                let page = browsers.open(&browser, &address).await;
                let data = browsers.data(&browser, &address).await;
                let told = compared(&fixture, caller, &rows, &page, data.as_ref(), &mut seen).await;
                wrong.extend(told.into_iter().map(|what| format!("{case}: {what}")));
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {seen:?}:\n{}", wrong.len(), wrong.join("\n"));
    // Enough of everything: shown, refused as a whole, refused in part, and looked up in the oracle.
    assert!(seen.pages > 900 && seen.refused_pages > 300 && seen.refused_parts > 100, "{seen:?}");
    assert!(seen.calls > 1500 && seen.by_oracle > 1000, "{seen:?}");
    drop(fixture);
    server.stop().await;
}

/// How much was compared.
#[derive(Debug, Default)]
struct Seen {
    pages: usize,
    refused_pages: usize,
    refused_parts: usize,
    calls: usize,
    by_oracle: usize,
}

fn readers<'f>(fixture: &'f Fixture<'_>) -> impl Iterator<Item = &'f Caller> {
    let chosen = |name: &str| tries_all() || READERS.contains(&name) || name == fixture.operator.name;
    fixture.callers.iter().filter(move |caller| !caller.standing.is_nobody() && chosen(&caller.actor.name))
}

/// What is wrong with a page.
async fn compared(
    fixture: &Fixture<'_>,
    caller: &Caller,
    rows: &[Row],
    page: &Shown,
    data: Option<&Json>,
    seen: &mut Seen,
) -> Vec<String> {
    let mut wrong = Vec::new();
    let (mut refused, mut known) = (Vec::new(), uids(&page.address));
    known.extend(uids(&caller.actor.identity));
    let mut last = 0;
    let of_data = data.and_then(|data| data["calls"].as_array()).cloned().unwrap_or_default();
    for (number, call) in page.calls.iter().enumerate() {
        let (outcome, response) = sent(fixture, caller, call).await;
        last = outcome.code;
        known.extend(response.as_ref().map(|response| uids(&response.to_string())).unwrap_or_default());
        if let Some(expected) = expected(fixture, caller, rows, call) {
            seen.by_oracle += 1;
            if expected != outcome.code {
                wrong.push(format!("{}: the oracle says {expected}, the API {outcome:?}", call.method));
            }
        }
        match of_data.get(number) {
            Some(recorded) => {
                if outcome.code == oracle::DENIED {
                    refused.push(call.method.as_str());
                }
                wrong.extend(differs(fixture, call, recorded, &outcome, response.as_ref()));
            }
            // The name of the group that a page is limited to: without it, its id stands there.
            None if data.is_some() && number + 1 == page.calls.len() => {}
            None if data.is_none() => {}
            None => wrong.push(format!("{} is not in the data of the page", call.method)),
        }
    }
    seen.pages += 1;
    seen.calls += page.calls.len();
    if page.status == 200 {
        let shown = REFUSALS.iter().map(|text| page.body.matches(text).count()).sum::<usize>();
        // The page that explains access says so in the words of the API.
        let shown = shown + page.body.matches("role=\"alert\">Permission denied").count();
        seen.refused_parts += refused.len();
        if shown != refused.len() {
            wrong.push(format!("{shown} parts are refused, the API refuses {refused:?}"));
        }
    } else {
        seen.refused_pages += 1;
        if !STATUSES.contains(&(last, page.status)) {
            wrong.push(format!("the page has the status {}, its last call the code {last}", page.status));
        }
    }
    let besides: Vec<String> = uids(&page.body).into_iter().filter(|uid| !within_any(uid, &known)).collect();
    if !besides.is_empty() {
        wrong.push(format!("the page has {besides:?}, which no response has"));
    }
    wrong
}

/// Whether a UIDP is among these, or contains one of them.
fn within_any(uid: &str, known: &BTreeSet<String>) -> bool {
    known.iter().any(|one| oracle::within(one, uid))
}

/// The call sent over gRPC by the caller: its outcome, and the response.
async fn sent(fixture: &Fixture<'_>, caller: &Caller, call: &Call) -> (Outcome, Option<DynamicMessage>) {
    let info = method(fixture, &call.method);
    let reply = caller.actor.grpc_raw(&info.grpc_path, call.payload.clone()).await;
    let response = reply
        .as_ref()
        .ok()
        .map(|bytes| DynamicMessage::decode(info.output.clone(), bytes.as_slice()).expect("an encoded response"));
    (Outcome::of_grpc(reply), response)
}

/// How the data of the page differs from what the API returned.
fn differs(
    fixture: &Fixture<'_>,
    call: &Call,
    recorded: &Json,
    outcome: &Outcome,
    response: Option<&DynamicMessage>,
) -> Option<String> {
    if recorded["method"] != call.method.as_str() {
        return Some(format!("the data has {} in place of {}", recorded["method"], call.method));
    }
    let Some(response) = response else {
        let is_same = recorded["error"] == outcome.message.as_str();
        return (!is_same).then(|| format!("{}: the data has {recorded}, the API returns {outcome:?}", call.method));
    };
    if RESTLESS.iter().any(|name| call.method.ends_with(name)) {
        return recorded["response"].is_null().then(|| format!("{}: the data has {recorded}", call.method));
    }
    let output = method(fixture, &call.method).output.clone();
    let shown = crate::console_support::decoded(fixture, &output, &recorded["response"]);
    // A token of a page is another one each time.
    let [shown, returned] = [shown, response.clone()].map(|mut message| {
        message.clear_field_by_name("next_page_token");
        message
    });
    (shown != returned).then(|| format!("{}: the data has {shown}, the API returns {returned}", call.method))
}

/// What the oracle says about a call, where the call is about a place of the fixture.
fn expected(fixture: &Fixture<'_>, caller: &Caller, rows: &[Row], call: &Call) -> Option<i32> {
    let about = uids(&call.request.to_string());
    let places = fixture.places.iter().filter(|place| about.iter().any(|uid| oracle::within(uid, &place.group)));
    let place = places.max_by_key(|place| place.group.len())?;
    let mut named = rows.iter().filter(|row| row.full_name == call.method && row.also.is_empty());
    // Of two rows, the first one is about others, the second about oneself.
    let row = if call.request["identity"].is_null() { named.next_back() } else { named.next() };
    let Some(row) = row else {
        let info = method(fixture, &call.method);
        let is_elsewhere = table::telling::ELSEWHERE.contains(&call.method.as_str());
        let needs_none = !matches!(info.auth, bowline_contract::Auth::Capabilities { .. });
        assert!(is_elsewhere || needs_none, "the table has no {}", call.method);
        return None;
    };
    // Lists without a place show what is visible anywhere, those of a repository what is in it, and those by ids leave out
    // what is not visible.
    let is_by_id = !call.request["uidp"]["ids"].is_null();
    let is_of_place = about.contains(&place.group) && !is_by_id;
    (row.lists.is_none() || is_of_place).then(|| oracle::code(fixture, caller, row, place))
}

#[tokio::test]
async fn pages_of_what_is_hidden_are_those_of_what_is_absent() {
    let server = TestServer::start(Engine::Sqlite).await;
    let fixture = Fixture::new(&server).await;
    let browsers = Browsers::new(&fixture);
    let (mut wrong, mut pairs) = (Vec::new(), 0);
    for caller in readers(&fixture) {
        let browser = browsers.of(caller);
        for names in [["sibling", "absent sibling"], ["other organization", "absent organization"]] {
            let [hidden, absent] = names.map(|name| fixture.place(name));
            if sees_something(caller, hidden) {
                continue;
            }
            for path in bowline_console::Console::paths() {
                let [there, nowhere] = [address(path, hidden), address(path, absent)];
                let [there, nowhere] = [browsers.open(&browser, &there).await, browsers.open(&browser, &nowhere).await];
                pairs += 1;
                let difference = difference(&masked(&there.body), &masked(&nowhere.body));
                if there.status != nowhere.status || difference.is_some() {
                    let case = format!("{} by {}", there.address, caller.actor.name);
                    wrong.push(format!("{case} tells itself from an absent one: {difference:#?}"));
                }
            }
        }
    }
    assert!(pairs > 200, "{pairs}");
    assert!(wrong.is_empty(), "{} of {pairs}:\n{}", wrong.len(), wrong.join("\n"));
    drop(fixture);
    server.stop().await;
}

/// Where two texts begin to differ: the two pieces.
fn difference(a: &str, b: &str) -> Option<[String; 2]> {
    let at = a.bytes().zip(b.bytes()).position(|(a, b)| a != b);
    let at = at.or((a.len() != b.len()).then_some(a.len().min(b.len())))?;
    let piece = |text: &str| {
        let around = text.floor_char_boundary(at.saturating_sub(60))..text.floor_char_boundary(at + 200);
        text[around].to_owned()
    };
    Some([piece(a), piece(b)])
}

/// Whether a caller holds something in the place, above or below it.
fn sees_something(caller: &Caller, place: &Place) -> bool {
    use crate::fixture::Standing;
    let around = |group: &str| oracle::within(&place.group, group) || oracle::within(group, &place.group);
    match &caller.standing {
        Standing::Bound(bound) | Standing::OfProvider(bound) => bound.iter().any(|(group, _)| around(group)),
        Standing::Anonymous | Standing::Operator | Standing::Admin | Standing::OperatorViewer(_) => true,
    }
}
