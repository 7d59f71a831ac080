//! Tests stored beside a library policy: they run at each update of it, which they refuse while one fails.

use bowline_contract::bowline::libraries::v1 as own;
use bowline_contract::bowline::libraries::v1::rpc::policy_tests::{ListPolicyTests, SetPolicyTests, UpdatePolicy};
use bowline_contract::v1::libraries::LibraryPolicy;
use bowline_core::rfc3339::{self, Digits};
use bowline_testkit::{Actor, TestServer, each_engine};
use serde_json::{Value, json};

use crate::advisories::barred;
use crate::libraries::{UPSTREAM, import, version};
use crate::support::{absent, call, each, newest_event, number, ok, rejected, same_over_grpc};

/// Packages that were published a hundred days ago.
async fn catalogue(server: &TestServer) {
    let published = rfc3339::text((server.clock().seconds() - 100 * 24 * 3600) * 1_000_000, Digits::SixOrNone);
    let versions: Vec<Value> = ["good", "bad"]
        .iter()
        .map(|name| {
            let mut version = version("PYTHON", name, "1.0", UPSTREAM);
            version["publishTime"] = json!(published);
            version
        })
        .collect();
    import(&server.operator().await, &versions).await;
}

fn allowed(purl: &str) -> Value {
    json!({ "purl": purl, "expected": "EXPECTED_DECISION_ALLOWED" })
}

fn refused(purl: &str, reason: &str) -> Value {
    json!({ "purl": purl, "expected": "EXPECTED_DECISION_REFUSED", "reason": reason, "note": "as agreed" })
}

/// A policy that blocks one package.
async fn policy(owner: &Actor, org: &str) -> String {
    let body = json!({ "name": "strict", "blockList": [{ "purl": "pkg:pypi/bad" }] });
    ok(owner, &format!("POST /libraries/v1/policies/{org}"), body).await["id"].as_str().expect("an id").into()
}

/// Stores the same tests over gRPC.
async fn set_over_grpc(server: &TestServer, owner: &Actor, policy: &str, stored: &Value) {
    let test = |purl: &str, expected: own::ExpectedDecision, reason: &str, note: &str| own::PolicyTest {
        purl: purl.into(),
        expected: expected as i32,
        reason: reason.into(),
        note: note.into(),
    };
    let tests = vec![
        test("pkg:pypi/Good@1.0", own::ExpectedDecision::Allowed, "", ""),
        test("pkg:pypi/bad@1.0", own::ExpectedDecision::Refused, "BLOCK_LIST", "as agreed"),
    ];
    let request = own::SetPolicyTestsRequest { policy: policy.into(), tests, force: false };
    same_over_grpc::<SetPolicyTests>(server, owner, request, stored).await;
}

/// Reads the tests over gRPC, and replaces the policy by itself.
async fn read_and_update_over_grpc(server: &TestServer, owner: &Actor, policy: &str, listed: &Value) {
    let request = own::ListPolicyTestsRequest { policy: policy.into() };
    same_over_grpc::<ListPolicyTests>(server, owner, request, listed).await;
    let same =
        LibraryPolicy { id: policy.into(), name: "lax".into(), cooldown_days: Some(0), ..LibraryPolicy::default() };
    let request = own::UpdateTestedPolicyRequest { policy: Some(same), force: true };
    let updated = owner.grpc::<UpdatePolicy>(request).await.expect("nothing changes");
    assert_eq!(updated.policy.map(|policy| policy.name).as_deref(), Some("lax"));
}

