//! How much one search examines, and that it says so where that was not everything.

use bowline_testkit::{TestServer, each_engine};
use serde_json::{Value, json};

use crate::support::{each, execute, holder, ok, person, rejected};

/// Names of repositories that only the search has, so that many of them are written at once.
const MANY: &str = "INSERT INTO search_names (kind, uid, org, name)
    WITH RECURSIVE up(n) AS (SELECT 100000 UNION ALL SELECT n + 1 FROM up WHERE n < 125000)
    SELECT 2, $1 || '/0000000000' || n, $1, 'page-' || n FROM up";

async fn a_search_examines_so_many_names_and_says_so(server: &TestServer) {
    let org = server.organization("acme").await;
    let team = server.group(&org, "team").await;
    server.repo(&team, "pages").await;
    execute(server, MANY, &[&org]).await;
    let bot = holder(server, &org, "bot", &team, &["CAP_REPO_LIST"]).await.actor;
    for (query, incomplete, names) in [("page", true, vec![]), ("pages", false, vec!["pages"])] {
        let found =
            ok(&bot, &format!("GET /search/v1/results?query={query}&kinds=SEARCH_KIND_REPO"), Value::Null).await;
        let section = &found["sections"][0];
        assert_eq!((&section["incomplete"], each(&section["hits"], "name")), (&json!(incomplete), names), "{found}");
        assert_eq!(section["nextPageToken"], "", "{found}");
    }
    // The same within names: none begins with this text.
    let found = ok(&bot, "GET /search/v1/results?query=age-1&kinds=SEARCH_KIND_REPO", Value::Null).await;
    assert_eq!((&found["sections"][0]["incomplete"], &found["sections"][0]["hits"]), (&json!(true), &json!([])));
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
    a_search_examines_so_many_names_and_says_so,
    a_search_over_more_than_32_organizations_wants_a_scope,
    a_query_of_spaces_is_refused
);
