//! Versions with known vulnerabilities: refused once a fix has been there for long enough.

use std::time::Duration;

use bowline_core::Clock as _;
use bowline_core::rfc3339::{self, Digits};
use bowline_testkit::{Actor, TestServer, each_engine, maven};
use serde_json::{Value, json};

use crate::fake_index::FakeIndex;
use crate::fake_proxy::FakeProxy;
use crate::fake_repository::FakeRepository;
use crate::support::*;
use crate::upstreams::installer;

const DAY: Duration = Duration::from_secs(24 * 3600);
/// A score of 9.8.
const CRITICAL: &str = "CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:U/C:H/I:H/A:H";
/// A score of 5.5.
const MEDIUM: &str = "CVSS:3.1/AV:L/AC:L/PR:L/UI:N/S:U/C:N/I:N/A:H";

/// A score of 6.9.
const MEDIUM_4: &str = "CVSS:4.0/AV:N/AC:L/AT:N/PR:N/UI:N/VC:N/VI:L/VA:N/SC:N/SI:N/SA:N";

/// A record that these events are about, published so many days before the clock of the server, and changed yesterday.
fn record(server: &TestServer, id: &str, package: (&str, &str), severity: &str, days: i64, events: Value) -> Value {
    let before = |days: i64| rfc3339::text(server.clock().now() - days * 24 * 3600 * 1_000_000, Digits::Fewest);
    let scale = if severity.starts_with("CVSS:4") { "CVSS_V4" } else { "CVSS_V3" };
    let severity = if severity.is_empty() { json!([]) } else { json!([{ "type": scale, "score": severity }]) };
    let (ecosystem, name) = package;
    json!({
        "id": id, "published": before(days), "modified": before(1), "severity": severity,
        "affected": [{ "package": { "ecosystem": ecosystem, "name": name }, "ranges": [
            { "type": "ECOSYSTEM", "events": events },
        ] }],
    })
}

fn fixed_in(version: &str) -> Value {
    json!([{ "introduced": "0" }, { "fixed": version }])
}

async fn set_rule(owner: &Actor, policy: &str, rule: Value, status: u16) -> Value {
    let path = format!("/policyvulnerabilities/v1/policies/{policy}:setRule");
    let reply = owner.rest("POST", &path, Some(json!({ "rule": rule }))).await;
    assert_eq!(reply.status, status, "{}", reply.text());
    reply.json()
}

fn rule(minimum: &str, days: i32) -> Value {
    json!({ "minimumSeverity": format!("VULNERABILITY_SEVERITY_{minimum}"), "fixDays": days })
}

/// Someone who installs, whose token is new.
async fn renewed(server: &TestServer, org: &str) -> Client {
    Client::of(server, &server.actor("libraries.python.pull", org).await)
}

async fn a_version_is_refused_once_its_fix_is_old_enough(server: &TestServer) {
    let index = FakeIndex::start().await;
    index.publish(server, "foo", "1.0", 100);
    index.publish(server, "foo", "1.1", 20);
    let (org, owner, client) = installer(server, &index).await;
    import_records(server, &[record(server, "GHSA-1", ("PyPI", "Foo"), CRITICAL, 1, fixed_in("1.1"))]).await;
    let policy = bind(&owner, &org, "ENFORCED", json!({ "name": "strict" })).await;
    set_rule(&owner, &policy, rule("HIGH", 30), 200).await;
    let page = client.project("foo").await;
    assert_eq!((&page["files"][0]["yanked"], client.file(&page, 0).await.status), (&json!(false), 200), "{page}");

    server.clock().advance(DAY * 10);
    let (client, owner) = (renewed(server, &org).await, server.actor("owner", &org).await);
    let page = client.project("foo").await;
    let wanted = "Blocked by policy strict: pkg:pypi/foo@1.0 has GHSA-1 (critical), fixed in 1.1";
    assert_eq!((&page["files"][0]["yanked"], &page["files"][1]["yanked"]), (&json!(wanted), &json!(false)));
    assert_eq!(sentence(&client.file(&page, 0).await, 403), wanted);
    assert_eq!(client.file(&page, 1).await.status, 200);
    let seen = blocked(&owner, server, &org, "ENFORCED").await;
    assert_eq!(seen, [("pkg:pypi/foo@1.0".to_owned(), "VULNERABILITY".to_owned(), 1)]);

    let explain = format!("/librarydecisions/v1/organizations/{org}:explainPackage?purl=pkg:pypi/foo@");
    let why = owner.rest("GET", &format!("{explain}1.0"), None).await.json()["decision"].clone();
    let said = (&why["reason"], &why["matched"], &why["fixedVersion"]);
    assert_eq!(said, (&json!("VULNERABILITY"), &json!("GHSA-1"), &json!("1.1")), "{why}");
    assert_eq!(owner.rest("GET", &format!("{explain}1.1"), None).await.json()["decision"]["allowed"], true);
    let exception = json!({ "purl": "pkg:pypi/foo@1.0", "justification": "the fix breaks us" });
    let path = format!("/packageexceptions/v1/organizations/{org}:createException");
    assert_eq!(owner.rest("POST", &path, Some(exception)).await.status, 200);
    let page = client.project("foo").await;
    assert_eq!((&page["files"][0]["yanked"], client.file(&page, 0).await.status), (&json!(false), 200));
}

