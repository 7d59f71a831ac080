//! Tags: both versions over the same rows, opposite defaults, history, and what goes with a repository.

use std::time::Duration;

use bowline_testkit::{TestServer, each_engine};
use serde_json::{Value, json};

use crate::contents::digest;
use crate::support::{each, holder, image, inventory, number, ok, rejected, uid_of};

const REFERRER: &str = "sha256-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.sig";

/// A repository with two images.
async fn repo(server: &TestServer) -> (String, String, String) {
    let org = server.organization("acme").await;
    let repo = server.repo(&org, "web").await;
    let (first, second) = (digest('1'), digest('2'));
    image(server, &repo, &first, 100).await;
    image(server, &repo, &second, 200).await;
    (repo, first, second)
}

fn names(list: &Value, member: &str) -> Vec<String> {
    let mut names: Vec<String> = each(&list[member], "name").into_iter().map(String::from).collect();
    names.sort();
    names
}

async fn tags_are_created_moved_and_deleted_in_both_versions(server: &TestServer) {
    let (repo, first, second) = repo(server).await;
    let operator = server.operator().await;
    let body = json!({ "name": "latest", "digest": first });
    let tag = ok(&operator, &format!("POST /registry/v2/tags/{repo}"), body.clone()).await;
    let uid = uid_of(&tag);
    assert!(uid.starts_with(&format!("{repo}/")), "{tag}");
    assert_eq!(ok(&operator, &format!("GET /registry/v2/tags/{uid}"), Value::Null).await, tag);

    // The same again changes nothing; another digest moves the tag.
    let outbox = number(server, "SELECT count(*) FROM outbox").await;
    assert_eq!(ok(&operator, &format!("POST /registry/v2/tags/{repo}"), body).await, tag);
    assert_eq!(number(server, "SELECT count(*) FROM outbox").await, outbox);
    server.clock().advance(Duration::from_secs(1));
    let body = json!({ "name": "latest", "digest": second, "deprecated": true, "bundles": ["fips", "ai"] });
    let moved = ok(&operator, &format!("POST /registry/v1/tags/{repo}"), body).await;
    assert_eq!(moved["id"], tag["uid"]);
    assert_eq!(moved["digest"], json!(second));
    assert_eq!(moved["bundles"], json!(["fips", "ai"]));

    // A whole update without a digest leaves the tag where it is, and can rename it.
    let body = json!({ "name": "stable", "bundles": ["base"] });
    let renamed = ok(&operator, &format!("PUT /registry/v1/tags/{uid}"), body).await;
    assert_eq!((&renamed["name"], &renamed["digest"]), (&json!("stable"), &json!(second)));
    assert_eq!((&renamed["deprecated"], &renamed["bundles"]), (&json!(false), &json!(["base"])));
    ok(&operator, &format!("POST /registry/v2/tags/{repo}"), json!({ "name": "other", "digest": first })).await;
    let body = json!({ "name": "other" });
    refused_v1(&operator, &format!("PUT /registry/v1/tags/{uid}"), body, 409).await;

    ok(&operator, &format!("DELETE /registry/v2/tags/{uid}"), Value::Null).await;
    rejected(&operator, &format!("GET /registry/v2/tags/{uid}"), Value::Null, 404, "NOT_FOUND").await;
    rejected(&operator, &format!("DELETE /registry/v2/tags/{uid}"), Value::Null, 404, "NOT_FOUND").await;
    let left = ok(&operator, &format!("GET /registry/v2/tags?uidp.childrenOf={repo}"), Value::Null).await;
    assert_eq!((names(&left, "tags"), &left["totalCount"]), (vec!["other".to_owned()], &json!("1")));

    // Creation, move, rename, the other one, deletion.
    let audited = "SELECT count(*) FROM audit WHERE kind = 'registry.chainguard.dev/Tag'";
    assert_eq!(number(server, audited).await, 5);
    for (event, expected) in [("created", 3), ("updated", 1), ("deleted", 1)] {
        let sql = match event {
            "created" => {
                "SELECT count(*) FROM outbox WHERE event_type = 'dev.chainguard.api.platform.registry.tag.created.v1'"
            }
            "updated" => {
                "SELECT count(*) FROM outbox WHERE event_type = 'dev.chainguard.api.platform.registry.tag.updated.v1'"
            }
            _ => {
                "SELECT count(*) FROM outbox WHERE event_type = 'dev.chainguard.api.platform.registry.tag.deleted.v1'
                     AND body_type = 'chainguard.platform.registry.DeleteTagRequest'"
            }
        };
        assert_eq!(number(server, sql).await, expected, "{event}");
    }
}

