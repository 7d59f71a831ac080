//! Repositories by a part of their name, with their usage, in an order of usage.

use bowline_contract::bowline::registry::v1::SearchReposRequest;
use bowline_contract::bowline::registry::v1::rpc::images::SearchRepos;
use bowline_core::Clock as _;
use bowline_testkit::{Actor, TestServer, each_engine};
use serde_json::{Value, json};

use crate::contents::digest;
use crate::support::{absent, each, each_of, execute, holder, image, number, ok, pages, rejected, same_over_grpc};

const DAY: i64 = 24 * 3600 * 1_000_000;

async fn list(actor: &Actor, query: &str) -> Value {
    ok(actor, &format!("GET /images/v1/repos?{query}"), Value::Null).await
}

async fn names(actor: &Actor, query: &str) -> Vec<String> {
    each(&list(actor, query).await["repos"], "name").into_iter().map(String::from).collect()
}

/// All names, page by page.
async fn walked(actor: &Actor, query: &str) -> Vec<String> {
    each_of(&pages(actor, &format!("GET /images/v1/repos?{query}&page_size=1")).await, "repos", "name")
}

/// Three repositories of an organization, one of them in a team, and one elsewhere; each with what it is ordered by.
async fn filled(server: &TestServer) -> [String; 3] {
    let (org, other) = (server.organization("acme").await, server.organization("other").await);
    let team = server.group(&org, "team").await;
    let now = server.clock().now();
    for (group, name, bytes, pushed, pulled) in [
        (&org, "web", 30, 10, Some(5)),
        (&team, "website", 10, 30, None),
        (&org, "api", 20, 20, Some(9)),
        (&other, "web", 90, 90, Some(90)),
    ] {
        let repo = server.repo(group, name).await;
        let sql = "INSERT INTO count_deltas (collection, uid, delta) VALUES ('blob_bytes', $1, CAST(CAST($2 AS TEXT) AS BIGINT))";
        execute(server, sql, &[&repo, &bytes.to_string()]).await;
        image(server, &repo, &digest('1'), 1).await;
        let sql = "UPDATE repo_manifests SET pushed_at = CAST(CAST($2 AS TEXT) AS BIGINT) WHERE repo = $1";
        execute(server, sql, &[&repo, &(pushed * 1_000_000).to_string()]).await;
        if let Some(pulled) = pulled {
            let sql = "UPDATE repo_manifests SET last_pulled_at = CAST(CAST($2 AS TEXT) AS BIGINT) WHERE repo = $1";
            execute(server, sql, &[&repo, &(pulled * 1_000_000).to_string()]).await;
        }
        let sql = "INSERT INTO activity_days (scope, kind, identity, day, n) VALUES ($1, 1, '', CAST(CAST($2 AS TEXT) AS BIGINT), 7)";
        execute(server, sql, &[&repo, &(now / DAY - 1).to_string()]).await;
    }
    [org, team, other]
}

