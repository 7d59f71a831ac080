//! Java packages are published file by file, and read with lists that the server makes.

use bowline_testkit::{TestServer, each_engine, maven};

use crate::fake_repository::sha1;
use crate::support::*;

async fn a_published_version_is_listed_and_can_be_downloaded(server: &TestServer) {
    let (_, client) = java_publisher(server, "acme").await;
    let jar = b"bytes of a jar";
    let put = client.send("PUT com/acme/tool/1.0/tool-1.0.jar", &[], jar).await;
    assert_eq!(put.status, 201, "{}", put.text());
    assert_eq!(client.send("GET com/acme/tool/maven-metadata.xml", &[], &[]).await.status, 404, "it has no POM yet");
    let pom = maven::pom("com.acme", "tool", "1.0", &maven::license("MIT"));
    assert_eq!(client.send("PUT com/acme/tool/1.0/tool-1.0.pom", &[], pom.as_bytes()).await.status, 201);
    for (path, body) in
        [("1.0/tool-1.0.jar.sha1", sha1(jar)), ("1.0/tool-1.0.jar.sha1", format!("{}  tool", sha1(jar)))]
    {
        let put = client.send(&format!("PUT com/acme/tool/{path}"), &[], body.as_bytes()).await;
        assert_eq!(put.status, 201, "{}", put.text());
    }
    for path in ["maven-metadata.xml", "maven-metadata.xml.sha1"] {
        let put = client.send(&format!("PUT com/acme/tool/{path}"), &[], b"anything").await;
        assert_eq!(put.status, 201, "{}", put.text());
    }

    let list = client.send("GET com/acme/tool/maven-metadata.xml", &[], &[]).await;
    assert_eq!((list.status, list.header("content-type")), (200, Some("application/xml")));
    let text = list.text();
    assert!(text.contains("<release>1.0</release><versions><version>1.0</version></versions>"), "{text}");
    let digest = client.send("GET com/acme/tool/maven-metadata.xml.sha1", &[], &[]).await;
    assert_eq!(digest.text(), sha1(text.as_bytes()));
    let file = client.send("GET com/acme/tool/1.0/tool-1.0.jar", &[], &[]).await;
    assert_eq!((file.status, &file.body[..]), (200, &jar[..]));
    assert_eq!(file.header("x-checksum-sha1"), Some(sha1(jar).as_str()));
    assert!(file.header("last-modified").is_some_and(|date| date.ends_with("GMT")));
    let head = client.send("HEAD com/acme/tool/1.0/tool-1.0.jar", &[], &[]).await;
    assert_eq!((head.status, head.body.len(), head.header("content-length")), (200, 0, Some("14")));
    for (end, length) in [("md5", 32), ("sha1", 40), ("sha256", 64), ("sha512", 128)] {
        let digest = client.send(&format!("GET com/acme/tool/1.0/tool-1.0.jar.{end}"), &[], &[]).await;
        assert_eq!((digest.status, digest.body.len()), (200, length), "{end}");
    }
    let absent = client.send("GET com/acme/tool/1.0/tool-1.0.module", &[], &[]).await;
    assert_eq!((absent.status, absent.header("content-type")), (404, Some("text/plain; charset=utf-8")));
    assert_eq!(client.send("GET .meta/prefixes.txt", &[], &[]).await.status, 404);

    let sql = "SELECT count(*) FROM audit WHERE method = 'bowline.libraries.v1.JavaHost.PublishFile'";
    assert_eq!(number(server, sql).await, 2);
    let sql = "SELECT count(*) FROM outbox WHERE event_type = 'dev.bowline.libraries.file.published.v1'";
    assert_eq!(number(server, sql).await, 2);
    let sql = "SELECT count(*) FROM hosted_versions WHERE license = 'MIT' AND packaging = 'jar'";
    assert_eq!((number(server, sql).await, number(server, "SELECT count(*) FROM uploads").await), (1, 0));
}

async fn releases_do_not_change(server: &TestServer) {
    let (_, client) = java_publisher(server, "acme").await;
    client.java_publish("com.acme", "tool", "1.0", "").await;
    let before = stored_files(server);
    let same = client.send("PUT com/acme/tool/1.0/tool-1.0.jar", &[], b"jar of tool 1.0").await;
    assert_eq!(same.status, 200, "{}", same.text());
    let other = client.send("PUT com/acme/tool/1.0/tool-1.0.jar", &[], b"other").await;
    assert_eq!(
        sentence(&other, 409),
        "1.0/tool-1.0.jar already exists with other bytes, and files do not change: publish another version"
    );
    let spelled = client.send("PUT com/acme/tool/1.0.0/tool-1.0.0.jar", &[], b"x").await;
    assert_eq!(sentence(&spelled, 409), "1.0.0 is the version 1.0, which exists: publish another version");
    let wrong = client.send("PUT com/acme/tool/1.0/tool-1.0.jar.md5", &[], b"abc").await;
    assert!(sentence(&wrong, 400).starts_with("the MD5 of 1.0/tool-1.0.jar is "), "{}", wrong.text());
    let early = client.send("PUT com/acme/tool/1.0/tool-1.0-sources.jar.sha1", &[], b"abc").await;
    assert!(sentence(&early, 409).contains("send the file before its digest"));
    assert_eq!((stored_files(server), number(server, "SELECT count(*) FROM uploads").await), (before, 0));
}