/// Refused as in v1.
async fn refused_v1(actor: &bowline_testkit::Actor, what: &str, body: Value, status: u16) {
    let reply = crate::support::call(actor, what, body).await;
    assert_eq!(reply.status, status, "{what}: {}", reply.text());
}

async fn a_tag_is_at_a_manifest_of_its_repository_or_waits_for_one(server: &TestServer) {
    let (repo, first, _) = repo(server).await;
    let operator = server.operator().await;
    let org = repo.split('/').next().expect("a root");
    let other = server.repo(org, "db").await;
    let before = inventory(server).await;
    let body = json!({ "name": "latest", "digest": first });
    let path = format!("POST /registry/v2/tags/{other}");
    let refusal = rejected(&operator, &path, body, 400, "FAILED_PRECONDITION").await;
    assert!(refusal.message().contains(&first), "{refusal:?}");
    for (name, digest) in [("a/b", first.as_str()), ("", first.as_str()), ("ok", ""), ("ok", "sha256:12")] {
        let body = json!({ "name": name, "digest": digest });
        rejected(&operator, &path, body, 400, "INVALID_ARGUMENT").await;
    }
    let body = json!({ "name": "ok", "digest": first, "bundles": ["nonsense"] });
    rejected(&operator, &path, body, 400, "INVALID_ARGUMENT").await;
    let nowhere = format!("POST /registry/v2/tags/{}", crate::support::absent(org));
    rejected(&operator, &nowhere, json!({ "name": "x", "digest": first }), 404, "NOT_FOUND").await;
    assert_eq!(inventory(server).await, before);

    // V1 announces tags: their bundles are said before the first push.
    let body = json!({ "name": "soon", "bundles": ["base"] });
    let tag = ok(&operator, &format!("POST /registry/v1/tags/{other}"), body).await;
    assert_eq!((&tag["digest"], &tag["bundles"]), (&json!(""), &json!(["base"])));
    let id = tag["id"].as_str().expect("an id");
    let history = ok(&operator, &format!("GET /registry/v1/tags/{id}/history"), Value::Null).await;
    assert_eq!(history["items"], json!([]));
}

async fn moving_a_tag_by_creating_it_needs_the_update_capability(server: &TestServer) {
    let (repo, first, second) = repo(server).await;
    let org = repo.split('/').next().expect("a root").to_owned();
    let creator = holder(server, &org, "creator", &org, &["CAP_TAG_CREATE"]).await;
    let mover = holder(server, &org, "mover", &org, &["CAP_TAG_CREATE", "CAP_TAG_UPDATE"]).await;
    let path = format!("POST /registry/v2/tags/{repo}");
    ok(&creator.actor, &path, json!({ "name": "v1", "digest": first })).await;
    let body = json!({ "name": "v1", "digest": second });
    rejected(&creator.actor, &path, body.clone(), 409, "ALREADY_EXISTS").await;
    assert_eq!(ok(&mover.actor, &path, body).await["digest"], json!(second));
}