async fn an_update_is_refused_while_a_test_fails(server: &TestServer) {
    catalogue(server).await;
    let org = server.organization("acme").await;
    let owner = server.actor("owner", &org).await;
    let policy = policy(&owner, &org).await;
    let set = format!("POST /librarypolicytests/v1/policies/{policy}:setTests");
    let tests = json!([allowed("pkg:pypi/Good@1.0"), refused("pkg:pypi/bad@1.0", "BLOCK_LIST")]);
    let stored = ok(&owner, &set, json!({ "tests": tests })).await;
    assert!(stored["results"].as_array().expect("results").iter().all(|one| one["passed"] == json!(true)), "{stored}");
    assert_eq!(stored["results"][0]["test"]["purl"], "pkg:pypi/good@1.0", "as the catalogue spells it");
    set_over_grpc(server, &owner, &policy, &stored).await;
    let [kind, subject, ..] = newest_event(server).await;
    assert_eq!((kind.as_str(), &subject), ("dev.bowline.libraries.policy_tests.updated.v1", &policy));
    let audited = "SELECT count(*) FROM audit WHERE method LIKE '%PolicyTests.SetPolicyTests'";
    ok(&owner, &set, json!({ "tests": tests })).await;
    assert_eq!(number(server, audited).await, 1, "the same tests change nothing");

    // What the policy would let through is refused, in both methods, and stays as it was.
    let lax = json!({ "name": "lax", "cooldownDays": 0 });
    let update = format!("PUT /libraries/v1/policies/{policy}");
    let failing = "pkg:pypi/bad@1.0 must be refused for BLOCK_LIST and is allowed (as agreed)";
    barred(&owner, &update, lax.clone(), 400, failing).await;
    let ours = format!("PUT /librarypolicytests/v1/policies/{policy}");
    let refusal = rejected(&owner, &ours, json!({ "policy": lax }), 400, "FAILED_PRECONDITION").await;
    let violations = refusal.detail("PreconditionFailure")["violations"].clone();
    let expected =
        json!([{ "type": "LIBRARY_POLICY_TEST_FAILED", "subject": "pkg:pypi/bad@1.0", "description": failing }]);
    assert_eq!(violations, expected);
    let names = async || {
        let list = ok(&owner, &format!("GET /libraries/v1/policies?parentId={org}"), Value::Null).await;
        each(&list["items"], "name").into_iter().map(String::from).collect::<Vec<_>>()
    };
    assert_eq!(names().await, ["strict"]);
    // An update that the tests allow, and one that is forced.
    let wider = json!({ "name": "strict", "blockList": [{ "purl": "pkg:pypi/bad" }, { "purl": "pkg:pypi/worse" }] });
    ok(&owner, &update, wider).await;
    let forced = ok(&owner, &ours, json!({ "policy": lax, "force": true })).await;
    assert_eq!((&forced["policy"]["name"], each(&forced["failed"], "reason")), (&json!("lax"), vec![""]));
    assert_eq!(forced["failed"][0]["test"]["purl"], "pkg:pypi/bad@1.0");
    let [kind, ..] = newest_event(server).await;
    assert_eq!(kind, "dev.bowline.libraries.policy.updated.v1");
    let listed = ok(&owner, &format!("GET /librarypolicytests/v1/policies/{policy}:tests"), Value::Null).await;
    let passed: Vec<&Value> = listed["results"].as_array().expect("results").iter().map(|one| &one["passed"]).collect();
    assert_eq!(passed, [&json!(true), &json!(false)]);
    read_and_update_over_grpc(server, &owner, &policy, &listed).await;
    // Nothing changes, so nothing is refused.
    ok(&owner, &update, lax).await;
    // The reason counts where a test names one.
    let cooling = json!({ "name": "lax", "cooldownDays": 30, "blockList": [{ "purl": "pkg:pypi/unknown" }] });
    let tests = json!({ "tests": [refused("pkg:pypi/unknown@2", "COOLDOWN")], "force": true });
    ok(&owner, &set, tests).await;
    barred(&owner, &update, cooling, 400, "must be refused for COOLDOWN and is refused for BLOCK_LIST").await;
}

async fn tests_are_validated_and_go_with_their_policy(server: &TestServer) {
    catalogue(server).await;
    let org = server.organization("acme").await;
    let owner = server.actor("owner", &org).await;
    let policy = policy(&owner, &org).await;
    let set = format!("POST /librarypolicytests/v1/policies/{policy}:setTests");
    let many: Vec<Value> = (0..101).map(|n| allowed(&format!("pkg:pypi/good@{n}"))).collect();
    for (tests, field) in [
        (json!([allowed("pkg:pypi/good")]), "tests[0].purl"),
        (json!([allowed("good@1.0")]), "tests[0].purl"),
        (json!([allowed("pkg:pypi/good@1.0"), allowed("pkg:pypi/Good@1.0")]), "tests[1].purl"),
        (json!([{ "purl": "pkg:pypi/good@1.0" }]), "tests[0].expected"),
        (json!([refused("pkg:pypi/good@1.0", "WHIM")]), "tests[0].reason"),
        (
            json!([{ "purl": "pkg:pypi/good@1.0", "expected": "EXPECTED_DECISION_ALLOWED", "reason": "COOLDOWN" }]),
            "tests[0].reason",
        ),
        (json!(many), "tests"),
    ] {
        let refusal = rejected(&owner, &set, json!({ "tests": tests }), 400, "INVALID_ARGUMENT").await;
        assert!(refusal.fields().contains(&field.to_owned()), "{field}: {refusal:?}");
    }
    // Tests that fail from the start are stored only if that is meant.
    let failing = json!([refused("pkg:pypi/good@1.0", "")]);
    let refusal = rejected(&owner, &set, json!({ "tests": failing }), 400, "FAILED_PRECONDITION").await;
    assert!(refusal.message().contains("pkg:pypi/good@1.0 must be refused and is allowed"), "{refusal:?}");
    let stored = "SELECT count(*) FROM library_policy_tests";
    assert_eq!(number(server, stored).await, 0);
    ok(&owner, &set, json!({ "tests": failing, "force": true })).await;
    assert_eq!(number(server, stored).await, 1);

    let viewer = server.actor("viewer", &org).await;
    ok(&viewer, &format!("GET /librarypolicytests/v1/policies/{policy}:tests"), Value::Null).await;
    rejected(&viewer, &set, json!({ "tests": [] }), 403, "PERMISSION_DENIED").await;
    let stranger = server.stranger().await;
    for uid in [&policy, &absent(&org)] {
        let path = format!("GET /librarypolicytests/v1/policies/{uid}:tests");
        rejected(&stranger, &path, Value::Null, 403, "PERMISSION_DENIED").await;
    }
    let nowhere = format!("POST /librarypolicytests/v1/policies/{}:setTests", absent(&org));
    rejected(&owner, &nowhere, json!({ "tests": [] }), 404, "NOT_FOUND").await;
    ok(&owner, &set, json!({})).await;
    assert_eq!(number(server, stored).await, 0, "no tests are none");
    ok(&owner, &set, json!({ "tests": failing, "force": true })).await;
    let deleted = call(&owner, &format!("DELETE /libraries/v1/policies/{policy}"), Value::Null).await;
    assert_eq!((deleted.status, number(server, stored).await), (200, 0), "{}", deleted.text());
}

each_engine!(an_update_is_refused_while_a_test_fails, tests_are_validated_and_go_with_their_policy);
