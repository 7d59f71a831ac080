//! Deliveries: who gets which events, in which order, how often, and what becomes of those that no one takes.

use std::time::Duration;

use axum::http::{HeaderName, HeaderValue};
use bowline_authn::claims::{TokenClass, verify_own};
use bowline_authn::crypto::sha256;
use bowline_testkit::{Actor, TestServer, each_engine};
use serde_json::{Value, json};

use crate::sink::{Answer, Delivery, Sink};
use crate::support::{call, each, number, ok, rejected, uid_of};

const HOUR: Duration = Duration::from_secs(3600);

/// Subscribes a sink, by v1: it takes plain http.
pub(crate) async fn subscribe(operator: &Actor, group: &str, sink: &str) -> String {
    let made = ok(operator, &format!("POST /events/v1/subscriptions/{group}"), json!({ "sink": sink })).await;
    made["id"].as_str().expect("an id").to_owned()
}

pub(crate) async fn create_group(operator: &Actor, parent: &str, name: &str) -> String {
    uid_of(&ok(operator, &format!("POST /iam/v2/groups/{parent}"), json!({ "name": name })).await)
}

pub(crate) async fn status(operator: &Actor, subscription: &str) -> Value {
    ok(operator, &format!("GET /events/bowline/v1/deliveryStatus/{subscription}"), Value::Null).await
}

