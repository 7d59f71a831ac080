//! Policies in force for Cargo, which the methods of the wire contract leave out.

use bowline_contract::bowline::libraries::v1 as own;
use bowline_contract::bowline::libraries::v1::rpc::cargo_policies::{GetPolicies, ListBlockEvents, SetPolicy};
use bowline_core::Error;
use bowline_libraries::decide::Refusal;
use bowline_libraries::{Language, Mode};
use bowline_testkit::{Actor, TestServer, each_engine};
use serde_json::{Value, json};

use crate::block_statistics::{block, policy};
use crate::libraries::texts;
use crate::libraries_cache::remember;
use crate::support::{
    absent, call, each_of, holder, inventory, newest_event, number, ok, pages, rejected, same_over_grpc,
};

const ENFORCED: &str = "LIBRARY_POLICY_BINDING_MODE_ENFORCED";

fn set(org: &str) -> String {
    format!("POST /cargopolicies/v1/organizations/{org}:setPolicy")
}

fn get(org: &str) -> String {
    format!("GET /cargopolicies/v1/organizations/{org}/policies")
}

fn blocked(org: &str, query: &str) -> String {
    format!("GET /cargopolicies/v1/organizations/{org}/blocked-packages?{query}")
}

fn body(mode: &str, policy: &str) -> Value {
    json!({ "mode": format!("CARGO_POLICY_MODE_{mode}"), "policy": policy })
}

/// The policy that is enforced, and the one that only records.
fn both(response: &Value) -> [&str; 2] {
    ["enforced", "logged"].map(|member| response[member].as_str().unwrap_or_default())
}

/// UIDP of the only binding for Cargo.
async fn binding(server: &TestServer) -> String {
    let sql = "SELECT uid FROM library_policy_bindings WHERE ecosystem = 1000";
    let db = &server.server().parts().storage.db;
    let read = db
        .read(move |tx| Box::pin(async move { tx.query_opt(sql, &[], |row| row.text(0).map_err(Error::from)).await }));
    read.await.expect("the database answers").expect("a row")
}

async fn one_policy_of_each_mode_is_in_force_for_cargo(server: &TestServer) {
    let org = server.organization("acme").await;
    let owner = server.actor("owner", &org).await;
    let (strict, lax) = (policy(server, &org, "strict").await, policy(server, &org, "lax").await);
    assert_eq!(both(&ok(&owner, &get(&org), Value::Null).await), ["", ""]);
    let made = ok(&owner, &set(&org), body("ENFORCED", &strict)).await;
    assert_eq!((both(&made), &made["parent"]), ([strict.as_str(), ""], &json!(org)));
    let [kind, subject, ..] = newest_event(server).await;
    assert_eq!((kind.as_str(), &subject), ("dev.bowline.libraries.cargo_policy.set.v1", &org));
    let before = inventory(server).await;
    ok(&owner, &set(&org), body("ENFORCED", &strict)).await;
    assert_eq!(inventory(server).await, before, "twice is once");

    ok(&owner, &set(&org), body("LOG", &lax)).await;
    let replaced = ok(&owner, &set(&org), body("ENFORCED", &lax)).await;
    assert_eq!(both(&replaced), [lax.as_str(), lax.as_str()]);
    assert_eq!(number(server, "SELECT count(*) FROM library_policy_bindings WHERE ecosystem = 1000").await, 2);
    let explain = format!("GET /librarydecisions/v1/organizations/{org}:explainPackage?purl=pkg:cargo/serde@1.0.0");
    let explained = ok(&owner, &explain, Value::Null).await;
    assert_eq!((&explained["policy"], &explained["loggedPolicy"]), (&json!(lax), &json!(lax)));

    let removed = ok(&owner, &set(&org), body("ENFORCED", "")).await;
    assert_eq!(both(&removed), ["", lax.as_str()]);
    let before = inventory(server).await;
    ok(&owner, &set(&org), body("ENFORCED", "")).await;
    assert_eq!(inventory(server).await, before, "it is out of force already");
    let audited = "SELECT count(*) FROM audit WHERE kind = 'libraries.chainguard.dev/LibraryPolicyBinding'";
    assert_eq!(number(server, audited).await, 4);
    let shown = ok(&owner, &get(&org), Value::Null).await;
    assert_eq!(both(&shown), ["", lax.as_str()]);
    let request = own::GetCargoPoliciesRequest { parent: org.clone(), ..Default::default() };
    same_over_grpc::<GetPolicies>(server, &owner, request, &shown).await;
    let mode = own::CargoPolicyMode::Log as i32;
    let request = own::SetCargoPolicyRequest { parent: org.clone(), mode, policy: lax, ..Default::default() };
    same_over_grpc::<SetPolicy>(server, &owner, request, &shown).await;
}

