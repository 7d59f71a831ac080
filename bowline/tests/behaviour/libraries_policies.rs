//! Entitlements, policies, bindings, and what policies refused.

use std::time::Duration;

use bowline_core::{Error, Uidp};
use bowline_libraries::age::Age;
use bowline_libraries::decide::{Decision, Subject, decide};
use bowline_libraries::{BlockedDownload, Language, Mode, policy_in_force, record_blocked_download};
use bowline_testkit::{TestServer, each_engine};
use serde_json::{Value, json};

use crate::libraries::texts;
use crate::support::{absent, call, execute, inventory, number, ok};

const ENFORCED: &str = "LIBRARY_POLICY_BINDING_MODE_ENFORCED";
const LOG: &str = "LIBRARY_POLICY_BINDING_MODE_LOG";

async fn policy(server: &TestServer, org: &str, body: Value) -> Value {
    ok(&server.operator().await, &format!("POST /libraries/v1/policies/{org}"), body).await
}

fn id(of: &Value) -> String {
    of["id"].as_str().expect("an id").into()
}

async fn an_entitlement_is_created_by_its_bare_ecosystem_and_replaced_by_another(server: &TestServer) {
    let org = server.organization("acme").await;
    let owner = server.actor("owner", &org).await;
    let path = format!("/libraries/v1/entitlements/{org}");
    let first = ok(&owner, &format!("POST {path}"), json!("PYTHON")).await;
    assert_eq!((&first["policy"], &first["cooldownDays"]), (&json!("POLICY_CHAINGUARD"), &json!(7)));
    let wider = "policy=POLICY_CHAINGUARD_AND_UPSTREAM&cooldownDays=30&source=SOURCE_TRIAL";
    let second = ok(&owner, &format!("POST {path}?{wider}"), json!("PYTHON")).await;
    assert_eq!(
        (&second["id"], &second["cooldownDays"], &second["source"]),
        (&first["id"], &json!(30), &json!("SOURCE_TRIAL"))
    );
    let audited = "SELECT count(*) FROM audit WHERE kind = 'libraries.chainguard.dev/Entitlement'";
    ok(&owner, &format!("POST {path}?{wider}"), json!("PYTHON")).await;
    assert_eq!(number(server, audited).await, 2, "the third changed nothing");
    ok(&owner, &format!("POST {path}"), json!("JAVA_ATHENA")).await;

    let listed = ok(&owner, &format!("GET /libraries/v1/entitlements?parentId={org}"), Value::Null).await;
    assert_eq!(listed["items"].as_array().map(Vec::len), Some(2));
    let one =
        ok(&owner, &format!("GET /libraries/v1/entitlements?parentId={org}&ecosystems=PYTHON"), Value::Null).await;
    assert_eq!(one["items"], json!([second]));
    let stranger = server.stranger().await;
    let none = ok(&stranger, &format!("GET /libraries/v1/entitlements?parentId={org}"), Value::Null).await;
    assert_eq!(none["items"], json!([]));
    ok(&owner, &format!("DELETE /libraries/v1/entitlements/{}", id(&second)), Value::Null).await;
    let again = call(&owner, &format!("DELETE /libraries/v1/entitlements/{}", id(&second)), Value::Null).await;
    assert_eq!(again.status, 404);
}

async fn entitlements_that_mean_nothing_here_are_refused(server: &TestServer) {
    let org = server.organization("acme").await;
    let group = server.group(&org, "team").await;
    let owner = server.actor("owner", &org).await;
    let before = inventory(server).await;
    for (place, query, body, status) in [
        (&org, "", json!("DOTNET"), 400),
        (&org, "", json!("UNKNOWN"), 400),
        (&org, "", json!("COBOL"), 400),
        (&org, "?cooldownDays=3651", json!("JAVA"), 400),
        (&org, "?cooldownDays=-1", json!("JAVA"), 400),
        (&group, "", json!("JAVA"), 400),
    ] {
        let reply = call(&owner, &format!("POST /libraries/v1/entitlements/{place}{query}"), body.clone()).await;
        assert_eq!(reply.status, status, "{body} {query}: {}", reply.text());
    }
    let reply = call(&owner, "GET /libraries/v1/entitlements", Value::Null).await;
    assert_eq!(reply.status, 400, "a list needs an organization");
    assert_eq!(inventory(server).await, before);
}