async fn severities_and_fixes_decide(server: &TestServer) {
    let index = FakeIndex::start().await;
    let names = ["medium", "unrated", "aliased", "newest", "unfixed", "last", "future", "malware", "younger"];
    for name in names {
        index.publish(server, name, "1.0", 100);
        index.publish(server, name, "1.1", if name == "younger" { 5 } else { 90 });
    }
    let (org, owner, client) = installer(server, &index).await;
    let of =
        |id: &str, name: &str, severity: &str, events: Value| record(server, id, ("PyPI", name), severity, 80, events);
    let mut aliased = of("A-3", "aliased", "", fixed_in("1.1"));
    aliased["aliases"] = json!(["CVE-1"]);
    let records = [
        of("A-1", "medium", MEDIUM, fixed_in("1.1")),
        of("A-2", "unrated", "", fixed_in("1.1")),
        aliased,
        of("CVE-1", "elsewhere", MEDIUM, fixed_in("1.1")),
        of("A-9", "newest", MEDIUM_4, fixed_in("1.1")),
        of("A-4", "unfixed", CRITICAL, json!([{ "introduced": "0" }])),
        of("A-5", "last", CRITICAL, json!([{ "introduced": "0" }, { "last_affected": "1.0" }])),
        of("A-8", "future", CRITICAL, fixed_in("9.0")),
        of("MAL-1", "malware", CRITICAL, fixed_in("1.1")),
        of("A-6", "younger", CRITICAL, fixed_in("1.1")),
    ];
    import_records(server, &records).await;
    let policy = bind(&owner, &org, "ENFORCED", json!({ "name": "strict", "cooldownDays": 7 })).await;
    let refused = async || {
        let mut refused = Vec::new();
        for name in names {
            let yanked = client.project(name).await["files"][0]["yanked"].clone();
            refused.extend(yanked.as_str().map(|why| why.rsplit(" has ").next().unwrap().to_owned()));
        }
        refused
    };
    assert_eq!(refused().await, Vec::<String>::new());
    set_rule(&owner, &policy, rule("HIGH", 0), 200).await;
    let high = ["A-2 (high), fixed in 1.1", "A-5 (critical), fixed in 1.1"];
    assert_eq!(refused().await, high, "a fix that the cooldown withholds does not count");
    let all = json!({ "minimumSeverity": "VULNERABILITY_SEVERITY_MEDIUM", "includesUnfixed": true });
    set_rule(&owner, &policy, all, 200).await;
    let all = [
        "A-1 (medium), fixed in 1.1",
        "A-2 (high), fixed in 1.1",
        "A-3 (medium), fixed in 1.1",
        "A-9 (medium), fixed in 1.1",
        "A-4 (critical), without a known fix",
        "A-5 (critical), fixed in 1.1",
        "A-8 (critical), without a known fix",
    ];
    assert_eq!(refused().await, all);
    // New records hold at once.
    import_records(server, &[of("A-7", "younger", CRITICAL, json!([{ "introduced": "0" }]))]).await;
    assert_eq!(refused().await.last().unwrap(), "A-7 (critical), without a known fix");
    set_rule(&owner, &policy, json!({}), 200).await;
    assert_eq!(refused().await, Vec::<String>::new());
}