async fn generic_files_have_policies_of_their_own(server: &TestServer) {
    let org = server.organization("acme").await;
    let owner = server.actor("owner", &org).await;
    let (strict, lax) = (policy(server, &org, "strict").await, policy(server, &org, "lax").await);
    let of_files = |mode: &str, policy: &str| {
        let mut body = body(mode, policy);
        body["ecosystem"] = json!("GENERIC");
        body
    };
    let get_files = format!("{}?ecosystem=GENERIC", get(&org));
    let made = ok(&owner, &set(&org), of_files("ENFORCED", &strict)).await;
    assert_eq!((both(&made), &made["ecosystem"]), ([strict.as_str(), ""], &json!("GENERIC")));
    let of_crates = ok(&owner, &set(&org), body("LOG", &lax)).await;
    assert_eq!((both(&of_crates), &of_crates["ecosystem"]), (["", lax.as_str()], &json!("CARGO")));
    assert_eq!(both(&ok(&owner, &get_files, Value::Null).await), [strict.as_str(), ""]);
    let explain = format!("GET /librarydecisions/v1/organizations/{org}:explainPackage?purl=pkg:generic/tool@1.0");
    assert_eq!(ok(&owner, &explain, Value::Null).await["policy"], json!(strict));
    let list = ok(&owner, &format!("GET /libraries/v1/policy-bindings?parentId={org}"), Value::Null).await;
    assert_eq!(list["totalCount"], "0", "the wire contract has no number for it");
    let bound = rejected(&owner, &format!("DELETE /libraries/v1/policies/{strict}"), Value::Null, 400, "").await;
    assert!(bound.message().contains("in force for generic files"), "{}", bound.message());

    block(server, &org, &strict, (Language::Generic, "Tool", "1.0", Mode::Enforced, Refusal::Malware), 1).await;
    for (query, rows) in
        [("ecosystem=GENERIC&packageName=Tool", "1"), ("ecosystem=GENERIC&packageName=tool", "0"), ("", "0")]
    {
        let list = ok(&owner, &blocked(&org, query), Value::Null).await;
        assert_eq!(list["totalCount"], rows, "{query}");
    }
    let list = ok(&owner, &format!("GET /libraries/v1/blocked-packages?parentId={org}"), Value::Null).await;
    assert_eq!(list["totalCount"], "0");
    for other in ["JAVA", "GO"] {
        let mut body = body("ENFORCED", &strict);
        body["ecosystem"] = json!(other);
        rejected_unchanged(server, &owner, &set(&org), body, 400).await;
        rejected_unchanged(server, &owner, &format!("{}?ecosystem={other}", get(&org)), Value::Null, 400).await;
        rejected_unchanged(server, &owner, &blocked(&org, &format!("ecosystem={other}")), Value::Null, 400).await;
    }
    assert_eq!(both(&ok(&owner, &set(&org), of_files("ENFORCED", "")).await), ["", ""]);
    ok(&owner, &format!("DELETE /libraries/v1/policies/{strict}"), Value::Null).await;
}

async fn policies_of_cargo_go_with_their_organization(server: &TestServer) {
    let (org, operator) = (server.organization("acme").await, server.operator().await);
    let strict = policy(server, &org, "strict").await;
    for mode in ["ENFORCED", "LOG"] {
        ok(&operator, &set(&org), body(mode, &strict)).await;
    }
    ok(&operator, &format!("DELETE /iam/v2/groups/{org}"), Value::Null).await;
    assert_eq!(number(server, "SELECT count(*) FROM library_policy_bindings").await, 0);
    let gone = "SELECT count(*) FROM audit WHERE kind = 'libraries.chainguard.dev/LibraryPolicyBinding'";
    assert_eq!(number(server, gone).await, 4, "two that were put in force, and went");
}