async fn repositories_have_their_usage_and_are_ordered_by_it(server: &TestServer) {
    let [org, team, _] = filled(server).await;
    let operator = server.operator().await;
    let shown = list(&operator, &format!("scope={org}&query=EBSI")).await;
    let repo = &shown["repos"][0];
    let mut pulls = vec!["0"; 30];
    pulls[28] = "7";
    for (member, expected) in [
        ("name", json!("website")),
        ("parent", json!(team)),
        ("size", json!("10")),
        ("tags", json!("0")),
        ("pushTime", json!("1970-01-01T00:00:30Z")),
        ("pullTime", Value::Null),
        ("pullsByDay", json!(pulls)),
    ] {
        assert_eq!(repo[member], expected, "{member}");
    }
    assert_eq!((&shown["totalCount"], &shown["nextPageToken"]), (&json!("1"), &Value::Null));
    let request = SearchReposRequest { scope: org.clone(), query: "EBSI".into(), ..Default::default() };
    same_over_grpc::<SearchRepos>(server, &operator, request, &shown).await;
    for (order, expected) in [
        ("", ["api", "web", "website"]),
        ("name", ["api", "web", "website"]),
        ("name+desc", ["website", "web", "api"]),
        ("size+desc", ["web", "api", "website"]),
        ("push_time", ["web", "api", "website"]),
        ("pushTime+desc", ["website", "api", "web"]),
        ("pull_time", ["website", "web", "api"]),
        ("pull_time+desc", ["api", "web", "website"]),
    ] {
        let query = format!("scope={org}&order_by={order}");
        assert_eq!(names(&operator, &query).await, expected, "{order}");
        assert_eq!(walked(&operator, &query).await, expected, "{order}, page by page");
    }
    for (query, expected) in
        [("web", vec!["web", "website"]), ("w", vec!["web", "website"]), ("e", vec![]), ("%25", vec![])]
    {
        let query = format!("scope={org}&query={query}");
        assert_eq!(names(&operator, &query).await, expected, "{query}");
        assert_eq!(walked(&operator, &query).await, expected, "{query}, page by page");
    }
    assert_eq!(names(&operator, &format!("scope={team}&order_by=size")).await, ["website"]);
    // Tags and bytes are the same before and after the counts are folded.
    while number(server, "SELECT count(*) FROM count_deltas").await > 0 {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    assert_eq!(list(&operator, &format!("scope={org}&query=EBSI")).await, shown);
}

async fn hidden_repositories_are_as_if_they_were_not(server: &TestServer) {
    let [org, team, other] = filled(server).await;
    let reader = holder(server, &org, "reader", &team, &["CAP_REPO_LIST"]).await.actor;
    for query in ["", "order_by=size", "query=web", "query=web&order_by=pull_time"] {
        let shown = list(&reader, query).await;
        assert_eq!((each(&shown["repos"], "name"), &shown["totalCount"]), (vec!["website"], &json!("1")), "{query}");
    }
    let unknown = list(&reader, &format!("scope={}&query=web", absent(&org))).await;
    assert_eq!(list(&reader, &format!("scope={other}&query=web")).await, unknown);
    assert_eq!(list(&server.stranger().await, "query=web").await, unknown);
}

/// Names of repositories that only the search has, so that many of them are written at once.
const MANY: &str = "INSERT INTO search_names (kind, uid, org, name)
    WITH RECURSIVE up(n) AS (SELECT 100000 UNION ALL SELECT n + 1 FROM up WHERE n < 125000)
    SELECT 2, $1 || '/0000000000' || n, $1, 'web-' || n FROM up";

async fn however_many_repositories_are_hidden_a_search_is_the_same(server: &TestServer) {
    let [org, team, _] = filled(server).await;
    let reader = holder(server, &org, "reader", &team, &["CAP_REPO_LIST"]).await.actor;
    let wide = holder(server, &org, "wide", &team, &["CAP_REPO_LIST"]).await;
    let role = crate::support::role(server, &org, "lists", &["CAP_REPO_LIST"]).await;
    for n in 0..16 {
        let group = server.group(&org, &format!("empty-{n}")).await;
        server.bind(&wide.uid, &role, &group).await;
    }
    let queries = ["query=web", "query=we&order_by=size", "query=ebs", "query=web&order_by=pull_time"];
    let mut before = Vec::new();
    for query in queries {
        before.push(list(&reader, query).await);
        assert_eq!(list(&wide.actor, query).await, before[before.len() - 1], "{query}");
    }
    execute(server, MANY, &[&org]).await;
    for (query, before) in queries.iter().zip(&before) {
        assert_eq!(each(&before["repos"], "name"), ["website"], "{query}");
        assert_eq!(list(&reader, query).await, *before, "{query}");
    }
    for (query, before) in queries.iter().zip(&before) {
        assert_eq!(list(&wide.actor, query).await, *before, "{query}");
    }
    assert_eq!(list(&wide.actor, &format!("query=web&scope={team}")).await["totalCount"], json!("1"));
}

async fn searches_that_mean_nothing_are_refused(server: &TestServer) {
    let [org, _, _] = filled(server).await;
    let operator = server.operator().await;
    let what = |query: &str| format!("GET /images/v1/repos?{query}");
    for (query, field) in [
        ("order_by=stars", "orderBy"),
        ("page_size=-1", "pageSize"),
        ("scope=acme", "scope"),
        ("query=%00", "query"),
        (&format!("query={}", "x".repeat(129)), "query"),
    ] {
        let refusal = rejected(&operator, &what(query), Value::Null, 400, "INVALID_ARGUMENT").await;
        assert_eq!(refusal.fields(), [field], "{query}");
    }
    let first = list(&operator, &format!("scope={org}&page_size=1&order_by=size")).await;
    let token = first["nextPageToken"].as_str().expect("a token");
    let of_another = format!("scope={org}&page_size=1&order_by=size+desc&page_token={token}");
    rejected(&operator, &what(&of_another), Value::Null, 400, "PAGE_TOKEN_INVALID").await;
}

/// Ten thousand repositories are ordered, one more is not.
async fn more_repositories_than_can_be_ordered_are_refused(server: &TestServer) {
    let org = server.organization("acme").await;
    let repo = server.repo(&org, "pattern-0").await;
    let sql = "WITH RECURSIVE many (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM many WHERE n < 10000)
               INSERT INTO repos (uid, parent, org, name, description, spec, created_at, updated_at)
               SELECT r.parent || '/' || substr(CAST(1000000000000000 + m.n AS TEXT), 1, 16), r.parent, r.org,
                      'pattern-' || CAST(m.n AS TEXT), '', r.spec, 0, 0
               FROM many m CROSS JOIN repos r WHERE r.uid = $1";
    execute(server, sql, &[&repo]).await;
    let operator = server.operator().await;
    for query in ["order_by=size", "query=pattern"] {
        let what = format!("GET /images/v1/repos?scope={org}&{query}");
        let refusal = rejected(&operator, &what, Value::Null, 400, "FAILED_PRECONDITION").await;
        assert!(refusal.message().contains("more than 10000 repositories match"), "{}", refusal.message());
    }
    assert_eq!(
        names(&operator, &format!("scope={org}&query=tern-100&order_by=name")).await[..2],
        ["pattern-100", "pattern-1000"]
    );
    execute(server, "DELETE FROM repos WHERE uid = $1", &[&repo]).await;
    let shown = list(&operator, &format!("scope={org}&order_by=push_time&page_size=2")).await;
    assert_eq!(shown["totalCount"], json!("10000"));
}

each_engine!(
    repositories_have_their_usage_and_are_ordered_by_it,
    hidden_repositories_are_as_if_they_were_not,
    however_many_repositories_are_hidden_a_search_is_the_same,
    searches_that_mean_nothing_are_refused,
    more_repositories_than_can_be_ordered_are_refused,
);
