//! Previews of retention for all repositories of a group.

use std::time::Duration;

use bowline_contract::bowline::registry::v1::PreviewGroupRetentionRequest;
use bowline_contract::bowline::registry::v1::rpc::registry_policies::PreviewGroupRetention;
use bowline_testkit::{Actor, TestServer, each_engine};
use serde_json::{Value, json};

use crate::contents::digest;
use crate::support::{absent, each, execute, holder, image, ok, rejected, same_over_grpc};

async fn preview(actor: &Actor, group: &str, query: &str) -> Value {
    ok(actor, &format!("GET /registrypolicies/v1/groups/{group}:previewRetention?{query}"), Value::Null).await
}

/// Links of 60,000 manifests to a repository, which need not be stored to be counted.
const MANY: &str = "INSERT INTO repo_manifests (repo, digest, org, subject, artifact_type, pushed_at)
    WITH RECURSIVE up(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM up WHERE n < 60000)
    SELECT $1, 'sha256:' || $3 || n, $2, '', '', 0 FROM up";

/// Stores so many tagged images in a repository.
async fn fill(server: &TestServer, repo: &str, images: usize) {
    for n in 0..images {
        let digest = digest(char::from(b'1' + n as u8));
        image(server, repo, &digest, 100).await;
        let tag = json!({ "name": format!("v{n}"), "digest": digest });
        ok(&server.operator().await, &format!("POST /registry/v2/tags/{repo}"), tag).await;
    }
}

/// What is in each sum: the repository's name, whose rules apply, what goes, and what stays.
fn sums(page: &Value) -> Vec<(String, String, i64, i64, i64)> {
    let number = |of: &Value| of.as_i64().unwrap_or(-1);
    let text = |of: &Value| of.as_str().unwrap_or_default().to_owned();
    let repositories = page["repositories"].as_array().expect("repositories").iter();
    let sum = |one: &Value| {
        let [removed, tags, kept] = ["removed", "removedTags", "kept"].map(|name| number(&one[name]));
        (text(&one["repoName"]), text(&one["retentionFrom"]), removed, tags, kept)
    };
    let mut sums: Vec<_> = repositories.map(sum).collect();
    sums.sort();
    sums
}

async fn a_group_shows_what_retention_would_remove_from_each_repository(server: &TestServer) {
    let org = server.organization("acme").await;
    let team = server.group(&org, "team").await;
    let [a, b, c] = [server.repo(&org, "a").await, server.repo(&team, "b").await, server.repo(&team, "c").await];
    for (repo, images) in [(&a, 3), (&b, 2), (&c, 4)] {
        fill(server, repo, images).await;
    }
    let operator = server.operator().await;
    let own = json!({ "retention": { "keepPatterns": ["v0"] } });
    ok(&operator, &format!("PATCH /registrypolicies/v1/repos/{c}"), own).await;
    server.clock().advance(Duration::from_secs(3 * 24 * 3600));
    let (viewer, operator) = (server.actor("viewer", &org).await, server.operator().await);
    let row = |name: &str, from: &str, removed: i64, kept: i64| (name.into(), from.to_owned(), removed, removed, kept);

    // By the rules in force, only the repository with rules of its own loses something.
    let now = preview(&viewer, &org, "").await;
    assert_eq!(sums(&now), [row("a", "", 0, 3), row("b", "", 0, 2), row("c", &c, 3, 1)]);
    let request = PreviewGroupRetentionRequest { parent: org.clone(), ..Default::default() };
    same_over_grpc::<PreviewGroupRetention>(server, &viewer, request, &now).await;
    // With rules of the organization, the others follow these.
    let tried = preview(&viewer, &org, "retention.keepPatterns=v1").await;
    let expected = [row("a", &org, 2, 1), row("b", &org, 1, 1), row("c", &c, 3, 1)];
    assert_eq!(sums(&tried), expected);
    let sizes = tried["repositories"].as_array().expect("a list").iter().map(|one| one["removedBytes"].clone());
    assert!(sizes.into_iter().all(|size| size.as_str().is_some_and(|size| size != "0")), "{tried}");
    // They are previewed as they would apply.
    let rules = json!({ "retention": { "keepPatterns": ["v1"] } });
    ok(&operator, &format!("PATCH /registrypolicies/v1/groups/{org}"), rules).await;
    assert_eq!(sums(&preview(&viewer, &org, "").await), expected);
    assert_eq!(sums(&preview(&viewer, &team, "").await), expected[1..]);
    let nearer = preview(&viewer, &team, "retention.keepPatterns=v.").await;
    assert_eq!(sums(&nearer), [row("b", &team, 0, 2), row("c", &c, 3, 1)]);
    // A group without rules leaves it to those above.
    assert_eq!(sums(&preview(&viewer, &team, "retention.keepLast=0").await), expected[1..]);

    let first = preview(&viewer, &org, "pageSize=2").await;
    let token = first["nextPageToken"].as_str().expect("a token");
    let second = preview(&viewer, &org, &format!("pageSize=2&pageToken={token}")).await;
    assert_eq!((sums(&first).len(), sums(&second).len(), &second["nextPageToken"]), (2, 1, &json!("")));
    let uids = [each(&first["repositories"], "repoUid"), each(&second["repositories"], "repoUid")].concat();
    assert!(uids.is_sorted(), "{uids:?}");
}

