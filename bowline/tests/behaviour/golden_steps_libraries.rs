//! The changes of libraries.

use serde_json::{Value, json};

use super::{Step, step};

pub(super) fn steps() -> Vec<Step> {
    let mut steps = packages();
    steps.extend(packages_elsewhere());
    steps.extend(overrides());
    steps.extend(policies());
    steps
}

fn policies() -> Vec<Step> {
    let policy = json!({ "name": "strict", "blockList": [{ "purl": "pkg:npm/left-pad" }], "cooldownDays": 14 });
    let changed = json!({ "name": "strict", "blockedLicenses": ["AGPL-3.0-only"] });
    let binding =
        json!({ "policy": "{library_policy}", "ecosystem": "JAVASCRIPT", "mode": "LIBRARY_POLICY_BINDING_MODE_LOG" });
    let enforced = json!({ "policy": "{library_policy}", "ecosystem": "JAVASCRIPT", "mode": "LIBRARY_POLICY_BINDING_MODE_ENFORCED" });
    vec![
        step("libraries.entitlements.created", "POST /libraries/v1/entitlements/{org}?cooldownDays=3", json!("JAVA"))
            .keeping("/id", "entitlement"),
        step("libraries.entitlements.deleted", "DELETE /libraries/v1/entitlements/{entitlement}", Value::Null),
        step("dev.bowline.libraries.policy.created.v1", "POST /libraries/v1/policies/{org}", policy)
            .keeping("/id", "library_policy"),
        step("dev.bowline.libraries.policy.updated.v1", "PUT /libraries/v1/policies/{library_policy}", changed),
        step(
            "dev.bowline.libraries.policy_tests.updated.v1",
            "POST /librarypolicytests/v1/policies/{library_policy}:setTests",
            json!({ "tests": [{ "purl": "pkg:npm/left-pad@1.3.0", "expected": "EXPECTED_DECISION_REFUSED" }] }),
        ),
        step(
            "dev.bowline.libraries.policy_vulnerabilities.updated.v1",
            "POST /policyvulnerabilities/v1/policies/{library_policy}:setRule",
            json!({ "rule": { "minimumSeverity": "VULNERABILITY_SEVERITY_HIGH", "fixDays": 14 } }),
        ),
        step(
            "dev.bowline.libraries.policy_ages.updated.v1",
            "POST /policyages/v1/policies/{library_policy}:setRule",
            json!({ "ageSource": "AGE_SOURCE_FIRST_SEEN_NEW_VERSIONS" }),
        ),
        step("dev.bowline.libraries.policy_binding.created.v1", "POST /libraries/v1/policy-bindings/{org}", binding)
            .keeping("/id", "policy_binding"),
        step(
            "dev.bowline.libraries.policy_binding.updated.v1",
            "PUT /libraries/v1/policy-bindings/{policy_binding}",
            enforced,
        ),
        step(
            "dev.bowline.libraries.policy_binding.deleted.v1",
            "DELETE /libraries/v1/policy-bindings/{policy_binding}",
            Value::Null,
        ),
        step(
            "dev.bowline.libraries.cargo_policy.set.v1",
            "POST /cargopolicies/v1/organizations/{org}:setPolicy",
            json!({ "mode": "CARGO_POLICY_MODE_ENFORCED", "policy": "{crate policy}" }),
        ),
        step("dev.bowline.libraries.policy.deleted.v1", "DELETE /libraries/v1/policies/{library_policy}", Value::Null),
        step(
            "libraries.resolutioncache.zapped",
            "POST /libraries/v1/resolutioncache/{org}:zap",
            json!({ "ecosystem": "JAVA" }),
        ),
        step(
            "libraries.resolutioncache.optout.updated",
            "POST /libraries/v1/resolutioncache/{org}:optout",
            json!({ "ecosystem": "JAVA", "optedOut": true }),
        ),
    ]
}

