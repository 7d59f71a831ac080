//! Packages of upstreams: installed through the server, gated by policies, and never confused with packages of groups.

use std::time::Duration;

use bowline_testkit::{Actor, TestServer, each_engine};
use serde_json::{Value, json};

use crate::fake_index::{FakeIndex, set_upstream};
use crate::support::*;

const DAY: Duration = Duration::from_secs(24 * 3600);

/// An organization with an upstream: its UIDP, its owner, and someone who installs.
pub(crate) async fn installer(server: &TestServer, index: &FakeIndex) -> (String, Actor, Client) {
    let org = server.organization("acme").await;
    let owner = server.actor("owner", &org).await;
    index.serve(&owner, &org, "pypi", 0).await;
    let client = Client::of(server, &server.actor("libraries.python.pull", &org).await);
    (org, owner, client)
}

async fn packages_of_an_upstream_are_installed_and_stored(server: &TestServer) {
    let index = FakeIndex::start().await;
    let bytes = index.publish(server, "foo-bar", "1.0", 30);
    let (_, _, client) = installer(server, &index).await;
    let page = client.project("foo-bar").await;
    let file = &page["files"][0];
    assert_eq!((&page["versions"], &file["yanked"]), (&json!(["1.0"]), &json!(false)), "{page}");
    assert_eq!(file["url"], format!("../../files/{}/{}", sha256(&bytes), file_name("foo-bar", "1.0")));
    assert_eq!((&file["size"], &file["requires-python"]), (&json!(bytes.len()), &json!(">=3.8")));
    assert!(file["upload-time"].is_string(), "{file}");

    let address = file["url"].as_str().unwrap().strip_prefix("../../").unwrap().to_owned();
    let wanted = metadata("foo-bar", "1.0", "License-Expression: MIT\n");
    assert_eq!(client.get(&format!("{address}.metadata")).await.text(), wanted);
    assert_eq!(client.file(&page, 0).await.body, bytes);
    let name = file_name("foo-bar", "1.0");
    assert_eq!(
        index.seen(),
        ["/simple/foo-bar/".to_owned(), format!("/files/{name}.metadata"), format!("/files/{name}")]
    );
    assert_eq!(client.file(&client.project("foo-bar").await, 0).await.body, bytes);
    assert_eq!(index.seen(), Vec::<String>::new(), "everything is here");
    assert_eq!(client.get("simple/absent/").await.status, 404);
    assert_eq!(client.get("simple/absent/").await.status, 404);
    assert_eq!(index.seen(), ["/simple/absent/"], "its absence is remembered");

    server.clock().advance(Duration::from_secs(301));
    let client = renewed(server, "acme").await;
    index.publish(server, "foo-bar", "1.1", 0);
    assert_eq!(client.project("foo-bar").await["versions"], json!(["1.0", "1.1"]));
    server.clock().advance(Duration::from_secs(301));
    client.project("foo-bar").await;
    let conditional: Vec<bool> = index.requests().iter().map(|seen| seen.is_conditional).collect();
    assert_eq!(conditional, [true, true]);
    client.project("foo-bar").await;
    assert_eq!(index.seen(), Vec::<String>::new(), "what has not changed is fresh again");
}

/// Someone who installs, with a new token.
async fn renewed(server: &TestServer, org: &str) -> Client {
    let uid = server.operator().await.rest("GET", &format!("/iam/v2/groups?name={org}"), None).await.json();
    let org = uid["groups"][0]["uid"].as_str().unwrap().to_owned();
    Client::of(server, &server.actor("libraries.python.pull", &org).await)
}