async fn a_policy_is_kept_normalized_and_replaced_as_a_whole(server: &TestServer) {
    let org = server.organization("acme").await;
    let owner = server.actor("owner", &org).await;
    let body = json!({
        "name": "strict", "description": "no\nsurprises", "cooldownDays": 0,
        "blockList": [{ "purl": "pkg:NPM/@types/node@*" }, { "purl": "pkg:npm/%40types/node" }, { "purl": "pkg:pypi/Foo_Bar@1.0" }],
        "allowList": [{ "purl": "pkg:maven/org.slf4j/", "bypassMalware": true, "justification": " looked at " }],
        "blockedLicenses": ["GPL-3.0-only", "gpl-3.0-ONLY", "AGPL-3.0"]
    });
    let made = ok(&owner, &format!("POST /libraries/v1/policies/{org}"), body).await;
    assert_eq!(texts(&made["blockList"], "purl"), ["pkg:npm/%40types/node", "pkg:pypi/foo-bar@1.0"]);
    assert_eq!(
        (&made["allowList"][0]["purl"], &made["allowList"][0]["justification"]),
        (&json!("pkg:maven/org.slf4j/"), &json!("looked at"))
    );
    assert_eq!((&made["blockedLicenses"], &made["cooldownDays"]), (&json!(["GPL-3.0-only", "AGPL-3.0"]), &json!(0)));
    assert_eq!(made["policyType"], "LIBRARY_POLICY_TYPE_CUSTOM");

    server.clock().advance(Duration::from_secs(60));
    let path = format!("/libraries/v1/policies/{}", id(&made));
    let replaced = ok(&owner, &format!("PUT {path}"), json!({ "name": "strict" })).await;
    assert_eq!((&replaced["blockList"], &replaced["cooldownDays"]), (&json!([]), &Value::Null));
    assert_eq!(replaced["createdAt"], made["createdAt"]);
    assert_ne!(replaced["updatedAt"], made["updatedAt"]);
    let audited = "SELECT count(*) FROM audit WHERE kind = 'libraries.chainguard.dev/LibraryPolicy'";
    ok(&owner, &format!("PUT {path}"), json!({ "name": "strict" })).await;
    assert_eq!(number(server, audited).await, 2);

    policy(server, &org, json!({ "name": "other" })).await;
    let again = call(&owner, &format!("POST /libraries/v1/policies/{org}"), json!({ "name": "other" })).await;
    assert_eq!((again.status, again.code()), (409, 6), "{}", again.text());
    let taken = call(&owner, &format!("PUT {path}"), json!({ "name": "other" })).await;
    assert_eq!((taken.status, taken.code()), (409, 6), "{}", taken.text());
    let list = ok(&owner, &format!("GET /libraries/v1/policies?parentId={org}&pageSize=1"), Value::Null).await;
    assert_eq!((list["items"].as_array().map(Vec::len), &list["totalCount"]), (Some(1), &json!("2")));
    let named = ok(&owner, "GET /libraries/v1/policies?name=other", Value::Null).await;
    assert_eq!(texts(&named["items"], "name"), ["other"]);
    let system = ok(&owner, "GET /libraries/v1/policies?policyType=LIBRARY_POLICY_TYPE_SYSTEM", Value::Null).await;
    assert_eq!(system["items"], json!([]));
}

