//! The log of deliveries, test deliveries, and pauses.

use std::time::Duration;

use bowline_testkit::{Actor, TestServer, each_engine};
use serde_json::{Value, json};

use crate::deliveries::{create_group, status, subscribe, until};
use crate::sink::{Answer, Sink};
use crate::support::{absent, each, each_of, execute, holder, number, ok, pages, rejected};

fn path(subscription: &str) -> String {
    format!("/events/bowline/v1/subscriptions/{subscription}")
}

async fn deliveries(actor: &Actor, subscription: &str) -> Vec<Value> {
    let page = ok(actor, &format!("GET {}/deliveries?page_size=200", path(subscription)), Value::Null).await;
    page["deliveries"].as_array().cloned().unwrap_or_default()
}

async fn logged(actor: &Actor, subscription: &str, count: usize) -> Vec<Value> {
    until("the log", async || deliveries(actor, subscription).await.len() >= count).await;
    deliveries(actor, subscription).await
}

async fn attempts_are_logged_with_what_the_sink_responded(server: &TestServer) {
    let org = server.organization("acme").await;
    let operator = server.operator().await;
    let sink = Sink::start().await;
    sink.answer_status(503);
    let subscription = subscribe(&operator, &org, &sink.url).await;
    let group = create_group(&operator, &org, "team").await;
    sink.wait_for(1).await;
    until("the failure", async || status(&operator, &subscription).await["attempts"] == 1).await;
    sink.answer(|_| Answer::Large(5000));
    server.clock().advance(Duration::from_secs(3));
    sink.wait_for(2).await;
    let log = logged(&operator, &subscription, 2).await;
    let [second, first] = log.as_slice() else { panic!("{log:?}") };
    assert_eq!((&first["number"], &first["status"], &first["response"]), (&json!("1"), &json!(503), &json!("thanks")));
    assert_eq!(first["error"], "the host answered with status 503");
    assert_eq!((&second["number"], &second["status"]), (&json!("2"), &json!(200)));
    assert_eq!((second["error"].as_str(), second["response"].as_str().map(str::len)), (Some(""), Some(1024)));
    for one in [first, second] {
        assert_eq!((&one["subject"], &one["kind"]), (&json!(group), &json!("DELIVERY_KIND_EVENT")));
        assert_eq!(one["eventType"], "dev.chainguard.api.iam.group.created.v1");
        assert_eq!(one["payload"], "", "lists have no payloads");
        assert!(one["duration"].as_str().is_some_and(|text| text.ends_with('s')), "{one}");
    }
    let sent = sink.received().remove(0);
    assert_eq!(first["eventId"], sent.header("ce-id"));
    let one = ok(&operator, &format!("GET {}/deliveries/1", path(&subscription)), Value::Null).await;
    assert_eq!(one["payload"].as_str().map(str::as_bytes), Some(&*sent.body), "the body as it was sent");
    let monitor = holder(server, &org, "monitor", &org, &["CAP_EVENTS_SUBSCRIPTION_LIST"]).await.actor;
    let shown = ok(&monitor, &format!("GET {}/deliveries/1", path(&subscription)), Value::Null).await;
    assert_eq!((&shown["payload"], &shown["status"]), (&json!(""), &json!(503)), "bodies have what other lists show");
    rejected(&operator, &format!("GET {}/deliveries/3", path(&subscription)), Value::Null, 404, "NOT_FOUND").await;
    create_group(&operator, &org, "later").await;
    execute(server, "DELETE FROM outbox WHERE subject = $1", &[&group]).await;
    let one = ok(&operator, &format!("GET {}/deliveries/1", path(&subscription)), Value::Null).await;
    assert_eq!((&one["payload"], &one["status"]), (&json!(""), &json!(503)), "without its event");
}