async fn bindings_of_the_contract_leave_cargo_out(server: &TestServer) {
    let org = server.organization("acme").await;
    let (owner, operator) = (server.actor("owner", &org).await, server.operator().await);
    let (strict, lax) = (policy(server, &org, "strict").await, policy(server, &org, "lax").await);
    ok(&owner, &set(&org), body("ENFORCED", &strict)).await;
    let java = json!({ "policy": lax, "ecosystem": "JAVA", "mode": ENFORCED });
    let java = ok(&owner, &format!("POST /libraries/v1/policy-bindings/{org}"), java).await;
    for (actor, query) in [(&owner, format!("parentId={org}")), (&owner, String::new()), (&operator, String::new())] {
        let list = ok(actor, &format!("GET /libraries/v1/policy-bindings?{query}"), Value::Null).await;
        assert_eq!((&list["items"], &list["totalCount"]), (&json!([java]), &json!("1")), "{query}");
    }

    let (of_cargo, nowhere) = (binding(server).await, absent(&org));
    let before = inventory(server).await;
    for (verb, body) in
        [("PUT", json!({ "policy": lax, "ecosystem": "PYTHON", "mode": ENFORCED })), ("DELETE", Value::Null)]
    {
        let path = |id: &str| format!("{verb} /libraries/v1/policy-bindings/{id}");
        let hidden = call(&owner, &path(&of_cargo), body.clone()).await;
        let missing = call(&owner, &path(&nowhere), body).await;
        assert_eq!((hidden.status, missing.status), (404, 404), "{verb}: {}", hidden.text());
        assert_eq!(hidden.text().replace(&of_cargo, &nowhere), missing.text(), "{verb}");
    }
    let delete = format!("DELETE /libraries/v1/policies/{strict}");
    let bound = rejected(&owner, &delete, Value::Null, 400, "").await;
    assert!(bound.message().contains("in force for Cargo"), "{}", bound.message());
    assert_eq!(inventory(server).await, before);
    ok(&owner, &set(&org), body("ENFORCED", "")).await;
    ok(&owner, &delete, Value::Null).await;
}

/// Makes a call that must be rejected with this status and change nothing; the body of its error.
async fn rejected_unchanged(server: &TestServer, actor: &Actor, what: &str, body: Value, status: u16) -> String {
    let before = inventory(server).await;
    let reply = call(actor, what, body.clone()).await;
    assert_eq!(reply.status, status, "{what} {body}: {}", reply.text());
    assert_eq!(inventory(server).await, before, "{what} {body}");
    reply.text()
}

async fn policies_that_cannot_be_in_force_are_refused(server: &TestServer) {
    let (org, other) = (server.organization("acme").await, server.organization("other").await);
    let group = server.group(&org, "team").await;
    let owner = server.actor("owner", &org).await;
    let (strict, foreign) = (policy(server, &org, "strict").await, policy(server, &other, "strict").await);
    for mode in ["UNSPECIFIED", "LOGGED"] {
        rejected_unchanged(server, &owner, &set(&org), body(mode, &strict), 400).await;
    }
    let unset = rejected(&owner, &set(&org), json!({ "policy": strict }), 400, "INVALID_ARGUMENT").await;
    assert_eq!(unset.fields(), ["mode"]);
    rejected_unchanged(server, &owner, &set(&org), body("ENFORCED", "nonsense"), 400).await;
    rejected_unchanged(server, &owner, &set(&group), body("ENFORCED", &strict), 400).await;
    rejected_unchanged(server, &owner, &get(&group), Value::Null, 400).await;
    let of_others = rejected_unchanged(server, &owner, &set(&org), body("ENFORCED", &foreign), 404).await;
    let of_no_one = rejected_unchanged(server, &owner, &set(&org), body("ENFORCED", &absent(&other)), 404).await;
    assert_eq!(of_others.replace(&foreign, &absent(&other)), of_no_one, "foreign is as absent");
}

async fn policies_of_cargo_need_the_capabilities_of_bindings(server: &TestServer) {
    let org = server.organization("acme").await;
    let strict = policy(server, &org, "strict").await;
    let needed = [
        "CAP_LIBRARIES_POLICY_BINDING_CREATE",
        "CAP_LIBRARIES_POLICY_BINDING_UPDATE",
        "CAP_LIBRARIES_POLICY_BINDING_DELETE",
    ];
    for left_out in 0..needed.len() {
        let mut held = needed.to_vec();
        let missing = held.remove(left_out);
        let machine = holder(server, &org, &format!("without-{left_out}"), &org, &held).await;
        rejected_unchanged(server, &machine.actor, &set(&org), body("ENFORCED", &strict), 403).await;
        rejected_unchanged(server, &machine.actor, &get(&org), Value::Null, 403).await;
        assert_eq!(number(server, "SELECT count(*) FROM library_policy_bindings").await, 0, "without {missing}");
    }
    let all = holder(server, &org, "all", &org, &needed).await;
    ok(&all.actor, &set(&org), body("ENFORCED", &strict)).await;
    let viewer = server.actor("viewer", &org).await;
    assert_eq!(both(&ok(&viewer, &get(&org), Value::Null).await), [strict.as_str(), ""]);
    rejected_unchanged(server, &viewer, &set(&org), body("ENFORCED", ""), 403).await;
    let stranger = server.stranger().await;
    for what in [get(&org), blocked(&org, "")] {
        rejected_unchanged(server, &stranger, &what, Value::Null, 403).await;
    }
}