/// Asks until the answer is as wanted.
pub(crate) async fn until(what: &str, mut ask: impl AsyncFnMut() -> bool) {
    for _ in 0..2000 {
        if ask().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("{what} did not come to pass");
}

async fn events_go_to_their_group_and_everything_above_in_order(server: &TestServer) {
    let org = server.organization("acme").await;
    let (team, other) = (server.group(&org, "team").await, server.group(&org, "other").await);
    let elsewhere = server.organization("elsewhere").await;
    let operator = server.operator().await;
    let sink = Sink::start().await;
    for (group, path) in [(&org, "org"), (&team, "team"), (&other, "other"), (&elsewhere, "elsewhere")] {
        subscribe(&operator, group, &format!("{}/{path}", sink.url)).await;
    }
    let mut made = Vec::new();
    for n in 0..5 {
        made.push(create_group(&operator, &team, &format!("child {n}")).await);
    }
    ok(&operator, &format!("PATCH /iam/v2/groups/{org}"), json!({ "description": "d" })).await;
    // The three later subscriptions in the organization, five groups twice, and the organization itself.
    sink.wait_for(2 + 10 + 1).await;
    // Each subscription receives in order: whatever else was sent has come when its last event has.
    for group in [&team, &other, &elsewhere] {
        create_group(&operator, group, "last").await;
    }
    let received = sink.wait_for(2 + 10 + 1 + 2 + 2 + 1).await;
    for (path, count) in [("/org", 2 + 5 + 1 + 2), ("/team", 5 + 1), ("/other", 1), ("/elsewhere", 1)] {
        assert_eq!(received.iter().filter(|one| one.path == path).count(), count, "{path}");
    }
    let is_last = |one: &Delivery| one.json()["body"]["group"]["name"] == "last";
    let received: Vec<Delivery> = received.into_iter().filter(|one| !is_last(one)).collect();
    let subjects = |path: &str, kind: &str| {
        let of = received.iter().filter(|one| one.path == path && one.header("ce-type").contains(kind));
        of.map(|one| one.header("ce-subject").to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(subjects("/team", "group.created"), made);
    assert_eq!(subjects("/org", "group.created"), made);
    assert_eq!(subjects("/org", "subscription.created").len(), 2, "those of its groups, and not itself");
    assert_eq!(subjects("/org", "group.updated"), [org.as_str()], "an organization's own events are in it");
    assert_eq!(subjects("/team", "").len(), 5, "what came before it is not told");
    assert_eq!(subjects("/other", "").len() + subjects("/elsewhere", "").len(), 0);
}

async fn a_delivery_is_a_signed_cloud_event(server: &TestServer) {
    let org = server.organization("acme").await;
    let team = server.group(&org, "team").await;
    let owner = server.actor("owner", &org).await;
    let operator = server.operator().await;
    let sink = Sink::start().await;
    subscribe(&operator, &team, &sink.url).await;
    let child = create_group(&owner, &team, "child").await;
    let delivery = sink.wait_for(1).await.remove(0);
    for (name, value) in [
        ("content-type", "application/json"),
        ("ce-specversion", "1.0"),
        ("ce-type", "dev.chainguard.api.iam.group.created.v1"),
        ("ce-subject", &child),
        ("ce-group", &team),
        ("ce-audience", "customer"),
        ("ce-bodytype", "chainguard.platform.iam.CreateGroupRequest"),
        ("ce-source", &format!("{}/iam/v2/groups", server.base())),
    ] {
        assert_eq!(delivery.header(name), value, "{name}");
    }
    assert_eq!(delivery.header("ce-id").len(), 36);
    let time = delivery.header("ce-time");
    assert!(time.len() == 30 && time.ends_with("000Z"), "{time}");
    let body = delivery.json();
    assert_eq!(body["actor"]["subject"], owner.identity.as_str());
    assert_eq!(body["actor"]["act"]["iss"], server.idp().issuer(), "who the actor signed in as");
    assert_eq!(body["body"]["parent"], team.as_str());
    assert_eq!(body["body"]["group"]["name"], "child");
    let keys = server.server().parts().authenticator.keys();
    let issuer = &server.server().parts().settings.auth_url;
    let now = server.clock().seconds();
    let own = |class| verify_own(delivery.token(), class, &keys.verification, issuer, &["customer"], now);
    assert_eq!(own(TokenClass::Webhook).expect("the token is good").sub, format!("webhook:{team}"));
    assert!(own(TokenClass::Access).is_err(), "and opens nothing else");
    let (_, claims) = delivery.token_parts();
    let digest = format!("sha256:{}", bowline_core::hex(&sha256(&delivery.body)));
    assert_eq!(claims["webhook"]["digest"], digest);
    assert!(claims["exp"].as_i64() <= Some(now + 600));
    let with_it = call(&operator.with_token(delivery.token()), "GET /iam/v2/groups", Value::Null).await;
    assert_eq!(with_it.status, 401);
}

/// Verifies a delivery as docs/API-DESIGN.md describes: digests of the body, of the `Ce-*` headers, and of
/// the sink's address against those of the token.
fn is_covered(delivery: &Delivery, sink: &str) -> bool {
    let digest = |bytes: &[u8]| format!("sha256:{}", bowline_core::hex(&sha256(bytes)));
    let line = |(name, value): (&HeaderName, &HeaderValue)| format!("{name}:{}\n", value.to_str().expect("text"));
    let mut lines: Vec<String> =
        delivery.headers.iter().filter(|(name, _)| name.as_str().starts_with("ce-")).map(line).collect();
    lines.sort();
    let (_, claims) = delivery.token_parts();
    let covers = [
        ("digest", digest(&delivery.body)),
        ("headers", digest(lines.concat().as_bytes())),
        ("sink", digest(sink.as_bytes())),
    ];
    covers.iter().all(|(name, digest)| claims["webhook"][name] == digest.as_str())
}

async fn the_token_of_a_delivery_covers_its_body_each_header_and_the_sink(server: &TestServer) {
    let org = server.organization("acme").await;
    let operator = server.operator().await;
    let sink = Sink::start().await;
    let sinks = [format!("{}/one?key=secret", sink.url), format!("{}/two", sink.url)];
    for url in &sinks {
        subscribe(&operator, &org, url).await;
    }
    create_group(&operator, &org, "team").await;
    let received = sink.wait_for(3).await;
    let created: Vec<&Delivery> =
        received.iter().filter(|one| one.header("ce-type").ends_with("group.created.v1")).collect();
    assert_eq!(created.len(), 2, "both sinks have the event");
    for delivery in created {
        let own = sinks.iter().find(|url| url.ends_with(&delivery.path)).expect("a sink");
        let other = sinks.iter().find(|url| *url != own).expect("the other one");
        assert!(is_covered(delivery, own));
        assert!(!is_covered(delivery, other), "the same event, delivered to another sink of the group");
        assert!(!delivery.token().contains("secret") && !delivery.token_parts().1.to_string().contains("secret"));
        let names: Vec<&HeaderName> = delivery.headers.keys().filter(|name| name.as_str().starts_with("ce-")).collect();
        assert!(names.len() >= 9, "{names:?}");
        for name in names {
            let (mut changed, mut removed) = (delivery.clone(), delivery.clone());
            changed.headers.insert(name.clone(), HeaderValue::from_static("forged"));
            removed.headers.remove(name);
            assert!(!is_covered(&changed, own) && !is_covered(&removed, own), "{name}");
        }
        let mut added = delivery.clone();
        added.headers.insert("ce-added", HeaderValue::from_static("forged"));
        assert!(!is_covered(&added, own));
        let body = [&delivery.body[..delivery.body.len() - 1], b",\"x\":1}"].concat();
        assert!(!is_covered(&Delivery { body, ..delivery.clone() }, own));
    }
}

async fn what_fails_is_tried_again_and_holds_its_place(server: &TestServer) {
    let org = server.organization("acme").await;
    let operator = server.operator().await;
    let sink = Sink::start().await;
    sink.answer_status(500);
    let subscription = subscribe(&operator, &org, &sink.url).await;
    let made = [create_group(&operator, &org, "one").await, create_group(&operator, &org, "two").await];
    sink.wait_for(1).await;
    // The second event may be counted after the first one was sent.
    until("the failure's record, and the second event", async || {
        let told = status(&operator, &subscription).await;
        told["attempts"] == 1 && told["waiting"] == 2
    })
    .await;
    let told = status(&operator, &subscription).await;
    assert_eq!(told["lastError"], "the host answered with status 500");
    assert_eq!((&told["waiting"], told["nextAttemptTime"].is_string()), (&json!(2), true));
    assert_eq!((told["failingSince"].is_string(), told["oldestWaitingTime"].is_string()), (true, true));
    server.clock().advance(HOUR);
    let operator = server.operator().await;
    let again = sink.wait_for(2).await;
    assert_eq!(again[0].header("ce-id"), again[1].header("ce-id"), "the same event with the same id");
    assert_ne!(again[0].token(), again[1].token(), "each attempt has a token of its own");
    until("the second failure", async || status(&operator, &subscription).await["attempts"] == 2).await;
    sink.answer_status(204);
    server.clock().advance(HOUR);
    let operator = server.operator().await;
    let received = sink.wait_for(4).await;
    let subjects: Vec<&str> = received[2..].iter().map(|one| one.header("ce-subject")).collect();
    assert_eq!(subjects, made);
    until("a good end", async || {
        let told = status(&operator, &subscription).await;
        told["attempts"] == 0 && told["waiting"] == 0 && told["lastError"] == "" && told["failingSince"].is_null()
    })
    .await;
}

async fn after_a_day_events_are_dead_and_can_be_sent_again(server: &TestServer) {
    let org = server.organization("acme").await;
    let operator = server.operator().await;
    let sink = Sink::start().await;
    sink.answer_status(410);
    let subscription = subscribe(&operator, &org, &sink.url).await;
    for n in 0..3 {
        create_group(&operator, &org, &format!("group {n}")).await;
    }
    let first = sink.wait_for(1).await.remove(0);
    until("the failure's record", async || status(&operator, &subscription).await["attempts"] == 1).await;
    server.clock().advance(25 * HOUR);
    sink.wait_for(2).await;
    let operator = server.operator().await;
    until("their death", async || status(&operator, &subscription).await["deadLetters"] == 3).await;
    assert_eq!(status(&operator, &subscription).await["waiting"], 0);
    let letters = format!("GET /events/bowline/v1/deadLetters/{subscription}");
    let page = ok(&operator, &format!("{letters}?page_size=2"), Value::Null).await;
    let token = page["nextPageToken"].as_str().expect("a token");
    let rest = ok(&operator, &format!("{letters}?page_size=2&page_token={token}"), Value::Null).await;
    let ids: Vec<&str> = [each(&page["deadLetters"], "eventId"), each(&rest["deadLetters"], "eventId")].concat();
    assert_eq!((ids.len(), ids[0]), (3, first.header("ce-id")));
    assert_eq!(page["deadLetters"][0]["lastError"], "the host answered with status 410");
    let above = ok(&operator, &format!("GET /events/bowline/v1/deadLetters/{org}"), Value::Null).await;
    assert_eq!(each(&above["deadLetters"], "eventId"), ids);

    let send = format!("POST /events/bowline/v1/redeliveries/{subscription}");
    rejected(&operator, &send, json!({}), 400, "INVALID_ARGUMENT").await;
    rejected(&operator, &send, json!({ "all": true, "eventId": ids[0] }), 400, "INVALID_ARGUMENT").await;
    let unknown = json!({ "eventId": "00000000-0000-8000-8000-000000000000" });
    rejected(&operator, &send, unknown, 404, "NOT_FOUND").await;
    // One that fails again stays what it is.
    sink.answer_status(503);
    assert_eq!(ok(&operator, &send, json!({ "eventId": ids[1] })).await["redelivered"], "1");
    until("the answer", async || {
        let list = ok(&operator, &letters, Value::Null).await;
        list["deadLetters"][1]["lastError"] == "the host answered with status 503"
    })
    .await;
    sink.answer_status(200);
    let count = sink.received().len();
    assert_eq!(ok(&operator, &send, json!({ "all": true })).await["redelivered"], "3");
    let received = sink.wait_for(count + 3).await;
    let again: Vec<&str> = received[count..].iter().map(|one| one.header("ce-id")).collect();
    assert_eq!(again, ids, "in their order, with the ids they had");
    assert_eq!(received[count].body, first.body);
    until("no dead letters", async || status(&operator, &subscription).await["deadLetters"] == 0).await;
    let sql = "SELECT count(*) FROM audit WHERE method = 'bowline.events.v1.DeliveriesService.Redeliver'";
    assert_eq!(number(server, sql).await, 2);
    // The past is over: new events come at once.
    create_group(&operator, &org, "new").await;
    until("the new event", async || {
        sink.received().last().is_some_and(|one| one.json()["body"]["group"]["name"] == "new")
    })
    .await;
}

async fn slow_and_talkative_sinks_do_not_delay_others(server: &TestServer) {
    let org = server.organization("acme").await;
    let operator = server.operator().await;
    let (slow, large, good) = (Sink::start().await, Sink::start().await, Sink::start().await);
    slow.answer(|_| Answer::Slow(Duration::from_secs(60)));
    large.answer(|_| Answer::Large(10 << 20));
    for sink in [&slow, &large, &good] {
        let team =
            create_group(&operator, &org, &format!("team {}", sink.url.rsplit(':').next().expect("a port"))).await;
        subscribe(&operator, &team, &sink.url).await;
        for n in 0..3 {
            create_group(&operator, &team, &format!("group {n}")).await;
        }
    }
    let started = std::time::Instant::now();
    good.wait_for(3).await;
    assert!(started.elapsed() < Duration::from_secs(9), "the slow one was waited for: {:?}", started.elapsed());
    large.wait_for(3).await;
    assert_eq!(slow.received().len(), 1);
}

/// What a refused address and a host that is not there have in common: the wording must not explore the operator's network.
const NO_CONNECTION: &str = "no connection to the host, or its address is not allowed";

async fn redirects_are_not_followed_and_failures_are_listed(server: &TestServer) {
    let org = server.organization("acme").await;
    let operator = server.operator().await;
    let (sink, other) = (Sink::start().await, Sink::start().await);
    let to = other.url.clone();
    sink.answer(move |_| Answer::Redirect(to.clone()));
    let mut subscriptions = Vec::new();
    for (sink, error) in [
        (sink.url.as_str(), "the host answered with status 302"),
        ("http://10.0.0.1/", NO_CONNECTION),
        ("https://169.254.169.254/", NO_CONNECTION),
        ("http://127.0.0.1:1/", NO_CONNECTION),
    ] {
        subscriptions.push((subscribe(&operator, &org, sink).await, error));
    }
    create_group(&operator, &org, "team").await;
    for (subscription, error) in subscriptions {
        let told = async || status(&operator, &subscription).await["lastError"] == error;
        until(error, told).await;
    }
    assert!(other.received().is_empty());
}

async fn a_deleted_subscription_hears_no_more_and_leaves_nothing(server: &TestServer) {
    let org = server.organization("acme").await;
    let operator = server.operator().await;
    let sink = Sink::start().await;
    sink.answer_status(500);
    let subscription = subscribe(&operator, &org, &sink.url).await;
    create_group(&operator, &org, "one").await;
    sink.wait_for(1).await;
    until("the failure's record", async || status(&operator, &subscription).await["attempts"] == 1).await;
    let witness = Sink::start().await;
    subscribe(&operator, &org, &witness.url).await;
    ok(&operator, &format!("DELETE /events/v2/subscriptions/{subscription}"), Value::Null).await;
    witness.wait_for(1).await;
    server.clock().advance(HOUR);
    create_group(&server.operator().await, &org, "two").await;
    witness.wait_for(2).await;
    assert_eq!(sink.received().len(), 1);
    let sql = "SELECT count(*) FROM subscription_cursors WHERE subscription NOT IN (SELECT uid FROM subscriptions)";
    assert_eq!(number(server, sql).await, 0);
}

async fn the_log_forgets_what_is_old_and_delivered(server: &TestServer) {
    let org = server.organization("acme").await;
    let operator = server.operator().await;
    let sink = Sink::start().await;
    let subscription = subscribe(&operator, &org, &sink.url).await;
    for n in 0..5 {
        create_group(&operator, &org, &format!("group {n}")).await;
    }
    sink.wait_for(5).await;
    until("a good end", async || status(&operator, &subscription).await["waiting"] == 0).await;
    server.clock().advance(24 * 8 * HOUR);
    until("forgetting", async || number(server, "SELECT count(*) FROM outbox").await == 1).await;
    let operator = server.operator().await;
    create_group(&operator, &org, "later").await;
    let last = sink.wait_for(6).await.pop().expect("a delivery");
    assert_eq!(last.json()["body"]["group"]["name"], "later");
}

each_engine!(
    events_go_to_their_group_and_everything_above_in_order,
    a_delivery_is_a_signed_cloud_event,
    the_token_of_a_delivery_covers_its_body_each_header_and_the_sink,
    what_fails_is_tried_again_and_holds_its_place,
    after_a_day_events_are_dead_and_can_be_sent_again,
    slow_and_talkative_sinks_do_not_delay_others,
    redirects_are_not_followed_and_failures_are_listed,
    a_deleted_subscription_hears_no_more_and_leaves_nothing,
    the_log_forgets_what_is_old_and_delivered
);
