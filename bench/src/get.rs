//! Reading one repository with a token, over both transports.

use std::sync::Arc;

use bowline_contract::v2::registry as v2;
use bowline_contract::v2::registry::rpc::repos_service::{CreateRepo, GetRepo};
use bytes::Bytes;

use crate::Outcome;
use crate::echo::Echo;
use crate::environment::Environment;
use crate::issuer::Issuer;
use crate::load::{Ask, Asks, Lane, Load, Shape};
use crate::sample::median;
use crate::seed::sample_repo;
use crate::server::Server;
use crate::table::{Table, Target, Unit, note};
use crate::world::World;

const REPOS: usize = 256;
const ROUNDS: usize = 3;
const REST: Shape = Shape::Rest { connections: 32 };
const GRPC: Shape = Shape::Grpc { connections: 4, streams: 16 };

pub(crate) async fn run(environment: &Environment, table: &mut Table) -> Outcome<()> {
    let directory = tempfile::tempdir()?;
    let server = Server::start(environment, directory.path()).await?;
    let issuer = Issuer::start().await?;
    let mut world = World::prepare(&server, &issuer, None).await?;
    let repos = create_repos(&mut world).await?;
    let first = repos.first().cloned().unwrap_or_default();
    let rest = Ask::get(format!("/registry/v2/repos/{}", first.uid), &world.token)?;
    let json = Lane::rest(server.api).await?.send(rest).await?;
    let echo = Echo::start(&json, &first).await?;

    let token = world.token.clone();
    let asks = cycle(repos.iter().map(|repo| Ask::get(format!("/registry/v2/repos/{}", repo.uid), &token)))?;
    compare(environment, table, "GET a repository, REST", REST, asks, (server.api, echo.rest)).await?;
    let request = |repo: &v2::Repo| v2::GetRepoRequest { uid: repo.uid.clone() };
    let asks = cycle(repos.iter().map(|repo| Ask::grpc::<GetRepo>(&request(repo), &token)))?;
    compare(environment, table, "GET a repository, gRPC", GRPC, asks, (server.api, echo.grpc)).await
}

async fn create_repos(world: &mut World) -> Outcome<Vec<v2::Repo>> {
    let parent = world.group("images").await?;
    let mut repos = Vec::with_capacity(REPOS);
    for n in 0..REPOS {
        let repo = Some(sample_repo(format!("repository-{n}")));
        repos.push(world.call::<CreateRepo>(&v2::CreateRepoRequest { parent: parent.clone(), repo }).await?);
    }
    Ok(repos)
}

/// These requests in turn.
pub(crate) fn cycle(asks: impl Iterator<Item = Outcome<Ask>>) -> Outcome<Asks> {
    let asks: Vec<Ask> = asks.collect::<Outcome<_>>()?;
    Ok(Arc::new(move |n| asks[n as usize % asks.len()].clone()))
}

async fn compare(
    environment: &Environment,
    table: &mut Table,
    line: &str,
    shape: Shape,
    asks: Asks,
    (server, echo): (std::net::SocketAddr, std::net::SocketAddr),
) -> Outcome<()> {
    let mut ours = Load::open(server, shape, asks.clone()).await?;
    let mut bare = Load::open(echo, shape, asks).await?;
    ours.peak(environment.warm_up).await?;
    bare.peak(environment.warm_up).await?;
    let (mut peaks, mut bare_peaks) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        bare_peaks.push(bare.peak(environment.measured).await?);
        peaks.push(ours.peak(environment.measured).await?);
    }
    let (peak, bare_peak) = (median(peaks), median(bare_peaks));
    table.row(line, Unit::PerSecond, Target::None, peak);
    note(&format!("bare echo {bare_peak:.0}/s"));
    table.row("  share of the bare echo", Unit::Percent, Target::AtLeast(40.0), peak / bare_peak * 100.0);
    let sample = ours.latency(peak / 2.0, environment.measured * 2).await?;
    table.row("  p99 at half of peak", Unit::Milliseconds, Target::AtMost(5.0), sample.milliseconds(0.99));
    note(&format!("p50 {:.2} ms, p99.9 {:.2} ms", sample.milliseconds(0.5), sample.milliseconds(0.999)));
    Ok(())
}

/// The closed-loop rate of an echo of this payload, for comparison.
pub(crate) async fn bare_rate(environment: &Environment, shape: Shape, json: &Bytes, ask: Asks) -> Outcome<f64> {
    let echo = Echo::start(json, &v2::Repo::default()).await?;
    let mut bare = Load::open(echo.rest, shape, ask).await?;
    bare.peak(environment.warm_up).await?;
    bare.peak(environment.measured).await
}