/// What each ecosystem decides about version 1.0.0, by its list, its file and its explanation: whether it is refused.
async fn decided(server: &TestServer, client: &Client, owner: &Actor, org: &str) -> [(bool, bool, bool); 3] {
    let why = async |purl: &str| {
        let path = format!("/librarydecisions/v1/organizations/{org}:explainPackage?purl={purl}");
        owner.rest("GET", &path, None).await.json()["decision"]["allowed"] != true
    };
    let file = async |client: Client, path: &str| client.send(&format!("GET {path}"), &[], &[]).await;
    let document = client.javascript().document("foo").await;
    let address = format!("{}/libraries/javascript/foo/-/foo-1.0.0.tgz", server.base());
    let tarball = file(client.javascript(), "foo/-/foo-1.0.0.tgz").await;
    assert_eq!(document["versions"]["1.1.0"]["dist"]["tarball"], address.replace("1.0.0", "1.1.0"));
    let list = file(client.java(), "org/pub/lib/maven-metadata.xml").await.text();
    let jar = file(client.java(), "org/pub/lib/1.0.0/lib-1.0.0.jar").await;
    let modules = file(client.go(), "example.com/pub/lib/@v/list").await.text();
    let zip = file(client.go(), "example.com/pub/lib/@v/v1.0.0.zip").await;
    let info = file(client.go(), "example.com/pub/lib/@v/v1.0.0.info").await;
    assert_eq!(info.status, zip.status, "{}", info.text());
    for (reply, name) in [(&tarball, "A-1"), (&jar, "A-2"), (&zip, "A-3")] {
        assert!(matches!(reply.status, 200 | 403), "{}", reply.text());
        let wanted = format!("has {name} (critical), fixed in ");
        assert_eq!(reply.status == 403, reply.text().contains(&wanted), "{}", reply.text());
    }
    [
        (document["versions"].get("1.0.0").is_none(), tarball.status == 403, why("pkg:npm/foo@1.0.0").await),
        (!list.contains("<version>1.0.0<"), jar.status == 403, why("pkg:maven/org.pub/lib@1.0.0").await),
        (!modules.contains("v1.0.0"), zip.status == 403, why("pkg:golang/example.com/pub/lib@v1.0.0").await),
    ]
}

async fn lists_files_and_explanations_decide_alike(server: &TestServer) {
    let org = server.organization("acme").await;
    let owner = server.actor("owner", &org).await;
    let client = Client::of(server, &owner);
    let (index, repository, proxy) =
        (FakeIndex::start().await, FakeRepository::start().await, FakeProxy::start().await);
    for (version, days) in [("1.0.0", 100), ("1.1.0", 20)] {
        index.npm_publish(server, "foo", version, days);
        repository.publish(server, "lib", version, days, &maven::license("MIT"));
        proxy.publish(server, "example.com/pub/lib", &format!("v{version}"), days);
    }
    repository.list(server, "lib", &["1.0.0", "1.1.0"]);
    proxy.list("example.com/pub/lib", &["v1.0.0", "v1.1.0"]);
    index.npm_serve(&owner, &org).await;
    repository.serve(&owner, &org, "central", 0).await;
    proxy.serve(&owner, &org, "public", 0).await;
    let records = [("npm", "foo"), ("Maven", "org.pub:lib"), ("Go", "example.com/pub/lib")];
    let records = (1..)
        .zip(records)
        .map(|(number, package)| record(server, &format!("A-{number}"), package, CRITICAL, 60, fixed_in("1.1.0")));
    import_records(server, &records.collect::<Vec<_>>()).await;
    let mut policies = Vec::new();
    for ecosystem in ["JAVASCRIPT", "JAVA", "GO"] {
        let policy = bind_to(ecosystem, &owner, &org, "ENFORCED", json!({ "name": ecosystem })).await;
        set_rule(&owner, &policy, rule("CRITICAL", 30), 200).await;
        policies.push(policy);
    }
    // The fix is younger than the record, and counts from its own day.
    assert_eq!(decided(server, &client, &owner, &org).await, [(false, false, false); 3]);
    for policy in &policies {
        set_rule(&owner, policy, rule("CRITICAL", 14), 200).await;
    }
    assert_eq!(decided(server, &client, &owner, &org).await, [(true, true, true); 3]);
}

