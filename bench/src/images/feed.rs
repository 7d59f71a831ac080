//! A feed of many records beside many images: how long until all of it is matched, the first time and when it is refreshed,
//! and what a client's writes take meanwhile.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bowline_store::{Db, SqliteOptions, StoreError};
use http::Method;
use serde_json::json;

use super::{IMAGES, seed};
use crate::Outcome;
use crate::environment::Environment;
use crate::issuer::Issuer;
use crate::load::{Ask, Asks, Load, Shape};
use crate::records;
use crate::server::Server;
use crate::table::{Table, Target, Unit, note};
use crate::world::World;

/// Records; `BOWLINE_BENCH_RECORDS` sets another number.
const RECORDS: u64 = 300_000;
/// A client that creates repositories.
const WRITES_PER_SECOND: f64 = 20.0;
/// How long its writes are measured, alone and beside a refreshed feed.
const MEASURED: Duration = Duration::from_secs(60);

pub(crate) async fn run(environment: &Environment, table: &mut Table) -> Outcome<()> {
    let images = seed::images(environment, environment.images.unwrap_or(IMAGES)).await?;
    // The prepared directory stays as it is.
    let scratch = tempfile::tempdir_in(&environment.cache)?;
    let data = scratch.path().join("data");
    let copied = Command::new("cp").arg("-a").args([&images.directory, &data]).status()?;
    if !copied.success() {
        return Err("the prepared directory could not be copied".into());
    }
    let server = Server::start(environment, &data).await?;
    let issuer = Issuer::start().await?;
    let world = World::prepare(&server, &issuer, Some(images.org.clone())).await?;
    let token = scratch.path().join("token");
    std::fs::write(&token, server.operator_token()?)?;
    let count = environment.records.unwrap_or(RECORDS);
    let feed = scratch.path().join("feed.jsonl");
    records::generate(&feed, count)?;
    let started = Instant::now();
    records::import(environment, &server, &token, &feed)?;
    settled(&data).await?;
    table.row("a first feed is matched", Unit::Seconds, Target::None, started.elapsed().as_secs_f64());
    note(&format!("{count} records, {} findings", rows(&data, "SELECT count(*) FROM image_findings").await?));

    let org = images.org.clone();
    let mut load = Load::open(server.api, Shape::Rest { connections: 1 }, creations(org, &world.token)?).await?;
    let alone = load.latency(WRITES_PER_SECOND, MEASURED).await?;
    records::generate_next(&feed, count)?;
    let started = Instant::now();
    let importing = {
        let (environment, url) = (environment.clone(), server.url());
        tokio::task::spawn_blocking(move || {
            records::import_at(&environment, &url, &token, &feed).map_err(|e| e.to_string())
        })
    };
    let beside = load.latency(WRITES_PER_SECOND, MEASURED).await?;
    importing.await??;
    settled(&data).await?;
    table.row("a refreshed feed is matched", Unit::Seconds, Target::AtMost(600.0), started.elapsed().as_secs_f64());
    let ratio = beside.milliseconds(0.99) / alone.milliseconds(0.99);
    table.row("writes beside it, p99 of that alone", Unit::Times, Target::AtMost(1.5), ratio);
    for part in [0.5, 0.9, 0.99, 0.999] {
        let (beside, alone) = (beside.milliseconds(part), alone.milliseconds(part));
        note(&format!("p{} {beside:.2} ms, alone {alone:.2} ms", part * 100.0));
    }
    Ok(())
}

/// Every request makes another repository.
fn creations(org: String, token: &str) -> Outcome<Asks> {
    let sample = Ask::new(Method::POST, "", token, bytes::Bytes::new())?;
    Ok(Arc::new(move |n| {
        let body = json!({ "name": format!("written-{n}") }).to_string();
        Ask { path: format!("/registry/v2/repos/{org}"), body: body.into(), ..sample.clone() }
    }))
}

/// Waits until nothing waits for the task that matches.
async fn settled(data: &Path) -> Outcome<()> {
    const WAITING: &str = "SELECT (SELECT count(*) FROM record_sources WHERE matched_generation < generation)
        + EXISTS (SELECT 1 FROM package_versions WHERE state <> 0) + EXISTS (SELECT 1 FROM changed_versions)
        + EXISTS (SELECT 1 FROM waiting_sboms) + EXISTS (SELECT 1 FROM waiting_images)";
    while rows(data, WAITING).await? > 0 {
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    Ok(())
}

/// A number out of the database, past the server.
async fn rows(data: &Path, sql: &'static str) -> Outcome<i64> {
    let db = Db::open_sqlite(&data.join("bowline.db"), SqliteOptions::default()).await?;
    let read = db.read(move |tx| Box::pin(async move { tx.query_opt(sql, &[], |row| row.int(0)).await }));
    let number: Result<Option<i64>, StoreError> = read.await;
    db.close().await;
    Ok(number?.unwrap_or_default())
}