async fn a_cooldown_passes(server: &TestServer) {
    let index = FakeIndex::start().await;
    index.publish(server, "foo", "1.0", 30);
    let young = index.publish(server, "foo", "1.1", 2);
    let (org, owner, client) = installer(server, &index).await;
    bind(&owner, &org, "ENFORCED", json!({ "name": "rules" })).await;
    let page = client.project("foo").await;
    assert_eq!(page["files"][0]["yanked"], false);
    let why = page["files"][1]["yanked"].as_str().unwrap();
    assert!(
        why.starts_with("Blocked by policy rules: pkg:pypi/foo@1.1 is younger than 7 days; allowed from 20"),
        "{why}"
    );
    assert_eq!(client.file(&page, 0).await.status, 200);
    index.seen();
    assert_eq!(sentence(&client.file(&page, 1).await, 403), why);
    assert_eq!(index.seen(), Vec::<String>::new(), "what is withheld is not fetched");
    let seen = blocked(&owner, server, &org, "ENFORCED").await;
    assert_eq!(seen, [("pkg:pypi/foo@1.1".to_owned(), "COOLDOWN".to_owned(), 1)]);

    let explain = format!("/librarydecisions/v1/organizations/{org}:explainPackage?purl=pkg:pypi/foo@1.1");
    let explained = owner.rest("GET", &explain, None).await.json()["decision"].clone();
    assert_eq!((&explained["known"], &explained["reason"]), (&json!(true), &json!("COOLDOWN")), "{explained}");
    let allowed = explained["allowedTime"].as_str().unwrap();
    assert!(why.contains(&format!("allowed from {}", &allowed[..10])), "{explained} {why}");

    server.clock().advance(DAY * 5);
    let client = renewed(server, "acme").await;
    let page = client.project("foo").await;
    assert_eq!((&page["files"][1]["yanked"], client.file(&page, 1).await.body), (&json!(false), young));
}

async fn drafts_are_compared_over_what_was_served(server: &TestServer) {
    let index = FakeIndex::start().await;
    index.publish(server, "foo", "1.0", 30);
    index.publish(server, "foo", "1.1", 2);
    let (org, owner, client) = installer(server, &index).await;
    let page = client.project("foo").await;
    for at in 0..2 {
        assert_eq!(client.file(&page, at).await.status, 200);
        assert_eq!(client.file(&page, at).await.status, 200);
    }
    server.server().parts().package_hosts.flush_notes(|| *b"12345678").await;
    let preview = format!("/librarydecisions/v1/organizations/{org}:previewPolicy");
    let draft = |more: Value| json!({ "ecosystem": "PYTHON", "policy": more });
    let seen = owner.rest("POST", &preview, Some(draft(json!({ "name": "draft" })))).await.json();
    let refused = &seen["newlyRefused"];
    assert_eq!((&seen["examined"], refused.as_array().unwrap().len()), (&json!(2), 1), "{seen}");
    assert_eq!((&refused[0]["purl"], &refused[0]["reason"]), (&json!("pkg:pypi/foo@1.1"), &json!("COOLDOWN")));
    let licensed = json!({ "name": "draft", "cooldownDays": 0, "blockedLicenses": ["MIT"] });
    let seen = owner.rest("POST", &preview, Some(draft(licensed))).await.json();
    assert_eq!(seen["newlyRefused"].as_array().unwrap().len(), 2, "{seen}");
}

async fn a_file_that_came_to_an_old_version_is_young(server: &TestServer) {
    let index = FakeIndex::start().await;
    index.publish(server, "foo", "1.0", 30);
    let mut late = index.state().pages["foo"][0].clone();
    late["filename"] = json!("foo-1.0-py3-none-linux_x86_64.whl");
    late["upload-time"] = json!("2099-01-01T00:00:00Z");
    index.state().pages.get_mut("foo").unwrap().push(late.clone());
    let mut unknown = late;
    unknown["filename"] = json!("foo-1.0-py3-none-win32.whl");
    unknown.as_object_mut().unwrap().remove("upload-time");
    index.state().pages.get_mut("foo").unwrap().push(unknown);
    let (org, owner, client) = installer(server, &index).await;
    bind(&owner, &org, "ENFORCED", json!({ "name": "rules" })).await;
    let page = client.project("foo").await;
    let yanked = |at: usize| page["files"][at]["yanked"].clone();
    assert_eq!(yanked(0), false, "{page}");
    assert!(yanked(1).as_str().unwrap().contains("is younger than 7 days"), "{page}");
    assert!(yanked(2).as_str().unwrap().contains("its upstream does not say since when it is"), "{page}");
}

