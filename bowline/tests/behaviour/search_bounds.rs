//! How much one search examines, that it says so where that was not everything, and that hidden names do not count.

use bowline_testkit::{TestServer, each_engine};
use serde_json::{Value, json};

use crate::support::{each, execute, holder, ok, person, rejected, role};

/// Names of repositories that only the search has, so that many of them are written at once.
const MANY: &str = "INSERT INTO search_names (kind, uid, org, name)
    WITH RECURSIVE up(n) AS (SELECT 100000 UNION ALL SELECT n + 1 FROM up WHERE n < 125000)
    SELECT 2, $1 || '/0000000000' || n, $1, 'page-' || n FROM up";

async fn hidden_names_change_no_result(server: &TestServer) {
    let org = server.organization("acme").await;
    let team = server.group(&org, "team").await;
    server.repo(&team, "pages").await;
    let bot = holder(server, &org, "bot", &team, &["CAP_REPO_LIST"]).await.actor;
    let find = async |query: &str| {
        ok(&bot, &format!("GET /search/v1/results?query={query}&kinds=SEARCH_KIND_REPO"), Value::Null).await
    };
    let mut before = Vec::new();
    for query in ["page", "pages", "age", "age-1", "p"] {
        before.push((query, find(query).await));
    }
    execute(server, MANY, &[&org]).await;
    for (query, before) in before {
        assert_eq!(find(query).await, before, "{query}");
        let names = before["sections"].as_array().map(Vec::len);
        assert_eq!(names, Some(usize::from(query != "age-1")), "{query}: {before}");
    }
}

async fn hidden_names_change_no_result_of_a_caller_with_many_groups(server: &TestServer) {
    let org = server.organization("acme").await;
    let team = server.group(&org, "team").await;
    server.repo(&team, "pages").await;
    execute(server, MANY, &[&org]).await;
    let bot = holder(server, &org, "bot", &team, &["CAP_REPO_LIST"]).await;
    let lists = role(server, &org, "lists", &["CAP_REPO_LIST"]).await;
    for n in 0..120 {
        let group = server.group(&org, &format!("empty-{n}")).await;
        server.bind(&bot.uid, &lists, &group).await;
    }
    for (query, names) in [("page", vec!["pages"]), ("age", vec!["pages"]), ("age-1", vec![]), ("p", vec!["pages"])] {
        let what = format!("GET /search/v1/results?query={query}&kinds=SEARCH_KIND_REPO");
        let found = ok(&bot.actor, &what, Value::Null).await;
        let sections = found["sections"].as_array().expect("a list");
        assert!(sections.iter().all(|section| section["incomplete"] != json!(true)), "{found}");
        let shown: Vec<&str> = sections.iter().flat_map(|section| each(&section["hits"], "name")).collect();
        assert_eq!(shown, names, "{query}");
    }
}

/// All of many visible names cannot be compared: those with the text are read instead, and hidden ones among them count.
async fn a_caller_who_sees_many_names_reads_that_a_search_ended_early(server: &TestServer) {
    let org = server.organization("acme").await;
    let team = server.group(&org, "team").await;
    let bot = holder(server, &org, "bot", &team, &["CAP_REPO_LIST"]).await.actor;
    execute(server, MANY, &[&org]).await;
    let visible = MANY.replace("$1 || '/0000000000'", "$2 || '/0000000000'").replace("'page-'", "'shown-'");
    execute(server, visible.leak(), &[&org, &team]).await;
    for (query, incomplete) in [("page", true), ("age-1", true), ("page-100000", false), ("hown-1", false)] {
        let what = format!("GET /search/v1/results?query={query}&kinds=SEARCH_KIND_REPO&page_size=5");
        let found = ok(&bot, &what, Value::Null).await;
        let is_incomplete = found["sections"][0]["incomplete"] == json!(true);
        assert_eq!(is_incomplete, incomplete, "{query}: {found}");
        // Only the search has these repositories.
        assert!(found["sections"][0]["hits"].as_array().is_none_or(Vec::is_empty), "{found}");
    }
}

/// The search marks kinds and organizations with characters that are for private use: texts may have them, too.
async fn names_with_characters_for_private_use_are_searched(server: &TestServer) {
    let org = server.organization("acme").await;
    let group = server.group(&org, "marked").await;
    let marks = "x\u{f101}\u{f101}\u{f101}y";
    execute(server, "UPDATE groups SET name = $2 WHERE uid = $1", &[&group, marks]).await;
    server.group(&org, "plain").await;
    let operator = server.operator().await;
    for (query, count) in [("%EF%84%81%EF%84%81%EF%84%81", 1), ("%EF%84%82%EF%84%82%EF%84%82", 0), ("%EF%84%81y", 0)] {
        let what = format!("GET /search/v1/results?query={query}&kinds=SEARCH_KIND_GROUP");
        let found = ok(&operator, &what, Value::Null).await;
        let hits = found["sections"][0]["hits"].as_array().map_or(0, Vec::len);
        assert_eq!(hits, count, "{query}: {found}");
    }
}

async fn a_search_over_more_than_32_organizations_wants_a_scope(server: &TestServer) {
    let ann = person(server, "ann", "ann@acme.example").await;
    let viewer = server.role("viewer");
    let mut organizations = Vec::new();
    for n in 0..32 {
        let org = server.organization(&format!("many {n}")).await;
        server.bind(&ann.uid, &viewer, &org).await;
        organizations.push(org);
    }
    let query = "GET /search/v1/results?query=many&kinds=SEARCH_KIND_GROUP&page_size=100";
    let found = ok(&ann.actor, query, Value::Null).await;
    assert_eq!(found["sections"][0]["hits"].as_array().map(Vec::len), Some(32), "{found}");
    let one_more = server.organization("many and one").await;
    server.bind(&ann.uid, &viewer, &one_more).await;
    let refusal = rejected(&ann.actor, query, Value::Null, 400, "INVALID_ARGUMENT").await;
    assert_eq!(refusal.fields(), ["scope"]);
    let found = ok(&ann.actor, &format!("{query}&scope={one_more}"), Value::Null).await;
    assert_eq!(each(&found["sections"][0]["hits"], "name"), ["many and one"]);
}

async fn a_query_of_spaces_is_refused(server: &TestServer) {
    let operator = server.operator().await;
    for query in ["", "%20", "%20%20"] {
        let path = format!("GET /search/v1/results?query={query}");
        let refusal = rejected(&operator, &path, Value::Null, 400, "INVALID_ARGUMENT").await;
        assert_eq!(refusal.fields(), ["query"], "{query:?}");
    }
}

each_engine!(
    hidden_names_change_no_result,
    hidden_names_change_no_result_of_a_caller_with_many_groups,
    a_caller_who_sees_many_names_reads_that_a_search_ended_early,
    names_with_characters_for_private_use_are_searched,
    a_search_over_more_than_32_organizations_wants_a_scope,
    a_query_of_spaces_is_refused
);
