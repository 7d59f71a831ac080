//! Exchanging an issuer's token for one of ours.

use crate::Outcome;
use crate::environment::Environment;
use crate::get::{bare_rate, cycle};
use crate::issuer::Issuer;
use crate::load::{Ask, Lane, Load, Shape};
use crate::sample::median;
use crate::server::Server;
use crate::table::{Table, Target, Unit, note};
use crate::world::World;

const TOKENS: u64 = 1000;
const SHAPE: Shape = Shape::Rest { connections: 32 };
const ROUNDS: usize = 3;

pub(crate) async fn run(environment: &Environment, table: &mut Table) -> Outcome<()> {
    let directory = tempfile::tempdir_in(data_place(environment)?)?;
    let server = Server::start(environment, directory.path()).await?;
    let issuer = Issuer::start().await?;
    let world = World::prepare(&server, &issuer, None).await?;
    let path = format!("/sts/exchange?aud={}&identity={}", server.url(), world.identity);
    let ask = |n| {
        let token = World::presented(&server, &issuer, n)?;
        Ask::new(http::Method::POST, path.clone(), &token, bytes::Bytes::new())
    };
    let asks = cycle((1..=TOKENS).map(ask))?;
    let json = Lane::rest(server.api).await?.send(asks(0)).await?;
    let mut load = Load::open(server.api, SHAPE, asks.clone()).await?;
    load.peak(environment.warm_up).await?;
    let mut rates = Vec::new();
    for _ in 0..ROUNDS {
        rates.push(load.peak(environment.measured).await?);
    }
    let rate = median(rates);
    let bare = bare_rate(environment, SHAPE, &json, asks).await?;
    table.row("exchanges of RS256 tokens, SQLite, 32 connections", Unit::PerSecond, Target::AtLeast(4000.0), rate);
    note(&format!("bare echo {bare:.0}/s, share {:.1} %", rate / bare * 100.0));
    let sample = load.latency(rate / 2.0, environment.measured).await?;
    note(&format!("p99 at half of peak {:.2} ms", sample.milliseconds(0.99)));
    Ok(())
}

/// Durable writes belong on the disk, which a temporary directory need not be.
pub(crate) fn data_place(environment: &Environment) -> Outcome<&std::path::Path> {
    std::fs::create_dir_all(&environment.cache)?;
    Ok(&environment.cache)
}