async fn a_view_of_the_past_decides_as_of_now(server: &TestServer) {
    let index = FakeIndex::start().await;
    index.publish(server, "foo", "1.0", 100);
    index.publish(server, "foo", "1.1", 20);
    let (org, owner, client) = installer(server, &index).await;
    import_records(server, &[record(server, "A-1", ("PyPI", "foo"), CRITICAL, 60, fixed_in("1.1"))]).await;
    let policy = bind(&owner, &org, "ENFORCED", json!({ "name": "strict" })).await;
    let then = rfc3339::text(server.clock().now() - 50 * 24 * 3600 * 1_000_000, Digits::Fewest);
    let dated = client.at(&format!("{org}@{then}"));
    for (days, is_refused) in [(30, false), (14, true)] {
        set_rule(&owner, &policy, rule("HIGH", days), 200).await;
        let page = dated.project("foo").await;
        assert_eq!((&page["versions"], page["files"][0]["yanked"].is_string()), (&json!(["1.0"]), is_refused));
        assert_eq!(dated.file(&page, 0).await.status, if is_refused { 403 } else { 200 });
    }
}

async fn a_rule_is_a_part_of_its_policy(server: &TestServer) {
    let index = FakeIndex::start().await;
    index.publish(server, "foo", "1.0", 100);
    let (org, owner, client) = installer(server, &index).await;
    let open = json!([{ "introduced": "0" }]);
    import_records(server, &[record(server, "A-1", ("PyPI", "foo"), CRITICAL, 60, open)]).await;
    client.project("foo").await;
    let policy = bind(&owner, &org, "LOG", json!({ "name": "later", "cooldownDays": 0 })).await;
    let all = json!({ "minimumSeverity": "VULNERABILITY_SEVERITY_LOW", "includesUnfixed": true });
    let path = format!("/policyvulnerabilities/v1/policies/{policy}/rule");
    assert_eq!(owner.rest("GET", &path, None).await.json()["rule"], Value::Null);
    // Tests of the policy that would fail with it keep it out.
    let tests = json!({ "tests": [{ "purl": "pkg:pypi/foo@1.0", "expected": "EXPECTED_DECISION_ALLOWED" }] });
    let set_tests = format!("/librarypolicytests/v1/policies/{policy}:setTests");
    assert_eq!(owner.rest("POST", &set_tests, Some(tests)).await.status, 200);
    set_rule(&owner, &policy, all.clone(), 400).await;
    let force = json!({ "rule": all, "force": true });
    let set = format!("/policyvulnerabilities/v1/policies/{policy}:setRule");
    assert_eq!(owner.rest("POST", &set, Some(force)).await.status, 200);
    assert_eq!(owner.rest("GET", &path, None).await.json()["rule"]["includesUnfixed"], true);
    assert_eq!(owner.rest("POST", &set_tests, Some(json!({}))).await.status, 200);
    // An update of the policy keeps the rule.
    let update = json!({ "name": "soon", "cooldownDays": 0 });
    assert_eq!(owner.rest("PUT", &format!("/libraries/v1/policies/{policy}"), Some(update)).await.status, 200);
    let page = client.project("foo").await;
    assert_eq!((&page["files"][0]["yanked"], client.file(&page, 0).await.status), (&json!(false), 200));
    let logged = blocked(&owner, server, &org, "LOG").await;
    assert_eq!(logged, [("pkg:pypi/foo@1.0".to_owned(), "VULNERABILITY".to_owned(), 1)]);

    let draft = json!({ "policy": { "name": "draft", "cooldownDays": 0 }, "vulnerabilityRule": all });
    let evaluate = format!("/librarydecisions/v1/organizations/{org}:evaluatePolicy");
    let mut request = draft.clone();
    request["purls"] = json!(["pkg:pypi/foo@1.0", "pkg:pypi/other@1.0"]);
    let decisions = owner.rest("POST", &evaluate, Some(request)).await.json()["decisions"].clone();
    assert_eq!(
        (&decisions[0]["reason"], &decisions[1]["allowed"]),
        (&json!("VULNERABILITY"), &json!(true)),
        "{decisions}"
    );
    // Without a rule, a draft has that of the policy whose id it has.
    let same = json!({ "policy": { "id": policy, "name": "draft", "cooldownDays": 0 }, "purls": ["pkg:pypi/foo@1.0"] });
    let decisions = owner.rest("POST", &evaluate, Some(same.clone())).await.json()["decisions"].clone();
    assert_eq!(decisions[0]["reason"], "VULNERABILITY", "{decisions}");
    let mut none = same;
    none["vulnerabilityRule"] = json!({});
    assert_eq!(owner.rest("POST", &evaluate, Some(none)).await.json()["decisions"][0]["allowed"], true);
    let mut request = draft;
    request["ecosystem"] = json!("PYTHON");
    server.server().parts().package_hosts.flush_notes(|| *b"12345678").await;
    let preview = format!("/librarydecisions/v1/organizations/{org}:previewPolicy");
    let previewed = owner.rest("POST", &preview, Some(request)).await.json();
    assert_eq!(previewed["newlyRefused"][0]["matched"], "A-1", "{previewed}");

    for days in [-1, 366] {
        set_rule(&owner, &policy, rule("LOW", days), 400).await;
    }
    let viewer = server.actor("viewer", &org).await;
    set_rule(&viewer, &policy, json!({}), 403).await;
    assert_eq!(viewer.rest("GET", &path, None).await.status, 200);
    let bindings = owner.rest("GET", &format!("/libraries/v1/policy-bindings?parentId={org}"), None).await.json();
    let binding = bindings["items"][0]["id"].as_str().unwrap();
    owner.rest("DELETE", &format!("/libraries/v1/policy-bindings/{binding}"), None).await;
    assert_eq!(owner.rest("DELETE", &format!("/libraries/v1/policies/{policy}"), None).await.status, 200);
    assert_eq!(number(server, "SELECT count(*) FROM library_policy_vulnerabilities").await, 0);
}

