//! Kills the real server at random moments and looks at what is left.
//!
//! Every round starts the binary on the storage of the round before, lets eight clients create and delete
//! over REST and gRPC, and ends with SIGKILL, now and then already during the start. Afterwards every
//! acknowledged write must be there and nothing may be there by half: rows, audit log, outbox and counts
//! are compared as a whole (see [`check`]).
//!
//! `BOWLINE_CRASH_ROUNDS` sets the number of rounds, `BOWLINE_CRASH_SEED` another course of events,
//! `BOWLINE_CRASH_BINARY` another build of the server.
//! PostgreSQL is at `BOWLINE_TEST_POSTGRES`; `BOWLINE_TEST_SKIP_POSTGRES=1` gives all rounds to SQLite.

#[path = "crash/check.rs"]
mod check;
#[path = "crash/client.rs"]
mod client;
#[path = "crash/findings.rs"]
mod findings;
#[path = "crash/imports.rs"]
mod imports;
#[path = "crash/mutation.rs"]
mod mutation;
#[path = "crash/packages.rs"]
mod packages;
#[path = "crash/pushes.rs"]
mod pushes;
#[path = "crash/random.rs"]
mod random;
#[path = "crash/rounds.rs"]
mod rounds;
#[path = "crash/server.rs"]
mod server;
#[path = "crash/storage.rs"]
mod storage;
#[path = "crash/writer.rs"]
mod writer;

use rounds::{Plan, env, run};

const ROUNDS: u64 = 25;
/// One round of pushes to so many of the others: they take longer.
const ROUNDS_TO_PUSHES: u64 = 6;
/// One round of imports to so many of the others.
const ROUNDS_TO_IMPORTS: u64 = 5;
/// One round of findings to so many of the others: each waits for the task that matches.
const ROUNDS_TO_FINDINGS: u64 = 20;
/// One round of packages to so many of the others.
const ROUNDS_TO_PACKAGES: u64 = 5;

fn plan() -> Plan {
    let number = |name: &str| env(name).map(|text| text.parse().expect("a number"));
    Plan { rounds: number("BOWLINE_CRASH_ROUNDS").unwrap_or(ROUNDS), seed: number("BOWLINE_CRASH_SEED").unwrap_or(1) }
}

fn skips_postgres() -> bool {
    env("BOWLINE_TEST_SKIP_POSTGRES").is_some_and(|skip| skip == "1")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sqlite_keeps_what_it_acknowledged() {
    let plan = plan();
    let rounds = if skips_postgres() { plan.rounds } else { plan.rounds.div_ceil(2) };
    run(None, &Plan { rounds, ..plan }).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn postgres_keeps_what_it_acknowledged() {
    if skips_postgres() {
        return;
    }
    let admin = postgres();
    let plan = plan();
    run(Some(admin), &Plan { rounds: plan.rounds / 2, ..plan }).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_registry_keeps_what_it_acknowledged() {
    let plan = plan();
    let plan = Plan { rounds: plan.rounds.div_ceil(ROUNDS_TO_PUSHES), ..plan };
    pushes::run(None, &plan).await;
    if !skips_postgres() {
        pushes::run(Some(&postgres()), &plan).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_wrong_file_of_an_upstream_is_completed() {
    let plan = plan();
    let plan = Plan { rounds: plan.rounds.div_ceil(ROUNDS_TO_PACKAGES), ..plan };
    packages::run(None, &plan).await;
    if !skips_postgres() {
        packages::run(Some(&postgres()), &plan).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_import_is_there_as_a_whole_or_not_at_all() {
    let plan = plan();
    let plan = Plan { rounds: plan.rounds.div_ceil(ROUNDS_TO_IMPORTS), ..plan };
    imports::run(None, &plan).await;
    if !skips_postgres() {
        imports::run(Some(&postgres()), &plan).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn findings_open_and_close_once() {
    let plan = plan();
    let plan = Plan { rounds: plan.rounds.div_ceil(ROUNDS_TO_FINDINGS), ..plan };
    findings::run(None, &plan).await;
    if !skips_postgres() {
        findings::run(Some(&postgres()), &plan).await;
    }
}

fn postgres() -> String {
    env("BOWLINE_TEST_POSTGRES").expect(
        "set BOWLINE_TEST_POSTGRES to the URL of an admin database, \
         or BOWLINE_TEST_SKIP_POSTGRES=1 to leave PostgreSQL untested",
    )
}
