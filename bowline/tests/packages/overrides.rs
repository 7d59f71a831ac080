//! Exceptions of single versions, and freezes, as clients see them.

use std::time::Duration;

use bowline_testkit::{Actor, TestServer, each_engine};
use serde_json::{Value, json};

use crate::fake_index::FakeIndex;
use crate::fake_repository::FakeRepository;
use crate::support::*;
use crate::upstreams::installer;

const DAY: Duration = Duration::from_secs(24 * 3600);

async fn call(caller: &Actor, path: &str, body: Value, status: u16) -> Value {
    let reply = caller.rest("POST", path, Some(body)).await;
    assert_eq!(reply.status, status, "{path}: {}", reply.text());
    reply.json()
}

async fn exception(caller: &Actor, org: &str, verb: &str, body: Value) -> Value {
    call(caller, &format!("/packageexceptions/v1/organizations/{org}:{verb}Exception"), body, 200).await
}

async fn freeze(caller: &Actor, org: &str, body: Value) -> Value {
    call(caller, &format!("/packagefreezes/v1/organizations/{org}:freeze"), body, 200).await
}

/// Someone with a role of these capabilities alone.
pub(crate) async fn with_capabilities(server: &TestServer, org: &str, capabilities: &[&str]) -> Actor {
    let role = json!({ "name": "some", "capabilities": capabilities });
    let owner = server.actor("owner", org).await;
    let role = call(&owner, &format!("/iam/v1/roles/{org}"), role, 200).await;
    let identity = server.identity(org, "some").await;
    server.bind(&identity, role["id"].as_str().unwrap(), org).await;
    server.sign_in("some", "some", &identity).await
}

/// Someone who installs, whose token is new.
async fn renewed(server: &TestServer, org: &str) -> Client {
    Client::of(server, &server.actor("libraries.python.pull", org).await)
}

async fn an_exception_lets_one_young_version_be_installed_for_some_hours(server: &TestServer) {
    let index = FakeIndex::start().await;
    index.publish(server, "foo", "1.0", 1);
    index.publish(server, "foo", "1.1", 1);
    let (org, owner, client) = installer(server, &index).await;
    bind(&owner, &org, "ENFORCED", json!({ "name": "rules", "cooldownDays": 30 })).await;
    let page = client.project("foo").await;
    assert_eq!(client.file(&page, 0).await.status, 403);
    let body = json!({ "purl": "pkg:pypi/Foo@1.0.0", "justification": "CVE-2026-7", "hours": 2 });
    let viewer = server.actor("viewer", &org).await;
    let requested = exception(&viewer, &org, "request", body).await;
    assert_eq!(requested["state"], "PACKAGE_EXCEPTION_STATE_REQUESTED", "{requested}");
    assert_eq!(client.file(&page, 0).await.status, 403, "a request changes nothing");

    let approve = format!("/packageexceptions/v1/exceptions/{}:approve", requested["uid"].as_str().unwrap());
    call(&viewer, &approve, json!({}), 403).await;
    let approved = call(&owner, &approve, json!({}), 200).await;
    assert_eq!(approved["state"], "PACKAGE_EXCEPTION_STATE_IN_FORCE", "{approved}");
    let page = client.project("foo").await;
    assert_eq!(page["files"][0]["yanked"], false, "{page}");
    assert!(page["files"][1]["yanked"].is_string(), "another version: {page}");
    assert_eq!((client.file(&page, 0).await.status, client.file(&page, 1).await.status), (200, 403));
    let why = format!("/librarydecisions/v1/organizations/{org}:explainPackage?purl=pkg:pypi/foo@1.0");
    let explained = owner.rest("GET", &why, None).await.json();
    let shown = (&explained["decision"]["allowed"], &explained["exception"]["uid"]);
    assert_eq!(shown, (&json!(true), &requested["uid"]), "{explained}");
    let reader = with_capabilities(server, &org, &["libraries.policy.list", "libraries.policy.binding.list"]).await;
    let explained = reader.rest("GET", &why, None).await.json();
    let shown = (&explained["decision"]["allowed"], &explained["exception"]);
    assert_eq!(shown, (&json!(true), &json!(null)), "who may not list exceptions: {explained}");

    server.clock().advance(Duration::from_secs(2 * 3600 - 1));
    let client = renewed(server, &org).await;
    assert_eq!(client.file(&page, 0).await.status, 200);
    server.clock().advance(Duration::from_secs(1));
    assert_eq!(client.file(&page, 0).await.status, 403, "it has ended");
    assert!(client.project("foo").await["files"][0]["yanked"].is_string());
    let owner = server.actor("owner", &org).await;
    let list = format!("/packageexceptions/v1/organizations/{org}/exceptions");
    assert_eq!(owner.rest("GET", &list, None).await.json(), json!({ "exceptions": [], "secondPerson": false }));
}