async fn own_packages_are_not_meant(server: &TestServer) {
    let (org, client) = publisher(server, "acme").await;
    let owner = server.actor("owner", &org).await;
    client.publish("foo", "1.0").await;
    import_records(server, &[record(server, "A-1", ("PyPI", "foo"), CRITICAL, 60, fixed_in("1.1"))]).await;
    let policy = bind(&owner, &org, "ENFORCED", json!({ "name": "strict" })).await;
    set_rule(&owner, &policy, json!({ "minimumSeverity": "VULNERABILITY_SEVERITY_LOW", "includesUnfixed": true }), 200)
        .await;
    let page = client.project("foo").await;
    assert_eq!((&page["files"][0]["yanked"], client.file(&page, 0).await.status), (&json!(false), 200));
    let explain = format!("/librarydecisions/v1/organizations/{org}:explainPackage?purl=pkg:pypi/foo@1.0");
    assert_eq!(owner.rest("GET", &explain, None).await.json()["decision"]["allowed"], true);
}

/// Records spell crates as they are, and the index has their names in lower case.
async fn a_crate_with_upper_case_is_found_in_records(server: &TestServer) {
    let proxy = FakeProxy::start().await;
    proxy.publish_crates(server, ("in/fl/inflector", "Inflector"), &[("0.1.0", Some(100)), ("0.2.0", Some(90))]);
    let (org, client) = cargo_publisher(server, "acme").await;
    let owner = server.actor("owner", &org).await;
    proxy.serve_as("CARGO", &owner, &org, ("public", 0)).await;
    let crates = concat!("crates", ".io");
    import_records(server, &[record(server, "RUSTSEC-1", (crates, "Inflector"), CRITICAL, 80, fixed_in("0.2.0"))])
        .await;
    let policy = bind_to_cargo(&owner, &org, "ENFORCED", json!({ "name": "strict" })).await;
    set_rule(&owner, &policy, rule("HIGH", 30), 200).await;
    let lines = client.crate_lines("in/fl/inflector").await;
    assert_eq!((&lines[0]["yanked"], &lines[1]["yanked"]), (&json!(true), &json!(false)), "{lines:?}");
    let refused = client.send("GET api/v1/crates/Inflector/0.1.0/download", &[], &[]).await;
    let wanted = "Blocked by policy strict: pkg:cargo/inflector@0.1.0 has RUSTSEC-1 (critical), fixed in 0.2.0\n";
    assert_eq!((refused.status, refused.text().as_str()), (403, wanted));
}

each_engine!(
    a_crate_with_upper_case_is_found_in_records,
    a_version_is_refused_once_its_fix_is_old_enough,
    severities_and_fixes_decide,
    lists_files_and_explanations_decide_alike,
    a_view_of_the_past_decides_as_of_now,
    a_rule_is_a_part_of_its_policy,
    own_packages_are_not_meant,
);
