//! What policies withhold: passed over on pages, refused as a file with one sentence, and recorded.

use bowline_testkit::{TestServer, each_engine};
use serde_json::json;

use crate::support::*;

async fn a_withheld_version_is_passed_over_and_its_file_refused(server: &TestServer) {
    let (org, client) = publisher(server, "acme").await;
    let owner = server.actor("owner", &org).await;
    let bytes = client.publish("foo", "1.0").await;
    client.publish("foo", "1.1").await;
    let list = json!({ "name": "rules", "cooldownDays": 30, "blockList": [{ "purl": "pkg:pypi/Foo@1.0.0" }] });
    bind(&owner, &org, "ENFORCED", list).await;
    let page = client.project("foo").await;
    let wanted = "Blocked by policy rules: pkg:pypi/foo@1.0 is on its block list as pkg:pypi/foo@1.0.0";
    assert_eq!(page["files"][0]["yanked"], wanted);
    // Own packages have no cooldown: it is about how long others have been able to look at a version.
    assert_eq!(page["files"][1]["yanked"], false);
    assert_eq!(client.file(&page, 1).await.status, 200);

    let address = format!("files/{}/{}", sha256(&bytes), file_name("foo", "1.0"));
    for verb in ["GET", "HEAD", "GET"] {
        let refused = client.send(&format!("{verb} {address}"), &[], &[]).await;
        assert_eq!(refused.status, 403);
        assert_eq!(
            (refused.header("x-bowline-reason"), refused.header("x-bowline-policy")),
            (Some("BLOCK_LIST"), Some("rules"))
        );
        assert_eq!(refused.header("cache-control"), Some("no-store"));
        if verb == "GET" {
            assert_eq!(sentence(&refused, 403), wanted);
        }
    }
    assert_eq!(client.get(&format!("{address}.metadata")).await.status, 200, "resolvers may read them");
    let seen = blocked(&owner, server, &org, "ENFORCED").await;
    assert_eq!(seen, [("pkg:pypi/foo@1.0".to_owned(), "BLOCK_LIST".to_owned(), 3)]);
}

async fn a_withheld_package_has_no_page(server: &TestServer) {
    let (org, client) = publisher(server, "acme").await;
    let owner = server.actor("owner", &org).await;
    client.publish("foo", "1.0").await;
    client.publish("bar", "1.0").await;
    bind(&owner, &org, "ENFORCED", json!({ "name": "rules", "blockList": [{ "purl": "pkg:pypi/foo" }] })).await;
    let refused = client.get("simple/foo/").await;
    assert_eq!(sentence(&refused, 409), "Blocked by policy rules: pkg:pypi/foo is on its block list as pkg:pypi/foo");
    assert_eq!(client.get("simple/bar/").await.status, 200);
}

async fn a_licence_is_refused_and_a_policy_that_logs_refuses_nothing(server: &TestServer) {
    let (org, client) = publisher(server, "acme").await;
    let owner = server.actor("owner", &org).await;
    client.publish("foo", "1.0").await;
    bind(&owner, &org, "LOG", json!({ "name": "later", "blockedLicenses": ["MIT"] })).await;
    let page = client.project("foo").await;
    assert_eq!((&page["files"][0]["yanked"], client.file(&page, 0).await.status), (&json!(false), 200));
    let logged = blocked(&owner, server, &org, "LOG").await;
    assert_eq!(logged, [("pkg:pypi/foo@1.0".to_owned(), "LICENSE".to_owned(), 1)]);

    bind(&owner, &org, "ENFORCED", json!({ "name": "now", "blockedLicenses": ["MIT"] })).await;
    let page = client.project("foo").await;
    let wanted = "Blocked by policy now: pkg:pypi/foo@1.0 has the license MIT";
    assert_eq!(page["files"][0]["yanked"], wanted);
    assert_eq!(sentence(&client.file(&page, 0).await, 403), wanted);
}

async fn reports_of_malware_are_about_public_packages(server: &TestServer) {
    let (org, client) = publisher(server, "acme").await;
    let owner = server.actor("owner", &org).await;
    client.publish("foo", "1.0").await;
    bind(&owner, &org, "ENFORCED", json!({ "name": "rules" })).await;
    let entries = ["foo", "foobar"].map(|name| {
        json!({
            "ecosystem": "PyPI", "packageName": name, "version": "", "malid": "MAL-2026-1", "source": "operator",
            "scope": "MALWARE_SCOPE_PACKAGE", "reason": ["steals tokens"], "blockedAt": "2026-01-01T00:00:00Z",
        })
    });
    let operator = server.operator().await;
    let imported = operator.rest("POST", "/catalog/v1/malware:import", Some(json!({ "entries": entries }))).await;
    assert_eq!(imported.status, 200, "{}", imported.text());
    let explain = format!("/librarydecisions/v1/organizations/{org}:explainPackage?purl=pkg:pypi/");
    let own = owner.rest("GET", &format!("{explain}foo@1.0"), None).await.json();
    let known = (&own["decision"]["allowed"], &own["decision"]["known"], &own["decision"]["license"]);
    assert_eq!(known, (&json!(true), &json!(true), &json!("MIT")), "{own}");
    let other = owner.rest("GET", &format!("{explain}foobar@1.0"), None).await.json();
    assert_eq!(other["decision"]["reason"], "MALWARE_DETECTED", "{other}");
    let page = client.project("foo").await;
    assert_eq!((&page["files"][0]["yanked"], client.file(&page, 0).await.status), (&json!(false), 200));
}

each_engine!(
    a_withheld_version_is_passed_over_and_its_file_refused,
    a_withheld_package_has_no_page,
    a_licence_is_refused_and_a_policy_that_logs_refuses_nothing,
    reports_of_malware_are_about_public_packages,
);
