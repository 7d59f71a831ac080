//! Page tokens: good for the query that they came with, for three days, and for nothing else.

use std::time::Duration;

use bowline_contract::v2::registry::ListReposRequest;
use bowline_contract::v2::registry::rpc::repos_service::ListRepos;
use bowline_testkit::{Actor, TestServer, each_engine};
use serde_json::Value;

use crate::support::{each, machine, ok, rejected};

async fn shelf(server: &TestServer) -> String {
    let org = server.organization("acme").await;
    for name in ["a", "b", "c", "d", "e"] {
        server.repo(&org, name).await;
    }
    org
}

async fn page(actor: &Actor, query: &str) -> Value {
    ok(actor, &format!("GET /registry/v2/repos?{query}"), Value::Null).await
}

fn next(page: &Value) -> String {
    page["nextPageToken"].as_str().expect("there is a next page").into()
}

async fn a_page_token_serves_its_own_query_only(server: &TestServer) {
    let org = shelf(server).await;
    let machine = machine(server, &org, "reader").await;
    server.bind(&machine.uid, &server.role("viewer"), &org).await;
    let (reader, other) = (machine.actor.clone(), server.actor("viewer", &org).await);
    for order in ["order_by=name", "order_by=uid+desc", "order_by=created_at+desc"] {
        let token = next(&page(&reader, &format!("page_size=2&{order}")).await);
        // Another length of page, and a skip, are the same query.
        let rest = page(&reader, &format!("page_size=3&{order}&page_token={token}")).await;
        assert_eq!(rest["repos"].as_array().map(Vec::len), Some(3), "{order}");
        assert_eq!(rest.get("nextPageToken"), None, "{order}: the last page has no token at all");

        let mut damaged = token.clone();
        let last = damaged.pop().expect("no empty token");
        damaged.push(if last == 'A' { 'B' } else { 'A' });
        let half = token[..token.len() / 2].to_owned();
        for bad in [damaged, half, "x".into(), format!("{token}{token}"), "a+b".into()] {
            let what = format!("GET /registry/v2/repos?page_size=2&{order}&page_token={bad}");
            let refusal = rejected(&reader, &what, Value::Null, 400, "PAGE_TOKEN_INVALID").await;
            assert!(refusal.message().contains("page_token"), "{}", refusal.message());
        }
        let elsewhere = [
            (&other, format!("/registry/v2/repos?{order}")),
            (&reader, format!("/registry/v2/repos?{order}&name=a")),
            (&reader, format!("/registry/v2/repos?{order}&uidp.descendants_of={org}")),
            (&reader, "/registry/v2/repos?order_by=uid".into()),
            (&reader, format!("/iam/v2/roles?{order}")),
        ];
        for (actor, path) in elsewhere {
            let separator = if path.contains('?') { '&' } else { '?' };
            let what = format!("GET {path}{separator}page_size=2&page_token={token}");
            rejected(actor, &what, Value::Null, 400, "PAGE_TOKEN_INVALID").await;
        }
        let request = ListReposRequest { page_token: token, page_size: 2, ..ListReposRequest::default() };
        let error = reader.grpc::<ListRepos>(request).await.expect_err("another order");
        assert_eq!(error.code, 3);
    }
}

async fn a_page_token_lives_three_days(server: &TestServer) {
    let org = shelf(server).await;
    let machine = machine(server, &org, "reader").await;
    server.bind(&machine.uid, &server.role("viewer"), &org).await;
    let token = next(&page(&machine.actor, "page_size=2").await);
    let query = format!("page_size=2&page_token={token}");
    server.clock().advance(Duration::from_secs(3 * 24 * 3600));
    // The same caller, with a token of now.
    let reader = machine.again(server).await;
    assert_eq!(page(&reader, &query).await["repos"].as_array().map(Vec::len), Some(2));
    server.clock().advance(Duration::from_secs(1));
    let what = format!("GET /registry/v2/repos?{query}");
    let refusal = rejected(&reader, &what, Value::Null, 400, "PAGE_TOKEN_EXPIRED").await;
    assert!(refusal.message().contains("3 days"), "{}", refusal.message());
}

async fn pages_skip_and_count_across_the_places_that_are_visible(server: &TestServer) {
    let (left, right) = (shelf(server).await, server.organization("globex").await);
    for name in ["f", "g", "h", "i"] {
        server.repo(&right, name).await;
    }
    // Two places, of which each has something hidden beside it.
    let hidden = server.organization("initech").await;
    server.repo(&hidden, "z").await;
    let person = machine(server, &left, "reader").await;
    let binding_elsewhere =
        "INSERT INTO role_bindings (uid, parent, org, identity, role, created_at) VALUES ($1, $2, $2, $3, $4, 0)";
    server.bind(&person.uid, &server.role("viewer"), &left).await;
    let viewer = server.role("viewer");
    let uid = format!("{right}/00000000000000aa");
    crate::support::execute(server, binding_elsewhere, &[&uid, &right, &person.uid, &viewer]).await;

    let reader = &person.actor;
    for order in ["uid", "uid+desc", "name", "name+desc", "created_at"] {
        let all = page(reader, &format!("order_by={order}&page_size=200")).await;
        let all: Vec<String> = each(&all["repos"], "uid").into_iter().map(String::from).collect();
        assert_eq!(all.len(), 9, "{order}");
        for skip in 0..=10 {
            let got = page(reader, &format!("order_by={order}&page_size=3&skip={skip}")).await;
            let expected: Vec<&str> = all.iter().skip(skip).take(3).map(String::as_str).collect();
            assert_eq!(each(&got["repos"], "uid"), expected, "{order} skip {skip}");
            assert_eq!((&got["totalCount"], &got["skipped"]), (&"9".into(), &skip.into()), "{order} skip {skip}");
        }
        for first in 1..=8 {
            let token = next(&page(reader, &format!("order_by={order}&page_size={first}")).await);
            for skip in 0..=9 {
                let got = page(reader, &format!("order_by={order}&page_size=3&skip={skip}&page_token={token}")).await;
                let expected: Vec<&str> = all.iter().skip(first + skip).take(3).map(String::as_str).collect();
                assert_eq!(each(&got["repos"], "uid"), expected, "{order}: after {first}, skip {skip}");
                assert_eq!(got["skipped"], skip, "{order}: after {first}, skip {skip}");
            }
        }
    }
}

async fn pages_have_fifty_items_and_two_hundred_at_most(server: &TestServer) {
    let org = server.organization("acme").await;
    let operator = server.operator().await;
    let mut tasks = tokio::task::JoinSet::new();
    for n in 0..205 {
        let (operator, org) = (operator.clone(), org.clone());
        tasks.spawn(async move {
            let body = serde_json::json!({ "name": format!("r{n}") });
            ok(&operator, &format!("POST /registry/v2/repos/{org}"), body).await;
        });
    }
    tasks.join_all().await;
    for (query, length) in
        [("", 50), ("page_size=0", 50), ("page_size=7", 7), ("page_size=200", 200), ("page_size=2000", 200)]
    {
        let page = page(&operator, query).await;
        assert_eq!(page["repos"].as_array().map(Vec::len), Some(length), "{query}");
        assert_eq!(page["totalCount"], "205", "{query}");
    }
    let last = page(&operator, "page_size=200&skip=204").await;
    assert_eq!((last["repos"].as_array().map(Vec::len), last["skipped"].as_i64()), (Some(1), Some(204)));
}

each_engine!(
    a_page_token_serves_its_own_query_only,
    a_page_token_lives_three_days,
    pages_skip_and_count_across_the_places_that_are_visible,
    pages_have_fifty_items_and_two_hundred_at_most
);
