//! What owners set for repositories and groups beyond the wire contract.

use bowline_testkit::{TestServer, each_engine};
use serde_json::{Value, json};

use crate::support::{absent, holder, inventory, number, ok, rejected};

async fn a_policy_is_empty_until_it_is_set_and_changes_by_mask(server: &TestServer) {
    let org = server.organization("acme").await;
    let repo = server.repo(&org, "web").await;
    let operator = server.operator().await;
    for (kind, uid) in [("repos", &repo), ("groups", &org)] {
        let path = format!("/registrypolicies/v1/{kind}/{uid}");
        let empty = ok(&operator, &format!("GET {path}"), Value::Null).await;
        assert_eq!((&empty["uid"], &empty["public"], &empty["byteQuota"]), (&json!(uid), &json!(false), &json!("0")));
        let body = json!({
            "public": true, "immutableTagPatterns": ["v[0-9.]+"], "byteQuota": "1000",
            "retention": { "keepLast": 5, "keepPatterns": ["release-.*"] },
            "upstream": { "url": "https://registry.example.com/a/b" }
        });
        let set = ok(&operator, &format!("PATCH {path}"), body.clone()).await;
        assert_eq!(ok(&operator, &format!("GET {path}"), Value::Null).await, set);
        for member in ["public", "immutableTagPatterns", "byteQuota"] {
            assert_eq!(set[member], body[member], "{member}");
        }
        assert_eq!((&set["retention"]["keepLast"], &set["upstream"]["url"]), (&json!(5), &body["upstream"]["url"]));
        let changed = ok(&operator, &format!("PATCH {path}?updateMask=public,retention"), json!({})).await;
        assert_eq!((&changed["public"], &changed["byteQuota"]), (&json!(false), &json!("1000")));
        assert_eq!(changed["retention"], Value::Null);
        assert_eq!(ok(&operator, &format!("PATCH {path}?updateMask=public"), json!({})).await, changed);
    }
    let audited = "SELECT count(*) FROM audit WHERE kind = 'bowline.dev/RegistryPolicy'";
    assert_eq!(number(server, audited).await, 4);
    let told = "SELECT count(*) FROM outbox WHERE event_type = 'dev.bowline.registry.policy.updated.v1'";
    assert_eq!(number(server, told).await, 4);
    assert_eq!(number(server, "SELECT count(*) FROM registry_policies").await, 2);
    assert_eq!(number(server, "SELECT count(*) FROM registry_policies WHERE is_public").await, 0);

    ok(&operator, &format!("DELETE /registry/v2/repos/{repo}"), Value::Null).await;
    ok(&operator, &format!("DELETE /iam/v2/groups/{org}"), Value::Null).await;
    assert_eq!(number(server, "SELECT count(*) FROM registry_policies").await, 0);
}

async fn policies_of_a_group_are_listed_with_those_below(server: &TestServer) {
    let (org, other) = (server.organization("acme").await, server.organization("other").await);
    let group = server.group(&org, "team").await;
    let operator = server.operator().await;
    let mut expected = Vec::new();
    let set = json!({ "immutableTagPatterns": ["v.*"] });
    for (kind, uid) in [
        ("groups", org.clone()),
        ("groups", group.clone()),
        ("groups", other.clone()),
        ("repos", server.repo(&org, "one").await),
        ("repos", server.repo(&group, "two").await),
    ] {
        ok(&operator, &format!("PATCH /registrypolicies/v1/{kind}/{uid}"), set.clone()).await;
        if uid != other {
            expected.push(uid);
        }
    }
    expected.sort();
    let list = format!("GET /registrypolicies/v1/groups/{org}/policies?pageSize=3");
    let first = ok(&operator, &list, Value::Null).await;
    let token = first["nextPageToken"].as_str().expect("a token").to_owned();
    let second = ok(&operator, &format!("{list}&pageToken={token}"), Value::Null).await;
    assert_eq!(second["nextPageToken"], "");
    let pages = [&first, &second].map(|page| page["policies"].as_array().expect("policies").clone());
    assert_eq!(pages[0].len(), 3);
    let uids: Vec<&str> = pages.iter().flatten().map(|policy| policy["uid"].as_str().expect("a UIDP")).collect();
    assert_eq!(uids, expected);
    assert!(pages.iter().flatten().all(|policy| policy["immutableTagPatterns"] == set["immutableTagPatterns"]));
    let below = ok(&operator, &format!("GET /registrypolicies/v1/groups/{group}/policies"), Value::Null).await;
    assert_eq!(below["policies"].as_array().map(Vec::len), Some(2));
    let nowhere = format!("GET /registrypolicies/v1/groups/{}/policies", absent(&org));
    rejected(&operator, &nowhere, Value::Null, 404, "NOT_FOUND").await;
    let reader = holder(server, &org, "reader", &org, &["CAP_REPO_LIST"]).await.actor;
    rejected(&reader, &list, Value::Null, 403, "PERMISSION_DENIED").await;
}