async fn malware_and_licenses_are_withheld(server: &TestServer) {
    let index = FakeIndex::start().await;
    index.publish(server, "bad", "1.0", 30);
    index.publish(server, "foo", "1.0", 30);
    let (org, owner, client) = installer(server, &index).await;
    bind(&owner, &org, "ENFORCED", json!({ "name": "rules", "blockedLicenses": ["MIT"] })).await;
    let entry = json!({
        "ecosystem": "PyPI", "packageName": "bad", "version": "", "malid": "MAL-2026-1", "source": "operator",
        "scope": "MALWARE_SCOPE_PACKAGE", "reason": ["steals tokens"], "blockedAt": "2026-01-01T00:00:00Z",
    });
    let operator = server.operator().await;
    let imported = operator.rest("POST", "/catalog/v1/malware:import", Some(json!({ "entries": [entry] }))).await;
    assert_eq!(imported.status, 200, "{}", imported.text());
    let refused = client.get("simple/bad/").await;
    assert_eq!(sentence(&refused, 409), "Blocked by policy rules: pkg:pypi/bad is reported as malware");

    // The license is known once the file has been fetched, which is before its first byte is served.
    let page = client.project("foo").await;
    assert_eq!(page["files"][0]["yanked"], false);
    let why = "Blocked by policy rules: pkg:pypi/foo@1.0 has the license MIT";
    assert_eq!(sentence(&client.file(&page, 0).await, 403), why);
    assert_eq!(client.project("foo").await["files"][0]["yanked"], why);
}

async fn a_license_is_looked_for_before_the_first_byte(server: &TestServer) {
    let index = FakeIndex::start().await;
    // Large enough to be served while it is fetched, were it not for the policy.
    let bytes = index.publish_large_wheel(server, "big", "1.0");
    // The same bytes under another name.
    index.publish_bytes(server, "copy", "1.0", &bytes);
    let (org, owner, client) = installer(server, &index).await;
    bind(&owner, &org, "ENFORCED", json!({ "name": "rules", "blockedLicenses": ["MIT"] })).await;
    let refused = sentence(&client.file(&client.project("big").await, 0).await, 403);
    assert_eq!(refused, "Blocked by policy rules: pkg:pypi/big@1.0 has the license MIT");
    // What the copy says of itself is about another package.
    let refused = sentence(&client.file(&client.project("copy").await, 0).await, 502);
    assert!(refused.ends_with("is no archive whose license can be read, so it is not served"), "{refused}");
    assert_eq!(number(server, "SELECT count(*) FROM upstream_files").await, 1);
}

async fn names_of_packages_of_groups_are_not_requested(server: &TestServer) {
    let index = FakeIndex::start().await;
    index.publish(server, "secret", "9.9", 30);
    let (org, _, client) = installer(server, &index).await;
    let group = server.group(&org, "hidden").await;
    let publisher =
        Client::of(server, &server.actor("libraries.python.push", &group).await).at(&format!("{org}:hidden"));
    let bytes = publisher.publish("secret", "1.0").await;
    assert_eq!(client.get("simple/secret/").await.status, 404, "it is of a group below");
    assert_eq!(client.get(&format!("files/{}/secret-9.9-py3-none-any.whl", sha256(&bytes))).await.status, 404);
    assert_eq!(publisher.project("secret").await["versions"], json!(["1.0"]));
    let owner = server.actor("owner", &group).await;
    let version = json!({ "package": "secret", "version": "1.0" });
    let path = format!("/pythonpackages/v1/groups/{group}:deleteVersion");
    assert_eq!(owner.rest("POST", &path, Some(version)).await.status, 200);
    for reader in [&client, &publisher] {
        assert_eq!(reader.get("simple/secret/").await.status, 404, "the name was private");
    }
    assert_eq!(index.seen(), Vec::<String>::new());
}