async fn lists_are_ordered_as_maven_orders_versions(server: &TestServer) {
    let (_, client) = java_publisher(server, "acme").await;
    for version in ["1.10", "1.9", "2.0-rc-1", "1.9.1-SNAPSHOT"] {
        let name = version.replace("SNAPSHOT", "20260102.030405-1");
        let pom = maven::pom("com.acme", "tool", version, "");
        let path = format!("PUT com/acme/tool/{version}/tool-{name}.pom");
        let put = client.send(&path, &[], pom.as_bytes()).await;
        assert_eq!(put.status, 201, "{}", put.text());
    }
    let text = client.send("GET com/acme/tool/maven-metadata.xml", &[], &[]).await.text();
    let versions =
        "<version>1.9</version><version>1.9.1-SNAPSHOT</version><version>1.10</version><version>2.0-rc-1</version>";
    assert!(text.contains(&format!("<versions>{versions}</versions>")), "{text}");
    assert!(text.contains("<latest>2.0-rc-1</latest><release>2.0-rc-1</release>"), "{text}");
}

async fn snapshots_keep_their_last_builds(server: &TestServer) {
    let (_, client) = java_publisher(server, "acme").await;
    let pom = maven::pom("com.acme", "tool", "1-SNAPSHOT", "");
    for build in 1..=22 {
        let base = format!("PUT com/acme/tool/1-SNAPSHOT/tool-1-20260102.0304{build:02}-{build}");
        assert_eq!(client.send(&format!("{base}.jar"), &[], format!("build {build}").as_bytes()).await.status, 201);
        assert_eq!(client.send(&format!("{base}.pom"), &[], pom.as_bytes()).await.status, 201);
    }
    let list = client.send("GET com/acme/tool/1-SNAPSHOT/maven-metadata.xml", &[], &[]).await.text();
    assert!(list.contains("<timestamp>20260102.030422</timestamp><buildNumber>22</buildNumber>"), "{list}");
    assert!(list.contains("<extension>jar</extension><value>1-20260102.030422-22</value>"), "{list}");
    let newest = client.send("GET com/acme/tool/1-SNAPSHOT/tool-1-SNAPSHOT.jar", &[], &[]).await;
    assert_eq!((newest.status, newest.text().as_str()), (200, "build 22"));
    let files = "SELECT count(*) FROM hosted_files";
    assert_eq!(number(server, files).await, 40, "builds 1 and 2 went");
    let of = |build: u32| format!("GET com/acme/tool/1-SNAPSHOT/tool-1-20260102.0304{build:02}-{build}.jar");
    assert_eq!(client.send(&of(2), &[], &[]).await.status, 404);
    assert_eq!(client.send(&of(3), &[], &[]).await.text(), "build 3");
    // All POMs are the same bytes, which stay for the builds that are left.
    let kept = client.send("GET com/acme/tool/1-SNAPSHOT/tool-1-20260102.030403-3.pom", &[], &[]).await;
    assert_eq!((kept.status, kept.text()), (200, pom));
    let unnamed = client.send("PUT com/acme/tool/1-SNAPSHOT/tool-1-SNAPSHOT.jar", &[], b"x").await;
    assert!(sentence(&unnamed, 400).contains("time and a number in their names"));
}

async fn a_version_is_deleted_with_its_files(server: &TestServer) {
    let (org, client) = java_publisher(server, "acme").await;
    client.java_publish("com.acme", "tool", "1.0", "").await;
    client.java_publish("com.acme", "tool", "1.1", "").await;
    // The same bytes under two names are there as long as one of them is.
    for version in ["1.0", "1.1"] {
        let path = format!("PUT com/acme/tool/{version}/tool-{version}-javadoc.jar");
        assert_eq!(client.send(&path, &[], b"empty").await.status, 201);
    }
    let reader = Client::of(server, &server.actor("libraries.java.pull", &org).await).java();
    assert_eq!(reader.send("DELETE com/acme/tool/1.0/", &[], &[]).await.status, 403);
    assert_eq!(client.send("DELETE com/acme/tool/1.0/", &[], &[]).await.status, 204);
    assert_eq!(client.send("DELETE com/acme/tool/1.0/", &[], &[]).await.status, 404);
    assert_eq!(client.send("GET com/acme/tool/1.0/tool-1.0.jar", &[], &[]).await.status, 404);
    assert_eq!(client.send("GET com/acme/tool/1.1/tool-1.1-javadoc.jar", &[], &[]).await.text(), "empty");
    let again = client.send("PUT com/acme/tool/1.0/tool-1.0.jar", &[], b"jar of tool 1.0").await;
    assert_eq!(sentence(&again, 409), "1.0/tool-1.0.jar was deleted, and its name stays used: publish another version");
    let list = client.send("GET com/acme/tool/maven-metadata.xml", &[], &[]).await.text();
    assert!(list.contains("<versions><version>1.1</version></versions>"), "{list}");
    for sql in [
        "SELECT count(*) FROM outbox WHERE event_type = 'dev.bowline.libraries.java.version.deleted.v1'",
        "SELECT count(*) FROM audit WHERE method = 'bowline.libraries.v1.JavaHost.DeleteVersion'",
    ] {
        assert_eq!(number(server, sql).await, 1, "{sql}");
    }
}