async fn the_newest_two_hundred_are_stored_and_go_with_the_subscription(server: &TestServer) {
    let org = server.organization("acme").await;
    let operator = server.operator().await;
    let sink = Sink::start().await;
    let subscription = subscribe(&operator, &org, &sink.url).await;
    let fill =
        "INSERT INTO delivery_attempts (subscription, number, kind, at, seq, event_id, event_type, subject, took,
                                               status, error, response)
                SELECT $1, n, 1, n, n, '', '', '', 0, NULL, '', ''
                FROM (WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 200)
                      SELECT n FROM numbers) AS numbers";
    execute(server, fill, &[&subscription]).await;
    create_group(&operator, &org, "team").await;
    until("the newest", async || deliveries(&operator, &subscription).await[0]["number"] == "201").await;
    assert_eq!(number(server, "SELECT count(*) FROM delivery_attempts").await, 200);
    let listed = pages(&operator, &format!("GET {}/deliveries?page_size=90", path(&subscription))).await;
    assert_eq!(each_of(&listed, "deliveries", "number"), (2..=201).rev().map(|n| n.to_string()).collect::<Vec<_>>());
    ok(&operator, &format!("DELETE /events/v2/subscriptions/{subscription}"), Value::Null).await;
    assert_eq!(number(server, "SELECT count(*) FROM delivery_attempts").await, 0);
    rejected(&operator, &format!("GET {}/deliveries", path(&subscription)), Value::Null, 404, "NOT_FOUND").await;
}

async fn a_test_is_sent_now_and_not_too_often(server: &TestServer) {
    let org = server.organization("acme").await;
    let (owner, viewer) = (server.actor("owner", &org).await, server.actor("viewer", &org).await);
    let outsider = server.actor("owner", &server.organization("other").await).await;
    let sink = Sink::start().await;
    sink.answer(|_| Answer::Body(b"ok\0\xff<script>"));
    let subscription = subscribe(&server.operator().await, &org, &format!("{}/in?key=secret", sink.url)).await;
    let test = format!("POST {}:test", path(&subscription));
    for actor in [&viewer, &outsider] {
        rejected(actor, &test, json!({}), 403, "PERMISSION_DENIED").await;
    }
    let tested = ok(&owner, &test, json!({})).await;
    let sent = sink.wait_for(1).await.remove(0);
    assert_eq!((&tested["kind"], &tested["status"]), (&json!("DELIVERY_KIND_TEST"), &json!(200)));
    assert_eq!(tested["response"], "ok\u{fffd}\u{fffd}<script>");
    assert_eq!(tested["payload"].as_str().map(str::as_bytes), Some(&*sent.body));
    assert_eq!(sent.header("ce-type"), "dev.bowline.events.subscription.tested.v1");
    assert_eq!((sent.header("ce-subject"), sent.header("ce-group")), (subscription.as_str(), org.as_str()));
    assert_eq!(sent.json()["actor"]["subject"], owner.identity.as_str());
    assert_eq!(sent.json()["body"]["subscription_uid"], subscription.as_str());
    let read = ok(&viewer, &format!("GET {}/deliveries/1", path(&subscription)), Value::Null).await;
    assert_eq!((&read["eventId"], &read["payload"]), (&tested["eventId"], &json!("")));
    let again = rejected(&owner, &test, json!({}), 429, "RATE_LIMITED").await;
    assert!(again.message().contains("once in 10 s"), "{}", again.message());
    assert_eq!(sink.received().len(), 1);
    server.clock().advance(Duration::from_secs(10));
    sink.answer_status(500);
    let failed = ok(&owner, &test, json!({})).await;
    assert_eq!((&failed["status"], &failed["error"]), (&json!(500), &json!("the host answered with status 500")));
    assert_eq!(status(&owner, &subscription).await["attempts"], 0, "the subscription does not fail by it");
    let nowhere = format!("POST {}:test", path(&absent(&org)));
    rejected(&owner, &nowhere, json!({}), 404, "NOT_FOUND").await;
}

