//! Java packages of another repository: requested once, pinned by their first bytes, and withheld while they are young.

use std::time::Duration;

use bowline_testkit::{Actor, TestServer, each_engine, maven};
use serde_json::json;

use crate::fake_index::Fault;
use crate::fake_repository::{FakeRepository, sha1};
use crate::support::*;

/// An organization with an upstream, someone who may publish there, and its owner.
async fn installer(server: &TestServer, repository: &FakeRepository) -> (String, Client, Actor) {
    let (org, client) = java_publisher(server, "acme").await;
    let owner = server.actor("owner", &org).await;
    repository.serve(&owner, &org, "central", 0).await;
    (org, client, owner)
}

async fn a_file_of_an_upstream_is_requested_once(server: &TestServer) {
    let repository = FakeRepository::start().await;
    let jar = repository.publish(server, "lib", "1.0", 30, &maven::license("MIT"));
    let (_, client, _) = installer(server, &repository).await;
    let file = client.send("GET org/pub/lib/1.0/lib-1.0.jar", &[], &[]).await;
    assert_eq!((file.status, &file.body), (200, &jar), "{}", file.text());
    assert_eq!(file.header("x-checksum-sha1"), Some(sha1(&jar).as_str()));
    let pom = "GET org/pub/lib/1.0/lib-1.0.pom";
    let all = [
        pom,
        "GET org/pub/lib/1.0/lib-1.0.pom.sha1",
        "GET org/pub/lib/1.0/lib-1.0.jar",
        "GET org/pub/lib/1.0/lib-1.0.jar.sha1",
    ];
    assert_eq!(repository.seen(), all);
    assert_eq!(client.send(pom, &[], &[]).await.status, 200);
    assert_eq!(client.send("GET org/pub/lib/1.0/lib-1.0.jar.sha1", &[], &[]).await.text(), sha1(&jar));
    assert_eq!(repository.seen(), Vec::<String>::new(), "all of it is here");
    // Other bytes at the upstream change nothing here.
    repository.put(server, "org/pub/lib/1.0/lib-1.0.jar", 30, b"changed");
    server.clock().advance(Duration::from_secs(1000));
    assert_eq!(client.send("GET org/pub/lib/1.0/lib-1.0.jar", &[], &[]).await.body, jar);

    let absent = client.send("GET org/pub/lib/1.0/lib-1.0-sources.jar", &[], &[]).await;
    assert_eq!(absent.status, 404, "{}", absent.text());
    assert_eq!(client.send("GET org/pub/none/1.0/none-1.0.jar", &[], &[]).await.status, 404);
    let asked = repository.seen();
    assert_eq!(asked, ["GET org/pub/lib/1.0/lib-1.0-sources.jar", "GET org/pub/none/1.0/none-1.0.pom"]);
    client.send("GET org/pub/none/1.0/none-1.0.pom", &[], &[]).await;
    assert_eq!(repository.seen(), Vec::<String>::new(), "what is absent is remembered for a minute");
    server.clock().advance(Duration::from_secs(61));
    repository.publish(server, "none", "1.0", 30, "");
    assert_eq!(client.send("GET org/pub/none/1.0/none-1.0.pom", &[], &[]).await.status, 200);
    let stored =
        "SELECT count(*) FROM upstream_files WHERE license = 'MIT' AND sha1 <> '' AND published_at IS NOT NULL";
    assert_eq!(number(server, stored).await, 1);
}

async fn the_digest_may_be_in_a_header(server: &TestServer) {
    let repository = FakeRepository::start().await;
    repository.publish(server, "lib", "1.0", 30, "");
    repository.state().says_sha1 = true;
    let (_, client, _) = installer(server, &repository).await;
    assert_eq!(client.send("GET org/pub/lib/1.0/lib-1.0.jar", &[], &[]).await.status, 200);
    assert_eq!(repository.seen().len(), 2, "a request for each file");
}