async fn reserved_names_are_not_requested(server: &TestServer) {
    let index = FakeIndex::start().await;
    for name in ["acme-tool", "known", "other"] {
        index.publish(server, name, "9.9", 30);
    }
    let (org, owner, client) = installer(server, &index).await;
    let call = async |verb: &str, body: Value| {
        let path = format!("/packagereservations/v1/organizations/{org}:{verb}Reservation");
        owner.rest("POST", &path, Some(body)).await
    };
    let reservation = json!({ "ecosystem": "PYTHON", "pattern": "Acme_*" });
    assert_eq!(call("create", reservation.clone()).await.json()["pattern"], "acme-*");
    assert_eq!(call("create", reservation.clone()).await.status, 200, "it is there");
    assert_eq!(call("create", json!({ "ecosystem": "PYTHON", "pattern": "*" })).await.status, 400);
    assert_eq!(client.get("simple/acme-tool/").await.status, 404);
    assert_eq!(index.seen(), Vec::<String>::new());

    // Groups do not take a package from the whole organization, unless an owner reserves its name for that.
    client.project("known").await;
    let publisher = Client::of(server, &server.actor("libraries.python.push", &org).await);
    let bytes = wheel("known", "1.0", "");
    let upload = form("known", "1.0", &file_name("known", "1.0"), &bytes);
    let refused = sentence(&publisher.upload(&upload).await, 409);
    assert!(refused.starts_with("the upstream pypi has a package known, which the organization installs"), "{refused}");
    assert_eq!(stored_files(server), 0);
    let known = json!({ "ecosystem": "PYTHON", "pattern": "known" });
    assert_eq!(call("create", known.clone()).await.status, 200);
    assert_eq!(publisher.upload(&upload).await.status, 200);
    assert_eq!(client.project("known").await["versions"], json!(["1.0"]));
    assert_eq!(call("delete", known.clone()).await.status, 200);
    assert_eq!(call("delete", known).await.status, 404);
    assert_eq!(client.project("known").await["versions"], json!(["1.0"]), "it is published");
    assert_eq!(call("delete", reservation).await.status, 200);
    assert_eq!(client.project("acme-tool").await["versions"], json!(["9.9"]));
}

async fn the_first_upstream_that_has_a_package_supplies_all_of_it(server: &TestServer) {
    let (inner, outer) = (FakeIndex::start().await, FakeIndex::start().await);
    inner.publish(server, "tool", "1.0", 30);
    outer.publish(server, "tool", "9.0", 30);
    outer.publish(server, "foo", "1.0", 30);
    let (org, owner, client) = installer(server, &outer).await;
    inner.serve(&owner, &org, "inner", -1).await;
    assert_eq!(client.project("tool").await["versions"], json!(["1.0"]));
    assert_eq!(client.project("foo").await["versions"], json!(["1.0"]));
    assert_eq!(outer.seen(), ["/simple/foo/"]);
    // What the first one had once, no later one supplies.
    inner.state().pages.remove("tool");
    server.clock().advance(Duration::from_secs(301));
    assert_eq!(client.get("simple/tool/").await.status, 404);
    assert_eq!(outer.seen(), Vec::<String>::new());
    // The one that cannot be asked may have it.
    inner.state().status = Some(500);
    let unknown = client.get("simple/other/").await;
    assert_eq!(sentence(&unknown, 503), "the upstream inner does not answer: try again in a few seconds");
    assert_eq!(outer.seen(), Vec::<String>::new());
}

async fn stored_pages_are_bounded(server: &TestServer) {
    let index = FakeIndex::start().await;
    index.publish(server, "foo", "1.0", 30);
    index.publish(server, "bar", "1.0", 30);
    let (_, _, client) = installer(server, &index).await;
    client.project("foo").await;
    // As many as there may be, each older than the first.
    let db = &server.server().parts().storage.db;
    let filled = db.write(|tx| {
        Box::pin(async move {
            let sql = "INSERT INTO upstream_documents (upstream, package, etag, last_modified, serial, document, fetched_at)
                       WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 9999)
                       SELECT upstream, 'p' || i, '', '', 0, document, i FROM n, upstream_documents WHERE package = 'foo'";
            tx.execute(sql, &[]).await.map_err(bowline_core::Error::from)
        })
    });
    assert_eq!(filled.await.unwrap(), 9999);
    client.project("bar").await;
    assert_eq!(number(server, "SELECT count(*) FROM upstream_documents").await, 9991);
    assert_eq!(number(server, "SELECT min(fetched_at) FROM upstream_documents").await, 11);
    client.project("foo").await;
    assert_eq!(index.seen(), ["/simple/foo/", "/simple/bar/"]);
}