async fn policies_that_cannot_be_meant_are_refused(server: &TestServer) {
    let org = server.organization("acme").await;
    let group = server.group(&org, "team").await;
    let owner = server.actor("owner", &org).await;
    let known = id(&policy(server, &org, json!({ "name": "known" })).await);
    let before = inventory(server).await;
    let with = |member: &str, value: Value| {
        let mut policy = json!({ "name": "strict" });
        policy[member] = value;
        policy
    };
    let licenses = |text: &str, count: usize| json!(vec![text; count]);
    for wrong in [
        with("name", json!("")),
        with("name", json!("x".repeat(129))),
        with("cooldownDays", json!(31)),
        with("cooldownDays", json!(-1)),
        with("expression", json!("true")),
        with("blockList", json!([{ "purl": "left-pad" }])),
        with("blockList", json!([{ "purl": "pkg:deb/curl" }])),
        with("blockList", json!([{ "purl": "" }])),
        with("allowList", json!([{ "purl": "pkg:npm/a b" }])),
        with("allowList", json!([{ "purl": "pkg:npm/a", "bypassMalware": true, "justification": "  " }])),
        with("blockedLicenses", licenses("GPL-3.0 OR MIT", 1)),
        with("blockedLicenses", licenses("OR", 1)),
        with("blockedLicenses", licenses("MIT", 101)),
        with("blockedLicenses", licenses(&"x".repeat(129), 1)),
    ] {
        for what in [format!("POST /libraries/v1/policies/{org}"), format!("PUT /libraries/v1/policies/{known}")] {
            let reply = call(&owner, &what, wrong.clone()).await;
            assert_eq!((reply.status, reply.code()), (400, 3), "{what} {wrong}: {}", reply.text());
        }
    }
    let nested = call(&owner, &format!("POST /libraries/v1/policies/{group}"), json!({ "name": "x" })).await;
    assert_eq!(nested.status, 400, "{}", nested.text());
    assert_eq!(inventory(server).await, before);
}

async fn system_policies_are_seen_and_never_changed(server: &TestServer) {
    let org = server.organization("acme").await;
    let made = policy(server, &org, json!({ "name": "platform" })).await;
    execute(server, "UPDATE library_policies SET policy_type = 1", &[]).await;
    let (owner, operator) = (server.actor("owner", &org).await, server.operator().await);
    for actor in [&owner, &operator] {
        for (verb, body) in [("PUT", json!({ "name": "mine" })), ("DELETE", Value::Null)] {
            let reply = call(actor, &format!("{verb} /libraries/v1/policies/{}", id(&made)), body).await;
            assert_eq!((reply.status, reply.code()), (403, 7), "{}", reply.text());
        }
    }
    let seen = ok(&owner, "GET /libraries/v1/policies?policyType=LIBRARY_POLICY_TYPE_SYSTEM", Value::Null).await;
    assert_eq!(texts(&seen["items"], "name"), ["platform"]);
}

async fn an_ecosystem_has_one_binding_of_each_mode_and_only_to_policies_of_its_organization(server: &TestServer) {
    let org = server.organization("acme").await;
    let other = server.organization("other").await;
    let owner = server.actor("owner", &org).await;
    let own = id(&policy(server, &org, json!({ "name": "own" })).await);
    let second = id(&policy(server, &org, json!({ "name": "second" })).await);
    let foreign = id(&policy(server, &other, json!({ "name": "foreign" })).await);
    let body =
        |policy: &str, ecosystem: &str, mode: &str| json!({ "policy": policy, "ecosystem": ecosystem, "mode": mode });
    let path = format!("POST /libraries/v1/policy-bindings/{org}");
    let made = ok(&owner, &path, body(&own, "PYTHON", ENFORCED)).await;
    ok(&owner, &path, body(&own, "PYTHON", LOG)).await;
    let before = inventory(server).await;
    let twice = call(&owner, &path, body(&second, "PYTHON", ENFORCED)).await;
    assert_eq!((twice.status, twice.code()), (409, 6), "{}", twice.text());
    let of_others = call(&owner, &path, body(&foreign, "JAVA", ENFORCED)).await;
    let of_nobody = call(&owner, &path, body(&absent(&other), "JAVA", ENFORCED)).await;
    assert_eq!((of_others.status, of_nobody.status), (404, 404));
    assert_eq!(of_others.text().replace(&foreign, &absent(&other)), of_nobody.text(), "foreign is as absent");
    for wrong in [
        body(&own, "DOTNET", ENFORCED),
        body(&own, "PYTHON_ATHENA", ENFORCED),
        body(&own, "UNKNOWN", ENFORCED),
        body(&own, "JAVA", "LIBRARY_POLICY_BINDING_MODE_UNSPECIFIED"),
        body("", "JAVA", ENFORCED),
        body("nonsense", "JAVA", ENFORCED),
    ] {
        let reply = call(&owner, &path, wrong.clone()).await;
        assert_eq!(reply.status, 400, "{wrong}: {}", reply.text());
    }
    let bound = call(&owner, &format!("DELETE /libraries/v1/policies/{own}"), Value::Null).await;
    assert_eq!((bound.status, bound.code()), (400, 9), "{}", bound.text());
    assert_eq!(inventory(server).await, before);

    let update = format!("PUT /libraries/v1/policy-bindings/{}", id(&made));
    let changed = ok(&owner, &update, body(&second, "JAVA", ENFORCED)).await;
    assert_eq!((&changed["policy"], &changed["ecosystem"]), (&json!(second), &json!("JAVA")));
    let clash = call(&owner, &update, body(&second, "PYTHON", LOG)).await;
    assert_eq!(clash.status, 409);
    let foreign = call(&owner, &update, body(&foreign, "JAVA", ENFORCED)).await;
    assert_eq!(foreign.status, 404);
    let list = ok(&owner, "GET /libraries/v1/policy-bindings?ecosystem=JAVA", Value::Null).await;
    assert_eq!(list["items"], json!([changed]));
    ok(&owner, &format!("DELETE /libraries/v1/policy-bindings/{}", id(&made)), Value::Null).await;
    ok(&owner, &format!("DELETE /libraries/v1/policies/{second}"), Value::Null).await;
}

