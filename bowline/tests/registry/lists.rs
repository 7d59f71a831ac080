//! Tags, history and the catalog, page by page.

use bowline_core::Error;
use bowline_store::Value as Sql;
use bowline_testkit::{TestServer, each_engine};
use serde_json::json;

use crate::support::*;

/// Where the next page is, empty for the last one.
fn next(reply: &bowline_testkit::RestReply) -> String {
    let link = header(reply, "link");
    link.split('>').next().unwrap().trim_start_matches('<').to_owned()
}

async fn tags_come_in_order_and_in_pages(server: &TestServer) {
    let (org, client) = pusher(server, "acme").await;
    let name = format!("{org}/app");
    let manifest = client.image(&name, "b", b"a layer").await;
    for tag in ["a", "C", "c", "10", "2", "_x"] {
        client.put(&name, tag, &manifest).await;
    }
    let all = client.get(&format!("/v2/{name}/tags/list")).await;
    assert_eq!(all.json(), json!({ "name": name, "tags": ["10", "2", "C", "_x", "a", "b", "c"] }));
    assert_eq!(next(&all), "");
    let (mut path, mut seen) = (format!("/v2/{name}/tags/list?n=3"), Vec::new());
    while !path.is_empty() {
        let reply = client.get(&path).await;
        let tags = reply.json()["tags"].as_array().unwrap().clone();
        assert!(tags.len() <= 3);
        seen.extend(tags);
        path = next(&reply);
    }
    assert_eq!(json!(seen), all.json()["tags"]);
    let reply = client.get(&format!("/v2/{name}/tags/list?n=0")).await;
    assert_eq!((reply.json()["tags"].clone(), next(&reply)), (json!([]), String::new()));
    let reply = client.get(&format!("/v2/{name}/tags/list?last=a&n=1")).await;
    assert_eq!(reply.json()["tags"], json!(["b"]));
    for wrong in ["n=-1", "n=x", "n=99999999999999999999999"] {
        let reply = client.get(&format!("/v2/{name}/tags/list?{wrong}")).await;
        assert_eq!(code(&reply, 400), "PAGINATION_NUMBER_INVALID", "{wrong}");
    }
    assert_eq!(client.get(&format!("/v2/{name}/tags/list?last=%00")).await.status, 400);
}

async fn the_newest_moves_of_a_tag_are_listed_unless_a_start_is_given(server: &TestServer) {
    let (org, client) = pusher(server, "acme").await;
    let name = format!("{org}/app");
    client.image(&name, "1", b"one").await;
    let repo = repo_uid(server, "app").await;
    let db = &server.server().parts().storage.db;
    let written = db.write(move |tx| {
        let repo = repo.clone();
        Box::pin(async move {
            for second in 1..=1200_i64 {
                let sql = "INSERT INTO tag_history (repo, name, at, id, digest) VALUES ($1, '1', $2, 'x', $3)";
                let digest = format!("sha256:{second:064}");
                tx.execute(sql, &[Sql::from(&repo), Sql::Int(second * 1_000_000), Sql::from(&digest)]).await?;
            }
            Ok::<_, Error>(())
        })
    });
    written.await.unwrap();
    let moves = async |query: &str| {
        let reply = client.get(&format!("/v2/{name}/_bowline/history/1{query}")).await.json();
        let all = reply["history"].as_array().unwrap().clone();
        let at = |one: &serde_json::Value| one["updateTimestamp"].as_str().unwrap().to_owned();
        (all.len(), at(&all[0]), at(&all[all.len() - 1]))
    };
    // The last one is that of the push itself.
    let (count, oldest, newest) = moves("").await;
    assert_eq!((count, &*oldest), (1000, "1970-01-01T00:03:22Z"));
    assert!(newest.as_str() > "2000", "{newest}");
    let ended = moves("?end=1970-01-01T00:18:20Z").await;
    assert_eq!(ended, (1000, "1970-01-01T00:01:41Z".into(), "1970-01-01T00:18:20Z".into()));
    let begun = moves("?start=1970-01-01T00:00:02Z").await;
    assert_eq!(begun, (1000, "1970-01-01T00:00:02Z".into(), "1970-01-01T00:16:41Z".into()));
}

async fn a_tag_has_a_history(server: &TestServer) {
    let (org, client) = pusher(server, "acme").await;
    let name = format!("{org}/app");
    let first = digest_of(&client.image(&name, "1", b"one").await);
    server.clock().advance(std::time::Duration::from_secs(60));
    let second = digest_of(&client.image(&name, "1", b"two").await);
    for word in ["_chainguard", "_bowline"] {
        let reply = client.get(&format!("/v2/{name}/{word}/history/1")).await.json();
        let digests: Vec<_> = reply["history"].as_array().unwrap().iter().map(|one| one["digest"].clone()).collect();
        assert_eq!(json!(digests), json!([first, second]), "{reply}");
        let since = reply["history"][1]["updateTimestamp"].as_str().unwrap().to_owned();
        let reply = client.get(&format!("/v2/{name}/{word}/history/1?start={since}")).await.json();
        assert_eq!(reply["history"].as_array().unwrap().len(), 1);
    }
    assert_eq!(client.get(&format!("/v2/{name}/_bowline/history/1?start=yesterday")).await.status, 400);
}

