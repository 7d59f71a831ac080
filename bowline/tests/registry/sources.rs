//! Repositories that are synchronized from another one: here, or at another registry.

use std::time::Duration;

use bowline_core::Error;
use bowline_server::Options;
use bowline_store::Value as Sql;
use bowline_testkit::{Actor, Engine, RestReply, TestServer, by_engine, each_engine};
use serde_json::{Value, json};

use crate::mirrors::mirror;
use crate::support::*;

/// Sends `"VERB /path"` with a JSON body to the API.
async fn call(actor: &Actor, what: &str, body: &Value) -> RestReply {
    let (verb, path) = what.split_once(' ').expect("a verb and a path");
    actor.rest(verb, path, Some(body.clone())).await
}

/// Makes a repository that is synchronized; what the API answers.
async fn synchronized(actor: &Actor, group: &str, name: &str, source: &str) -> RestReply {
    let body = json!({ "name": name, "sync_config": { "source": source } });
    call(actor, &format!("POST /registry/v2/repos/{group}"), &body).await
}

/// Makes an address the source of every repository that has one.
async fn point(server: &TestServer, address: &str) {
    let address = address.to_owned();
    let written = server.server().parts().storage.db.write(move |tx| {
        let address = address.clone();
        Box::pin(async move {
            let sql = "UPDATE repos SET synced_from = $1 WHERE synced_from <> ''";
            tx.execute(sql, &[Sql::from(&address)]).await.map_err(Error::from)
        })
    });
    written.await.expect("the database takes it");
}

/// The minute in which no one looks at the source of a tag again, over.
fn later(server: &TestServer) {
    server.clock().advance(Duration::from_secs(61));
}

async fn concurrent_first_pulls_get_the_content_of_the_source(server: &TestServer) {
    let (org, there) = pusher(server, "catalog").await;
    there.image(&format!("{org}/app"), "0", b"layer").await;
    let owner = server.actor("owner", &org).await;
    let made = synchronized(&owner, &org, "copy", &format!("{org}/app")).await;
    assert_eq!(made.status, 200, "{}", made.text());
    let reader = client(server, "registry.pull", &org).await;
    for round in 1..=20 {
        there.image(&format!("{org}/app"), &round.to_string(), format!("layer {round}").as_bytes()).await;
        let path = format!("/v2/{org}/copy/manifests/{round}");
        let asked = futures_util::future::join_all((0..8).map(|_| reader.get(&path))).await;
        let told: Vec<u16> = asked.iter().map(|answer| answer.status).collect();
        assert_eq!(told, [200; 8], "{path}");
    }
}

async fn what_is_missing_comes_from_the_source_and_follows_it(server: &TestServer) {
    let (org, there) = pusher(server, "catalog").await;
    let first = there.image(&format!("{org}/app"), "1", b"first").await;
    let source = repo_uid(server, "app").await;
    let owner = server.actor("owner", &org).await;
    // By its name; the answer has the UIDP.
    let made = synchronized(&owner, &org, "copy", &format!("{org}/app")).await;
    assert_eq!((made.status, &made.json()["sync_config"]["source"]), (200, &json!(source)), "{}", made.text());
    let host = server.base().split_once("://").expect("a URL").1;
    let by_host = synchronized(&owner, &org, "other", &format!("{host}/{org}/app")).await;
    assert_eq!(by_host.json()["sync_config"]["source"], json!(source), "{}", by_host.text());

    let (name, reader) = (format!("{org}/copy"), client(server, "registry.pull", &org).await);
    let path = format!("/v2/{name}/manifests/1");
    let (one, other) = tokio::join!(reader.get(&path), reader.get(&path));
    assert_eq!((one.json(), other.json()), (first.clone(), first.clone()));
    let layer = reader.get(&format!("/v2/{name}/blobs/{}", digest(b"first"))).await;
    assert_eq!((layer.status, layer.body.as_ref()), (200, b"first".as_slice()));
    assert_eq!(code(&reader.get(&format!("/v2/{name}/manifests/2")).await, 404), "MANIFEST_UNKNOWN");
    let other = there.blob(&format!("{org}/app"), b"in no manifest").await;
    assert_eq!(code(&reader.get(&format!("/v2/{name}/blobs/{other}")).await, 404), "BLOB_UNKNOWN");

    // The tag follows after a minute; the image from before stays.
    let second = there.image(&format!("{org}/app"), "1", b"second").await;
    assert_eq!(reader.get(&path).await.json(), first);
    later(server);
    let reader = client(server, "registry.pull", &org).await;
    assert_eq!(reader.get(&path).await.json(), second);
    assert_eq!(reader.get(&format!("/v2/{name}/manifests/{}", digest_of(&first))).await.json(), first);
    let told = "SELECT count(*) FROM audit a JOIN repos r ON r.uid = a.resource
                WHERE r.name = 'copy' AND a.kind = 'registry.chainguard.dev/Manifest'";
    assert_eq!(number(server, told).await, 2);

    // A tag that was pushed here is ours.
    let pusher = client(server, "registry.push", &org).await;
    let ours = pusher.image(&name, "1", b"ours").await;
    there.image(&format!("{org}/app"), "1", b"third").await;
    later(server);
    let reader = client(server, "registry.pull", &org).await;
    assert_eq!(reader.get(&path).await.json(), ours);
}

