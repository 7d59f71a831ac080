//! What explains, previews, searches and exports, each against a plain call of the same caller in the same run.

mod export;
mod preview;

use std::time::Duration;

use crate::Outcome;
use crate::environment::Environment;
use crate::issuer::Issuer;
use crate::load::{Ask, Load, Shape, always};
use crate::sample::median;
use crate::seed;
use crate::server::Server;
use crate::table::{Table, Target, Unit, note};
use crate::world::World;

pub(super) const ONE: Shape = Shape::Rest { connections: 1 };
/// Calls of one turn, one at a time.
const CALLS: usize = 2000;
const TURNS: usize = 5;

pub(crate) async fn run(environment: &Environment, table: &mut Table) -> Outcome<()> {
    let million = seed::repositories(environment, 1000, 1_000_000).await?;
    let server = Server::start(environment, &million.directory).await?;
    let issuer = Issuer::start().await?;
    let world = World::prepare(&server, &issuer, Some(million.org.clone())).await?;
    explanations(table, &server, &world, &million.group).await?;
    searches(table, &server, &world).await?;
    drop(server);
    preview::run(environment, table).await?;
    export::run(environment, table).await
}

/// The caller's own access explained, and a group read by the same caller, by turns.
async fn explanations(table: &mut Table, server: &Server, world: &World, group: &str) -> Outcome<()> {
    let path = format!("/iam/v1/access:explain?scope={group}&capabilities=repo.create");
    let mut explain = Load::open(server.api, ONE, always(Ask::get(path, &world.token)?)).await?;
    let get = Ask::get(format!("/iam/v2/groups/{group}"), &world.token)?;
    let mut get = Load::open(server.api, ONE, always(get)).await?;
    let (mut explained, mut read) = (Vec::new(), Vec::new());
    for _ in 0..TURNS {
        explained.push(explain.one_by_one(CALLS).await?.milliseconds(0.99));
        read.push(get.one_by_one(CALLS).await?.milliseconds(0.99));
    }
    let [explained, read] = [explained, read].map(median);
    table.row("p99 of an explanation, of that of a GET", Unit::Times, Target::AtMost(2.0), explained / read);
    note(&format!("{explained:.2} and {read:.2} ms"));
    Ok(())
}

/// Texts that all names have, some, one and none, among a million names.
async fn searches(table: &mut Table, server: &Server, world: &World) -> Outcome<()> {
    for (what, text) in [
        ("that all names have", "pos"),
        ("of three digits", "777"),
        ("of few names", "98765"),
        ("of one name", "repository-123456"),
        ("that no name has", "zzz"),
        ("whose parts are in all names", "yrotisoper"),
    ] {
        let ask = Ask::get(format!("/search/v1/results?query={text}"), &world.token)?;
        let mut load = Load::open(server.api, ONE, always(ask)).await?;
        load.one_by_one(20).await?;
        let sample = load.one_by_one(300).await?;
        let line = format!("search of a million names for a text {what}, p99");
        table.row(&line, Unit::Milliseconds, Target::AtMost(30.0), sample.milliseconds(0.99));
        note(&format!("median {:.2} ms", sample.milliseconds(0.5)));
    }
    Ok(())
}

/// How long another task is given before the measurement begins.
pub(super) const BEFORE: Duration = Duration::from_millis(200);