async fn an_exception_that_is_ended_ends_at_once(server: &TestServer) {
    let index = FakeIndex::start().await;
    index.publish(server, "foo", "1.0", 1);
    let (org, owner, client) = installer(server, &index).await;
    bind(&owner, &org, "ENFORCED", json!({ "name": "rules", "cooldownDays": 30 })).await;
    let body = json!({ "purl": "pkg:pypi/foo@1.0", "justification": "CVE-2026-7" });
    let made = exception(&owner, &org, "create", body).await;
    let page = client.project("foo").await;
    assert_eq!((&page["files"][0]["yanked"], client.file(&page, 0).await.status), (&json!(false), 200));
    let end = format!("/packageexceptions/v1/exceptions/{}:end", made["uid"].as_str().unwrap());
    call(&owner, &end, json!({}), 200).await;
    assert!(client.project("foo").await["files"][0]["yanked"].is_string());
    assert_eq!(client.file(&page, 0).await.status, 403);
    call(&owner, &end, json!({}), 404).await;
}

async fn malware_is_lifted_where_an_exception_says_so_and_a_block_never(server: &TestServer) {
    let index = FakeIndex::start().await;
    index.publish(server, "bad", "1.0", 30);
    let (org, owner, client) = installer(server, &index).await;
    let uid = bind(&owner, &org, "ENFORCED", json!({ "name": "rules" })).await;
    let page = client.project("bad").await;
    let entry = json!({
        "ecosystem": "PyPI", "packageName": "bad", "version": "", "malid": "MAL-2026-1", "source": "operator",
        "scope": "MALWARE_SCOPE_PACKAGE", "reason": ["steals tokens"], "blockedAt": "2026-01-01T00:00:00Z",
    });
    call(&server.operator().await, "/catalog/v1/malware:import", json!({ "entries": [entry] }), 200).await;
    let body = |more: bool| json!({ "purl": "pkg:pypi/bad@1.0", "justification": "why", "bypassMalware": more });
    exception(&owner, &org, "create", body(false)).await;
    assert_eq!(client.file(&page, 0).await.status, 403);
    exception(&owner, &org, "create", body(true)).await;
    assert_eq!(client.file(&page, 0).await.status, 200);
    let list = json!({ "name": "block", "blockList": [{ "purl": "pkg:pypi/bad" }] });
    let changed = owner.rest("PUT", &format!("/libraries/v1/policies/{uid}"), Some(list)).await;
    assert_eq!(changed.status, 200, "{}", changed.text());
    let wanted = "Blocked by policy block: pkg:pypi/bad@1.0 is on its block list as pkg:pypi/bad";
    assert_eq!(sentence(&client.file(&page, 0).await, 403), wanted);
}

