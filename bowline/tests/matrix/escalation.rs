//! No escalation: whatever a caller asks for, no one under their control comes to hold more than they held before.
//!
//! Every method that changes who may do what is called by every kind of caller, with whole and narrowed tokens, with a
//! request that tries to give more than the caller has. After each call that is let through, everything that the
//! attacker has by then is used (codes are redeemed, accounts and identities signed in, directories filled), and what the
//! tokens allow is compared with what the oracle says the caller held before. `golden/no_escalation.txt` has the
//! outcomes; `UPDATE_GOLDEN=1` rewrites it. A new method needs a line in `escalation/attacks.rs`.

#[path = "escalation/attacks.rs"]
mod attacks;
#[path = "escalation/callers.rs"]
mod callers;
#[path = "escalation/chains.rs"]
mod chains;
#[path = "escalation/complete.rs"]
mod complete;
#[path = "escalation/people.rs"]
pub(crate) mod people;
#[path = "escalation/reach.rs"]
mod reach;
#[path = "escalation/table.rs"]
mod table;
#[path = "escalation/world.rs"]
mod world;

use bowline_testkit::{Actor, Engine, RestReply, TestServer, engines};
use futures_util::stream::{self, StreamExt as _};
use serde_json::Value as Json;

use self::attacks::{ATTACKS, Attack, method};
use self::callers::{Callers, KINDS, TOKENS};
use self::reach::Domain;
use self::world::{Stage, World, call};
use crate::oracle;

#[tokio::test]
async fn no_method_gives_a_caller_more_than_they_held() {
    let server = TestServer::start(Engine::Sqlite).await;
    let outcomes = attack_all(&server, |_, _| true).await;
    server.stop().await;
    table::compare(&outcomes);
}

/// The guards are the same code; what differs is how rows are read.
#[tokio::test]
async fn some_methods_give_no_more_on_postgres() {
    if engines().contains(&Engine::Postgres) {
        let server = TestServer::start(Engine::Postgres).await;
        attack_all(&server, |attack, kind| (attack + kind) % 7 == 0).await;
        server.stop().await;
    }
}

/// How a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    /// There is no such token.
    NoToken,
    Denied,
    /// Refused for another reason than rights.
    Refused,
    LetThrough,
}

/// The outcomes of an attack, by kind of caller and token.
type Outcomes = Vec<Row>;
type Row = Vec<[Outcome; TOKENS.len()]>;

/// How many attacks run beside each other: each has worlds of its own.
const AT_ONCE: usize = 8;

async fn attack_all(server: &TestServer, chosen: impl Fn(usize, usize) -> bool) -> Outcomes {
    let stage = Stage::new(server).await;
    let attacks = ATTACKS.iter().enumerate().map(|(number, attack)| {
        let kinds: Vec<usize> = (0..KINDS.len()).filter(|kind| chosen(number, *kind)).collect();
        attack_by(&stage, attack, kinds)
    });
    let done: Vec<(Row, Vec<String>)> = stream::iter(attacks).buffered(AT_ONCE).collect().await;
    let (outcomes, gains): (Outcomes, Vec<Vec<String>>) = done.into_iter().unzip();
    let gains = gains.concat();
    assert!(gains.is_empty(), "{} gains:\n{}", gains.len(), gains.join("\n"));
    outcomes
}

/// An attack by every kind of caller with every token: how it ended, and what was gained.
async fn attack_by(stage: &Stage<'_>, attack: &Attack, kinds: Vec<usize>) -> (Row, Vec<String>) {
    let contract = &stage.server.server().parts().contract;
    let method = method(contract, attack.what);
    let needed = oracle::needed_of(contract, &method.full_name);
    let text = format!("{} {}", attack.what, attack.body);
    let (mut world, mut callers) = (World::for_requests(stage, &text).await, Callers::default());
    let mut row = vec![[Outcome::NoToken; TOKENS.len()]; KINDS.len()];
    let mut gained = Vec::new();
    for kind in kinds {
        for (token, cell) in TOKENS.into_iter().zip(&mut row[kind]) {
            let Some(caller) = callers.get(stage, &world, kind, &needed, token).await else { continue };
            let reply = send(stage, &mut world, attack.what, attack.body, &caller.actor).await;
            *cell = outcome(&reply);
            if *cell == Outcome::LetThrough {
                let gains =
                    reach::gains(stage, &world, &caller, std::slice::from_ref(&caller.actor), domain(attack.what))
                        .await;
                let case = format!("{} [{}] by {}, {token:?}", attack.what, attack.by, KINDS[kind].name);
                gained.extend(gains.iter().map(|gain| format!("{case}: {gain}")));
                (world, callers) = (World::for_requests(stage, &text).await, Callers::default());
            }
        }
    }
    (row, gained)
}

fn outcome(reply: &RestReply) -> Outcome {
    match reply.status {
        200 => Outcome::LetThrough,
        401 | 403 => Outcome::Denied,
        status => {
            assert!((400..500).contains(&status), "{status}: {}", reply.text());
            Outcome::Refused
        }
    }
}

/// What a request can give: rights of identities, or what is served.
fn domain(what: &str) -> Domain {
    if what.contains(" /iam/") { Domain::Rights } else { Domain::Content }
}

/// Sends a request, and keeps what an answer hands out.
async fn send(stage: &Stage<'_>, world: &mut World, what: &str, body: &str, actor: &Actor) -> RestReply {
    let body = world.fill(body, stage);
    let body = if body.is_empty() { Json::Null } else { serde_json::from_str(&body).expect("JSON") };
    let reply = call(actor, &world.fill(what, stage), body).await;
    if reply.status == 200 {
        let answer = reply.json();
        if what.starts_with("POST")
            && let Some(made) = answer["uid"].as_str()
        {
            world.made = made.into();
        }
        world.codes.extend(answer["code"].as_str().map(String::from));
        if let (Some(token), true) = (answer["token"].as_str(), what.contains("ScimToken")) {
            let provider = if what.contains("{provider}") { &world.provider } else { &world.directory };
            world.directories.push((provider.clone(), token.into()));
        }
    }
    reply
}
