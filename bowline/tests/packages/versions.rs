//! Versions are listed, withdrawn and deleted through the API.

use bowline_core::Clock as _;
use bowline_server::{Plan, collect};
use bowline_testkit::{Actor, TestServer, each_engine};
use serde_json::{Value, json};

use crate::support::*;

async fn ok(actor: &Actor, verb: &str, path: &str, body: Value) -> Value {
    let reply = actor.rest(verb, path, Some(body).filter(|body| !body.is_null())).await;
    assert_eq!(reply.status, 200, "{path}: {}", reply.text());
    reply.json()
}

async fn versions_are_listed_page_by_page(server: &TestServer) {
    let org = server.organization("acme").await;
    let owner = server.actor("owner", &org).await;
    let client = Client::of(server, &owner);
    let path = format!("/pythonpackages/v1/groups/{org}/versions");
    assert_eq!(ok(&owner, "GET", &path, Value::Null).await, json!({ "versions": [], "nextPageToken": "" }));
    for (name, version) in [("foo", "1.10"), ("foo", "1.9"), ("bar", "2.0")] {
        client.publish(name, version).await;
    }
    let (mut seen, mut token) = (Vec::new(), String::new());
    loop {
        let page = ok(&owner, "GET", &format!("{path}?pageSize=2&pageToken={token}"), Value::Null).await;
        seen.extend(page["versions"].as_array().cloned().unwrap());
        page["nextPageToken"].as_str().unwrap().clone_into(&mut token);
        if token.is_empty() {
            break;
        }
    }
    let names: Vec<_> =
        seen.iter().map(|one| (one["package"].as_str().unwrap(), one["version"].as_str().unwrap())).collect();
    assert_eq!(names, [("bar", "2.0"), ("foo", "1.9"), ("foo", "1.10")]);
    let first = &seen[0];
    assert_eq!((&first["parent"], &first["license"], &first["fileCount"]), (&json!(org), &json!("MIT"), &json!(1)));
    assert_eq!(first["sizeBytes"], wheel("bar", "2.0", "License-Expression: MIT\n").len().to_string());
    let of_foo = ok(&owner, "GET", &format!("{path}?package=FOO"), Value::Null).await;
    assert_eq!(of_foo["versions"].as_array().map(Vec::len), Some(2));
}

async fn a_withdrawn_version_comes_back(server: &TestServer) {
    let org = server.organization("acme").await;
    let owner = server.actor("owner", &org).await;
    let client = Client::of(server, &owner);
    client.publish("foo", "1.0").await;
    let at = |verb: &str| format!("/pythonpackages/v1/groups/{org}:{verb}");
    let named = |reason: &str| json!({ "package": "Foo", "version": "1", "reason": reason });
    let yanked = ok(&owner, "POST", &at("yankVersion"), named("It lost data.")).await;
    assert_eq!((&yanked["yanked"], &yanked["yankedReason"]), (&json!(true), &json!("It lost data.")));
    assert_eq!(client.project("foo").await["files"][0]["yanked"], "It lost data.");
    ok(&owner, "POST", &at("yankVersion"), named("")).await;
    assert_eq!(client.project("foo").await["files"][0]["yanked"], true, "also without a reason");
    let page = client.project("foo").await;
    assert_eq!(client.file(&page, 0).await.status, 200, "its exact version can be installed");
    ok(&owner, "POST", &at("unyankVersion"), json!({ "package": "foo", "version": "1.0" })).await;
    assert_eq!(client.project("foo").await["files"][0]["yanked"], false);
    let absent = owner.rest("POST", &at("yankVersion"), Some(json!({ "package": "foo", "version": "2.0" }))).await;
    assert_eq!(absent.status, 404, "{}", absent.text());
    let audited = "SELECT count(*) FROM audit WHERE kind = 'bowline.dev/PackageVersion'";
    assert_eq!(number(server, audited).await, 3);
}

async fn a_deleted_version_leaves_the_names_of_its_files(server: &TestServer) {
    let org = server.organization("acme").await;
    let owner = server.actor("owner", &org).await;
    let operator = server.operator().await;
    let web = server.group(&org, "web").await;
    let client = Client::of(server, &owner).at(&web.replace('/', ":"));
    let bytes = client.publish("foo", "1.0").await;
    let source = sdist("foo", "1.0");
    assert_eq!(client.upload(&form("foo", "1.0", "foo-1.0.tar.gz", &source)).await.status, 200);
    client.publish("foo", "1.1").await;
    let kept = operator.rest("DELETE", &format!("/iam/v2/groups/{web}"), None).await;
    assert!(kept.status == 400 && kept.text().contains("packages"), "{}", kept.text());

    let path = format!("/pythonpackages/v1/groups/{web}:deleteVersion");
    ok(&owner, "POST", &path, json!({ "package": "foo", "version": "1.0" })).await;
    let page = client.project("foo").await;
    assert_eq!((&page["versions"], page["files"].as_array().map(Vec::len)), (&json!(["1.1"]), Some(1)));
    let address = format!("files/{}/{}", sha256(&bytes), file_name("foo", "1.0"));
    assert_eq!(client.get(&address).await.status, 404);
    let again = client.upload(&form("foo", "1.0", &file_name("foo", "1.0"), &bytes)).await;
    assert!(sentence(&again, 409).contains("was deleted, and its name stays used"), "{}", again.text());
    let parts = server.server().parts();
    let plan = Plan { until: server.clock().now() + 1, is_dry_run: false };
    let collected = collect(&parts.storage.db, &parts.content, plan).await.unwrap();
    assert_eq!((collected.links, collected.blobs), (0, 3), "the wheel, its metadata and the sdist");
    assert_eq!(client.file(&page, 0).await.status, 200);

    ok(&owner, "POST", &path, json!({ "package": "foo", "version": "1.1" })).await;
    assert_eq!(number(server, "SELECT file_count FROM package_repositories").await, 0);
    assert_eq!(number(server, "SELECT count(*) FROM repo_blobs").await, 0);
    let gone = operator.rest("DELETE", &format!("/iam/v2/groups/{web}"), None).await;
    assert_eq!(gone.status, 200, "{}", gone.text());
    for table in ["SELECT count(*) FROM hosted_files", "SELECT count(*) FROM package_repositories"] {
        assert_eq!(number(server, table).await, 0, "{table}");
    }
}

each_engine!(
    versions_are_listed_page_by_page,
    a_withdrawn_version_comes_back,
    a_deleted_version_leaves_the_names_of_its_files,
);
