//! How repositories that take from elsewhere get on, what holds for a repository, and what retention removed.

use bowline_testkit::{TestServer, each_engine};
use serde_json::{Value, json};

use crate::support::{absent, each, execute, holder, image, number, ok, rejected};

async fn upstreams_are_listed_with_their_last_check_where_the_caller_may(server: &TestServer) {
    let (org, other) = (server.organization("acme").await, server.organization("other").await);
    let team = server.group(&org, "team").await;
    let repos = [server.repo(&team, "a").await, server.repo(&team, "b").await, server.repo(&org, "c").await];
    let theirs = server.repo(&other, "x").await;
    server.repo(&team, "never asked").await;
    let sql = "INSERT INTO upstream_syncs (repo, org, status, checked_at, message) VALUES ($1, $2, 0, 1000000, $3)";
    for repo in repos.iter().chain([&theirs]) {
        execute(server, sql, &[repo, &org, ""]).await;
    }
    let failing = "UPDATE upstream_syncs SET status = 3, message = $2 WHERE repo = $1";
    execute(server, failing, &[&repos[1], "the upstream answered 502"]).await;
    let viewer = server.actor("viewer", &org).await;
    let list = async |query: &str| {
        ok(&viewer, &format!("GET /replication/v1/groups/{org}/upstreams?{query}"), Value::Null).await
    };
    let mut expected = repos.to_vec();
    expected.sort();
    let first = list("pageSize=2").await;
    let token = first["nextPageToken"].as_str().expect("a token").to_owned();
    let second = list(&format!("pageSize=2&pageToken={token}")).await;
    let seen = [each(&first["upstreams"], "repoUid"), each(&second["upstreams"], "repoUid")].concat();
    assert_eq!((seen, &second["nextPageToken"]), (expected.iter().map(String::as_str).collect(), &json!("")));
    let failed = list("failedOnly=true").await;
    assert_eq!(each(&failed["upstreams"], "error"), ["the upstream answered 502"]);
    assert_eq!(each(&failed["upstreams"], "repoName"), ["b"]);
    assert_eq!(failed["upstreams"][0]["checkTime"], "1970-01-01T00:00:01Z");
    let path = format!("GET /replication/v1/groups/{other}/upstreams");
    rejected(&viewer, &path, Value::Null, 403, "PERMISSION_DENIED").await;
}

async fn fetch_now_marks_all_tags_in_one_row(server: &TestServer) {
    let org = server.organization("acme").await;
    let (repo, other) = (server.repo(&org, "web").await, server.repo(&org, "other").await);
    let many = "INSERT INTO upstream_tags (repo, tag, checked_at)
                WITH RECURSIVE up(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM up WHERE n < 10001)
                SELECT $1, 'tag-' || n, 5 FROM up";
    execute(server, many, &[&repo]).await;
    execute(server, "INSERT INTO upstream_tags (repo, tag, checked_at) VALUES ($1, 'a', 5)", &[&other]).await;
    let untouched = "SELECT count(*) FROM upstream_tags WHERE checked_at = 5 AND generation = 0";
    let viewer = server.actor("viewer", &org).await;
    let path = format!("POST /replication/v1/repos/{repo}:fetchNow");
    rejected(&viewer, &path, json!({}), 403, "PERMISSION_DENIED").await;
    let editor = server.actor("editor", &org).await;
    for generation in 1..=2 {
        assert_eq!(ok(&editor, &path, json!({})).await["tags"], "10000", "counted up to a bound");
        // One row changes, however many tags there are.
        assert_eq!(number(server, "SELECT max(generation) FROM upstream_generations").await, generation);
        assert_eq!(number(server, untouched).await, 10_002);
    }
    let nowhere = format!("POST /replication/v1/repos/{}:fetchNow", absent(&org));
    rejected(&editor, &nowhere, json!({}), 404, "NOT_FOUND").await;
}

