//! Durable creations of repositories: row, audit row, event and count in one commit.

use std::sync::Arc;

use http::Method;
use serde_json::json;

use crate::Outcome;
use crate::environment::Environment;
use crate::exchange::data_place;
use crate::get::bare_rate;
use crate::issuer::Issuer;
use crate::load::{Ask, Asks, Lane, Load, Shape};
use crate::postgres::Database;
use crate::sample::median;
use crate::server::Server;
use crate::table::{Table, Target, Unit, note};
use crate::world::World;

const GROUPS: u64 = 32;
const SHAPE: Shape = Shape::Rest { connections: 32 };
const ROUNDS: usize = 3;

pub(crate) async fn run(environment: &Environment, table: &mut Table) -> Outcome<()> {
    let directory = tempfile::tempdir_in(data_place(environment)?)?;
    let server = Server::start(environment, &directory.path().join("data")).await?;
    measure(environment, table, &server, "SQLite", 8000.0).await?;
    drop(server);
    let Some(admin) = &environment.postgres else {
        note("PostgreSQL is not measured: BOWLINE_TEST_POSTGRES is not set");
        return Ok(());
    };
    let database = Database::create(admin).await?;
    let server = Server::on_postgres(environment, &database, &directory.path().join("key")).await?;
    let measured = measure(environment, table, &server, "PostgreSQL", 2000.0).await;
    drop(server);
    database.drop_database().await?;
    measured
}

async fn measure(
    environment: &Environment,
    table: &mut Table,
    server: &Server,
    engine: &str,
    least: f64,
) -> Outcome<()> {
    let issuer = Issuer::start().await?;
    let mut world = World::prepare(server, &issuer, None).await?;
    let mut groups = Vec::new();
    for n in 0..GROUPS {
        groups.push(world.group(&format!("group-{n}")).await?);
    }
    let asks = creations(groups, &world.token)?;
    let json = Lane::rest(server.api).await?.send(asks(u64::MAX)).await?;
    let mut load = Load::open(server.api, SHAPE, asks.clone()).await?;
    load.peak(environment.warm_up).await?;
    let mut rates = Vec::new();
    for _ in 0..ROUNDS {
        rates.push(load.peak(environment.measured).await?);
    }
    let rate = median(rates);
    let bare = bare_rate(environment, SHAPE, &json, asks).await?;
    let line = format!("durable creations of repositories, {engine}, 32 connections");
    table.row(&line, Unit::PerSecond, Target::AtLeast(least), rate);
    note(&format!("bare echo {bare:.0}/s, share {:.1} %", rate / bare * 100.0));
    let sample = load.latency(rate / 2.0, environment.measured).await?;
    note(&format!("p99 at half of peak {:.2} ms", sample.milliseconds(0.99)));
    Ok(())
}

/// Every request makes another repository, in every group in turn.
fn creations(groups: Vec<String>, token: &str) -> Outcome<Asks> {
    let sample = Ask::new(Method::POST, "", token, bytes::Bytes::new())?;
    Ok(Arc::new(move |n| {
        let group = &groups[(n % groups.len() as u64) as usize];
        let body = json!({
            "name": format!("repository-{n}"), "bundles": ["base", "fips"], "activeTags": ["latest", "1.27"],
        });
        Ask { path: format!("/registry/v2/repos/{group}"), body: body.to_string().into(), ..sample.clone() }
    }))
}