/// Exceptions of versions, and freezes.
fn overrides() -> Vec<Step> {
    let requested = json!({ "purl": "pkg:pypi/Example@1.0", "justification": "CVE-2026-7", "bypassMalware": true });
    let created =
        json!({ "purl": "pkg:npm/left-pad@1.3.0", "justification": "It is ours.", "hours": 2, "bypassFreeze": true });
    let freeze = json!({
        "ecosystems": ["JAVASCRIPT"], "cutoffTime": "2026-01-01T00:00:00Z", "justification": "A worm is about.",
    });
    vec![
        step(
            "dev.bowline.libraries.exception.requested.v1",
            "POST /packageexceptions/v1/organizations/{org}:requestException",
            requested,
        )
        .keeping("/uid", "exception"),
        step(
            "dev.bowline.libraries.exception.approved.v1",
            "POST /packageexceptions/v1/exceptions/{exception}:approve",
            json!({}),
        ),
        step(
            "dev.bowline.libraries.exception.ended.v1",
            "POST /packageexceptions/v1/exceptions/{exception}:end",
            json!({}),
        ),
        step(
            "dev.bowline.libraries.exception.created.v1",
            "POST /packageexceptions/v1/organizations/{org}:createException",
            created,
        )
        .keeping("/uid", "created_exception"),
        step(
            "dev.bowline.libraries.exception.approval.set.v1",
            "POST /packageexceptions/v1/organizations/{org}:setExceptionApproval",
            json!({ "secondPerson": true }),
        ),
        step("dev.bowline.libraries.freeze.set.v1", "POST /packagefreezes/v1/organizations/{org}:freeze", freeze),
        step(
            "dev.bowline.libraries.freeze.lifted.v1",
            "POST /packagefreezes/v1/organizations/{org}:liftFreeze",
            json!({ "ecosystems": ["JAVASCRIPT"] }),
        ),
    ]
}

/// Versions that groups published, and upstreams.
fn packages() -> Vec<Step> {
    let published = json!({ "package": "example", "version": "1.0" });
    let upstream = json!({
        "name": "pypi", "ecosystem": "PYTHON", "url": "https://pypi.org/simple/", "username": "me", "password": "hush",
    });
    let withdrawn = json!({ "package": "Example", "version": "1.0.0", "reason": "It loses data." });
    vec![
        step(
            "dev.bowline.libraries.reservation.created.v1",
            "POST /packagereservations/v1/organizations/{org}:createReservation",
            json!({ "ecosystem": "PYTHON", "pattern": "Acme_*" }),
        ),
        step(
            "dev.bowline.libraries.reservation.deleted.v1",
            "POST /packagereservations/v1/organizations/{org}:deleteReservation",
            json!({ "ecosystem": "PYTHON", "pattern": "acme-*" }),
        ),
        step(
            "dev.bowline.libraries.upstream.set.v1",
            "POST /packageupstreams/v1/organizations/{org}:setUpstream",
            json!({ "upstream": upstream }),
        ),
        step(
            "dev.bowline.libraries.upstream.deleted.v1",
            "POST /packageupstreams/v1/organizations/{org}:deleteUpstream",
            json!({ "name": "pypi" }),
        ),
        step("dev.bowline.libraries.version.yanked.v1", "POST /pythonpackages/v1/groups/{org}:yankVersion", withdrawn),
        step(
            "dev.bowline.libraries.version.unyanked.v1",
            "POST /pythonpackages/v1/groups/{org}:unyankVersion",
            published.clone(),
        ),
        step(
            "dev.bowline.libraries.version.deleted.v1",
            "POST /pythonpackages/v1/groups/{org}:deleteVersion",
            published,
        ),
    ]
}

/// Versions that groups published in the other ecosystems, whose protocols emit the same events.
fn packages_elsewhere() -> Vec<Step> {
    let published = json!({ "package": "example", "version": "1.0.0" });
    let warned = json!({ "package": "example", "version": "1.0.0", "deprecated": "It loses data." });
    vec![
        step(
            "dev.bowline.libraries.javascript.versions.deprecated.v1",
            "POST /javascriptpackages/v1/groups/{org}:deprecateVersion",
            warned,
        ),
        step(
            "dev.bowline.libraries.javascript.versions.deleted.v1",
            "POST /javascriptpackages/v1/groups/{org}:deleteVersion",
            published.clone(),
        ),
        step(
            "dev.bowline.libraries.java.version.deleted.v1",
            "POST /javapackages/v1/groups/{org}:deleteVersion",
            json!({ "package": "org.example:library", "version": "1.0" }),
        ),
        step(
            "dev.bowline.libraries.go.version.deleted.v1",
            "POST /gopackages/v1/groups/{org}:deleteVersion",
            json!({ "package": "example.com/tool", "version": "v1.0.0" }),
        ),
        step(
            "dev.bowline.libraries.cargo.version.yanked.v1",
            "POST /cargopackages/v1/groups/{org}:yankVersion",
            published.clone(),
        ),
        step(
            "dev.bowline.libraries.cargo.version.unyanked.v1",
            "POST /cargopackages/v1/groups/{org}:unyankVersion",
            published.clone(),
        ),
        step(
            "dev.bowline.libraries.cargo.version.deleted.v1",
            "POST /cargopackages/v1/groups/{org}:deleteVersion",
            published.clone(),
        ),
        step(
            "dev.bowline.libraries.files.version.deleted.v1",
            "POST /genericpackages/v1/groups/{org}:deleteVersion",
            published,
        ),
    ]
}