async fn the_versions_hide_kinds_of_tags_the_other_way_round(server: &TestServer) {
    let (repo, first, second) = repo(server).await;
    let operator = server.operator().await;
    let all = ["1.2", "1.2-r0", "1.2-20240229", REFERRER];
    for name in all {
        let body = json!({ "name": name, "digest": first });
        ok(&operator, &format!("POST /registry/v2/tags/{repo}"), body).await;
    }
    let (referrers, dates, epochs) = (REFERRER, "1.2-20240229", "1.2-r0");
    for (query, hidden) in [
        ("", vec![referrers, dates, epochs]),
        ("&includeReferrers=true", vec![dates, epochs]),
        ("&include_dates=true", vec![referrers, epochs]),
        ("&includeEpochs=true", vec![referrers, dates]),
        ("&includeReferrers=true&includeDates=true&includeEpochs=true", vec![]),
    ] {
        let mut expected: Vec<String> =
            all.iter().filter(|name| !hidden.contains(name)).map(ToString::to_string).collect();
        expected.sort();
        for filter in [format!("uidp.childrenOf={repo}"), format!("uidp.descendantsOf={repo}"), String::new()] {
            let what = format!("GET /registry/v2/tags?{filter}{query}");
            let list = ok(&operator, &what, Value::Null).await;
            assert_eq!(names(&list, "tags"), expected, "{what}");
            assert_eq!(list["totalCount"], json!(expected.len().to_string()), "{what}");
        }
    }
    for (query, hidden) in [
        ("", vec![]),
        ("&excludeReferrers=true", vec![referrers]),
        ("&exclude_dates=true&excludeEpochs=true", vec![dates, epochs]),
        ("&excludeReferrers=true&excludeDates=true&excludeEpochs=true", vec![referrers, dates, epochs]),
    ] {
        let mut expected: Vec<String> =
            all.iter().filter(|name| !hidden.contains(name)).map(ToString::to_string).collect();
        expected.sort();
        let what = format!("GET /registry/v1/tags?uidp.children_of={repo}{query}");
        assert_eq!(names(&ok(&operator, &what, Value::Null).await, "items"), expected, "{what}");
    }

    // A rename changes what hides a tag, and the counts with it.
    let list = ok(&operator, &format!("GET /registry/v1/tags?name=1.2-r0&uidp.children_of={repo}"), Value::Null).await;
    let id = list["items"][0]["id"].as_str().expect("an id").to_owned();
    ok(&operator, &format!("PUT /registry/v1/tags/{id}"), json!({ "name": "edge", "digest": second })).await;
    let list =
        ok(&operator, &format!("GET /registry/v2/tags?uidp.childrenOf={repo}&orderBy=name%20desc"), Value::Null).await;
    assert_eq!((each(&list["tags"], "name"), &list["totalCount"]), (vec!["edge", "1.2"], &json!("2")));
    let list = ok(&operator, &format!("GET /registry/v2/tags?digest={second}&pageSize=1"), Value::Null).await;
    assert_eq!((names(&list, "tags"), &list["totalCount"]), (vec!["edge".to_owned()], &json!("1")));
}

async fn history_summary_and_update_status_follow_the_moves(server: &TestServer) {
    let (repo, first, second) = repo(server).await;
    let operator = server.operator().await;
    let put = |name: &'static str, digest: String| {
        let (path, body) = (format!("POST /registry/v2/tags/{repo}"), json!({ "name": name, "digest": digest }));
        let operator = &operator;
        async move { ok(operator, &path, body).await }
    };
    let summary = format!("GET /registry/v1/repotagssummary/{repo}");
    let empty = ok(&operator, &summary, Value::Null).await;
    assert_eq!((&empty["tagCount"], &empty["latestVersion"]), (&json!("0"), &json!("")));
    let uid = uid_of(&put("latest", first.clone()).await);
    for digest in [&second, &first] {
        server.clock().advance(Duration::from_secs(60));
        put("latest", digest.clone()).await;
    }
    put("1", first.clone()).await;
    put("1.2.3", first.clone()).await;
    put("1.2.3-r4", first.clone()).await;
    put(REFERRER, first.clone()).await;
    let history = format!("GET /registry/v1/tags/{uid}/history");
    let digests = |list: &Value| each(&list["items"], "digest").into_iter().map(String::from).collect::<Vec<_>>();
    let moves = ok(&operator, &history, Value::Null).await;
    assert_eq!(digests(&moves), [first.clone(), second.clone(), first.clone()]);
    let at = moves["items"][1]["updateTimestamp"].as_str().expect("a time").to_owned();
    let since = ok(&operator, &format!("{history}?start={at}"), Value::Null).await;
    assert_eq!(digests(&since), [second.clone(), first.clone()]);
    let until = ok(&operator, &format!("{history}?end={at}"), Value::Null).await;
    assert_eq!(digests(&until), [first.clone(), second.clone()]);
    let since = ok(&operator, &format!("GET /registry/v2/tags?updatedSince={at}"), Value::Null).await;
    assert_eq!(names(&since, "tags"), ["1", "1.2.3", "latest"]);

    let told = ok(&operator, &summary, Value::Null).await;
    assert_eq!((&told["tagCount"], &told["latestVersion"]), (&json!("5"), &json!("1.2.3-r4")));
    assert_eq!(told["latestTag"]["name"], json!("latest"));
    let told = ok(&operator, &format!("{summary}?excludeEpochs=true&excludeReferrers=true"), Value::Null).await;
    assert_eq!((&told["tagCount"], &told["latestVersion"]), (&json!("3"), &json!("1.2.3")));

    let status = format!("GET /registry/v1/repos/{repo}:updatestatus");
    assert_eq!(ok(&operator, &status, Value::Null).await["recentlyUpdated"], json!(true));
    server.clock().advance(Duration::from_secs(8 * 24 * 3600));
    let operator = server.operator().await;
    assert_eq!(ok(&operator, &status, Value::Null).await["recentlyUpdated"], json!(false));
    // Bundles are no move.
    ok(&operator, &format!("PUT /registry/v1/tags/{uid}"), json!({ "name": "latest", "bundles": ["ai"] })).await;
    assert_eq!(ok(&operator, &status, Value::Null).await["recentlyUpdated"], json!(false));
    assert_eq!(digests(&ok(&operator, &history, Value::Null).await).len(), 3);
    let sql = "SELECT count(*) FROM tag_history";
    assert_eq!(number(server, sql).await, 7);
}