async fn plugins_are_listed_by_their_group(server: &TestServer) {
    let (_, client) = java_publisher(server, "acme").await;
    client.java_publish("com.acme", "greet-maven-plugin", "1.0", "<packaging>maven-plugin</packaging>").await;
    let list = client.send("GET com/acme/maven-metadata.xml", &[], &[]).await;
    assert_eq!(list.status, 200, "{}", list.text());
    let text = list.text();
    assert!(text.contains("<prefix>greet</prefix><artifactId>greet-maven-plugin</artifactId>"), "{text}");
}

async fn what_is_no_file_of_the_layout_is_refused(server: &TestServer) {
    let (_, client) = java_publisher(server, "acme").await;
    let other = maven::pom("com.other", "tool", "1.0", "");
    let bomb = "<!DOCTYPE p [<!ENTITY a 'aaaa'>]><project><artifactId>&a;</artifactId></project>";
    let long = "<project>".to_owned() + &" ".repeat(2 << 20);
    for (path, body, status, says) in [
        ("com/acme/tool/1.0/tool-1.0.pom", other.as_bytes(), 400, "com.other"),
        ("com/acme/tool/1.0/tool-1.0.pom", b"no XML", 400, "is no POM"),
        ("com/acme/tool/1.0/tool-1.0.pom", bomb.as_bytes(), 400, "document type"),
        ("com/acme/tool/1.0/tool-1.0.pom", long.as_bytes(), 400, "has more than"),
        ("com/acme/tool/1.0/other-1.0.jar", b"x", 404, "group/artifact/version"),
        ("tool-1.0.jar", b"x", 404, "group/artifact/version"),
        ("com/acme/%0d%0aX/1.0/%0d%0aX-1.0.jar", b"x", 404, "group/artifact/version"),
    ] {
        let refused = client.send(&format!("PUT {path}"), &[], body).await;
        let says_so = refused.text().contains(says);
        assert!(refused.status == status && says_so, "{path}: {}", refused.text());
        let left = (number(server, "SELECT count(*) FROM uploads").await, stored_files(server));
        assert_eq!((left, number(server, "SELECT count(*) FROM hosted_files").await), ((0, 0), 0), "{path}");
    }
}

async fn policies_apply_to_files_of_groups(server: &TestServer) {
    let (org, client) = java_publisher(server, "acme").await;
    let owner = server.actor("owner", &org).await;
    client.java_publish("com.acme", "base", "1", &maven::license("GPL-3.0-only")).await;
    client.java_publish("com.acme", "tool", "1.0", &maven::parent("com.acme", "base", "1")).await;
    client.java_publish("com.acme", "bad", "1.0", "").await;
    client.java_publish("com.acme", "bad", "1.1", "").await;
    let rules = serde_json::json!({
        "name": "rules", "blockedLicenses": ["GPL-3.0-only"], "blockList": [{ "purl": "pkg:maven/com.acme/bad@1.0" }],
    });
    bind_to("JAVA", &owner, &org, "ENFORCED", rules).await;
    let refused = client.send("GET com/acme/bad/1.0/bad-1.0.jar", &[], &[]).await;
    assert_eq!(
        sentence(&refused, 403),
        "Blocked by policy rules: pkg:maven/com.acme/bad@1.0 is on its block list as pkg:maven/com.acme/bad@1.0"
    );
    let noted = blocked(&owner, server, &org, "ENFORCED").await;
    assert_eq!(noted, [("pkg:maven/com.acme/bad@1.0".into(), "BLOCK_LIST".into(), 1)]);
    let list = client.send("GET com/acme/bad/maven-metadata.xml", &[], &[]).await.text();
    assert!(list.contains("<versions><version>1.1</version></versions>"), "{list}");
    let inherited = client.send("GET com/acme/tool/1.0/tool-1.0.jar", &[], &[]).await;
    assert!(sentence(&inherited, 403).contains("has the license GPL-3.0-only"));
    let all = client.send("GET com/acme/base/maven-metadata.xml", &[], &[]).await;
    assert!(sentence(&all, 409).contains("has the license GPL-3.0-only"));
}

each_engine!(
    a_published_version_is_listed_and_can_be_downloaded,
    a_version_is_deleted_with_its_files,
    lists_are_ordered_as_maven_orders_versions,
    plugins_are_listed_by_their_group,
    policies_apply_to_files_of_groups,
    releases_do_not_change,
    snapshots_keep_their_last_builds,
    what_is_no_file_of_the_layout_is_refused,
);