async fn a_second_person_approves_where_the_organization_asks_for_one(server: &TestServer) {
    let org = server.organization("acme").await;
    let (owner, other) = (server.actor("owner", &org).await, server.actor("owner", &org).await);
    let set = format!("/packageexceptions/v1/organizations/{org}:setExceptionApproval");
    let viewer = server.actor("viewer", &org).await;
    call(&viewer, &set, json!({ "secondPerson": true }), 403).await;
    assert_eq!(call(&owner, &set, json!({ "secondPerson": true }), 200).await, json!({ "secondPerson": true }));
    let body = json!({ "purl": "pkg:pypi/foo@1.0", "justification": "CVE-2026-7" });
    let create = format!("/packageexceptions/v1/organizations/{org}:createException");
    let refused = call(&owner, &create, body.clone(), 400).await;
    assert_eq!(refused["details"][0]["reason"], "FAILED_PRECONDITION", "{refused}");
    let requested = exception(&owner, &org, "request", body.clone()).await;
    let approve = format!("/packageexceptions/v1/exceptions/{}:approve", requested["uid"].as_str().unwrap());
    call(&owner, &approve, json!({}), 400).await;
    let approved = call(&other, &approve, json!({}), 200).await;
    assert_ne!(approved["approvedBy"], approved["requestedBy"], "{approved}");
    assert_eq!(call(&owner, &approve, json!({}), 200).await, approved, "it is in force");
    call(&owner, &set, json!({ "secondPerson": false }), 200).await;
    exception(&owner, &org, "create", body).await;
}

async fn exceptions_are_of_one_version_for_a_week_at_most_and_bounded(server: &TestServer) {
    let org = server.organization("acme").await;
    let viewer = server.actor("viewer", &org).await;
    let request = format!("/packageexceptions/v1/organizations/{org}:requestException");
    let good = json!({ "purl": "pkg:npm/foo@1.0.0", "justification": "why" });
    for (member, value) in [
        ("purl", json!("pkg:npm/foo")),
        ("purl", json!("pkg:npm/*")),
        ("purl", json!("pkg:gem/foo@1.0.0")),
        ("purl", json!("foo")),
        ("purl", json!("pkg:npm/foo@1.0.0?arch=arm")),
        ("hours", json!(169)),
        ("hours", json!(-1)),
        ("justification", json!(" ")),
        ("justification", json!("")),
    ] {
        let mut body = good.clone();
        body[member] = value;
        call(&viewer, &request, body, 400).await;
    }
    for _ in 0..20 {
        call(&viewer, &request, good.clone(), 200).await;
    }
    let refused = call(&viewer, &request, good.clone(), 429).await;
    assert!(refused["message"].as_str().unwrap().contains("20 of your requests wait"), "{refused}");
    call(&server.actor("viewer", &org).await, &request, good.clone(), 200).await;
    server.clock().advance(7 * DAY);
    let viewer = server.actor("viewer", &org).await;
    let list = format!("/packageexceptions/v1/organizations/{org}/exceptions");
    assert_eq!(viewer.rest("GET", &list, None).await.json()["exceptions"], json!([]), "requests end unapproved");
    call(&viewer, &request, good, 200).await;
    assert_eq!(number(server, "SELECT count(*) FROM package_exceptions").await, 1);
}

