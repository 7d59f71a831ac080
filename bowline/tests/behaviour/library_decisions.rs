//! Decisions of library policies: explained, tried out with a draft, and compared over what was served.

use bowline_core::Uidp;
use bowline_libraries::{Choice, Language, record_choice};
use bowline_testkit::{TestServer, each_engine};
use serde_json::{Value, json};

use crate::libraries::{UPSTREAM, import, version};
use crate::support::{each, ok, rejected};

/// Records that the organization was served a version of a Python package.
async fn serve(server: &TestServer, org: &str, package: &str, version: &str) {
    let now = server.clock().seconds() * 1_000_000;
    let texts = [org, package, version].map(String::from);
    let written = server.server().parts().storage.db.write(move |tx| {
        let texts = texts.clone();
        Box::pin(async move {
            let [org, package, version] = &texts;
            let organization = Uidp::parse(org).expect("a UIDP");
            let (language, registry, digest) = (Language::Python, "python", "sha256:0");
            let choice =
                Choice { organization: &organization, language, registry, package, version, is_built: false, digest };
            record_choice(tx, &choice, now).await
        })
    });
    assert!(written.await.expect("a row"));
}

/// A catalogue of packages of different licences and ages.
async fn catalogue(server: &TestServer) {
    let published = |days: i64| {
        json!(bowline_core::rfc3339::text(
            (server.clock().seconds() - days * 24 * 3600) * 1_000_000,
            bowline_core::rfc3339::Digits::SixOrNone
        ))
    };
    let mut old = version("PYTHON", "old", "1.0", UPSTREAM);
    old["publishTime"] = published(100);
    let mut young = version("PYTHON", "young", "1.0", UPSTREAM);
    young["publishTime"] = published(2);
    let mut strict = version("PYTHON", "strict", "1.0", UPSTREAM);
    strict["publishTime"] = published(100);
    strict["license"] = json!("AGPL-3.0-only");
    import(&server.operator().await, &[old, young, strict]).await;
}

async fn a_draft_is_evaluated_and_the_policy_in_force_explained(server: &TestServer) {
    catalogue(server).await;
    let org = server.organization("acme").await;
    let owner = server.actor("owner", &org).await;
    let evaluate = format!("POST /librarydecisions/v1/organizations/{org}:evaluatePolicy");
    let draft =
        json!({ "name": "draft", "blockedLicenses": ["AGPL-3.0-only"], "blockList": [{ "purl": "pkg:pypi/bad" }] });
    let purls =
        ["pkg:pypi/old@1.0", "pkg:pypi/Young@1.0", "pkg:pypi/strict@1.0", "pkg:pypi/bad@3", "pkg:npm/none@1.0.0"];
    let seen = ok(&owner, &evaluate, json!({ "policy": draft, "purls": purls })).await;
    assert_eq!(each(&seen["decisions"], "reason"), ["", "COOLDOWN", "LICENSE", "BLOCK_LIST", "COOLDOWN"], "{seen}");
    assert_eq!(each(&seen["decisions"], "matched"), ["", "", "AGPL-3.0-only", "pkg:pypi/bad", ""]);
    assert_eq!((&seen["decisions"][0]["allowed"], &seen["decisions"][4]["known"]), (&json!(true), &json!(false)));
    for (body, field) in [
        (json!({ "purls": ["pkg:pypi/old@1.0"] }), "policy"),
        (
            json!({ "policy": { "name": "draft", "cooldownDays": 99 }, "purls": ["pkg:pypi/old@1.0"] }),
            "policy.cooldownDays",
        ),
        (json!({ "policy": { "name": "draft" }, "purls": ["pkg:pypi/old"] }), "purls[0]"),
    ] {
        let refusal = rejected(&owner, &evaluate, body.clone(), 400, "INVALID_ARGUMENT").await;
        assert!(refusal.fields().contains(&field.to_owned()), "{body}: {refusal:?}");
    }

    let explain = async |purl: &str| {
        let path = format!("GET /librarydecisions/v1/organizations/{org}:explainPackage?purl={purl}");
        ok(&owner, &path, Value::Null).await
    };
    let free = explain("pkg:pypi/strict@1.0").await;
    assert_eq!(
        (&free["decision"]["allowed"], &free["policy"], &free["logged"]),
        (&json!(true), &json!(""), &Value::Null)
    );
    let policy = ok(&owner, &format!("POST /libraries/v1/policies/{org}"), draft).await["id"].clone();
    let binding = json!({ "policy": policy, "ecosystem": "PYTHON", "mode": "LIBRARY_POLICY_BINDING_MODE_ENFORCED" });
    ok(&owner, &format!("POST /libraries/v1/policy-bindings/{org}"), binding).await;
    let refused_now = explain("pkg:pypi/strict@1.0").await;
    assert_eq!((&refused_now["decision"]["reason"], &refused_now["policy"]), (&json!("LICENSE"), &policy));
    assert_eq!(refused_now["decision"]["license"], "AGPL-3.0-only");
    let stranger = server.stranger().await;
    let path = format!("GET /librarydecisions/v1/organizations/{org}:explainPackage?purl=pkg:pypi/old@1.0");
    rejected(&stranger, &path, Value::Null, 403, "PERMISSION_DENIED").await;
}