async fn others_have_no_part_in_the_upstreams_of_an_organization(server: &TestServer) {
    let index = FakeIndex::start().await;
    index.publish(server, "foo", "1.0", 30);
    let (org, _, client) = installer(server, &index).await;
    let page = client.project("foo").await;
    assert_eq!(client.file(&page, 0).await.status, 200);
    let other = server.organization("other").await;
    let stranger = Client::of(server, &server.actor("libraries.python.pull", &other).await);
    assert_eq!(stranger.get("simple/foo/").await.status, 404);
    assert_eq!(stranger.file(&page, 0).await.status, 404);
    assert_eq!(stranger.at(&org).get("simple/foo/").await.status, 403);
    // Groups of the organization share them.
    let group = server.group(&org, "web").await;
    let member = Client::of(server, &server.actor("libraries.python.pull", &group).await).at(&format!("{org}:web"));
    assert_eq!(member.project("foo").await["versions"], json!(["1.0"]));
}

async fn upstreams_are_set_listed_and_deleted(server: &TestServer) {
    let index = FakeIndex::start().await;
    index.publish(server, "foo", "1.0", 30);
    let (org, owner, client) = installer(server, &index).await;
    assert_eq!(client.file(&client.project("foo").await, 0).await.status, 200);
    let url = format!("{}/simple/", index.base);
    let with = |more: Value| {
        let mut upstream = json!({ "name": "pypi", "ecosystem": "PYTHON", "url": url });
        upstream.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        upstream
    };
    for (more, wanted) in [
        (json!({ "ecosystem": 5 }), "unknown enum value 5"),
        (json!({ "ecosystem": "JAVA" }), "cannot change"),
        (json!({ "url": "http://a.example/" }), "must be an https address"),
        (json!({ "username": "me" }), "must be given together with upstream.username"),
        (json!({ "password": "hush" }), "must be given together with upstream.username"),
        (json!({ "name": "Py Pi" }), "name"),
    ] {
        let refused = set_upstream(&owner, &org, with(more)).await;
        assert!(refused.0 == 400 && refused.1.contains(wanted), "{refused:?}");
    }
    let account = json!({ "username": "me", "password": "hush" });
    let (status, text) = set_upstream(&owner, &org, with(account)).await;
    assert!(status == 200 && text.contains("\"hasPassword\":true") && !text.contains("hush"), "{text}");
    let other = with(json!({ "username": "me", "url": "https://b.example/" }));
    let refused = set_upstream(&owner, &org, other).await;
    assert!(refused.0 == 400 && refused.1.contains("must be given again"), "{refused:?}");
    let (status, _) = set_upstream(&owner, &org, with(json!({ "username": "me", "position": 3 }))).await;
    assert_eq!(status, 200);
    index.seen();
    client.project("foo").await;
    let request = index.requests().remove(0);
    assert_eq!((request.proof.as_str(), request.is_conditional), ("Basic bWU6aHVzaA==", false), "another account");

    let list = format!("/packageupstreams/v1/organizations/{org}/upstreams");
    let owner = server.actor("owner", &org).await;
    let listed = owner.rest("GET", &list, None).await.json();
    assert_eq!((&listed["upstreams"][0]["name"], &listed["upstreams"][0]["position"]), (&json!("pypi"), &json!(3)));
    let delete = format!("/packageupstreams/v1/organizations/{org}:deleteUpstream");
    assert_eq!(owner.rest("POST", &delete, Some(json!({ "name": "pypi" }))).await.status, 200);
    assert_eq!(owner.rest("POST", &delete, Some(json!({ "name": "pypi" }))).await.status, 404);
    assert_eq!(owner.rest("GET", &list, None).await.json()["upstreams"], json!([]));
    assert_eq!(client.get("simple/foo/").await.status, 404);
    server.server().parts().package_hosts.remove_deleted_upstreams().await.unwrap();
    for table in ["package_upstreams", "upstream_documents", "upstream_files", "upstream_requirements", "repo_blobs"] {
        let sql: &'static str = format!("SELECT count(*) FROM {table}").leak();
        assert_eq!(number(server, sql).await, 0, "{table}");
    }
}

each_engine!(
    packages_of_an_upstream_are_installed_and_stored,
    a_cooldown_passes,
    drafts_are_compared_over_what_was_served,
    a_file_that_came_to_an_old_version_is_young,
    malware_and_licenses_are_withheld,
    a_license_is_looked_for_before_the_first_byte,
    names_of_packages_of_groups_are_not_requested,
    reserved_names_are_not_requested,
    the_first_upstream_that_has_a_package_supplies_all_of_it,
    stored_pages_are_bounded,
    others_have_no_part_in_the_upstreams_of_an_organization,
    upstreams_are_set_listed_and_deleted,
);