async fn a_freeze_withholds_what_was_published_later_also_without_a_policy(server: &TestServer) {
    let index = FakeIndex::start().await;
    index.publish(server, "foo", "1.0", 30);
    index.publish(server, "foo", "1.1", 2);
    let (org, owner, client) = installer(server, &index).await;
    let own = Client::of(server, &server.actor("libraries.python.push", &org).await);
    own.publish("own", "1.0").await;
    let page = client.project("foo").await;
    assert_eq!(client.file(&page, 1).await.status, 200);
    let cutoff = index.state().pages["foo"][0]["upload-time"].clone();
    let body = json!({ "cutoffTime": cutoff, "justification": "a worm is about" });
    let frozen = freeze(&owner, &org, body.clone()).await;
    assert_eq!(frozen["freezes"].as_array().unwrap().len(), 6, "{frozen}");
    assert_eq!(freeze(&owner, &org, body).await, frozen, "nothing changes");
    let page = client.project("foo").await;
    assert_eq!(page["files"][0]["yanked"], false, "{page}");
    let wanted = page["files"][1]["yanked"].as_str().unwrap().to_owned();
    let beginning =
        format!("Blocked by a freeze at {}: pkg:pypi/foo@1.1 was published later, ", cutoff.as_str().unwrap());
    assert!(wanted.starts_with(&beginning), "{wanted}");
    let refused = client.file(&page, 1).await;
    assert_eq!(sentence(&refused, 403), wanted);
    assert_eq!((refused.header("x-bowline-reason"), refused.header("x-bowline-policy")), (Some("FREEZE"), None));
    assert_eq!(client.file(&page, 0).await.status, 200);
    let of_own = own.project("own").await;
    assert_eq!(own.file(&of_own, 0).await.status, 200, "own packages are exempt");
    let seen = blocked(&owner, server, &org, "ENFORCED").await;
    assert_eq!(seen, [("pkg:pypi/foo@1.1".to_owned(), "FREEZE".to_owned(), 1)]);

    // What policies and cooldown exceptions allow stays frozen; an exception of the freeze does not.
    let allowed = json!([{ "purl": "pkg:pypi/foo", "bypassCooldown": true }]);
    bind(&owner, &org, "ENFORCED", json!({ "name": "open", "allowList": allowed })).await;
    let body = |more: bool| json!({ "purl": "pkg:pypi/foo@1.1", "justification": "why", "bypassFreeze": more });
    exception(&owner, &org, "create", body(false)).await;
    assert_eq!(sentence(&client.file(&page, 1).await, 403), wanted);
    exception(&owner, &org, "create", body(true)).await;
    assert_eq!(client.file(&page, 1).await.status, 200);

    let own_too =
        json!({ "ecosystems": ["PYTHON"], "cutoffTime": cutoff, "includesOwn": true, "justification": "all" });
    freeze(&owner, &org, own_too).await;
    assert!(own.project("own").await["files"][0]["yanked"].is_string());
    assert_eq!(own.file(&of_own, 0).await.status, 403);
    let lift = format!("/packagefreezes/v1/organizations/{org}:liftFreeze");
    let left = call(&owner, &lift, json!({ "ecosystems": ["PYTHON"] }), 200).await;
    assert_eq!(left["freezes"].as_array().unwrap().len(), 5, "{left}");
    assert_eq!(own.file(&of_own, 0).await.status, 200);
}

async fn a_freeze_without_a_policy_refuses_nothing_else_and_decisions_agree(server: &TestServer) {
    let index = FakeIndex::start().await;
    index.publish(server, "bad", "1.0", 30);
    let (org, owner, client) = installer(server, &index).await;
    let own = Client::of(server, &server.actor("libraries.python.push", &org).await);
    own.publish("own", "1.0").await;
    let entry = json!({
        "ecosystem": "PyPI", "packageName": "bad", "version": "", "malid": "MAL-2026-1", "source": "operator",
        "scope": "MALWARE_SCOPE_PACKAGE", "reason": ["steals tokens"], "blockedAt": "2026-01-01T00:00:00Z",
    });
    call(&server.operator().await, "/catalog/v1/malware:import", json!({ "entries": [entry] }), 200).await;
    let page = client.project("bad").await;
    assert_eq!(client.file(&page, 0).await.status, 200, "no policy is in force");
    freeze(&owner, &org, json!({ "justification": "a worm is about" })).await;
    assert_eq!(client.file(&page, 0).await.status, 200, "a freeze is about times");
    let why = async |purl: &str| {
        let path = format!("/librarydecisions/v1/organizations/{org}:explainPackage?purl={purl}");
        owner.rest("GET", &path, None).await.json()["decision"].clone()
    };
    assert_eq!(why("pkg:pypi/bad@1.0").await["allowed"], true);
    assert_eq!(why("pkg:pypi/own@1.0").await["allowed"], true, "own packages are exempt");
    assert_eq!(why("pkg:pypi/unknown@1.0").await["reason"], "FREEZE");
    // To who may not list own packages they are like any that is not known here.
    let reader = with_capabilities(server, &org, &["libraries.policy.list", "libraries.policy.binding.list"]).await;
    let path = format!("/librarydecisions/v1/organizations/{org}:explainPackage?purl=pkg:pypi/own@1.0");
    let decision = reader.rest("GET", &path, None).await.json()["decision"].clone();
    let shown = (&decision["reason"], &decision["known"], &decision["license"], &decision["publishTime"]);
    assert_eq!(shown, (&json!("FREEZE"), &json!(false), &json!(""), &json!(null)), "{decision}");
}