async fn what_makes_no_sense_is_refused_at_once(server: &TestServer) {
    let org = server.organization("acme").await;
    let repo = server.repo(&org, "web").await;
    let operator = server.operator().await;
    let before = inventory(server).await;
    let path = format!("PATCH /registrypolicies/v1/repos/{repo}");
    let long = "a".repeat(257);
    let many: Vec<&str> = vec!["a"; 21];
    for (body, field) in [
        (json!({ "immutableTagPatterns": ["("] }), "immutableTagPatterns"),
        (json!({ "immutableTagPatterns": [""] }), "immutableTagPatterns"),
        (json!({ "immutableTagPatterns": ["(a{1000}){1000}"] }), "immutableTagPatterns"),
        (json!({ "immutableTagPatterns": [long] }), "immutableTagPatterns[0]"),
        (json!({ "immutableTagPatterns": many }), "immutableTagPatterns"),
        (json!({ "byteQuota": "-1" }), "byteQuota"),
        (json!({ "retention": { "keepLast": -1 } }), "retention.keepLast"),
        (json!({ "retention": { "keepDays": 10001 } }), "retention.keepDays"),
        (json!({ "upstream": { "url": "http://example.com" } }), "upstream.url"),
        (json!({ "upstream": { "url": "https://u:p@example.com" } }), "upstream.url"),
        (json!({ "upstream": {} }), "upstream.url"),
    ] {
        let refusal = rejected(&operator, &path, body.clone(), 400, "INVALID_ARGUMENT").await;
        assert!(refusal.fields().contains(&field.to_owned()), "{body}: {refusal:?}");
    }
    let nowhere = absent(&org);
    for kind in ["repos", "groups"] {
        let what = format!("PATCH /registrypolicies/v1/{kind}/{nowhere}");
        rejected(&operator, &what, json!({ "public": true }), 404, "NOT_FOUND").await;
    }
    assert_eq!(inventory(server).await, before);
}

async fn making_public_requires_the_permission_to_pull(server: &TestServer) {
    let org = server.organization("acme").await;
    let repo = server.repo(&org, "web").await;
    let settings = ["CAP_REPO_LIST", "CAP_REPO_UPDATE", "CAP_REGISTRY_SETTINGS_LIST", "CAP_REGISTRY_SETTINGS_UPDATE"];
    let pulls = ["CAP_MANIFEST_LIST", "CAP_REPO_BLOBS_GET", "CAP_TAG_LIST", "CAP_REFERRERS_LIST"];
    let clerk = holder(server, &org, "clerk", &org, &settings).await.actor;
    let almost = holder(server, &org, "almost", &org, &[&settings[..], &pulls[1..]].concat()).await.actor;
    let puller = holder(server, &org, "puller", &org, &[settings, pulls].concat()).await.actor;
    for path in [format!("/registrypolicies/v1/repos/{repo}"), format!("/registrypolicies/v1/groups/{org}")] {
        let path = format!("PATCH {path}");
        for (who, lacks) in [(&clerk, "repo.blobs.get"), (&almost, "manifest.list")] {
            let refusal = rejected(who, &path, json!({ "public": true }), 403, "PERMISSION_DENIED").await;
            assert!(refusal.message().contains(lacks), "{refusal:?}");
            ok(who, &path, json!({ "public": false, "byteQuota": "5" })).await;
        }
        ok(&puller, &path, json!({ "public": true })).await;
        ok(&clerk, &path, json!({ "public": true, "byteQuota": "6" })).await;
        ok(&clerk, &path, json!({ "public": false })).await;
    }
}

async fn retention_rules_require_the_permission_to_delete(server: &TestServer) {
    let org = server.organization("acme").await;
    let repo = server.repo(&org, "web").await;
    let settings = ["CAP_REPO_UPDATE", "CAP_REGISTRY_SETTINGS_UPDATE"];
    let deletes = ["CAP_MANIFEST_DELETE", "CAP_TAG_DELETE"];
    let clerk = holder(server, &org, "clerk", &org, &[&settings[..], &deletes[1..]].concat()).await.actor;
    let keeper = holder(server, &org, "keeper", &org, &[settings, deletes].concat()).await.actor;
    for path in [format!("/registrypolicies/v1/repos/{repo}"), format!("/registrypolicies/v1/groups/{org}")] {
        let path = format!("PATCH {path}");
        let rules = json!({ "retention": { "keepLast": 1 } });
        let refusal = rejected(&clerk, &path, rules.clone(), 403, "PERMISSION_DENIED").await;
        assert!(refusal.message().contains("manifest.delete"), "{refusal:?}");
        ok(&keeper, &path, rules.clone()).await;
        ok(&clerk, &path, rules).await;
        ok(&clerk, &path.clone(), json!({ "retention": {} })).await;
    }
    let preview = format!("GET /registrypolicies/v1/repos/{repo}:previewRetention?retention.keepLast=-1");
    rejected(&server.operator().await, &preview, Value::Null, 400, "INVALID_ARGUMENT").await;
}

each_engine!(
    a_policy_is_empty_until_it_is_set_and_changes_by_mask,
    policies_of_a_group_are_listed_with_those_below,
    what_makes_no_sense_is_refused_at_once,
    making_public_requires_the_permission_to_pull,
    retention_rules_require_the_permission_to_delete
);