async fn no_wrong_file_is_stored(server: &TestServer) {
    let repository = FakeRepository::start().await;
    let jar = repository.publish(server, "lib", "1.0", 30, "");
    let (_, client, _) = installer(server, &repository).await;
    for fault in [Fault::OtherBytes, Fault::More, Fault::Less, Fault::Refused] {
        repository.state().fault = Some(fault);
        let refused = client.send("GET org/pub/lib/1.0/lib-1.0.pom", &[], &[]).await;
        assert_eq!(refused.status, 502, "{fault:?}: {}", refused.text());
        let left = (number(server, "SELECT count(*) FROM upstream_files").await, stored_files(server));
        assert_eq!(left, (0, 0), "{fault:?}");
        server.clock().advance(Duration::from_secs(11));
    }
    repository.state().fault = None;
    let other = maven::pom("org.pub", "other", "1.0", "");
    repository.put(server, "org/pub/odd/1.0/odd-1.0.pom", 30, other.as_bytes());
    let refused = client.send("GET org/pub/odd/1.0/odd-1.0.pom", &[], &[]).await;
    assert_eq!(
        sentence(&refused, 502),
        "1.0/odd-1.0.pom of the upstream central is no POM of this version, so it is not served"
    );
    assert_eq!(stored_files(server), 0);
    assert_eq!(client.send("GET org/pub/lib/1.0/lib-1.0.jar", &[], &[]).await.body, jar);
}

async fn a_young_version_is_withheld_until_it_is_old_enough(server: &TestServer) {
    let repository = FakeRepository::start().await;
    repository.publish(server, "lib", "1.0", 30, "");
    let young = repository.publish(server, "lib", "2.0", 6, "");
    repository.list(server, "lib", &["1.0", "2.0"]);
    let (org, client, owner) = installer(server, &repository).await;
    let list = client.send("GET org/pub/lib/maven-metadata.xml", &[], &[]).await.text();
    assert!(list.contains("<release>2.0</release>"), "{list}");
    bind_to("JAVA", &owner, &org, "ENFORCED", json!({ "name": "cooldown", "cooldownDays": 7 })).await;
    let list = client.send("GET org/pub/lib/maven-metadata.xml", &[], &[]).await.text();
    assert!(list.contains("<release>1.0</release><versions><version>1.0</version></versions>"), "{list}");
    for file in ["lib-2.0.pom", "lib-2.0.jar", "lib-2.0.jar.sha1"] {
        let refused = client.send(&format!("GET org/pub/lib/2.0/{file}"), &[], &[]).await;
        let text = sentence(&refused, 403);
        assert!(text.starts_with(
            "Blocked by policy cooldown: pkg:maven/org.pub/lib@2.0 is younger than 7 days; allowed from 20"
        ));
    }
    // What does not exist is absent, also where the version is withheld: builds end at a 403.
    assert_eq!(client.send("GET org/pub/lib/2.0/lib-2.0.module", &[], &[]).await.status, 404);
    assert_eq!(client.send("GET org/pub/lib/1.0/lib-1.0.jar", &[], &[]).await.status, 200);
    let noted = blocked(&owner, server, &org, "ENFORCED").await;
    assert_eq!(noted, [("pkg:maven/org.pub/lib@2.0".into(), "COOLDOWN".into(), 1)]);
    let explain = format!("/librarydecisions/v1/organizations/{org}:explainPackage?purl=pkg:maven/org.pub/lib@2.0");
    assert_eq!(owner.rest("GET", &explain, None).await.json()["decision"]["reason"], "COOLDOWN");

    server.clock().advance(Duration::from_secs(24 * 3600 + 1));
    let client = Client::of(server, &server.actor("libraries.java.pull", &org).await).java();
    assert_eq!(client.send("GET org/pub/lib/2.0/lib-2.0.jar", &[], &[]).await.body, young);
}

async fn a_file_that_came_to_an_old_version_is_young(server: &TestServer) {
    let repository = FakeRepository::start().await;
    let jar = repository.publish(server, "lib", "1.0", 30, "");
    repository.put(server, "org/pub/lib/1.0/lib-1.0-linux.jar", 1, b"added");
    let (org, client, owner) = installer(server, &repository).await;
    bind_to("JAVA", &owner, &org, "ENFORCED", json!({ "name": "cooldown", "cooldownDays": 7 })).await;
    assert_eq!(client.send("GET org/pub/lib/1.0/lib-1.0.jar", &[], &[]).await.body, jar);
    let refused = client.send("GET org/pub/lib/1.0/lib-1.0-linux.jar", &[], &[]).await;
    assert!(sentence(&refused, 403).contains("is younger than 7 days"), "{}", refused.text());
}