async fn a_freeze_keeps_its_time_and_is_loosened_by_who_may_lift_it(server: &TestServer) {
    let org = server.organization("acme").await;
    let owner = server.actor("owner", &org).await;
    let then = json!("2026-01-01T00:00:00Z");
    let body = |cutoff: Option<&Value>, own: bool| {
        let mut body = json!({ "ecosystems": ["PYTHON"], "justification": "a worm is about", "includesOwn": own });
        if let Some(cutoff) = cutoff {
            body["cutoffTime"] = cutoff.clone();
        }
        body
    };
    freeze(&owner, &org, body(Some(&then), false)).await;
    let added = freeze(&owner, &org, body(None, true)).await;
    let shown = (&added["freezes"][0]["cutoffTime"], &added["freezes"][0]["includesOwn"]);
    assert_eq!(shown, (&then, &json!(true)), "{added}");
    let capabilities =
        ["libraries.policy.binding.list", "libraries.policy.binding.create", "libraries.policy.binding.update"];
    let setter = with_capabilities(server, &org, &capabilities).await;
    let path = format!("/packagefreezes/v1/organizations/{org}:freeze");
    let later = json!("2026-01-02T00:00:00Z");
    for laxer in [body(Some(&later), true), body(None, false)] {
        call(&setter, &path, laxer, 403).await;
    }
    call(&setter, &path, body(Some(&json!("2025-01-01T00:00:00Z")), true), 200).await;
    call(&owner, &path, body(Some(&later), false), 200).await;
}

async fn an_exception_of_java_is_of_one_spelling(server: &TestServer) {
    let repository = FakeRepository::start().await;
    for version in ["1.0", "1.0.0"] {
        repository.publish(server, "lib", version, 1, "");
    }
    let org = server.organization("acme").await;
    let owner = server.actor("owner", &org).await;
    repository.serve(&owner, &org, "central", 0).await;
    bind_to("JAVA", &owner, &org, "ENFORCED", json!({ "name": "rules" })).await;
    let java = Client::of(server, &server.actor("libraries.java.pull", &org).await).java();
    exception(&owner, &org, "create", json!({ "purl": "pkg:maven/org.pub/lib@1.0", "justification": "why" })).await;
    let jar = async |version: &str| java.send(&format!("GET org/pub/lib/{version}/lib-{version}.jar"), &[], &[]).await;
    assert_eq!((jar("1.0").await.status, jar("1.0.0").await.status), (200, 403));
}

