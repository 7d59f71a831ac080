//! Images of a repository in the order of their names, sizes and pulls.

use bowline_contract::bowline::registry::v1::ListImagesRequest;
use bowline_contract::bowline::registry::v1::rpc::images::ListImages;
use bowline_testkit::{Actor, TestServer, each_engine};
use serde_json::{Value, json};

use crate::contents::{Manifest, digest, store};
use crate::posture::tag;
use crate::support::{call, each, each_of, execute, image, ok, pages, rejected, same_over_grpc};

async fn list(actor: &Actor, repo: &str, query: &str) -> Value {
    ok(actor, &format!("GET /images/v1/repos/{repo}/images?{query}"), Value::Null).await
}

/// The images of all pages, each by the character of its digest.
async fn walked(actor: &Actor, repo: &str, query: &str) -> String {
    let pages = pages(actor, &format!("GET /images/v1/repos/{repo}/images?{query}&page_size=1")).await;
    each_of(&pages, "images", "digest").iter().filter_map(|digest| digest.chars().last()).collect()
}

/// An index `0` of the images `1` and `2`, and the images `3` and `4`; `5` has no tag, and a referrer's tag is at `3`.
async fn filled(server: &TestServer) -> String {
    let org = server.organization("acme").await;
    let repo = server.repo(&org, "web").await;
    for (character, size) in [('1', 100), ('2', 200), ('3', 250), ('4', 50), ('5', 900)] {
        image(server, &repo, &digest(character), size).await;
    }
    let (one, two) = (digest('1'), digest('2'));
    let names = [(one.as_str(), "amd64"), (two.as_str(), "arm64")];
    store(server, &repo, &Manifest { digest: &digest('0'), shape: 2, size: 9, names: &names, config: None }).await;
    for (name, character) in [("latest", '0'), ("beta", '3'), ("zeta", '3'), ("alpha", '4'), ("omega", '4')] {
        tag(server, &repo, name, &digest(character)).await;
    }
    tag(server, &repo, &format!("{}.sig", digest('4').replace(':', "-")), &digest('5')).await;
    for (character, at) in [('0', "5000000"), ('3', "9000000")] {
        let sql = "UPDATE repo_manifests SET last_pulled_at = CAST(CAST($3 AS TEXT) AS BIGINT) WHERE repo = $1 AND digest = $2";
        execute(server, sql, &[&repo, &digest(character), at]).await;
    }
    repo
}

async fn images_are_ordered_by_name_size_and_pull(server: &TestServer) {
    let repo = filled(server).await;
    let operator = server.operator().await;
    for (query, expected) in [
        ("order_by=name", "430"),
        ("order_by=name+desc", "340"),
        ("order_by=tag+asc", "430"),
        ("order_by=size", "430"),
        ("order_by=size+desc", "034"),
        ("order_by=pull_time+desc", "304"),
        ("order_by=pullTime+asc", "403"),
        ("order_by=name&query=eta", "3"),
        ("order_by=name+desc&query=ome", "4"),
        ("order_by=size&query=a", "430"),
        ("order_by=name&query=sha256:00", "0"),
        ("order_by=pull_time&query=zz", ""),
    ] {
        let whole = list(&operator, &repo, query).await;
        let whole: String =
            each(&whole["images"], "digest").iter().filter_map(|digest| digest.chars().last()).collect();
        assert_eq!(whole, expected, "{query}");
        assert_eq!(walked(&operator, &repo, query).await, expected, "{query}, page by page");
    }
    let sizes = list(&operator, &repo, "order_by=size").await;
    assert_eq!(each(&sizes["images"], "size"), ["50", "250", "309"], "an index is as large as its images");
    let request = ListImagesRequest { repo_uid: repo.clone(), order_by: "size".into(), ..Default::default() };
    same_over_grpc::<ListImages>(server, &operator, request, &sizes).await;
    execute(server, "DELETE FROM tags WHERE parent = $1 AND hidden = 1", &[&repo]).await;
    assert_eq!(walked(&operator, &repo, "untagged=true&order_by=size").await, "5");
}

async fn orders_that_cannot_be_served_are_refused(server: &TestServer) {
    let repo = filled(server).await;
    let operator = server.operator().await;
    let what = |query: &str| format!("GET /images/v1/repos/{repo}/images?{query}");
    for query in ["order_by=stars", "untagged=true&order_by=name"] {
        let refusal = rejected(&operator, &what(query), Value::Null, 400, "INVALID_ARGUMENT").await;
        assert_eq!(refusal.fields(), ["orderBy"], "{query}");
    }
    let sql = "WITH RECURSIVE many (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM many WHERE n < 10000)
               INSERT INTO repo_manifests (repo, digest, org, subject, artifact_type, pushed_at)
               SELECT r.repo, 'none-' || CAST(m.n AS TEXT), r.org, '', '', 0
               FROM many m CROSS JOIN repo_manifests r WHERE r.repo = $1 AND r.digest = $2";
    execute(server, sql, &[&repo, &digest('4')]).await;
    let refusal = rejected(&operator, &what("order_by=size"), Value::Null, 400, "FAILED_PRECONDITION").await;
    let violation = &refusal.detail("PreconditionFailure")["violations"][0];
    assert_eq!((&violation["type"], &violation["subject"]), (&json!("REPOSITORY_TOO_LARGE"), &json!(repo)));
    assert_eq!(walked(&operator, &repo, "order_by=name").await, "430", "an index has the names");
}

/// So many members of the index `0` besides its own.
const MEMBERS: &str =
    "INSERT INTO manifest_references (manifest, place, kind, digest, media_type, size, os, architecture, variant)
    WITH RECURSIVE up(n) AS (SELECT 10 UNION ALL SELECT n + 1 FROM up WHERE n < 100010)
    SELECT $1, n, 3, 'none-' || n, '', 0, 'linux', '', '' FROM up";

async fn members_are_bounded_and_ordered_images_are_read_a_few_at_a_time(server: &TestServer) {
    let repo = filled(server).await;
    let operator = server.operator().await;
    execute(server, MEMBERS, &[&digest('0')]).await;
    let what = |query: &str| format!("GET /images/v1/repos/{repo}/images?{query}");
    let refusal = rejected(&operator, &what("order_by=size"), Value::Null, 400, "FAILED_PRECONDITION").await;
    assert!(refusal.message().contains("more than 100000 members"), "{}", refusal.message());
    // Those that read much take turns, and the others do not.
    for (query, is_heavy) in [("order_by=size", true), ("order_by=push_time", false), ("page_size=1", false)] {
        let calls = (0..12).map(|_| {
            let (operator, what) = (operator.clone(), what(query));
            async move { call(&operator, &what, Value::Null).await.status }
        });
        let statuses = futures_util::future::join_all(calls).await;
        assert_eq!(statuses.contains(&429), is_heavy, "{query}: {statuses:?}");
    }
}

each_engine!(
    images_are_ordered_by_name_size_and_pull,
    orders_that_cannot_be_served_are_refused,
    members_are_bounded_and_ordered_images_are_read_a_few_at_a_time
);