async fn a_draft_is_compared_with_the_policy_in_force_over_what_was_served(server: &TestServer) {
    catalogue(server).await;
    let (org, other) = (server.organization("acme").await, server.organization("other").await);
    for (org, package) in [(&org, "old"), (&org, "young"), (&org, "strict"), (&other, "old")] {
        serve(server, org, package, "1.0").await;
    }
    let owner = server.actor("owner", &org).await;
    let preview = format!("POST /librarydecisions/v1/organizations/{org}:previewPolicy");
    let draft = json!({ "name": "draft", "cooldownDays": 0, "blockedLicenses": ["AGPL-3.0-only"] });
    let body = json!({ "policy": draft, "ecosystem": "PYTHON" });
    let seen = ok(&owner, &preview, body.clone()).await;
    assert_eq!((&seen["examined"], &seen["incomplete"]), (&json!(3), &json!(false)));
    assert_eq!(each(&seen["newlyRefused"], "purl"), ["pkg:pypi/strict@1.0"]);
    assert_eq!(seen["newlyAllowed"], json!([]));
    let strict = json!({ "name": "strict", "cooldownDays": 30 });
    let policy = ok(&owner, &format!("POST /libraries/v1/policies/{org}"), strict).await["id"].clone();
    let binding = json!({ "policy": policy, "ecosystem": "PYTHON", "mode": "LIBRARY_POLICY_BINDING_MODE_ENFORCED" });
    ok(&owner, &format!("POST /libraries/v1/policy-bindings/{org}"), binding).await;
    let seen = ok(&owner, &preview, body).await;
    assert_eq!(each(&seen["newlyRefused"], "purl"), ["pkg:pypi/strict@1.0"]);
    assert_eq!(each(&seen["newlyAllowed"], "purl"), ["pkg:pypi/young@1.0"]);
    server.clock().advance(std::time::Duration::from_secs(10 * 24 * 3600));
    let owner = server.actor("owner", &org).await;
    let narrow = json!({ "policy": { "name": "draft" }, "ecosystem": "PYTHON", "windowDays": 5 });
    assert_eq!(ok(&owner, &preview, narrow).await["examined"], 0);
    let wrong = json!({ "policy": { "name": "draft" }, "ecosystem": "UNKNOWN", "windowDays": 91 });
    let refusal = rejected(&owner, &preview, wrong, 400, "INVALID_ARGUMENT").await;
    assert_eq!(refusal.fields(), ["ecosystem", "windowDays"]);
}

each_engine!(
    a_draft_is_evaluated_and_the_policy_in_force_explained,
    a_draft_is_compared_with_the_policy_in_force_over_what_was_served,
);