async fn a_freeze_holds_for_javascript_and_java(server: &TestServer) {
    let (index, repository) = (FakeIndex::start().await, FakeRepository::start().await);
    for (version, days) in [("1.0.0", 30), ("1.1.0", 2)] {
        index.npm_publish(server, "foo", version, days);
        repository.publish(server, "lib", version, days, "");
    }
    let (org, npm) = npm_publisher(server, "acme").await;
    let owner = server.actor("owner", &org).await;
    index.npm_serve(&owner, &org).await;
    repository.serve(&owner, &org, "central", 0).await;
    let java = Client::of(server, &server.actor("libraries.java.pull", &org).await).java();
    let whole = npm.document("foo").await;
    let cutoff = whole["time"]["1.0.0"].clone();
    freeze(&owner, &org, json!({ "cutoffTime": cutoff, "justification": "a worm is about" })).await;
    let document = npm.document("foo").await;
    assert_eq!((&document["dist-tags"]["latest"], document["versions"].get("1.1.0")), (&json!("1.0.0"), None));
    let message = document["policyRestrictions"]["message"].as_str().unwrap();
    assert!(message.starts_with("Blocked by a freeze at "), "{message}");
    assert_eq!(sentence(&npm.npm_file(server, &whole, "1.1.0").await, 403), message);
    let jar = async |version: &str| java.send(&format!("GET org/pub/lib/{version}/lib-{version}.jar"), &[], &[]).await;
    assert_eq!(jar("1.0.0").await.status, 200);
    let refused = jar("1.1.0").await;
    assert_eq!((refused.status, refused.header("x-bowline-reason")), (403, Some("FREEZE")), "{}", refused.text());
    let wrong = json!({ "cutoffTime": "2099-01-01T00:00:00Z", "justification": "later" });
    call(&owner, &format!("/packagefreezes/v1/organizations/{org}:freeze"), wrong, 400).await;
    let wrong = json!({ "ecosystems": ["DOTNET"], "justification": "other" });
    call(&owner, &format!("/packagefreezes/v1/organizations/{org}:freeze"), wrong, 400).await;
}

async fn drafts_are_evaluated_with_exceptions_and_freezes_and_tests_of_policies_are_not(server: &TestServer) {
    let index = FakeIndex::start().await;
    index.publish(server, "foo", "1.0", 2);
    let (org, owner, client) = installer(server, &index).await;
    client.project("foo").await;
    let evaluate = format!("/librarydecisions/v1/organizations/{org}:evaluatePolicy");
    let draft = json!({ "policy": { "name": "draft" }, "purls": ["pkg:pypi/foo@1.0"] });
    let reason = async || call(&owner, &evaluate, draft.clone(), 200).await["decisions"][0]["reason"].clone();
    assert_eq!(reason().await, "COOLDOWN");
    let body = json!({ "purl": "pkg:pypi/foo@1.0", "justification": "CVE-2026-7" });
    exception(&owner, &org, "create", body).await;
    assert_eq!(reason().await, "");
    let uid = bind(&owner, &org, "ENFORCED", json!({ "name": "rules" })).await;
    let tests = json!({ "tests": [{ "purl": "pkg:pypi/foo@1.0", "expected": "EXPECTED_DECISION_REFUSED" }] });
    call(&owner, &format!("/librarypolicytests/v1/policies/{uid}:setTests"), tests, 200).await;
    let cutoff = json!({ "cutoffTime": "2020-01-01T00:00:00Z", "justification": "a worm is about" });
    freeze(&owner, &org, cutoff).await;
    assert_eq!(reason().await, "FREEZE");
}

each_engine!(
    an_exception_lets_one_young_version_be_installed_for_some_hours,
    an_exception_that_is_ended_ends_at_once,
    malware_is_lifted_where_an_exception_says_so_and_a_block_never,
    a_second_person_approves_where_the_organization_asks_for_one,
    exceptions_are_of_one_version_for_a_week_at_most_and_bounded,
    a_freeze_withholds_what_was_published_later_also_without_a_policy,
    a_freeze_without_a_policy_refuses_nothing_else_and_decisions_agree,
    a_freeze_keeps_its_time_and_is_loosened_by_who_may_lift_it,
    an_exception_of_java_is_of_one_spelling,
    a_freeze_holds_for_javascript_and_java,
    drafts_are_evaluated_with_exceptions_and_freezes_and_tests_of_policies_are_not,
);