async fn a_preview_of_a_group_is_bounded_and_refused_like_that_of_a_repository(server: &TestServer) {
    let org = server.organization("acme").await;
    let [one, two] = [server.repo(&org, "one").await, server.repo(&org, "two").await];
    let path = format!("GET /registrypolicies/v1/groups/{org}:previewRetention");
    let lister = holder(server, &org, "lister", &org, &["CAP_REPO_LIST"]).await.actor;
    rejected(&lister, &path, Value::Null, 403, "PERMISSION_DENIED").await;
    let viewer = server.actor("viewer", &org).await;
    let nowhere = format!("GET /registrypolicies/v1/groups/{}:previewRetention", absent(&org));
    rejected(&viewer, &nowhere, Value::Null, 404, "NOT_FOUND").await;
    let refusal =
        rejected(&viewer, &format!("{path}?retention.keepPatterns=("), Value::Null, 400, "INVALID_ARGUMENT").await;
    assert!(refusal.fields()[0].contains("keepPatterns"), "{refusal:?}");
    rejected(&viewer, &format!("{path}?pageSize=-1"), Value::Null, 400, "INVALID_ARGUMENT").await;
    // 60,000 manifests each: the second is for the next page. One of more than 100,000 has no preview, and is named.
    for repo in [&one, &two] {
        execute(server, MANY, &[repo, &org, "a"]).await;
    }
    let first = preview(&viewer, &org, "").await;
    assert_eq!((sums(&first).len(), first["nextPageToken"] == json!("")), (1, false), "{first}");
    let second =
        preview(&viewer, &org, &format!("pageToken={}", first["nextPageToken"].as_str().expect("a token"))).await;
    assert_eq!((sums(&second).len(), &second["nextPageToken"]), (1, &json!("")));
    execute(server, MANY, &[&one, &org, "b"]).await;
    let whole = preview(&viewer, &org, "").await;
    let large: Vec<&Value> =
        whole["repositories"].as_array().expect("a list").iter().map(|one| &one["tooLarge"]).collect();
    let expected = if one < two { [json!(true), json!(false)] } else { [json!(false), json!(true)] };
    assert_eq!(large, expected.iter().collect::<Vec<_>>(), "{whole}");
}

each_engine!(
    a_group_shows_what_retention_would_remove_from_each_repository,
    a_preview_of_a_group_is_bounded_and_refused_like_that_of_a_repository
);