async fn members_of_an_index_come_when_they_are_asked_for(server: &TestServer) {
    let (org, there) = pusher(server, "catalog").await;
    let image = there.image(&format!("{org}/app"), "amd64", b"layer").await;
    let member = descriptor(IMAGE, image.to_string().as_bytes());
    let index = json!({ "schemaVersion": 2, "mediaType": INDEX, "manifests": [member] });
    assert_eq!(there.put(&format!("{org}/app"), "1", &index).await.status, 201);
    let owner = server.actor("owner", &org).await;
    let source = repo_uid(server, "app").await;
    assert_eq!(synchronized(&owner, &org, "copy", &source).await.status, 200);

    let reader = client(server, "registry.pull", &org).await;
    let path = |reference: &str| format!("/v2/{org}/copy/manifests/{reference}");
    assert_eq!(reader.get(&path("1")).await.json(), index);
    assert_eq!(reader.get(&path(&digest_of(&image))).await.json(), image);
    let layer = reader.get(&format!("/v2/{org}/copy/blobs/{}", digest(b"layer"))).await;
    assert_eq!(layer.status, 200, "{}", layer.text());
}

async fn the_registrys_own_host_is_known_however_it_is_written(engine: Engine) {
    let named = |options: &mut Options| options.registry_host = Some("registry.example.com".into());
    let server = TestServer::start_with(engine, named).await;
    let org = server.organization("acme").await;
    let source = server.repo(&org, "app").await;
    let owner = server.actor("owner", &org).await;
    for (at, host) in ["registry.example.com", "REGISTRY.Example.com"].into_iter().enumerate() {
        let made = synchronized(&owner, &org, &format!("copy{at}"), &format!("{host}/{org}/app")).await;
        assert_eq!(made.json()["sync_config"]["source"], json!(source), "{}", made.text());
    }
    server.stop().await;
}

async fn synchronizing_requires_the_permission_to_pull_from_the_source(server: &TestServer) {
    let (theirs, there) = pusher(server, "theirs").await;
    there.image(&format!("{theirs}/secret"), "1", b"secret").await;
    let secret = repo_uid(server, "secret").await;
    let org = server.organization("acme").await;
    let owner = server.actor("owner", &org).await;
    // What one may not see is as if it were not there.
    let hidden = synchronized(&owner, &org, "copy", &secret).await;
    let absent = synchronized(&owner, &org, "copy", &format!("{theirs}/0123456789abcdef")).await;
    assert_eq!((hidden.status, hidden.text()), (400, absent.text()));
    assert!(hidden.text().contains("sync_config.source"), "{}", hidden.text());
    assert_eq!(synchronized(&owner, &org, "copy", &format!("{theirs}/secret")).await.status, 400);
    assert_eq!(synchronized(&owner, &org, "copy", "catalog/nginx").await.status, 400);
    // Nor by the host that images are pulled from: the server asks no one but itself for what is its own.
    let host = server.base().split_once("://").expect("a URL").1;
    for reference in [format!("{host}/{theirs}/secret"), format!("https://{host}/{org}/nothing")] {
        let told = synchronized(&owner, &org, "copy", &reference).await;
        assert_eq!(told.status, 400, "{}", told.text());
    }

    // Nor by a change.
    let made = call(&owner, &format!("POST /registry/v2/repos/{org}"), &json!({ "name": "copy" })).await;
    let uid = made.json()["uid"].as_str().unwrap().to_owned();
    let change = format!("PATCH /registry/v2/repos/{uid}");
    let refused = call(&owner, &change, &json!({ "sync_config": { "source": secret } })).await;
    assert_eq!(refused.status, 400, "{}", refused.text());
    let own = call(&owner, &change, &json!({ "sync_config": { "source": uid } })).await;
    assert!(own.status == 400 && own.text().contains("own source"), "{}", own.text());
    let change = format!("PUT /registry/v1/repos/{uid}");
    let body = json!({ "name": "copy", "sync_config": { "source": secret } });
    assert_eq!(call(&owner, &change, &body).await.status, 400);

    // Everyone may take over what is public; but no one has it taken over who may not pull from the copy by right.
    publish(server, &secret, true).await;
    let change = format!("PATCH /registry/v2/repos/{uid}");
    let taken = call(&owner, &change, &json!({ "sync_config": { "source": secret } })).await;
    assert_eq!(taken.status, 200, "{}", taken.text());
    publish(server, &uid, true).await;
    let path = format!("/v2/{org}/copy/manifests/1");
    assert_eq!(code(&Client::anonymous(server).get(&path).await, 404), "MANIFEST_UNKNOWN");
    assert_eq!(client(server, "registry.pull", &org).await.get(&path).await.status, 200);
    assert_eq!(Client::anonymous(server).get(&path).await.status, 200);

    // An organization that takes back what was public gives no more of it.
    there.image(&format!("{theirs}/secret"), "2", b"more").await;
    execute(server, "UPDATE registry_policies SET is_public = FALSE").await;
    let reader = client(server, "registry.pull", &org).await;
    assert_eq!(code(&reader.get(&format!("/v2/{org}/copy/manifests/2")).await, 404), "MANIFEST_UNKNOWN");
    assert_eq!(reader.get(&path).await.status, 200, "what was copied stays");
    execute(server, "UPDATE registry_policies SET is_public = TRUE").await;

    // Without the synchronization, and after its end, nothing is taken over any more.
    let dropped = call(&owner, &format!("{change}?updateMask=sync_config"), &json!({})).await;
    assert_eq!(dropped.status, 200, "{}", dropped.text());
    let reader = client(server, "registry.pull", &org).await;
    let path = format!("/v2/{org}/copy/manifests/2");
    assert_eq!(code(&reader.get(&path).await, 404), "MANIFEST_UNKNOWN");
    let ends = json!({ "name": "copy", "sync_config": { "source": secret, "expiration": "2000-01-01T00:00:00Z" } });
    let operator = server.operator().await;
    let ended = call(&operator, &format!("PUT /registry/v1/repos/{uid}"), &ends).await;
    assert_eq!(ended.status, 200, "{}", ended.text());
    assert_eq!(code(&reader.get(&path).await, 404), "MANIFEST_UNKNOWN");
}

