//! The rounds: start, write, kill, start, compare.

use std::time::{Duration, Instant};

use tokio::task::JoinSet;

use crate::check::{Seen, check};
use crate::client::{Client, Reply};
use crate::mutation::Mutation;
use crate::random::Random;
use crate::server::{Addresses, Server, operator_token};
use crate::storage::Storage;
use crate::writer::{Ground, Sent, Writer};

const WRITERS: u64 = 8;
/// Rounds on one storage; then the next one begins with nothing, so that a long run does not slow down.
const ROUNDS_PER_STORAGE: u64 = 50;
/// One start in so many is killed as well.
const KILLED_STARTS: u64 = 5;

pub(crate) struct Plan {
    pub(crate) rounds: u64,
    pub(crate) seed: u64,
}

pub(crate) fn env(name: &str) -> Option<String> {
    std::env::var_os(name).and_then(|value| value.into_string().ok())
}

/// Runs the plan on SQLite, or on a PostgreSQL of this URL.
pub(crate) async fn run(postgres: Option<String>, plan: &Plan) {
    let engine = if postgres.is_some() { "PostgreSQL" } else { "SQLite" };
    let started = Instant::now();
    let mut seen = Seen::default();
    let mut left = plan.rounds;
    while left > 0 {
        let rounds = left.min(ROUNDS_PER_STORAGE);
        let seed = plan.seed.wrapping_mul(1_000_003).wrapping_add(left).wrapping_add(u64::from(postgres.is_some()));
        let storage = Storage::create(postgres.as_deref()).await;
        let part = Course::new(&storage, Random::new(seed)).run(rounds).await;
        storage.drop_database().await;
        seen.acknowledged += part.acknowledged;
        seen.open_and_present += part.open_and_present;
        seen.open_and_absent += part.open_and_absent;
        left -= rounds;
    }
    report(engine, plan.rounds, started.elapsed(), seen);
}

#[expect(clippy::print_stdout, reason = "shown with --nocapture: how much the rounds looked at")]
fn report(engine: &str, rounds: u64, time: Duration, seen: Seen) {
    let seconds = time.as_secs_f64();
    println!("{engine}: {rounds} rounds in {seconds:.1} s, {seen:?}");
}

/// What happens to one storage.
struct Course<'s> {
    storage: &'s Storage,
    addresses: Addresses,
    random: Random,
    setup: Vec<Sent>,
    ground: Ground,
    writers: Vec<Writer>,
}

impl<'s> Course<'s> {
    fn new(storage: &'s Storage, mut random: Random) -> Course<'s> {
        let writers = (0..WRITERS).map(|n| Writer::new(format!("writer{n}"), Random::new(random.next()))).collect();
        Course { storage, addresses: Addresses::free(), random, setup: Vec::new(), ground: Ground::default(), writers }
    }

    async fn run(mut self, rounds: u64) -> Seen {
        let server = self.start().await;
        let token = operator_token(self.storage);
        self.lay_ground(&token).await;
        let mut server = Some(server);
        let mut seen = Seen::default();
        for _ in 0..rounds {
            if let Some(running) = server.take() {
                self.write_and_kill(running, &token).await;
            }
            server = Some(self.start().await);
            seen = self.check().await;
        }
        seen
    }

    /// Starts until the server is ready; now and then a start is killed half way.
    async fn start(&mut self) -> Server {
        if self.random.below(KILLED_STARTS) == 0 {
            let server = Server::spawn(self.storage, self.addresses);
            let moment = Duration::from_micros(self.random.below(300_000));
            tokio::time::sleep(moment).await;
            server.kill();
        }
        let mut server = Server::spawn(self.storage, self.addresses);
        server.ready().await;
        server
    }

    async fn write_and_kill(&mut self, server: Server, token: &str) {
        let mut tasks = JoinSet::new();
        for (n, writer) in std::mem::take(&mut self.writers).into_iter().enumerate() {
            tasks.spawn(writer.work(self.addresses, n % 2 == 1, token.to_owned(), self.ground.clone()));
        }
        let moment = Duration::from_micros(20_000 + self.random.below(400_000));
        tokio::time::sleep(moment).await;
        server.kill();
        self.writers = tasks.join_all().await;
    }

    /// The database is opened for the check only: a second process that keeps a log open would spare the
    /// next start its recovery.
    async fn check(&self) -> Seen {
        let db = self.storage.open().await;
        let sent: Vec<&Sent> = self.setup.iter().chain(self.writers.iter().flat_map(|writer| &writer.log)).collect();
        let seen = check(&db, &self.ground, &sent).await;
        db.close().await;
        seen
    }

    /// Four groups of one organization, and an identity to bind.
    async fn lay_ground(&mut self, token: &str) {
        let mut client = Client::connect(self.addresses.api, true, token).await.expect("a connection");
        let group = |parent: &str, name: &str| Mutation::CreateGroup { parent: parent.into(), name: name.into() };
        let org = self.prepare(&mut client, group("", "crash")).await;
        for name in ["first", "second", "third", "fourth"] {
            let uid = self.prepare(&mut client, group(&org, name)).await;
            self.ground.groups.push(uid);
        }
        let identity = Mutation::CreateIdentity { parent: org, name: "somebody".into() };
        self.ground.identity = self.prepare(&mut client, identity).await;
    }

    async fn prepare(&mut self, client: &mut Client, mutation: Mutation) -> String {
        let request_id = format!("setup-{}", self.setup.len());
        let reply = client.send(&request_id, &mutation).await;
        let Reply::Done(uid) = reply.clone() else { panic!("{mutation:?}: {reply:?}") };
        self.setup.push(Sent { request_id, mutation, reply });
        uid
    }
}