async fn a_paused_subscription_gets_nothing_until_it_is_resumed(server: &TestServer) {
    let org = server.organization("acme").await;
    let team = server.group(&org, "team").await;
    let owner = server.actor("owner", &org).await;
    let (sink, above) = (Sink::start().await, Sink::start().await);
    let operator = server.operator().await;
    subscribe(&operator, &org, &above.url).await;
    let subscription = subscribe(&operator, &team, &sink.url).await;
    let (pause, resume) =
        (format!("POST {}:pause", path(&subscription)), format!("POST {}:resume", path(&subscription)));
    rejected(&server.actor("viewer", &org).await, &pause, json!({}), 403, "PERMISSION_DENIED").await;
    let paused = ok(&owner, &pause, json!({})).await;
    assert_eq!(ok(&owner, &pause, json!({})).await, paused, "twice is once");
    assert_eq!(status(&owner, &subscription).await["pauseTime"], paused["pauseTime"]);
    let children = [create_group(&owner, &team, "one").await, create_group(&owner, &team, "two").await];
    // The other subscription has all of them: created, paused, two groups.
    let heard = above.wait_for(4).await;
    let kinds: Vec<&str> = heard.iter().map(|one| one.header("ce-type")).collect();
    assert_eq!(kinds.iter().filter(|kind| kind.ends_with("subscription.paused.v1")).count(), 1, "{kinds:?}");
    // The pause itself is of the group, too.
    until("three events wait", async || status(&owner, &subscription).await["waiting"] == 3).await;
    assert_eq!(ok(&owner, &format!("POST {}:test", path(&subscription)), json!({})).await["status"], 200);
    assert_eq!(sink.received().len(), 1, "a test comes through");
    assert!(ok(&owner, &resume, json!({})).await["pauseTime"].is_null());
    let received = sink.wait_for(5).await;
    assert!(received[0].header("ce-type").ends_with(".tested.v1"), "and nothing before it");
    let subjects: Vec<&str> = received.iter().map(|one| one.header("ce-subject")).collect();
    let own = subscription.as_str();
    assert_eq!(subjects, [own, own, &children[0], &children[1], own], "in their order");
    let log = ok(&owner, &format!("GET /audit/v1/history/{subscription}"), Value::Null).await;
    let methods = each(&log["entries"], "method");
    let count = |name: &str| methods.iter().filter(|method| method.ends_with(name)).count();
    assert_eq!((count(".Pause"), count(".Resume"), count(".TestDelivery")), (1, 1, 1), "{methods:?}");
}

async fn failures_of_before_a_pause_let_no_event_die_after_it(server: &TestServer) {
    let org = server.organization("acme").await;
    let operator = server.operator().await;
    let sink = Sink::start().await;
    sink.answer_status(500);
    let subscription = subscribe(&operator, &org, &sink.url).await;
    create_group(&operator, &org, "team").await;
    until("a failure", async || status(&operator, &subscription).await["attempts"] != 0).await;
    ok(&operator, &format!("POST {}:pause", path(&subscription)), json!({})).await;
    server.clock().advance(Duration::from_secs(2 * 24 * 3600));
    sink.answer_status(200);
    let operator = server.operator().await;
    let before = sink.received().len();
    ok(&operator, &format!("POST {}:resume", path(&subscription)), json!({})).await;
    sink.wait_for(before + 3).await;
    until("the end", async || status(&operator, &subscription).await["waiting"] == 0).await;
    assert_eq!(status(&operator, &subscription).await["deadLetters"], 0);
}

each_engine!(
    attempts_are_logged_with_what_the_sink_responded,
    the_newest_two_hundred_are_stored_and_go_with_the_subscription,
    a_test_is_sent_now_and_not_too_often,
    a_paused_subscription_gets_nothing_until_it_is_resumed,
    failures_of_before_a_pause_let_no_event_die_after_it
);