async fn a_copy_has_room_within_its_quota_alone(server: &TestServer) {
    let (org, there) = pusher(server, "catalog").await;
    there.image(&format!("{org}/app"), "1", &[7; 5000]).await;
    let source = repo_uid(server, "app").await;
    let owner = server.actor("owner", &org).await;
    let made = synchronized(&owner, &org, "copy", &source).await;
    let uid = made.json()["uid"].as_str().unwrap().to_owned();
    let quota = |bytes: i64| json!({ "byteQuota": bytes.to_string() });
    let policy = format!("PATCH /registrypolicies/v1/repos/{uid}");
    assert_eq!(call(&owner, &policy, &quota(1000)).await.status, 200);
    let reader = client(server, "registry.pull", &org).await;
    let path = format!("/v2/{org}/copy/manifests/1");
    assert_eq!(code(&reader.get(&path).await, 403), "DENIED");
    let links = "SELECT count(*) FROM repo_blobs b JOIN repos r ON r.uid = b.repo WHERE r.name = 'copy'";
    assert_eq!(number(server, links).await, 0, "nothing is there by half");
    assert_eq!(call(&owner, &policy, &quota(100_000)).await.status, 200);
    assert_eq!(reader.get(&path).await.status, 200);
    assert_eq!(number(server, links).await, 2);
}

async fn a_source_at_another_registry_is_an_upstream_of_its_own(server: &TestServer) {
    let upstream = TestServer::start(Engine::Sqlite).await;
    let (theirs, there) = pusher(&upstream, "upstream").await;
    publish(&upstream, &theirs, true).await;
    let image = there.image(&format!("{theirs}/app"), "1", b"layer").await;
    let org = server.organization("acme").await;
    let owner = server.actor("owner", &org).await;
    let made = synchronized(&owner, &org, "copy", "registry.example.com/team/app").await;
    assert_eq!(made.json()["sync_config"]["source"], json!("registry.example.com/team/app"), "{}", made.text());
    for bad in ["registry.example.com/team/app:1", "http://registry.example.com/app", "registry.example.com/../x"] {
        assert_eq!(synchronized(&owner, &org, "other", bad).await.status, 400, "{bad}");
    }
    // The API takes https addresses alone; and the group's upstream has nothing to say here.
    mirror(server, &org, "http://127.0.0.1:9".into(), &[]).await;
    let address = format!("{}/{theirs}/app", upstream.base());
    point(server, &address).await;
    let reader = client(server, "registry.pull", &org).await;
    let path = format!("/v2/{org}/copy/manifests/1");
    assert_eq!(reader.get(&path).await.json(), image);
    assert_eq!(reader.get(&format!("/v2/{org}/copy/blobs/{}", digest(b"layer"))).await.status, 200);
    upstream.stop().await;
}

each_engine!(
    multi_thread:
    concurrent_first_pulls_get_the_content_of_the_source,
    what_is_missing_comes_from_the_source_and_follows_it,
    members_of_an_index_come_when_they_are_asked_for,
    synchronizing_requires_the_permission_to_pull_from_the_source,
    a_copy_has_room_within_its_quota_alone,
    a_source_at_another_registry_is_an_upstream_of_its_own
);

by_engine!(multi_thread: the_registrys_own_host_is_known_however_it_is_written);