async fn no_tag_has_come_to_its_end_and_the_pages_say_so(server: &TestServer) {
    let (repo, first, _) = repo(server).await;
    let operator = server.operator().await;
    for name in ["1", "2", "3", "3-r1", REFERRER] {
        let body = json!({ "name": name, "digest": first });
        ok(&operator, &format!("POST /registry/v2/tags/{repo}"), body).await;
    }
    let mut seen = Vec::new();
    let mut token = String::new();
    loop {
        let what =
            format!("GET /registry/v1/eoltags?uidp.children_of={repo}&excludeEpochs=true&pageSize=2&pageToken={token}");
        let page = ok(&operator, &what, Value::Null).await;
        for item in page["items"].as_array().expect("a list") {
            assert_eq!(
                (&item["tagStatus"], &item["graceStatus"]),
                (&json!("TAG_ACTIVE"), &json!("GRACE_NOT_ELIGIBLE"))
            );
        }
        seen.extend(names(&page, "items"));
        page["nextPageToken"].as_str().unwrap_or_default().clone_into(&mut token);
        if token.is_empty() {
            break;
        }
    }
    seen.sort();
    assert_eq!(seen, ["1", "2", "3"]);
    refused_v1(&operator, "GET /registry/v1/eoltags?pageToken=nonsense", Value::Null, 400).await;
    refused_v1(&operator, "GET /registry/v1/eoltags?pageSize=-1", Value::Null, 400).await;
}

async fn a_repository_takes_its_tags_with_it_and_leaves_their_history(server: &TestServer) {
    let (repo, first, second) = repo(server).await;
    let operator = server.operator().await;
    for (name, digest) in [("1", &first), ("2", &second), ("2-r1", &second)] {
        let body = json!({ "name": name, "digest": digest });
        ok(&operator, &format!("POST /registry/v2/tags/{repo}"), body).await;
    }
    ok(&operator, &format!("DELETE /registry/v2/repos/{repo}"), Value::Null).await;
    for sql in ["SELECT count(*) FROM tags", "SELECT count(*) FROM repo_manifests"] {
        assert_eq!(number(server, sql).await, 0, "{sql}");
    }
    let removed = "SELECT count(*) FROM tag_history WHERE digest = ''";
    assert_eq!(number(server, removed).await, 3);
    assert_eq!(number(server, "SELECT count(*) FROM tag_history").await, 6);
    let audited = "SELECT count(*) FROM audit WHERE kind = 'registry.chainguard.dev/Tag' AND after_type IS NULL";
    assert_eq!(number(server, audited).await, 3);
    for query in ["", "?includeEpochs=true&includeDates=true&includeReferrers=true"] {
        let list = ok(&operator, &format!("GET /registry/v2/tags{query}"), Value::Null).await;
        assert_eq!((&list["tags"], &list["totalCount"]), (&json!([]), &json!("0")));
    }
}

each_engine!(
    tags_are_created_moved_and_deleted_in_both_versions,
    a_tag_is_at_a_manifest_of_its_repository_or_waits_for_one,
    moving_a_tag_by_creating_it_needs_the_update_capability,
    the_versions_hide_kinds_of_tags_the_other_way_round,
    history_summary_and_update_status_follow_the_moves,
    no_tag_has_come_to_its_end_and_the_pages_say_so,
    a_repository_takes_its_tags_with_it_and_leaves_their_history
);