async fn refused_crates_have_a_list_of_their_own(server: &TestServer) {
    let org = server.organization("acme").await;
    let owner = server.actor("owner", &org).await;
    let strict = policy(server, &org, "strict").await;
    for (language, name, version, mode, attempts) in [
        (Language::Cargo, "serde", "1.0.0", Mode::Enforced, 2),
        (Language::Cargo, "tokio", "1.0.0", Mode::Enforced, 1),
        (Language::Cargo, "serde", "1.0.1", Mode::Log, 1),
        (Language::Java, "a:b", "1", Mode::Enforced, 1),
    ] {
        block(server, &org, &strict, (language, name, version, mode, Refusal::Malware), attempts).await;
    }
    let list = ok(&owner, &blocked(&org, "packageName=Serde"), Value::Null).await;
    assert_eq!(
        (texts(&list["items"], "purl"), &list["totalCount"]),
        (vec!["pkg:cargo/serde@1.0.0".into()], &json!("1"))
    );
    let row = &list["items"][0];
    assert_eq!((&row["ecosystem"], &row["attemptCount"]), (&json!("CARGO"), &json!(2)));
    assert_eq!((&row["mode"], &row["reason"]), (&json!(ENFORCED), &json!("MALWARE_DETECTED")));
    for (query, rows) in [
        ("", "2"),
        ("mode=CARGO_POLICY_MODE_ENFORCED", "2"),
        ("mode=CARGO_POLICY_MODE_LOG", "1"),
        ("packageName=a:b", "0"),
        ("since=2100-01-01T00:00:00Z", "0"),
    ] {
        let list = ok(&owner, &blocked(&org, query), Value::Null).await;
        assert_eq!(list["totalCount"], rows, "{query}");
    }
    let pages = pages(&owner, &blocked(&org, "pageSize=1")).await;
    let mut purls = each_of(&pages, "items", "purl");
    purls.sort();
    assert_eq!((pages.len(), purls), (2, vec!["pkg:cargo/serde@1.0.0".into(), "pkg:cargo/tokio@1.0.0".into()]));
    let whole = ok(&owner, &blocked(&org, ""), Value::Null).await;
    let request = own::ListCargoBlockEventsRequest { parent: org.clone(), ..Default::default() };
    same_over_grpc::<ListBlockEvents>(server, &owner, request, &whole).await;

    for query in [format!("parentId={org}"), String::new()] {
        let list = ok(&owner, &format!("GET /libraries/v1/blocked-packages?{query}"), Value::Null).await;
        assert_eq!((texts(&list["items"], "ecosystem"), &list["totalCount"]), (vec!["JAVA".into()], &json!("1")));
    }
}

async fn cached_resolutions_leave_cargo_out(server: &TestServer) {
    let org = server.organization("acme").await;
    let owner = server.actor("owner", &org).await;
    assert!(remember(server, &org, Language::Cargo, "serde", "1.0.0", false).await);
    assert!(remember(server, &org, Language::Python, "requests", "1", false).await);
    let path = format!("/libraries/v1/resolutioncache/{org}");
    for query in ["", "liveOnly=true", "packagePrefix="] {
        let list = ok(&owner, &format!("GET {path}/entries?{query}"), Value::Null).await;
        assert_eq!((texts(&list["items"], "ecosystem"), &list["totalCount"]), (vec!["PYTHON".into()], &json!("1")));
    }
    let optout = format!("POST {path}:optout");
    ok(&owner, &optout, json!({ "ecosystem": "PYTHON", "optedOut": true })).await;
    assert!(remember(server, &org, Language::Cargo, "serde", "1.0.1", false).await);
    ok(&owner, &optout, json!({ "optedOut": true })).await;
    assert!(!remember(server, &org, Language::Cargo, "serde", "1.0.2", false).await, "off for all ecosystems");
}

each_engine!(
    one_policy_of_each_mode_is_in_force_for_cargo,
    generic_files_have_policies_of_their_own,
    policies_of_cargo_go_with_their_organization,
    bindings_of_the_contract_leave_cargo_out,
    policies_that_cannot_be_in_force_are_refused,
    policies_of_cargo_need_the_capabilities_of_bindings,
    refused_crates_have_a_list_of_their_own,
    cached_resolutions_leave_cargo_out
);