async fn what_an_organization_has_of_libraries_goes_with_it(server: &TestServer) {
    let org = server.organization("acme").await;
    let operator = server.operator().await;
    let own = id(&policy(server, &org, json!({ "name": "own" })).await);
    let binding = json!({ "policy": own, "ecosystem": "JAVA", "mode": ENFORCED });
    ok(&operator, &format!("POST /libraries/v1/policy-bindings/{org}"), binding).await;
    ok(&operator, &format!("POST /libraries/v1/entitlements/{org}"), json!("JAVA")).await;
    ok(&operator, &format!("POST /libraries/v1/resolutioncache/{org}:zap"), json!({ "idempotencyKey": "k" })).await;
    block(server, &org, &own, Mode::Enforced, "1.0.0").await;
    ok(&operator, &format!("DELETE /iam/v2/groups/{org}"), Value::Null).await;
    for rows in [
        "SELECT count(*) FROM library_policies",
        "SELECT count(*) FROM library_policy_bindings",
        "SELECT count(*) FROM library_entitlements",
        "SELECT count(*) FROM library_block_events",
        "SELECT count(*) FROM library_watermarks",
        "SELECT count(*) FROM library_zaps",
    ] {
        assert_eq!(number(server, rows).await, 0, "{rows}");
    }
    let gone = "SELECT count(*) FROM audit WHERE kind LIKE 'libraries.%' AND after_type IS NULL";
    assert_eq!(number(server, gone).await, 3);
    let list = ok(&operator, "GET /libraries/v1/policies", Value::Null).await;
    assert_eq!(list["totalCount"], "0", "counts are kept");
}

/// Has the policy in force refuse a version that was published this moment.
async fn block(server: &TestServer, org: &str, policy: &str, mode: Mode, version: &str) {
    let now = server.clock().seconds() * 1_000_000;
    let (org, policy) = (Uidp::parse(org).expect("a UIDP"), Uidp::parse(policy).expect("a UIDP"));
    let new = org.child_from(now.to_be_bytes().map(|byte| byte ^ version.len() as u8 ^ mode as u8));
    let version = version.to_owned();
    let db = &server.server().parts().storage.db;
    let written = db.write(move |tx| {
        let (org, policy, new, version) = (org.clone(), policy.clone(), new.clone(), version.clone());
        Box::pin(async move {
            let subject = Subject {
                language: Language::Java,
                name: "org.slf4j:slf4j-api",
                version: &version,
                license: "MIT",
                is_malware: false,
                age: Age::published(Some(now)),
                vulnerabilities: &[],
                is_own: false,
            };
            let rules = policy_in_force(tx, &org, Language::Java, mode).await?.map(|(_, rules)| rules);
            let Decision::Refused(refusal) = decide(&rules.unwrap_or_default(), &subject, now) else {
                return Err(Error::internal("a version of this moment was let through"));
            };
            let blocked = BlockedDownload {
                organization: &org,
                subject,
                policy: Some(&policy),
                mode,
                refusal: &refusal,
                attempts: 1,
            };
            record_blocked_download(tx, &blocked, &new, now).await
        })
    });
    written.await.expect("a row");
}