async fn the_effective_policy_says_where_each_value_is_from(server: &TestServer) {
    let org = server.organization("acme").await;
    let team = server.group(&org, "team").await;
    let repo = server.repo(&team, "web").await;
    let operator = server.operator().await;
    let effective = format!("GET /registrypolicies/v1/repos/{repo}:effectivePolicy");
    let none = ok(&operator, &effective, Value::Null).await;
    assert_eq!((&none["public"], &none["publicFrom"], &none["upstream"]), (&json!(false), &json!(""), &Value::Null));
    let of_org = json!({
        "immutableTagPatterns": ["v.*"], "byteQuota": "1000", "retention": { "keepLast": 5 },
        "upstream": { "url": "https://registry.example.com", "tagPatterns": ["v.*"] }
    });
    ok(&operator, &format!("PATCH /registrypolicies/v1/groups/{org}"), of_org).await;
    let of_repo = json!({ "public": true, "immutableTagPatterns": ["r.*"], "byteQuota": "10" });
    ok(&operator, &format!("PATCH /registrypolicies/v1/repos/{repo}"), of_repo).await;
    let seen = ok(&operator, &effective, Value::Null).await;
    let expected = json!({
        "repoUid": repo, "public": true, "publicFrom": repo,
        "immutableTagPatterns": [{ "patterns": ["v.*"], "from": org }, { "patterns": ["r.*"], "from": repo }],
        "byteQuotas": [{ "bytes": "1000", "from": org }, { "bytes": "10", "from": repo }],
        "retention": { "keepLast": 5, "keepDays": 0, "keepPatterns": [] }, "retentionFrom": org,
        "upstream": { "url": "https://registry.example.com", "tagPatterns": ["v.*"], "from": org }
    });
    assert_eq!(seen, expected);
    // Who may not read the group's policy learns that there is an upstream, and not which.
    let reader = holder(server, &org, "reader", &team, &["CAP_REPO_LIST"]).await.actor;
    let seen = ok(&reader, &effective, Value::Null).await;
    assert_eq!(seen["upstream"], json!({ "url": "", "tagPatterns": [], "from": org }));
}

async fn runs_of_retention_are_listed_and_bounded(server: &TestServer) {
    let org = server.organization("acme").await;
    let repo = server.repo(&org, "web").await;
    let operator = server.operator().await;
    let old = "INSERT INTO retention_runs (repo, org, run_at, id, removed, tags, bytes, retained, remaining)
               VALUES ($1, $2, CAST(CAST($3 AS TEXT) AS BIGINT), 'x', 1, 0, 10, 0, 0)";
    for n in 0..101 {
        execute(server, old, &[&repo, &org, &n.to_string()]).await;
    }
    let rules = json!({ "retention": { "keepPatterns": ["kept"] } });
    ok(&operator, &format!("PATCH /registrypolicies/v1/repos/{repo}"), rules).await;
    let runs = format!("GET /registrypolicies/v1/repos/{repo}:retentionRuns");
    let apply = format!("POST /registrypolicies/v1/repos/{repo}:applyRetention");
    ok(&operator, &apply, json!({})).await;
    assert_eq!(number(server, "SELECT count(*) FROM retention_runs").await, 101, "a run that removed nothing");
    for (n, name) in ["kept", "gone"].iter().enumerate() {
        let digest = format!("sha256:{n:064}");
        image(server, &repo, &digest, 100).await;
        ok(&operator, &format!("POST /registry/v2/tags/{repo}"), json!({ "name": name, "digest": digest })).await;
    }
    server.clock().advance(std::time::Duration::from_secs(2 * 24 * 3600));
    let operator = server.operator().await;
    let outcome = ok(&operator, &apply, json!({})).await;
    assert_eq!(outcome["removed"].as_array().map(Vec::len), Some(1), "{outcome}");
    assert_eq!(number(server, "SELECT count(*) FROM retention_runs").await, 100);
    let listed = ok(&operator, &runs, Value::Null).await;
    let newest = &listed["runs"][0];
    assert_eq!((&newest["removed"], &newest["removedTags"], &newest["kept"]), (&json!(1), &json!(1), &json!(1)));
    assert_eq!(newest["removedBytes"], outcome["removed"][0]["size"]);
    ok(&operator, &format!("DELETE /registry/v2/repos/{repo}"), Value::Null).await;
    assert_eq!(number(server, "SELECT count(*) FROM retention_runs").await, 0);
}

each_engine!(
    upstreams_are_listed_with_their_last_check_where_the_caller_may,
    fetch_now_marks_all_tags_in_one_row,
    the_effective_policy_says_where_each_value_is_from,
    runs_of_retention_are_listed_and_bounded,
);
