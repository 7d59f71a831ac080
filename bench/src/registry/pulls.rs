//! What a pull costs the server, beside another build of it: the price of counting pulls.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::task::JoinSet;

use super::wire::{Side, Wire};
use super::{KIB, image, known, side};
use crate::Outcome;
use crate::environment::Environment;
use crate::exchange::data_place;
use crate::issuer::Issuer;
use crate::sample::median;
use crate::server::Server;
use crate::table::{Table, Target, Unit, note};

/// Pulls of one turn.
const PULLS: u64 = 20_000;
const CONNECTIONS: usize = 4;
pub(super) const TURNS: usize = 7;

pub(crate) async fn run(environment: &Environment, table: &mut Table) -> Outcome<()> {
    let Some(baseline) = &environment.baseline else {
        note("the cost of a pull is not measured: BOWLINE_BENCH_BASELINE is not set");
        return Ok(());
    };
    let issuer = Issuer::start().await?;
    let builds = [&environment.server, baseline];
    let mut servers = Vec::new();
    for build in builds {
        let directory = tempfile::tempdir_in(data_place(environment)?)?;
        let environment = Environment { server: build.clone(), ..environment.clone() };
        let server = Server::start(&environment, &directory.path().join("data")).await?;
        let side = side(&server, &issuer).await?;
        image(&mut Wire::open(&side).await?, "pulled", [known(3, KIB), known(4, 4 * KIB)]).await?;
        turn(&server, &side).await?;
        servers.push((server, side, directory));
    }
    let mut figures = [Vec::new(), Vec::new()];
    for _ in 0..TURNS {
        for ((server, side, _), figures) in servers.iter().zip(&mut figures) {
            figures.push(turn(server, side).await?);
        }
    }
    let [now, before] = figures.map(median);
    let line = "processor time of the server per pull, of the other build's";
    table.row(line, Unit::Percent, Target::AtMost(105.0), now / before * 100.0);
    note(&format!("{now:.3} and {before:.3} seconds per 1,000 pulls of a manifest, median of {TURNS} turns"));
    Ok(())
}

/// Processor seconds of the server per 1,000 pulls of the manifest with the tag `pulled`.
pub(super) async fn turn(server: &Server, side: &Side) -> Outcome<f64> {
    let next = Arc::new(AtomicU64::new(0));
    let before = server.processor_seconds()?;
    let mut tasks = JoinSet::new();
    for _ in 0..CONNECTIONS {
        let (mut wire, next) = (Wire::open(side).await?, next.clone());
        tasks.spawn(async move {
            while next.fetch_add(1, Ordering::Relaxed) < PULLS {
                wire.pull("manifests/pulled").await?;
            }
            Outcome::Ok(())
        });
    }
    while let Some(joined) = tasks.join_next().await {
        joined??;
    }
    // Pulls are counted and reported a little later.
    tokio::time::sleep(std::time::Duration::from_secs(2)).await;
    Ok((server.processor_seconds()? - before) * 1000.0 / PULLS as f64)
}
