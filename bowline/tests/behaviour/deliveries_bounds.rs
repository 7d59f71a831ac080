//! Deliveries where there is much of something: dead letters, redeliveries, what a deleted subscription leaves.

use std::time::Duration;

use bowline_testkit::{Actor, TestServer, each_engine};
use serde_json::{Value, json};

use crate::deliveries::{create_group, status, subscribe, until};
use crate::sink::Sink;
use crate::support::{each, execute, number, ok};

const HOUR: Duration = Duration::from_secs(3600);

/// Gives a subscription so many dead letters, older than any event.
async fn bury(server: &TestServer, subscription: &str, count: usize) {
    let sql = "INSERT INTO dead_letters (subscription, event_id, seq, at, died_at, last_error, event_type, group_uid,
                                         subject, method, actor, extensions, body_type, body)
               SELECT $1, 'letter ' || CAST(n AS TEXT), n - 10000, 0, at, '', event_type, group_uid, subject, method,
                      actor, extensions, body_type, body
               FROM (WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < COUNT)
                     SELECT n FROM numbers) AS numbers
               CROSS JOIN (SELECT * FROM outbox WHERE subject = $2) AS event";
    let sql = sql.replace("COUNT", &count.to_string());
    execute(server, sql.leak(), &[subscription, subscription]).await;
}

/// The first page.
async fn letters(operator: &Actor, place: &str) -> Value {
    let page = ok(operator, &format!("GET /events/bowline/v1/deadLetters/{place}?page_size=200"), Value::Null).await;
    page["deadLetters"].clone()
}

async fn a_subscription_keeps_its_newest_thousand_dead_letters(server: &TestServer) {
    let org = server.organization("acme").await;
    let operator = server.operator().await;
    let sink = Sink::start().await;
    sink.answer_status(500);
    let subscription = subscribe(&operator, &org, &sink.url).await;
    let other = subscribe(&operator, &server.organization("other").await, &sink.url).await;
    bury(server, &subscription, 999).await;
    bury(server, &other, 5).await;
    for n in 0..3 {
        create_group(&operator, &org, &format!("group {n}")).await;
    }
    until("the failure's record", async || status(&operator, &subscription).await["attempts"] == 1).await;
    server.clock().advance(25 * HOUR);
    let operator = server.operator().await;
    until("their death", async || status(&operator, &subscription).await["attempts"] == 2).await;
    let kept = letters(&operator, &subscription).await;
    assert_eq!(each(&kept, "eventId")[0], "letter 3");
    assert_eq!(number(server, "SELECT count(*) FROM dead_letters").await, 1000 + 5);
    assert_eq!(status(&operator, &subscription).await["deadLetters"], 1000);
    assert_eq!(status(&operator, &other).await["deadLetters"], 5);
}

async fn what_a_deleted_subscription_leaves_is_not_shown_and_goes(server: &TestServer) {
    let org = server.organization("acme").await;
    let operator = server.operator().await;
    let sink = Sink::start().await;
    sink.answer_status(500);
    let (gone, stays) = (subscribe(&operator, &org, &sink.url).await, subscribe(&operator, &org, &sink.url).await);
    bury(server, &gone, 350).await;
    bury(server, &stays, 2).await;
    ok(&operator, &format!("POST /events/bowline/v1/redeliveries/{gone}"), json!({ "all": true })).await;
    ok(&operator, &format!("DELETE /events/v2/subscriptions/{gone}"), Value::Null).await;
    let shown = letters(&operator, &org).await;
    assert_eq!(each(&shown, "subscriptionUid"), [stays.as_str(), &stays]);
    until("the sweep", async || number(server, "SELECT count(*) FROM dead_letters").await == 2).await;
    until("its end", async || number(server, "SELECT count(*) FROM ended_subscriptions").await == 0).await;
    assert_eq!(number(server, "SELECT count(*) FROM redeliveries").await, 0);
}

async fn a_refused_redelivery_ends_those_of_its_subscription_and_no_other(server: &TestServer) {
    let org = server.organization("acme").await;
    let operator = server.operator().await;
    let (bad, good) = (Sink::start().await, Sink::start().await);
    bad.answer_status(500);
    let (refused, taken) = (subscribe(&operator, &org, &bad.url).await, subscribe(&operator, &org, &good.url).await);
    bury(server, &refused, 300).await;
    bury(server, &taken, 40).await;
    for subscription in [&refused, &taken] {
        let send = format!("POST /events/bowline/v1/redeliveries/{subscription}");
        ok(&operator, &send, json!({ "all": true })).await;
    }
    let first = ok(&operator, &format!("POST /events/bowline/v1/redeliveries/{taken}"), json!({ "all": true })).await;
    assert_eq!(first["redelivered"].as_str().unwrap_or("0"), "0", "they wait already");
    until("the redeliveries", async || letters(&operator, &taken).await.as_array().is_none_or(Vec::is_empty)).await;
    until("the end of the others", async || number(server, "SELECT count(*) FROM redeliveries").await == 0).await;
    let is_letter = |one: &&crate::sink::Delivery| one.header("ce-id").starts_with("letter");
    assert_eq!(bad.received().iter().filter(is_letter).count(), 1);
    assert_eq!(good.received().iter().filter(is_letter).count(), 40);
    let left = letters(&operator, &refused).await;
    assert_eq!(left[0]["lastError"], "the host answered with status 500");
    assert_eq!(number(server, "SELECT count(*) FROM dead_letters").await, 300);
}

async fn new_subscriptions_to_a_host_that_hangs_do_not_delay_others(server: &TestServer) {
    let (bad, good) = (server.organization("bad").await, server.organization("good").await);
    let operator = server.operator().await;
    let (slow, sink) = (Sink::start().await, Sink::start().await);
    slow.answer(|_| crate::sink::Answer::Slow(Duration::from_secs(60)));
    for n in 0..300 {
        subscribe(&operator, &bad, &format!("{}/{n}", slow.url)).await;
    }
    subscribe(&operator, &good, &sink.url).await;
    create_group(&operator, &bad, "group").await;
    slow.wait_for(20).await;
    let started = std::time::Instant::now();
    create_group(&operator, &good, "group").await;
    sink.wait_for(1).await;
    assert!(started.elapsed() < Duration::from_secs(4), "it waited {:?}", started.elapsed());
}

each_engine!(
    a_subscription_keeps_its_newest_thousand_dead_letters,
    what_a_deleted_subscription_leaves_is_not_shown_and_goes,
    a_refused_redelivery_ends_those_of_its_subscription_and_no_other,
    new_subscriptions_to_a_host_that_hangs_do_not_delay_others
);