async fn refused_downloads_are_summed_into_one_row(server: &TestServer) {
    let org = server.organization("acme").await;
    let owner = server.actor("owner", &org).await;
    let own = id(&policy(server, &org, json!({ "name": "own", "cooldownDays": 2 })).await);
    for mode in [ENFORCED, LOG] {
        let binding = json!({ "policy": own, "ecosystem": "JAVA", "mode": mode });
        ok(&owner, &format!("POST /libraries/v1/policy-bindings/{org}"), binding).await;
    }
    block(server, &org, &own, Mode::Enforced, "1.0").await;
    server.clock().advance(Duration::from_secs(60));
    block(server, &org, &own, Mode::Enforced, "1.0").await;
    block(server, &org, &own, Mode::Log, "1.0.0").await;
    server.clock().advance(Duration::from_secs(60));
    block(server, &org, &own, Mode::Enforced, "2.0.0").await;
    let list = ok(&owner, &format!("GET /libraries/v1/blocked-packages?parentId={org}"), Value::Null).await;
    assert_eq!(
        texts(&list["items"], "purl"),
        ["pkg:maven/org.slf4j/slf4j-api@2.0.0", "pkg:maven/org.slf4j/slf4j-api@1.0"]
    );
    let row = &list["items"][1];
    assert_eq!(
        (&row["attemptCount"], &row["reason"], &row["cooldownDays"]),
        (&json!(2), &json!("COOLDOWN"), &json!(2))
    );
    assert_eq!((&row["policy"], &row["ecosystem"]), (&json!(own), &json!("JAVA")));
    assert_ne!(row["firstBlockedAt"], row["lastBlockedAt"]);
    assert_ne!(row["unblocksAt"], Value::Null);
    for (query, rows) in [
        (format!("mode={LOG}"), 1),
        ("ecosystem=PYTHON".into(), 0),
        ("ecosystem=JAVA".into(), 2),
        ("packageName=org.slf4j:slf4j-api".into(), 2),
        ("packageName=slf4j-api".into(), 0),
        ("since=2100-01-01T00:00:00Z".into(), 0),
    ] {
        let list = ok(&owner, &format!("GET /libraries/v1/blocked-packages?{query}"), Value::Null).await;
        assert_eq!(list["totalCount"], json!(rows.to_string()), "{query}");
    }
    let stranger = server.stranger().await;
    let none = ok(&stranger, &format!("GET /libraries/v1/blocked-packages?parentId={org}"), Value::Null).await;
    assert_eq!(none["items"], json!([]));
    server.clock().advance(Duration::from_secs(31 * 24 * 3600));
    let owner = server.operator().await;
    let late = ok(&owner, "GET /libraries/v1/blocked-packages", Value::Null).await;
    assert_eq!(late["items"], json!([]), "thirty days back unless asked for more");
}

each_engine!(
    an_entitlement_is_created_by_its_bare_ecosystem_and_replaced_by_another,
    entitlements_that_mean_nothing_here_are_refused,
    a_policy_is_kept_normalized_and_replaced_as_a_whole,
    policies_that_cannot_be_meant_are_refused,
    system_policies_are_seen_and_never_changed,
    an_ecosystem_has_one_binding_of_each_mode_and_only_to_policies_of_its_organization,
    what_an_organization_has_of_libraries_goes_with_it,
    refused_downloads_are_summed_into_one_row
);
