//! Kills the real server again and again while it delivers, and looks at what the sinks got.
//!
//! Repositories are created in leaf groups; sinks are subscribed there, further up, and at the organization,
//! and fail at random. In the end every event must have come to every subscription above it at least once,
//! first in the order of the log, and audit log, outbox and rows must have the same repositories.
//!
//! `BOWLINE_DELIVERY_SUBSCRIPTIONS`, `BOWLINE_DELIVERY_CHANGES`, `BOWLINE_DELIVERY_KILLS` size it,
//! `BOWLINE_DELIVERY_SEED` sets another course; PostgreSQL is at `BOWLINE_TEST_POSTGRES`, and
//! `BOWLINE_TEST_SKIP_POSTGRES=1` leaves it out.

#[path = "delivery/check.rs"]
mod check;
#[path = "delivery/client.rs"]
mod client;
#[path = "crash/server.rs"]
mod server;
#[path = "delivery/sinks.rs"]
mod sinks;
#[path = "crash/storage.rs"]
mod storage;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;
use tokio::task::JoinSet;

use client::Client;
use server::{Addresses, Server, operator_token};
use sinks::{Sinks, mixed};
use storage::Storage;

const WRITERS: usize = 4;
/// Time for the last events to arrive after the last kill.
const PATIENCE: Duration = Duration::from_mins(15);

/// How much.
#[derive(Clone, Copy, Debug)]
struct Plan {
    subscriptions: usize,
    changes: usize,
    kills: usize,
    seed: u64,
}

fn env(name: &str) -> Option<String> {
    std::env::var_os(name).and_then(|value| value.into_string().ok())
}

