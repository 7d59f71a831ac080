//! Searches in the SBOMs of many images, and how soon a new record of a vulnerability is matched.

pub(crate) mod feed;
mod seed;

use std::io::Write as _;
use std::path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bowline_core::{Clock as _, SystemClock};
use serde_json::{Value, json};

use crate::Outcome;
use crate::environment::Environment;
use crate::issuer::Issuer;
use crate::load::{Ask, Asks, Lane, Load, Shape};
use crate::server::Server;
use crate::table::{Table, Target, Unit, note};
use crate::world::World;

/// The path of the n-th search.
type Path = Box<dyn Fn(u64) -> String + Send + Sync>;

/// Images; `BOWLINE_BENCH_IMAGES` sets another number.
const IMAGES: usize = 100_000;
/// Searches of each kind.
const SEARCHES: usize = 500;
/// Records that come one after the other.
const RECORDS: usize = 10;

pub(crate) async fn run(environment: &Environment, table: &mut Table) -> Outcome<()> {
    let count = environment.images.unwrap_or(IMAGES);
    let images = seed::images(environment, count).await?;
    let server = Server::start(environment, &images.directory).await?;
    let issuer = Issuer::start().await?;
    let world = World::prepare(&server, &issuer, Some(images.org.clone())).await?;
    note(&format!("{count} images of {} components", seed::COMPONENTS));
    let find = format!("/components/v1/images?scope={}", images.org);
    let packages = images.packages as u64;
    let package = move |n: u64| seed::package_name((n * 7919 % packages) as usize);
    let everywhere = format!("{find}&package=pkg:{}&below=1.4.0", seed::EVERYWHERE);
    let (of_package, below) = (find.clone(), find.clone());
    let searches: [(&str, Path); 4] = [
        ("images with a package", Box::new(move |n| format!("{of_package}&package=pkg:{}", package(n)))),
        ("below a version", Box::new(move |n| format!("{below}&package=pkg:{}&below=1.2.0", package(n)))),
        ("of a package in every image", Box::new(move |_| everywhere.clone())),
        ("with a rare license", Box::new(move |_| format!("{find}&license=GPL-3.0-only"))),
    ];
    for (what, path) in searches {
        let token = world.token.clone();
        let asks: Asks = Arc::new(move |n| {
            Ask::get(path(n), &token).unwrap_or_else(|error| panic!("a search is no request: {error}"))
        });
        let mut load = Load::open(server.api, Shape::Rest { connections: 1 }, asks).await?;
        load.one_by_one(20).await?;
        let sample = load.one_by_one(SEARCHES).await?;
        table.row(&format!("{what}, p99"), Unit::Milliseconds, Target::AtMost(50.0), sample.milliseconds(0.99));
        note(&format!("median {:.2} ms", sample.milliseconds(0.5)));
    }
    let slowest = matched(environment, &server, &world, &images.org).await?;
    let line = format!("a new record is matched, slowest of {RECORDS}");
    table.row(&line, Unit::Seconds, Target::AtMost(5.0), slowest.as_secs_f64());
    Ok(())
}

/// From the end of an import of one record to the first response that has its match.
async fn matched(environment: &Environment, server: &Server, world: &World, org: &str) -> Outcome<Duration> {
    let directory = tempfile::tempdir()?;
    let token = directory.path().join("token");
    std::fs::write(&token, server.operator_token()?)?;
    let mut lane = Lane::rest(server.api).await?;
    let mut slowest = Duration::ZERO;
    // Ids of their own: the directory is used again.
    let run = SystemClock.now();
    for number in 0..RECORDS {
        let id = format!("BENCH-{run}-{number}");
        let path = directory.path().join("record.jsonl");
        writeln!(std::fs::File::create(&path)?, "{}", record(&id, &seed::package_name(number * 1000 + 1)))?;
        import(environment, server, &token, &path)?;
        let started = Instant::now();
        loop {
            let ask = Ask::get(format!("/matches/v1/matches?scope={org}&vulnerability={id}"), &world.token)?;
            let page: Value = serde_json::from_slice(&lane.send(ask).await?)?;
            if page["matches"].as_array().is_some_and(|matches| !matches.is_empty()) {
                break;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        slowest = slowest.max(started.elapsed());
    }
    Ok(slowest)
}

fn record(id: &str, package: &str) -> Value {
    let name = package.trim_start_matches("npm/");
    json!({
        "schema_version": "1.7.0", "id": id, "modified": "2026-01-01T00:00:00Z", "published": "2026-01-01T00:00:00Z",
        "summary": "A record for measurements",
        "affected": [{
            "package": { "ecosystem": "npm", "name": name },
            "ranges": [{ "type": "SEMVER", "events": [{ "introduced": "0" }, { "fixed": "9.0.0" }] }],
        }],
    })
}

fn import(environment: &Environment, server: &Server, token: &path::Path, path: &path::Path) -> Outcome<()> {
    let status = Command::new(&environment.server)
        .args(["feeds", "import", "osv", "--source", "bench", "--licence", "CC0-1.0", "--api", &server.url()])
        .arg("--token-file")
        .args([token, path])
        .stdout(Stdio::null())
        .status()?;
    if status.success() { Ok(()) } else { Err("the import failed".into()) }
}
