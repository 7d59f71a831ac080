//! What is stored and what happens, in numbers.

use bowline_core::{Clock as _, Error, rfc3339};
use bowline_store::activity::{self, Activity, ActivityKind};
use bowline_testkit::{Actor, TestServer, each_engine};
use serde_json::{Value, json};

use crate::support::{absent, each, execute, holder, number, ok, rejected};

const DAY: i64 = 24 * 3600 * 1_000_000;

/// Counts something that happened so many days ago, and waits until it is in its day.
pub(crate) async fn happened(server: &TestServer, activity: (&str, &str, ActivityKind), ago: i64, n: i64) {
    let now = server.clock().now();
    let (scope, identity, kind) = (activity.0.to_owned(), activity.1.to_owned(), activity.2);
    let db = &server.server().parts().storage.db;
    let written = db.write(move |tx| {
        let (scope, identity) = (scope.clone(), identity.clone());
        Box::pin(async move {
            let day = activity::day_of(now - ago * DAY);
            let activity = Activity { scope: &scope, identity: &identity, day, kind };
            activity::record(tx, &activity, n).await.map_err(Error::from)
        })
    });
    written.await.expect("the database counts");
    while number(server, "SELECT count(*) FROM activity_deltas").await > 0 {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
}

async fn amounts(actor: &Actor, scope: &str, query: &str) -> Vec<i64> {
    let shown = ok(actor, &format!("GET /statistics/v1/activity/{scope}?{query}"), Value::Null).await;
    each(&shown["days"], "amount").iter().map(|amount| amount.parse().expect("a number")).collect()
}

async fn activity_is_summed_by_day_at_every_scope(server: &TestServer) {
    let org = server.organization("acme").await;
    let team = server.group(&org, "team").await;
    let (web, db) = (server.repo(&team, "web").await, server.repo(&org, "db").await);
    let bot = server.identity(&org, "bot").await;
    happened(server, (&web, &bot, ActivityKind::Pulls), 0, 3).await;
    happened(server, (&web, "", ActivityKind::Pulls), 1, 4).await;
    happened(server, (&db, &bot, ActivityKind::Pulls), 0, 5).await;
    happened(server, (&web, &bot, ActivityKind::Pushes), 0, 7).await;
    let operator = server.operator().await;
    for (scope, yesterday, today) in [(&web, 4, 3), (&team, 4, 3), (&org, 4, 8), (&db, 0, 5)] {
        let days = amounts(&operator, scope, "").await;
        assert_eq!((days.len(), &days[28..]), (30, &[yesterday, today][..]), "{scope}");
    }
    assert_eq!(amounts(&operator, &web, "kind=ACTIVITY_KIND_PUSHES").await.last(), Some(&7));
    assert_eq!(amounts(&operator, &web, "kind=ACTIVITY_KIND_BYTES").await.last(), Some(&0));
    let start = server.clock().now() - DAY;
    let start = rfc3339::text(start, rfc3339::Digits::SixOrNone);
    assert_eq!(amounts(&operator, &web, &format!("start_time={start}")).await, [4, 3]);
    let what = format!("GET /statistics/v1/activity/{web}");
    for (query, field) in [
        ("start_time=1971-01-01T00:00:00Z", "startTime"),
        ("start_time=2200-01-01T00:00:00Z", "startTime"),
        ("end_time=1960-01-02T00:00:00Z", "endTime"),
    ] {
        let refusal = rejected(&operator, &format!("{what}?{query}"), Value::Null, 400, "INVALID_ARGUMENT").await;
        assert_eq!(refusal.fields(), [field], "{query}");
    }
    let nowhere = format!("GET /statistics/v1/activity/{}", absent(&org));
    rejected(&operator, &nowhere, Value::Null, 404, "NOT_FOUND").await;
    let reader = holder(server, &team, "reader", &team, &["CAP_REPO_LIST"]).await.actor;
    assert_eq!(amounts(&reader, &web, "").await.last(), Some(&3));
    let above = format!("GET /statistics/v1/activity/{org}");
    rejected(&reader, &above, Value::Null, 403, "PERMISSION_DENIED").await;
}

async fn days_that_are_too_old_end(server: &TestServer) {
    let org = server.organization("acme").await;
    happened(server, (&org, "", ActivityKind::BlockedPackages), 500, 1).await;
    happened(server, (&org, "", ActivityKind::BlockedPackages), 300, 1).await;
    let now = server.clock().now();
    let db = &server.server().parts().storage.db;
    let pruned = db.write(move |tx| Box::pin(async move { activity::prune(tx, now).await.map_err(Error::from) })).await;
    assert_eq!(pruned.expect("the database prunes"), 1);
    assert_eq!(number(server, "SELECT count(*) FROM activity_days").await, 1);
}

async fn usage_is_what_quotas_count(server: &TestServer) {
    let org = server.organization("acme").await;
    let (web, db) = (server.repo(&org, "web").await, server.repo(&org, "db").await);
    let operator = server.operator().await;
    for (repo, bytes) in [(&web, "10"), (&db, "30")] {
        let sql = "INSERT INTO count_deltas (collection, uid, delta) VALUES ('blob_bytes', $1, CAST(CAST($2 AS TEXT) AS BIGINT))";
        execute(server, sql, &[repo, bytes]).await;
    }
    let quota = json!({ "byteQuota": "1000" });
    ok(&operator, &format!("PATCH /registrypolicies/v1/groups/{org}"), quota).await;
    let usage = ok(&operator, &format!("GET /statistics/v1/usage/{org}"), Value::Null).await;
    for (member, expected) in
        [("bytes", "40"), ("byteQuota", "1000"), ("repos", "2"), ("tags", "0"), ("uploadBytes", "0")]
    {
        assert_eq!(usage[member], json!(expected), "{member}");
    }
    assert_eq!(ok(&operator, &format!("GET /statistics/v1/usage/{web}"), Value::Null).await["bytes"], json!("10"));
    let top = ok(&operator, &format!("GET /statistics/v1/usage/{org}:top?limit=1"), Value::Null).await;
    assert_eq!(top["rows"], json!([{ "uid": db, "name": "db", "amount": "30" }]));

    let (bot, foreign) = (server.identity(&org, "bot").await, server.organization("other").await);
    let stranger = server.identity(&foreign, "stranger").await;
    happened(server, (&web, &bot, ActivityKind::Pulls), 0, 2).await;
    happened(server, (&web, &stranger, ActivityKind::Pulls), 0, 9).await;
    let what = format!("GET /statistics/v1/usage/{org}:top?order=USAGE_ORDER_PULLS_BY_IDENTITY");
    let needed = ["CAP_REPO_LIST", "CAP_IAM_GROUPS_LIST", "CAP_IAM_IDENTITY_LIST"];
    let reader = holder(server, &org, "reader", &org, &needed).await.actor;
    let top = ok(&reader, &what, Value::Null).await;
    assert_eq!(each(&top["rows"], "uid"), ["", &bot], "who cannot be listed is not named");
    assert_eq!(each(&top["rows"], "amount"), ["9", "2"]);
    let top = ok(&operator, &what, Value::Null).await;
    assert_eq!(each(&top["rows"], "uid"), [&stranger, &bot]);
    let negative = format!("GET /statistics/v1/usage/{org}:top?limit=-1");
    rejected(&operator, &negative, Value::Null, 400, "INVALID_ARGUMENT").await;
}

each_engine!(activity_is_summed_by_day_at_every_scope, days_that_are_too_old_end, usage_is_what_quotas_count);
