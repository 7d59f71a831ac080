//! What policies withhold of JavaScript packages: left out of documents with the reason, and refused as a file.

use bowline_testkit::{TestServer, each_engine};
use serde_json::json;

use crate::support::*;

async fn a_withheld_version_is_left_out_and_its_file_refused(server: &TestServer) {
    let (org, client) = npm_publisher(server, "acme").await;
    let owner = server.actor("owner", &org).await;
    for (version, tag) in [("1.0.0", "latest"), ("1.1.0-rc.1", "next"), ("2.0.0", "latest")] {
        client.npm_publish("@acme/foo", version, tag).await;
    }
    let whole = client.document("@acme/foo").await;
    let list = json!({ "name": "rules", "cooldownDays": 30, "blockList": [{ "purl": "pkg:npm/%40acme/foo@2.0.0" }] });
    bind_to("JAVASCRIPT", &owner, &org, "ENFORCED", list).await;
    let wanted = "Blocked by policy rules: pkg:npm/%40acme/foo@2.0.0 is on its block list as pkg:npm/%40acme/foo@2.0.0";
    let reply = client.send("GET @acme/foo", &[], &[]).await;
    let notice = format!("latest of @acme/foo is 1.0.0 here. {wanted}");
    assert_eq!(reply.header("npm-notice"), Some(&*notice));
    let document = reply.json();
    assert_eq!(document["dist-tags"], json!({ "latest": "1.0.0", "next": "1.1.0-rc.1" }));
    let versions: Vec<&String> = document["versions"].as_object().unwrap().keys().collect();
    assert_eq!(versions, ["1.0.0", "1.1.0-rc.1"]);
    assert!(document["time"]["2.0.0"].is_string());
    let restrictions = &document["policyRestrictions"];
    assert_eq!(
        (&restrictions["message"], &restrictions["versions"]["2.0.0"]["version"]),
        (&json!(wanted), &json!("2.0.0"))
    );

    let refused = client.npm_file(server, &whole, "2.0.0").await;
    assert_eq!(sentence(&refused, 403), wanted);
    assert_eq!(
        (refused.header("x-bowline-reason"), refused.header("cache-control")),
        (Some("BLOCK_LIST"), Some("no-store"))
    );
    assert_eq!(sentence(&client.send("GET @acme/foo/2.0.0", &[], &[]).await, 403), wanted);
    assert_eq!(client.npm_file(server, &whole, "1.0.0").await.status, 200, "own packages have no cooldown");
    let seen = blocked(&owner, server, &org, "ENFORCED").await;
    assert_eq!(seen, [("pkg:npm/%40acme/foo@2.0.0".to_owned(), "BLOCK_LIST".to_owned(), 1)]);
}

async fn a_withheld_package_has_no_document(server: &TestServer) {
    let (org, client) = npm_publisher(server, "acme").await;
    let owner = server.actor("owner", &org).await;
    client.npm_publish("foo", "1.0.0", "latest").await;
    let whole = client.document("foo").await;
    let uid = bind_to(
        "JAVASCRIPT",
        &owner,
        &org,
        "ENFORCED",
        json!({ "name": "rules", "blockList": [{ "purl": "pkg:npm/foo" }] }),
    )
    .await;
    let wanted = "Blocked by policy rules: pkg:npm/foo is on its block list as pkg:npm/foo";
    assert_eq!(sentence(&client.send("GET foo", &[], &[]).await, 409), wanted);
    assert_eq!(client.npm_file(server, &whole, "1.0.0").await.status, 403);
    // Where a license is the reason, versions are refused one by one.
    let policy = json!({ "name": "rules", "blockList": [], "blockedLicenses": ["MIT"] });
    let changed = owner.rest("PUT", &format!("/libraries/v1/policies/{uid}"), Some(policy)).await;
    assert_eq!(changed.status, 200, "{}", changed.text());
    let document = client.document("foo").await;
    assert_eq!((&document["versions"], &document["dist-tags"]), (&json!({}), &json!({})));
    let wanted = "Blocked by policy rules: pkg:npm/foo@1.0.0 has the license MIT";
    assert_eq!(document["policyRestrictions"]["message"], wanted);
    assert_eq!(sentence(&client.npm_file(server, &whole, "1.0.0").await, 403), wanted);
}

each_engine!(a_withheld_version_is_left_out_and_its_file_refused, a_withheld_package_has_no_document);