fn plan() -> Plan {
    let number = |name: &str, default: usize| env(name).map_or(default, |text| text.parse().expect("a number"));
    Plan {
        subscriptions: number("BOWLINE_DELIVERY_SUBSCRIPTIONS", 100),
        changes: number("BOWLINE_DELIVERY_CHANGES", 1000),
        kills: number("BOWLINE_DELIVERY_KILLS", 2),
        seed: number("BOWLINE_DELIVERY_SEED", 1) as u64,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sqlite_delivers_everything_in_order_through_kills() {
    run(None, plan()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn postgres_delivers_everything_in_order_through_kills() {
    if env("BOWLINE_TEST_SKIP_POSTGRES").is_some_and(|skip| skip == "1") {
        return;
    }
    let admin = env("BOWLINE_TEST_POSTGRES").expect(
        "set BOWLINE_TEST_POSTGRES to the URL of an admin database, \
         or BOWLINE_TEST_SKIP_POSTGRES=1 to leave PostgreSQL untested",
    );
    run(Some(admin), plan()).await;
}

/// Two replicas of one database: when the one that delivers is gone, the other continues.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_replica_takes_over_within_a_quarter_of_a_minute() {
    let Some(admin) = env("BOWLINE_TEST_POSTGRES").filter(|_| env("BOWLINE_TEST_SKIP_POSTGRES").is_none()) else {
        return;
    };
    let storage = Storage::create(Some(&admin)).await;
    let (first, second) = (Addresses::free(), Addresses::free());
    let holder = started_server(&storage, first).await;
    let token = operator_token(&storage);
    let mut client = Client::new(first.api, &token);
    let sinks = Sinks::start(1).await;
    let made = client.call("POST", "/iam/v2/groups/", &json!({ "name": "acme" })).await.expect("an answer");
    let org = made["uid"].as_str().expect("a uid").to_owned();
    let body = json!({ "sink": sinks.url(0, usize::MAX) });
    client.call("POST", &format!("/events/v1/subscriptions/{org}"), &body).await.expect("an answer");
    let create = format!("/registry/v2/repos/{org}");
    client.call("POST", &create, &json!({ "name": "one" })).await.expect("an answer");
    sinks.wait_for(1, Duration::from_secs(15)).await;

    let other = started_server(&storage, second).await;
    let token = operator_token(&storage);
    holder.kill();
    let mut client = Client::new(second.api, &token);
    client.call("POST", &create, &json!({ "name": "two" })).await.expect("an answer");
    sinks.wait_for(2, Duration::from_secs(15)).await;
    other.kill();
    storage.drop_database().await;
}

async fn run(postgres: Option<String>, plan: Plan) {
    let engine = if postgres.is_some() { "PostgreSQL" } else { "SQLite" };
    let started = Instant::now();
    let storage = Storage::create(postgres.as_deref()).await;
    let addresses = Addresses::free();
    let mut server = started_server(&storage, addresses).await;
    let token = operator_token(&storage);
    let mut client = Client::new(addresses.api, &token);
    let sinks = Sinks::start(plan.seed).await;
    let leaves = furnish(&mut client, &sinks, &plan).await;

    let written = Arc::new(AtomicUsize::new(0));
    let mut writers = JoinSet::new();
    for n in 0..WRITERS {
        writers.spawn(write(Client::new(addresses.api, &token), n, leaves.clone(), plan, written.clone()));
    }
    for kill in 0..plan.kills {
        // Evenly through the writing; the last ones while only deliveries are left.
        let mark = plan.changes * (kill + 1) / plan.kills.max(1);
        while written.load(Ordering::Relaxed) < mark {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        tokio::time::sleep(Duration::from_millis(mixed(plan.seed, kill as u64) % 500)).await;
        server.kill();
        server = started_server(&storage, addresses).await;
    }
    let acknowledged: Vec<String> = writers.join_all().await.into_iter().flatten().collect();

    let wrote = started.elapsed();
    let waiting = Instant::now();
    loop {
        let db = storage.open().await;
        let report = check::compare(&db, &sinks).await;
        db.close().await;
        match report {
            Ok(seen) => {
                server.kill();
                finish(&storage, &acknowledged).await;
                tell(engine, &plan, acknowledged.len(), wrote, started.elapsed(), &seen);
                break;
            }
            Err(check::Unlike::Missing(missing)) => {
                assert!(waiting.elapsed() < PATIENCE, "{missing} deliveries are missing");
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
            Err(check::Unlike::Wrong(what)) => panic!("{what}"),
        }
    }
    storage.drop_database().await;
}

async fn finish(storage: &Storage, acknowledged: &[String]) {
    let db = storage.open().await;
    check::rows(&db, acknowledged).await;
    db.close().await;
}

#[expect(clippy::print_stdout, reason = "shown with --nocapture: how much was looked at")]
fn tell(engine: &str, plan: &Plan, acknowledged: usize, wrote: Duration, all: Duration, seen: &check::Seen) {
    let (wrote, all) = (wrote.as_secs_f64(), all.as_secs_f64());
    println!("{engine}: {plan:?}, {acknowledged} acknowledged in {wrote:.1} s, all delivered in {all:.1} s, {seen:?}");
}

async fn started_server(storage: &Storage, addresses: Addresses) -> Server {
    let mut server = Server::spawn(storage, addresses);
    server.ready().await;
    server
}

/// An organization of ten divisions with nine teams each. Nine of ten subscriptions are on teams, the others on
/// divisions, and every hundredth on the organization.
async fn furnish(client: &mut Client, sinks: &Sinks, plan: &Plan) -> Vec<String> {
    let mut group = async |parent: &str, name: String| {
        let made = client.call("POST", &format!("/iam/v2/groups/{parent}"), &json!({ "name": name })).await;
        made.expect("the server is up")["uid"].as_str().expect("a uid").to_owned()
    };
    let org = group("", "soak".into()).await;
    let (mut divisions, mut teams) = (Vec::new(), Vec::new());
    for division in 0..10 {
        divisions.push(group(&org, format!("division {division}")).await);
        for team in 0..9 {
            teams.push(group(&divisions[division], format!("team {team}")).await);
        }
    }
    for n in 0..plan.subscriptions {
        let (place, events) = match n % 100 {
            0 => (&org, plan.changes),
            10 | 20 | 30 | 40 | 50 | 60 | 70 | 80 | 90 => (&divisions[n / 10 % 10], plan.changes / 10),
            _ => (&teams[n % 90], plan.changes / 90),
        };
        let sink = sinks.url(n, events);
        let path = format!("/events/v1/subscriptions/{place}");
        let made = client.call("POST", &path, &json!({ "sink": sink })).await.expect("the server is up");
        sinks.name(n, made["id"].as_str().expect("an id"));
    }
    teams
}

/// Creates its part of the repositories; returns those that were acknowledged.
async fn write(mut client: Client, n: usize, teams: Vec<String>, plan: Plan, written: Arc<AtomicUsize>) -> Vec<String> {
    let mut acknowledged = Vec::new();
    for at in (n..plan.changes).step_by(WRITERS) {
        let team = &teams[mixed(plan.seed, at as u64) as usize % teams.len()];
        let path = format!("/registry/v2/repos/{team}");
        match client.call("POST", &path, &json!({ "name": format!("r{at}") })).await {
            Some(made) => acknowledged.push(made["uid"].as_str().expect("a uid").to_owned()),
            // The server is being killed: no one knows what became of this one.
            None => tokio::time::sleep(Duration::from_millis(50)).await,
        }
        written.fetch_add(1, Ordering::Relaxed);
    }
    acknowledged
}