async fn a_version_without_a_date_is_as_old_as_its_list_says(server: &TestServer) {
    let repository = FakeRepository::start().await;
    for name in ["listed", "unlisted", "fresh"] {
        repository.publish(server, name, "1.0", 0, "");
    }
    let list = |name: &str, version: &str, at: &str| {
        let text = format!(
            "<metadata><versioning><versions><version>{version}</version></versions><lastUpdated>{at}</lastUpdated>\
             </versioning></metadata>"
        );
        repository.put(server, &format!("org/pub/{name}/maven-metadata.xml"), 0, text.as_bytes());
    };
    list("listed", "1.0", "20200102030405");
    list("unlisted", "0.9", "20200102030405");
    repository.state().is_undated = true;
    let (org, client, owner) = installer(server, &repository).await;
    bind_to("JAVA", &owner, &org, "ENFORCED", json!({ "name": "cooldown", "cooldownDays": 7 })).await;
    assert_eq!(client.send("GET org/pub/listed/1.0/listed-1.0.jar", &[], &[]).await.status, 200);
    for name in ["unlisted", "fresh"] {
        let refused = client.send(&format!("GET org/pub/{name}/1.0/{name}-1.0.jar"), &[], &[]).await;
        assert!(sentence(&refused, 403).contains("is younger than 7 days; allowed from 20"), "{}", refused.text());
    }
    server.clock().advance(Duration::from_secs(7 * 24 * 3600));
    let client = Client::of(server, &server.actor("libraries.java.pull", &org).await).java();
    assert_eq!(client.send("GET org/pub/fresh/1.0/fresh-1.0.jar", &[], &[]).await.status, 200, "first seen a week ago");
}

async fn licenses_are_inherited(server: &TestServer) {
    let repository = FakeRepository::start().await;
    repository.publish(server, "top", "1", 30, &maven::license("GPL-3.0-only"));
    repository.publish(server, "middle", "1", 30, &maven::parent("org.pub", "top", "1"));
    repository.publish(server, "lib", "1.0", 30, &maven::parent("org.pub", "middle", "1"));
    repository.publish(server, "orphan", "1.0", 30, &maven::parent("org.pub", "nowhere", "1"));
    repository.publish(server, "own", "1.0", 30, &(maven::parent("org.pub", "top", "1") + &maven::license("MIT")));
    let (org, client, owner) = installer(server, &repository).await;
    assert_eq!(client.send("GET org/pub/lib/1.0/lib-1.0.jar", &[], &[]).await.status, 200);
    bind_to("JAVA", &owner, &org, "ENFORCED", json!({ "name": "rules", "blockedLicenses": ["GPL-3.0-only"] })).await;
    let refused = client.send("GET org/pub/lib/1.0/lib-1.0.jar", &[], &[]).await;
    assert_eq!(
        sentence(&refused, 403),
        "Blocked by policy rules: pkg:maven/org.pub/lib@1.0 has the license GPL-3.0-only"
    );
    for file in ["orphan/1.0/orphan-1.0.jar", "own/1.0/own-1.0.jar"] {
        assert_eq!(client.send(&format!("GET org/pub/{file}"), &[], &[]).await.status, 200, "{file}");
    }
}

async fn names_of_the_organization_are_never_requested(server: &TestServer) {
    let repository = FakeRepository::start().await;
    let (org, client, owner) = installer(server, &repository).await;
    client.java_publish("com.acme", "tool", "1.0", "").await;
    for pattern in ["com.secret.*", "org.hidden:tool"] {
        let reserve = json!({ "ecosystem": "JAVA", "pattern": pattern });
        let path = format!("/packagereservations/v1/organizations/{org}:createReservation");
        let reserved = owner.rest("POST", &path, Some(reserve)).await;
        assert_eq!(reserved.status, 200, "{}", reserved.text());
    }
    for path in [
        "com/acme/tool/2.0/tool-2.0.pom",
        "com/acme/tool/maven-metadata.xml",
        "com/acme/maven-metadata.xml",
        "com/secret/web/next/1.0/next-1.0.jar",
        "com/Secret/web/next/1.0/next-1.0.jar",
        "com/secret/web/maven-metadata.xml",
        "org/hidden/maven-metadata.xml",
    ] {
        client.send(&format!("GET {path}"), &[], &[]).await;
        assert_eq!(repository.seen(), Vec::<String>::new(), "{path}");
    }
    repository.publish(server, "lib", "1.0", 30, "");
    assert_eq!(client.send("GET org/pub/lib/1.0/lib-1.0.jar", &[], &[]).await.status, 200);
    let pom = maven::pom("org.pub", "lib", "9", "");
    let taken = client.send("PUT org/pub/lib/9/lib-9.pom", &[], pom.as_bytes()).await;
    assert!(sentence(&taken, 409).starts_with("the upstream central has a package org.pub:lib"), "{}", taken.text());
}

