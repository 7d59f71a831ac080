//! Exchanging an issuer's token for one of this server, which is signed by either algorithm.

use crate::Outcome;
use crate::environment::Environment;
use crate::get::{bare_rate, cycle};
use crate::issuer::Issuer;
use crate::load::{Ask, Asks, Lane, Load, Shape};
use crate::sample::median;
use crate::server::Server;
use crate::table::{Table, Target, Unit, note};
use crate::world::World;

const TOKENS: u64 = 1000;
const SHAPE: Shape = Shape::Rest { connections: 32 };
const ROUNDS: usize = 3;

/// Servers that sign by ES256 and by RS256, measured in turn.
pub(crate) async fn run(environment: &Environment, table: &mut Table) -> Outcome<()> {
    let issuer = Issuer::start().await?;
    let mut es256 = Signing::start(environment, &issuer, "es256").await?;
    let mut rs256 = Signing::start(environment, &issuer, "rs256").await?;
    for round in 0..=ROUNDS {
        for signing in [&mut es256, &mut rs256] {
            signing.round(environment, round > 0).await?;
        }
    }
    let (fast, slow) = (es256.rate(), rs256.rate());
    let bare = bare_rate(environment, SHAPE, &es256.json, es256.asks.clone()).await?;
    for (signing, rate) in [(&mut es256, fast), (&mut rs256, slow)] {
        let algorithm = signing.algorithm.to_uppercase();
        let line = format!("exchanges, our tokens by {algorithm}, SQLite, 32 connections");
        table.row(&line, Unit::PerSecond, Target::AtLeast(4000.0), rate);
        note(&format!("bare echo {bare:.0}/s, share {:.1} %", rate / bare * 100.0));
        let sample = signing.load.latency(rate / 2.0, environment.measured).await?;
        note(&format!("p99 at half of peak {:.2} ms", sample.milliseconds(0.99)));
    }
    note(&format!("an RS256 signature takes {:.1} % of an exchange's time", (1.0 - slow / fast) * 100.0));
    Ok(())
}

/// A server that signs by one algorithm, under load.
struct Signing {
    algorithm: &'static str,
    asks: Asks,
    json: bytes::Bytes,
    load: Load,
    rates: Vec<f64>,
    _server: Server,
    _directory: tempfile::TempDir,
}

impl Signing {
    async fn start(environment: &Environment, issuer: &Issuer, algorithm: &'static str) -> Outcome<Signing> {
        let directory = tempfile::tempdir_in(data_place(environment)?)?;
        let server = Server::signing(environment, directory.path(), algorithm).await?;
        let world = World::prepare(&server, issuer, None).await?;
        let path = format!("/sts/exchange?aud={}&identity={}", server.url(), world.identity);
        let ask = |n| {
            let token = World::presented(&server, issuer, n)?;
            Ask::new(http::Method::POST, path.clone(), &token, bytes::Bytes::new())
        };
        let asks = cycle((1..=TOKENS).map(ask))?;
        let json = Lane::rest(server.api).await?.send(asks(0)).await?;
        let load = Load::open(server.api, SHAPE, asks.clone()).await?;
        Ok(Signing { algorithm, asks, json, load, rates: Vec::new(), _server: server, _directory: directory })
    }

    /// One round at the peak, which counts or warms up.
    async fn round(&mut self, environment: &Environment, counts: bool) -> Outcome<()> {
        let rate = self.load.peak(if counts { environment.measured } else { environment.warm_up }).await?;
        self.rates.extend(counts.then_some(rate));
        Ok(())
    }

    fn rate(&self) -> f64 {
        median(self.rates.clone())
    }
}

/// Durable writes belong on the disk, which a temporary directory need not be.
pub(crate) fn data_place(environment: &Environment) -> Outcome<&std::path::Path> {
    std::fs::create_dir_all(&environment.cache)?;
    Ok(&environment.cache)
}
