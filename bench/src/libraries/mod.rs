//! The catalogue of packages: its room, and lists, searches and versions among all of them; and the room of hosted packages.

mod cold;
mod hosted;
mod prepare;

use crate::Outcome;
use crate::environment::Environment;
use crate::issuer::Issuer;
use crate::load::{Ask, Lane, Load, Shape, always};
use crate::server::Server;
use crate::table::{Table, Target, Unit, note};
use crate::world::World;
use prepare::{EACH, prepared};

const VERSIONS: usize = 1_000_000;
/// Bytes that a version may take: ten million have room in 5 GB.
const ROOM: f64 = 500.0;

pub(crate) async fn run(environment: &Environment, table: &mut Table) -> Outcome<()> {
    let versions = environment.versions.unwrap_or(VERSIONS);
    let directory = prepared(environment, versions).await?;
    let room = cold::database(&directory).metadata()?.len() as f64;
    let line = format!("database with {versions} versions of the catalogue");
    table.row(&line, Unit::Megabytes, Target::AtMost(versions as f64 * ROOM / 1e6), room / 1e6);
    note(&format!("{:.0} bytes a version", room / versions as f64));
    cold::pages(environment, table, &directory, versions / EACH).await?;
    let server = Server::start(environment, &directory).await?;
    let issuer = Issuer::start().await?;
    let world = World::prepare(&server, &issuer, None).await?;
    searches(table, &server, &world.token, versions).await?;
    drop(server);
    hosted::room(environment, table).await
}

async fn searches(table: &mut Table, server: &Server, token: &str, versions: usize) -> Outcome<()> {
    let deep = deep_page(server, token, versions / EACH).await?;
    for (what, path) in [
        ("first page of artifacts", "/libraries/v1/artifacts?includeUpstream=true".to_owned()),
        ("page of one ecosystem, in its middle", deep),
        ("search for a common text", "/libraries/v1/artifacts?query=client&includeUpstream=true".into()),
        ("search for a rare text", "/libraries/v1/artifacts?query=x-1234".into()),
        ("search for two characters", "/libraries/v1/artifacts?query=q-".into()),
        ("search for nothing that is there", "/libraries/v1/artifacts?query=client-zz".into()),
        ("npm's search, by relevance", "/libraries/v1/npm/packages?query=client".into()),
        ("versions of an artifact", "/libraries/v2/artifacts/python:client-lib-0/versions".into()),
    ] {
        let ask = Ask::get(path, token)?;
        let mut load = Load::open(server.api, Shape::Rest { connections: 1 }, always(ask)).await?;
        load.one_by_one(20).await?;
        let sample = load.one_by_one(200).await?;
        let line = format!("{what}, {versions} versions, p99");
        table.row(&line, Unit::Milliseconds, Target::AtMost(20.0), sample.milliseconds(0.99));
        note(&format!("median {:.2} ms", sample.milliseconds(0.5)));
    }
    Ok(())
}

/// The address of a page in the middle of an ecosystem.
async fn deep_page(server: &Server, token: &str, artifacts: usize) -> Outcome<String> {
    let list = "/libraries/v2/artifacts?ecosystems=ECOSYSTEM_PYTHON";
    // A third is Python, and half of that is built.
    let skip = artifacts / 6 / 2;
    let body = Lane::rest(server.api).await?.send(Ask::get(format!("{list}&skip={skip}"), token)?).await?;
    let page: serde_json::Value = serde_json::from_slice(&body)?;
    let total = page["totalCount"].as_str().unwrap_or_default().to_owned();
    note(&format!("{total} artifacts of Python are built"));
    let next = page["nextPageToken"].as_str().filter(|next| !next.is_empty()).ok_or("no page in the middle")?;
    Ok(format!("{list}&pageToken={next}"))
}