async fn versions_come_from_the_first_upstream_that_has_them(server: &TestServer) {
    let (first, second) = (FakeRepository::start().await, FakeRepository::start().await);
    first.publish(server, "lib", "1.0", 30, "");
    first.list(server, "lib", &["1.0"]);
    second.publish(server, "lib", "1.1", 30, "");
    second.list(server, "lib", &["1.0", "1.1"]);
    let plugins = "<metadata><plugins><plugin><name>P</name><prefix>p</prefix><artifactId>p-maven-plugin</artifactId>\
                   </plugin></plugins></metadata>";
    second.put(server, "org/pub/maven-metadata.xml", 1, plugins.as_bytes());
    let (org, client, owner) = installer(server, &first).await;
    second.serve(&owner, &org, "other", 1).await;
    let list = client.send("GET org/pub/lib/maven-metadata.xml", &[], &[]).await.text();
    assert!(list.contains("<versions><version>1.0</version><version>1.1</version></versions>"), "{list}");
    let list = client.send("GET org/pub/maven-metadata.xml", &[], &[]).await.text();
    assert!(list.contains("<prefix>p</prefix>"), "{list}");
    first.seen();
    second.seen();
    assert_eq!(client.send("GET org/pub/lib/1.0/lib-1.0.pom", &[], &[]).await.status, 200);
    assert_eq!(second.seen(), Vec::<String>::new());
    assert_eq!(client.send("GET org/pub/lib/1.1/lib-1.1.jar", &[], &[]).await.status, 200);
    assert_eq!(first.seen().last().map(String::as_str), Some("GET org/pub/lib/1.1/lib-1.1.pom"));
    // A version stays with the upstream that it came from.
    first.publish(server, "lib", "1.1", 30, "<description>other</description>");
    server.clock().advance(Duration::from_secs(61));
    let pom = client.send("GET org/pub/lib/1.1/lib-1.1.pom", &[], &[]).await;
    assert!(pom.status == 200 && !pom.text().contains("other"), "{}", pom.text());
    assert_eq!(first.seen(), Vec::<String>::new());
}

async fn an_old_list_is_used_when_the_upstream_fails(server: &TestServer) {
    let repository = FakeRepository::start().await;
    repository.publish(server, "lib", "1.0", 30, "");
    repository.list(server, "lib", &["1.0"]);
    let (_, client, _) = installer(server, &repository).await;
    assert_eq!(client.send("GET org/pub/lib/maven-metadata.xml", &[], &[]).await.status, 200);
    server.clock().advance(Duration::from_secs(301));
    repository.state().fault = Some(Fault::Refused);
    let stale = client.send("GET org/pub/lib/maven-metadata.xml", &[], &[]).await;
    assert_eq!((stale.status, stale.header("x-bowline-stale")), (200, Some("301")));
    let unknown = client.send("GET org/pub/other/maven-metadata.xml", &[], &[]).await;
    assert_eq!(unknown.status, 404, "the upstream says so");
}

each_engine!(
    a_file_that_came_to_an_old_version_is_young,
    a_file_of_an_upstream_is_requested_once,
    a_version_without_a_date_is_as_old_as_its_list_says,
    a_young_version_is_withheld_until_it_is_old_enough,
    an_old_list_is_used_when_the_upstream_fails,
    licenses_are_inherited,
    names_of_the_organization_are_never_requested,
    no_wrong_file_is_stored,
    the_digest_may_be_in_a_header,
    versions_come_from_the_first_upstream_that_has_them,
);