async fn the_catalog_lists_what_the_client_may_list(server: &TestServer) {
    let (org, client) = pusher(server, "acme").await;
    let (_, stranger) = pusher(server, "other").await;
    for name in ["one", "team/two", "team/three"] {
        client.begin(&format!("{org}/{name}")).await;
    }
    let all = client.get("/v2/_catalog").await.json()["repositories"].clone();
    let mut names: Vec<String> = all.as_array().unwrap().iter().map(|name| name.as_str().unwrap().into()).collect();
    let (mut path, mut seen) = ("/v2/_catalog?n=1".to_owned(), Vec::new());
    while !path.is_empty() {
        let reply = client.get(&path).await;
        seen.extend(reply.json()["repositories"].as_array().unwrap().clone());
        path = next(&reply);
    }
    assert_eq!(json!(seen), all);
    names.sort();
    assert_eq!(names, [format!("{org}/one"), format!("{org}/team/three"), format!("{org}/team/two")]);
    assert_eq!(stranger.get("/v2/_catalog").await.json(), json!({ "repositories": [] }));
    let reply = stranger.get(&format!("/v2/_catalog?last={org}/one")).await;
    assert_eq!(code(&reply, 404), "NAME_UNKNOWN");
    assert_eq!(code(&Client::anonymous(server).get("/v2/_catalog").await, 401), "UNAUTHORIZED");
}

async fn the_catalog_hides_the_names_of_groups_that_the_client_may_not_list(server: &TestServer) {
    let (org, client) = pusher(server, "acme").await;
    let verified = json!({ "name": "acme", "verified": true, "kind": 1 });
    let reply = server.operator().await.rest("PATCH", &format!("/iam/v2/groups/{org}"), Some(verified)).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    let manifest = client.image("acme/secret/team/app", "1", b"a layer").await;
    let names = async |client: &Client| client.get("/v2/_catalog").await.json()["repositories"].clone();
    assert_eq!(names(&client).await, json!(["acme/secret/team/app"]));
    let team = texts(server, "SELECT uid FROM groups WHERE name = 'team'").await.remove(0);
    let (secret, _) = team.rsplit_once('/').unwrap();
    let reader = crate::support::client(server, "registry.pull", &team).await;
    let shown = format!("{secret}/team/app");
    assert_eq!(names(&reader).await, json!([shown]));
    assert_eq!(reader.get(&format!("/v2/{shown}/manifests/1")).await.json(), manifest);
    let reply = reader.get(&format!("/v2/_catalog?n=1&last={shown}")).await;
    assert_eq!(reply.json(), json!({ "repositories": [] }));
}

async fn long_annotations_end_a_page_of_referrers(server: &TestServer) {
    let (org, client) = pusher(server, "acme").await;
    let name = format!("{org}/app");
    let subject = client.image(&name, "1", b"a layer").await;
    let of = digest_of(&subject);
    for note in ["a", "b", "c", "d", "e"] {
        let mut referrer = image(b"a layer");
        referrer["annotations"] = json!({ "note": note.repeat(3 << 19) });
        referrer["subject"] = json!({ "mediaType": IMAGE, "digest": of, "size": subject.to_string().len() });
        assert_eq!(client.put(&name, &digest_of(&referrer), &referrer).await.status, 201);
    }
    let (mut path, mut sizes, mut notes) = (format!("/v2/{name}/referrers/{of}"), Vec::new(), Vec::new());
    while !path.is_empty() {
        let reply = client.get(&path).await;
        let found = reply.json()["manifests"].as_array().unwrap().clone();
        sizes.push(found.len());
        notes.extend(found.iter().map(|one| one["annotations"]["note"].as_str().unwrap()[..1].to_owned()));
        path = next(&reply);
    }
    notes.sort();
    assert_eq!((sizes, notes.concat().as_str()), (vec![2, 2, 1], "abcde"));
}

each_engine!(
    multi_thread:
    tags_come_in_order_and_in_pages,
    the_newest_moves_of_a_tag_are_listed_unless_a_start_is_given,
    a_tag_has_a_history,
    the_catalog_lists_what_the_client_may_list,
    the_catalog_hides_the_names_of_groups_that_the_client_may_not_list,
    long_annotations_end_a_page_of_referrers
);
